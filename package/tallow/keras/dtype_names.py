"""Dtypes by name, as Keras' arguments and files have them."""

from __future__ import annotations

from typing import Any

from tallow import dtypes
from tallow.keras.settings import floatx


def named(name: Any) -> dtypes.dtype | None:
    """Return the dtype with a name; None if there is none."""
    return next((d for d in dtypes.ALL if d.name == name), None)


def as_dtype(spec: Any) -> dtypes.dtype:
    """Return the dtype with a name, such as "float32"; that of a dtype of tallow or NumPy; None is `floatx()`.

    Raises:  ArgumentTypeError for anything else
    """
    spec = floatx() if spec is None else spec
    return named(spec) or dtypes.as_dtype(spec)
