"""Functions that PyTorch has for unknown sizes. Sizes are known here, so that they are functions of numbers."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError

__all__ = ["cond", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sum"]


def sym_float(a: Any) -> float:
    """Return a number as a float."""
    return float(a)


def sym_int(a: Any) -> int:
    """Return a number as an int, rounded towards zero."""
    return int(a)


def sym_not(a: Any) -> bool:
    """Return the opposite of a condition."""
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """Return `t` if the condition is true, else `f`."""
    return t if b else f


def sym_max(a: Any, b: Any) -> Any:
    """Return the greater number, a float if one of them is."""
    return _chosen(builtins.max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller number, a float if one of them is."""
    return _chosen(builtins.min, a, b)


def _chosen(choice: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    return choice(float(a), float(b)) if isinstance(a, float) or isinstance(b, float) else choice(a, b)


def sym_sum(args: Iterable[Any]) -> Any:
    """Return the sum of numbers."""
    return builtins.sum(args)


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """Call `true_fn` or `false_fn` with the operands, by a condition.

    Raises: ArgumentError unless it is a bool, or a tensor of one element
    """
    if not isinstance(pred, bool | Tensor) or (isinstance(pred, Tensor) and pred.numel() != 1):
        raise ArgumentError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    return (true_fn if pred else false_fn)(*operands)
