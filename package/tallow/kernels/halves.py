"""Run float32 implementations on float16 and bfloat16 arguments.

GPU kernels read halves directly. Where no kernel takes them, the kernel table widens them here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tallow.dtypes import HALVES, Array, cast, dtype_of, widen


def widening(fn: Callable[..., Any], run: Callable[..., Any], like: int) -> Callable[..., Any]:
    """Return `fn` for any float dtype: halves are widened and passed to `run`, and the result is rounded.

    Args:
        run: the best kernel for float32.
        like: position of the argument whose dtype the result is rounded to. In a backward that is the gradient `g`,
            which is usually float32. Of several results only the first is rounded: the others are statistics for
            backward, and stay in float32.
    """

    @wraps(fn)
    def call(*args: Any) -> Any:
        for argument in args:
            if getattr(argument, "dtype", None) in HALVES:
                return _round(run(*map(widen_argument, args)), args[like])
        return fn(*args)

    return call


def widen_argument(argument: Any) -> Any:
    """Return an array in float32 if it is of halves; return other arrays, numbers and None as they are."""
    return widen(argument) if hasattr(argument, "dtype") else argument


def _round(result: Any, like: Array) -> Any:
    if like.dtype not in HALVES:
        return result
    if isinstance(result, tuple):
        return _round(result[0], like), *result[1:]
    return cast(result, dtype_of(like))
