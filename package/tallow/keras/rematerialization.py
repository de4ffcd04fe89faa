"""Computing anew what backward needs, in place of keeping it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tallow.utils.checkpoint import checkpoint


def remat(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that keeps none of the values in between for backward, which calls `f` once more instead.

    Source:  Chen et al. 2016, arXiv:1604.06174
    """

    @wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(f, *args, use_reentrant=False, **kwargs)

    return wrapped
