"""torch._dynamo.eval_frame: compiled modules."""

from __future__ import annotations

from tallow.compiler import OptimizedModule

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported() -> bool:
    """Return False: functions run as Python or as plans, and no frame is rewritten."""
    return False
