"""`keras.backend`, for older programs."""

from __future__ import annotations

from typing import Any

from tallow.keras.config import (
    backend,
    epsilon,
    floatx,
    image_data_format,
    set_epsilon,
    set_floatx,
    set_image_data_format,
)
from tallow.keras.dtype_policies import find_dtype, standardize_dtype
from tallow.keras.naming import clear_session
from tallow.keras.symbolic import KerasTensor
from tallow.lazy_names import names_of


def is_float_dtype(dtype: Any) -> bool:
    """Return whether a dtype, or its name, is floating-point."""
    return find_dtype(standardize_dtype(dtype)).is_floating_point


def is_int_dtype(dtype: Any) -> bool:
    """Return whether a dtype, or its name, is an integer."""
    return standardize_dtype(dtype).lstrip("u").startswith("int")


def is_keras_tensor(x: Any) -> bool:
    """Return whether `x` is a symbolic tensor."""
    return isinstance(x, KerasTensor)


__all__ = [
    "backend",
    "clear_session",
    "epsilon",
    "floatx",
    "image_data_format",
    "is_float_dtype",
    "is_int_dtype",
    "is_keras_tensor",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
    "standardize_dtype",
]

__getattr__, __dir__ = names_of(__name__)
