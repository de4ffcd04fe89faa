"""Suppress floating-point warnings that NumPy raises and PyTorch does not: log(0) is -inf, 1 / 0 is inf.

Ops need not do anything about it. The general way of `tallow.core.apply` calls `suppress_warnings()` before each array
function, and autograd before each backward pass, and `restore_warnings(token)` after it. This is
`np.errstate(all="ignore")` in 0.08 µs instead of 0.7 µs, because it sets NumPy's context variable directly.

The short way of tallow's own ops skips even that: `a + b` takes 0.8 µs in all, and would take a tenth more. Their array
functions are in tallow's modules, so a warnings filter for these modules suppresses the warnings. The filter belongs to
the process, but applies to RuntimeWarning in tallow's own modules only. Where NumPy raises instead, the general way
computes the op again.
"""

from __future__ import annotations

import contextvars
import warnings
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def _error_state() -> tuple[contextvars.ContextVar[Any], Any]:
    """Return NumPy's context variable for error handling, and its value that ignores all floating-point errors."""
    before = contextvars.copy_context()
    with np.errstate(all="ignore"):
        inside = contextvars.copy_context()
    return next((variable, value) for variable, value in inside.items() if before.get(variable) is not value)


_variable, _ignore = _error_state()

suppress_warnings: Callable[[], contextvars.Token[Any]] = partial(_variable.set, _ignore)
restore_warnings: Callable[[contextvars.Token[Any]], None] = _variable.reset

warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tallow\.")


def without_warnings(function: F) -> F:
    """Return a function that does the same without warnings: for code outside of tallow's modules."""

    @wraps(function)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        token = suppress_warnings()
        try:
            return function(*args, **kwargs)
        finally:
            restore_warnings(token)

    return quiet  # type: ignore[return-value]
