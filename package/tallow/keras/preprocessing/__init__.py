"""`keras.preprocessing`, as older programs use it."""

from __future__ import annotations

from tallow.keras.preprocessing import sequence

__all__ = ["sequence"]
