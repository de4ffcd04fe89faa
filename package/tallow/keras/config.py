"""Global Keras settings."""

from __future__ import annotations

from tallow.keras.dtype_policies import dtype_policy, set_dtype_policy
from tallow.keras.settings import (
    disable_interactive_logging,
    enable_interactive_logging,
    epsilon,
    floatx,
    image_data_format,
    is_interactive_logging_enabled,
    max_epochs,
    max_steps_per_epoch,
    set_epsilon,
    set_floatx,
    set_image_data_format,
    set_max_epochs,
    set_max_steps_per_epoch,
)
from tallow.lazy_names import names_of


def backend() -> str:
    """Return the name of the backend, "tallow"."""
    return "tallow"


__all__ = [
    "backend",
    "disable_interactive_logging",
    "dtype_policy",
    "enable_interactive_logging",
    "epsilon",
    "floatx",
    "image_data_format",
    "is_interactive_logging_enabled",
    "max_epochs",
    "max_steps_per_epoch",
    "set_dtype_policy",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
    "set_max_epochs",
    "set_max_steps_per_epoch",
]

__getattr__, __dir__ = names_of(__name__)
