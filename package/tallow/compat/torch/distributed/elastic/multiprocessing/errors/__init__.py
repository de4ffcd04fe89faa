"""torch.distributed.elastic.multiprocessing.errors: errors of processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tallow.compat.absent import absent

F = TypeVar("F", bound=Callable[..., Any])
_HINT = "python -m tallow.distributed.run -n 4 train.py starts processes"
ChildFailedError = absent("torch.distributed.elastic.multiprocessing.errors.ChildFailedError", _HINT)
ProcessFailure = absent("torch.distributed.elastic.multiprocessing.errors.ProcessFailure", _HINT)


def record(fn: F) -> F:
    """Return the function itself: what starts the processes shows their errors. A decorator."""
    return fn
