"""Save and load models and weights."""

from tallow.keras.saving.archive import load_model, save_model
from tallow.keras.saving.weights import load_weights, save_weights
from tallow.keras.serialization import (
    custom_object_scope,
    deserialize_keras_object,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
    serialize_keras_object,
)
from tallow.lazy_names import names_of

CustomObjectScope = custom_object_scope

__all__ = [
    "CustomObjectScope",
    "custom_object_scope",
    "deserialize_keras_object",
    "get_custom_objects",
    "get_registered_name",
    "get_registered_object",
    "load_model",
    "load_weights",
    "register_keras_serializable",
    "save_model",
    "save_weights",
    "serialize_keras_object",
]

__getattr__, __dir__ = names_of(__name__)
