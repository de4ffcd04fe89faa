"""torch._inductor: the code generator of PyTorch's compiler. Settings are stored, and have no effect."""

from __future__ import annotations

from typing import Any

from tallow.compiler import MODES
from tallow.compiler import cudagraph_mark_step_begin as cudagraph_mark_step_begin

__all__ = ["cudagraph_mark_step_begin", "list_mode_options", "list_options"]


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """Return the settings of each mode, or of one: none."""
    return {name: {} for name in MODES} if mode is None else {}


def list_options() -> list[str]:
    """Return the names of settings."""
    return []
