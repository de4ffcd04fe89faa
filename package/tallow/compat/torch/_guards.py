"""torch._guards: what programs ask about a trace that is under way."""

from __future__ import annotations

from typing import Any


def active_fake_mode() -> None:
    """Return None: tensors without values are on the device meta, without a mode."""


def detect_fake_mode(inputs: Any = None) -> None:
    """Return None, as `active_fake_mode`."""
