"""Rematerialization: recompute intermediate values in backward instead of storing them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tallow.utils.checkpoint import checkpoint


def remat(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that stores no intermediate values for backward, but calls `f` again.

    Source:  Chen et al. 2016, arXiv:1604.06174
    """

    @wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(f, *args, use_reentrant=False, **kwargs)

    return wrapped
