"""The default dtype, the little number of formulas, and the layout of images; `keras.config` offers them."""

from __future__ import annotations

from typing import Any

from tallow.errors import ArgumentError

FLOATS = ("float16", "bfloat16", "float32", "float64")
LAYOUTS = ("channels_last", "channels_first")

_settings: dict[str, Any] = {"floatx": "float32", "epsilon": 1e-7, "image_data_format": "channels_last"}


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
