"""Settings that `keras.config` exports: default dtype, epsilon, image layout and limits."""

from __future__ import annotations

import os
from typing import Any

from tallow.errors import ArgumentError

FLOATS = ("float16", "bfloat16", "float32", "float64")
LAYOUTS = ("channels_last", "channels_first")

_settings: dict[str, Any] = {
    "floatx": "float32",
    "epsilon": 1e-7,
    "image_data_format": "channels_last",
    "is_interactive": True,
    "max_epochs": os.environ.get("KERAS_MAX_EPOCHS"),
    "max_steps_per_epoch": os.environ.get("KERAS_MAX_STEPS_PER_EPOCH"),
}


def floatx() -> str:
    """Return the default dtype of layers."""
    return str(_settings["floatx"])


def set_floatx(value: str) -> None:
    """Set the default dtype of layers."""
    if value not in FLOATS:
        raise ArgumentError(f"set_floatx: {value!r}", hint=f"use one of {', '.join(FLOATS)}")
    _settings["floatx"] = value


def epsilon() -> float:
    """Return the small constant that prevents divisions by zero."""
    return float(_settings["epsilon"])


def set_epsilon(value: float) -> None:
    """Set the small constant that prevents divisions by zero."""
    _settings["epsilon"] = float(value)


def image_data_format() -> str:
    """Return the default image layout of layers."""
    return str(_settings["image_data_format"])


def set_image_data_format(data_format: str) -> None:
    """Set the default image layout of layers, "channels_last" or "channels_first"."""
    if data_format not in LAYOUTS:
        raise ArgumentError(f"set_image_data_format: {data_format!r}", hint=f"use {' or '.join(LAYOUTS)}")
    _settings["image_data_format"] = data_format


def max_epochs() -> int | None:
    """Return the maximum number of epochs of `fit`; None for no limit.

    The environment variable KERAS_MAX_EPOCHS also sets it.
    """
    return _limit("max_epochs")


def set_max_epochs(max_epochs: int | None) -> None:
    """Set the maximum number of epochs of `fit`."""
    _settings["max_epochs"] = max_epochs
    _limit("max_epochs")


def max_steps_per_epoch() -> int | None:
    """Return the maximum number of batches per epoch of `fit`, `evaluate` and `predict`; None for no limit.

    The environment variable KERAS_MAX_STEPS_PER_EPOCH also sets it.
    """
    return _limit("max_steps_per_epoch")


def set_max_steps_per_epoch(max_steps_per_epoch: int | None) -> None:
    """Set the maximum number of batches per epoch of `fit`, `evaluate` and `predict`."""
    _settings["max_steps_per_epoch"] = max_steps_per_epoch
    _limit("max_steps_per_epoch")


def _limit(name: str) -> int | None:
    value = _settings[name]
    if value in (None, ""):
        return None
    try:
        limit = int(value)
    except ValueError:
        limit = 0
    if limit < 1:
        _settings[name] = None
        raise ArgumentError(f"{name} is {value!r}; expected a positive integer, or None")
    return limit


def enable_interactive_logging() -> None:
    """Write progress and messages to stdout, which is the default."""
    _settings["is_interactive"] = True


def disable_interactive_logging() -> None:
    """Send messages to the logger "tallow.keras" at level INFO, and draw no bars, for servers."""
    _settings["is_interactive"] = False


def is_interactive_logging_enabled() -> bool:
    """Return whether progress and messages go to stdout."""
    return bool(_settings["is_interactive"])
