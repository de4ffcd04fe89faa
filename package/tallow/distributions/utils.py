"""Conversions that distributions and programs share, as torch.distributions.utils.

Letters: D the number of rows of a matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tallow import dtypes
from tallow.autograd import enable_grad
from tallow.core.creation import tril_indices
from tallow.core.tensor import Tensor
from tallow.distributions.distribution import Number, broadcast
from tallow.errors import ArgumentError

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]


def broadcast_all(*values: Number) -> list[Tensor]:
    """Convert numbers to tensors of the first tensor's dtype, and expand all to a common shape.

    Raises:  ArgumentError for a value that is neither a number nor a tensor
    """
    for value in values:
        if not isinstance(value, Tensor | int | float):
            raise ArgumentError(f"broadcast_all: expected numbers and tensors, got {type(value).__name__}")
    return broadcast(*values)


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamp probabilities away from 0 and 1, whose logarithms and logits are infinite."""
    eps = dtypes.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return the probabilities of logits: of one event each, or of the categories along the last dim."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the logits of clamped probabilities: of one event each, or of the categories along the last dim."""
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements on and below the diagonal `diag`, row by row.

    Shapes:  (..., D, D) -> (..., number of elements)
    Raises:  ArgumentError for a diagonal outside the matrix
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ArgumentError(f"tril_matrix_to_vec: diag={diag} is outside of [{-n}, {n - 1}]")
    rows, columns = tril_indices(n, n, offset=diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return the square matrix with these elements on and below the diagonal `diag`, and zeros above.

    Shapes:  (..., number of elements) -> (..., D, D)
    Raises:  ArgumentError if no matrix has that number of elements there
    """
    # A triangle of D + diag rows has (D + diag) (D + diag + 1) / 2 elements; for diag > 0, diag (diag + 1) lie outside.
    count = vec.shape[-1]
    above = max(diag, 0)
    root = math.isqrt(1 + 8 * (count + above * (above + 1)))
    n = (root - 1) // 2 - diag
    rows, columns = tril_indices(max(n, 0), max(n, 0), offset=diag, device=vec.device)
    if len(rows) != count:
        raise ArgumentError(f"vec_to_tril_matrix: no square matrix has {count} elements on and below diagonal {diag}")
    matrix = vec.new_zeros((*vec.shape[:-1], n, n))
    matrix[..., rows, columns] = vec
    return matrix


class lazy_property:
    """Property that is computed once, with gradients, and then kept as an attribute of the instance."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        instance.__dict__[self.wrapped.__name__] = value
        return value
