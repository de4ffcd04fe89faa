"""Activations that take a dtype, choose a dim, or draw random numbers."""

from __future__ import annotations

from typing import Any

from tallow.apply import apply
from tallow.errors import ArgumentTypeError
from tallow.offer import offer
from tallow.ops import softmax as ops
from tallow.ops.table import Op
from tallow.tensor import Tensor


def _along(op: Op, input: Tensor, dim: int | None, dtype: Any) -> Tensor:
    """Apply an op that works along one dim, after a conversion."""
    if dim is None:
        raise ArgumentTypeError(f"{op.name}: missing argument 'dim'", mend="say which dim is to sum to one, e.g. dim=-1")
    return apply(op, input if dtype is None else input.to(dtype), dim)  # type: ignore[no-any-return]


@offer("tl Tensor special F")
def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Exponential weights along `dim`, summing to one: exp(x_i) / Σ_j exp(x_j). With `dtype`, converted first."""
    return _along(ops.softmax, input, dim, dtype)


@offer("tl Tensor special F")
def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """ln softmax along `dim`: x_i - ln Σ_j exp(x_j). With `dtype`, converted first."""
    return _along(ops.log_softmax, input, dim, dtype)


@offer("F")
def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """softmax(-input) along `dim`."""
    return softmax(-input, dim, dtype)
