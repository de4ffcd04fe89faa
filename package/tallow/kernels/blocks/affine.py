"""A weight and its bias, and what the descriptors of blocks share: checks, and products in array code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tallow.dtypes import BF16, F16, Array
from tallow.errors import DtypeError, ShapeError
from tallow.kernels.quantized.quantized_matrix import Matrix as Matrix
from tallow.kernels.quantized.quantized_matrix import as_matrix

FLOATS = frozenset((np.dtype(np.float32), F16, BF16))


class Affine(NamedTuple):
    """A matrix (out, in), or the scale of a norm (D,), and the bias that is added: (out,) or (D,), or None."""

    weight: Matrix
    bias: Array | None


def check_shapes(
    block: str,
    parts: Iterable[tuple[str, Affine]],
    norms: Iterable[str],
    width: int,
    shapes: Mapping[str, tuple[int, int]],
) -> None:
    """Raise ShapeError unless all parts of a block fit its width.

    Args:
        block: the name of the descriptor, for the message.
        norms: the parts that are norms, (width,).
        shapes: the matrices that are not (width, width).
    """
    for name, (weight, bias) in parts:
        shape = (width,) if name in norms else shapes.get(name, (width, width))
        if weight.shape != shape or (bias is not None and bias.shape != shape[:1]):
            actual = f"{weight.shape}" + ("" if bias is None else f" and {bias.shape}")
            raise ShapeError(f"{block}: {name} is {actual}; expected {shape}, from the shapes of the other arrays")


def check_vectors(block: str, parts: Iterable[tuple[str, Affine]], norms: Iterable[str]) -> None:
    """Raise DtypeError unless every bias, and the scale of every norm, is float32."""
    for name, (weight, bias) in parts:
        vectors: list[Any] = [weight, bias] if name in norms else [bias]
        if any(vector is not None and vector.dtype != np.float32 for vector in vectors):
            raise DtypeError(f"{block}: the vectors of {name} are not float32")


def check_dtypes(block: str, matrices: Iterable[tuple[str, Matrix]], floats: frozenset[np.dtype[Any]] = FLOATS) -> None:
    """Raise DtypeError unless all matrices that are not quantised have one of the dtypes `floats`, the same for all."""
    dtypes = {name: m.dtype for name, m in matrices if m.dtype is not None}
    if len(set(dtypes.values())) > 1 or not floats.issuperset(dtypes.values()):
        found = ", ".join(f"{name} {dtype}" for name, dtype in dtypes.items())
        raise DtypeError(f"{block}: {found}; expected one dtype, {' or '.join(sorted(map(str, floats)))}")


def widened(matrix: Matrix) -> Array:
    """Return a matrix of floats or of quantised weights in float32."""
    return as_matrix(matrix).widen()


def rows(table: Matrix, index: int | slice | Array) -> Array:
    """Return the rows of a matrix at `index`: those of quantised weights in float32, others in their own dtype."""
    return as_matrix(table).rows(index)


def memory(matrix: Matrix) -> Array:
    """Return the array of a matrix, which tells whether it has been replaced."""
    return as_matrix(matrix).memory


def product(x: Array, matrix: Matrix) -> Array:
    """Return x · matrixᵀ.  Shapes: x (..., in), matrix (out, in) -> (..., out)"""
    return as_matrix(matrix).product(x)


def times(x: Array, affine: Affine) -> Array:
    """Return x · weightᵀ + bias in float32.  Shapes: x (N, in) -> (N, out)"""
    y = x @ widened(affine.weight).T
    return y if affine.bias is None else y + affine.bias
