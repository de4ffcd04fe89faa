"""Array implementations for ops that hand sixteen-bit floats to their kernels as they are.

A GPU's kernels read halves. Where none does, halves are widened here, once, in one place:

    @reference("softmax")
    def softmax(x): ...            # sees float32 and float64 alone
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from tallow.dtypes import HALVES, Array, cast, dtype_of, widen
from tallow.kernels.table import ARRAY, kernel, run

F = TypeVar("F", bound=Callable[..., Any])


def reference(name: str, like: int = 0) -> Callable[[F], F]:
    """Register the decorated function as the array implementation of `name`.

    Where arguments are halves, they are widened, the best kernel for float32 computes, and its result, the first if
    there are several, is rounded to the dtype of the argument `like`. That of a backward is `g`, which is float32 as
    all gradients; what comes after a first result is statistics for backward, and stays in float32.
    """

    def register(fn: F) -> F:
        @wraps(fn)
        def widening(*args: Any) -> Any:
            for argument in args:
                if getattr(argument, "dtype", None) in HALVES:
                    return _rounded(run(name, *map(_widened, args)), args[like])
            return fn(*args)

        kernel(name, ARRAY)(widening)
        return fn

    return register


def _widened(argument: Any) -> Any:
    return widen(argument) if hasattr(argument, "dtype") else argument


def _rounded(result: Any, like: Array) -> Any:
    if like.dtype not in HALVES:
        return result
    if isinstance(result, tuple):
        return _rounded(result[0], like), *result[1:]
    return cast(result, dtype_of(like))
