"""The interface of matrices with quantised weights: layers, ops and fused blocks know no other kinds.

`BlockMatrix` has rows of blocks as in a GGUF file, or interleaved for the CPU's kernels; `GroupedMatrix` has codes and
scales in arrays of their own, for a GPU's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from typing import Any

from tallow.dtypes import Array
from tallow.kernels.table import run


class QuantizedMatrix(ABC):
    """A matrix (N, K) that stays as it is stored: products read it, and `rows` and `widen` convert it to float32.

    Attributes:
        format: the arrangement of the weights, such as "Q4_0".
    """

    __slots__ = ()

    format: str

    @property
    @abstractmethod
    def arrays(self) -> tuple[Array, ...]:
        """The arrays that the matrix consists of, on one device."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix, (N, K)."""

    @abstractmethod
    def rows(self, index: Any) -> Array:
        """Return the rows at `index` in float32: (*, K) for an array of integers (*), or a slice of the matrix."""

    def widen(self) -> Array:
        """Return the whole matrix in float32: new memory at each call."""
        return self.rows(slice(None))

    def product(self, x: Array, bias: Array | None = None) -> Array:
        """Return x · matrixᵀ + bias.  Shapes: x (..., K), bias (N,) -> (..., N)"""
        y: Array = run("quantized_linear", x, self, bias)
        return y

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.format}, {list(self.shape)})"

    @property
    def memory(self) -> Array:
        """The first array, which no other matrix has."""
        return self.arrays[0]

    @property
    def nbytes(self) -> int:
        """The number of bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def bits(self) -> float:
        """The number of bits of a weight, with its share of the scales."""
        return 8 * self.nbytes / max(prod(self.shape), 1)
