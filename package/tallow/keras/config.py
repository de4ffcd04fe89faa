"""Settings for the whole of keras."""

from __future__ import annotations

from tallow.keras.dtype_policies import dtype_policy, set_dtype_policy
from tallow.keras.settings import (
    epsilon,
    floatx,
    image_data_format,
    set_epsilon,
    set_floatx,
    set_image_data_format,
)


def backend() -> str:
    """What computes: tallow."""
    return "tallow"


__all__ = [
    "backend",
    "dtype_policy",
    "epsilon",
    "floatx",
    "image_data_format",
    "set_dtype_policy",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
]
