"""Sequence functions, which are in `keras.utils` now."""

from __future__ import annotations

from tallow.keras.utils import pad_sequences

__all__ = ["pad_sequences"]
