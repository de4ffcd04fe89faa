"""The default dtype, the little number of formulas, the layout of images and limits; `keras.config` offers them."""

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
    """The dtype of layers that are given none."""
    return str(_settings["floatx"])


def set_floatx(value: str) -> None:
    if value not in FLOATS:
        raise ArgumentError(f"set_floatx: {value!r}", mend=f"use one of {', '.join(FLOATS)}")
    _settings["floatx"] = value


def epsilon() -> float:
    """What is added where a formula would divide by zero."""
    return float(_settings["epsilon"])


def set_epsilon(value: float) -> None:
    _settings["epsilon"] = float(value)


def image_data_format() -> str:
    """The layout of images for layers that are given none."""
    return str(_settings["image_data_format"])


def set_image_data_format(data_format: str) -> None:
    if data_format not in LAYOUTS:
        raise ArgumentError(f"set_image_data_format: {data_format!r}", mend=f"use {' or '.join(LAYOUTS)}")
    _settings["image_data_format"] = data_format


def max_epochs() -> int | None:
    """The most epochs that `fit` trains, whatever it is asked for; None for no limit.

    The environment variable KERAS_MAX_EPOCHS sets it, too.
    """
    return _limit("max_epochs")


def set_max_epochs(max_epochs: int | None) -> None:
    _settings["max_epochs"] = max_epochs
    _limit("max_epochs")


def max_steps_per_epoch() -> int | None:
    """The most batches that `fit`, `evaluate` and `predict` take in an epoch; None for no limit.

    The environment variable KERAS_MAX_STEPS_PER_EPOCH sets it, too.
    """
    return _limit("max_steps_per_epoch")


def set_max_steps_per_epoch(max_steps_per_epoch: int | None) -> None:
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
    """Write progress and messages to stdout, as at the start."""
    _settings["is_interactive"] = True


def disable_interactive_logging() -> None:
    """Send messages to the logger "tallow.keras", at level INFO, and draw no bars: for servers."""
    _settings["is_interactive"] = False


def is_interactive_logging_enabled() -> bool:
    return bool(_settings["is_interactive"])
