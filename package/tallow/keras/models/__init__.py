"""Models: Model, Sequential, and functions that clone, save and load them."""

from __future__ import annotations

from typing import Any

from tallow.io.json_object import parse_object
from tallow.keras.layers import Input, Layer
from tallow.keras.models.model import Model
from tallow.keras.models.sequential import Sequential
from tallow.keras.saving import load_model, save_model
from tallow.keras.serialization import custom_object_scope, deserialize_keras_object
from tallow.lazy_names import names_of

MAX_DEPTH = 200


def clone_model(model: Model) -> Any:
    """Return a model with the same layers and new random weights."""
    if isinstance(model, Sequential):
        inputs = [] if model._input is None else [model._input.history.layer]
        return type(model)([_copy(layer) for layer in (*inputs, *model.layers)], name=model.name)
    if model._graph is None or type(model) is not Model:
        return _copy(model)
    graph = model._graph.replay(_copy)
    return Model(graph.input_structure, graph.output_structure, name=model.name)


def _copy(layer: Layer) -> Any:
    return clone_model(layer) if isinstance(layer, Sequential) else type(layer).from_config(layer.get_config())


def model_from_json(json_string: str, custom_objects: Any = None) -> Any:
    """Return the model that `to_json` described, with new random weights; Keras' own JSON is read as well.

    Raises:  CheckpointError for text that is not JSON; ArgumentError for a class that is neither Keras' nor in
        `custom_objects`
    """
    config = parse_object(json_string.encode(), "model_from_json", MAX_DEPTH)
    with custom_object_scope(custom_objects or {}):
        return deserialize_keras_object(config)


Functional = Model  # Keras' name of a Model(inputs, outputs) in files

__all__ = ["Functional", "Input", "Model", "Sequential", "clone_model", "load_model", "model_from_json", "save_model"]

__getattr__, __dir__ = names_of(__name__)
