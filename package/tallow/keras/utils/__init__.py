"""Keras' utilities for models and data."""

from __future__ import annotations

from typing import Any

from tallow.keras.batches import pack_x_y_sample_weight, unpack_x_y_sample_weight
from tallow.keras.dtype_policies import standardize_dtype
from tallow.keras.naming import clear_session
from tallow.keras.progress import Progbar
from tallow.keras.py_dataset import PyDataset
from tallow.keras.serialization import (
    custom_object_scope,
    deserialize_keras_object,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
    serialize_keras_object,
)
from tallow.keras.settings import (
    disable_interactive_logging,
    enable_interactive_logging,
    is_interactive_logging_enabled,
)
from tallow.keras.symbolic import KerasTensor
from tallow.keras.utils.arrays import normalize, pad_sequences, set_random_seed, to_categorical
from tallow.keras.utils.images import array_to_img, img_to_array, load_img, save_img
from tallow.keras.utils.splitting import split_dataset
from tallow.keras.utils.timeseries import timeseries_dataset_from_array
from tallow.lazy_names import names_of

CustomObjectScope = custom_object_scope
Sequence = PyDataset  # its name in Keras 2


def is_keras_tensor(x: Any) -> bool:
    """Return whether `x` is a symbolic tensor."""
    return isinstance(x, KerasTensor)


__all__ = [
    "CustomObjectScope",
    "Progbar",
    "PyDataset",
    "Sequence",
    "array_to_img",
    "clear_session",
    "custom_object_scope",
    "deserialize_keras_object",
    "disable_interactive_logging",
    "enable_interactive_logging",
    "get_custom_objects",
    "get_registered_name",
    "get_registered_object",
    "img_to_array",
    "is_interactive_logging_enabled",
    "is_keras_tensor",
    "load_img",
    "normalize",
    "pack_x_y_sample_weight",
    "pad_sequences",
    "register_keras_serializable",
    "save_img",
    "serialize_keras_object",
    "set_random_seed",
    "split_dataset",
    "standardize_dtype",
    "timeseries_dataset_from_array",
    "to_categorical",
    "unpack_x_y_sample_weight",
]

__getattr__, __dir__ = names_of(__name__)
