"""Models: Model, Sequential, and what copies, saves and loads them."""

from __future__ import annotations

from typing import Any

from tallow.io.json_object import parse_object
from tallow.keras.layers import Input
from tallow.keras.models.model import Model
from tallow.keras.models.sequential import Sequential
from tallow.keras.saving import load_model, save_model
from tallow.keras.serialization import custom_object_scope, deserialize_keras_object

MAX_DEPTH = 200


def clone_model(model: Model) -> Any:
    """A model of the same layers, with weights of its own, newly drawn."""
    return type(model).from_config(model.get_config())


def model_from_json(json_string: str, custom_objects: Any = None) -> Any:
    """The model that `to_json` described, with weights newly drawn; Keras' own descriptions are read as well.

    Raises:  CheckpointError for what is not JSON; ArgumentError for a class that is neither Keras' nor in
        `custom_objects`
    """
    config = parse_object(json_string.encode(), "model_from_json", MAX_DEPTH)
    with custom_object_scope(custom_objects or {}):
        return deserialize_keras_object(config)


Functional = Model  # what Keras calls a model of tensors in its files

__all__ = ["Functional", "Input", "Model", "Sequential", "clone_model", "load_model", "model_from_json", "save_model"]
