"""The interface of matrices that products read as they are stored: layers, ops and fused blocks know no kinds.

`BlockMatrix` has rows of blocks as in a GGUF file, or interleaved for the CPU's kernels; `GroupedMatrix` has codes and
scales in arrays of their own, for a GPU's. `FloatMatrix` is an array of floats, where either may stand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tallow.dtypes import BF16, F16, Array, widen
from tallow.errors import ArgumentError
from tallow.kernels.table import run

if TYPE_CHECKING:
    from tallow.kernels.quantized.block_matrix import BlockMatrix

FORMATS_OF_FLOATS = {np.dtype(np.float32): "F32", F16: "F16", BF16: "BF16"}


class QuantizedMatrix(ABC):
    """A matrix (N, K) that stays as it is stored: products read it, and `rows` and `widen` convert it to float32.

    Attributes:
        format: the arrangement of the weights, such as "Q4_0".
    """

    __slots__ = ()

    format: str

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The dtype of an array of floats; None for quantised weights, and for the bytes of a file."""
        return None

    @property
    def group(self) -> int | None:
        """The number of adjacent weights that share a scale in an array of its own; None if there is no such array."""
        return None

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

    @abstractmethod
    def in_blocks(self) -> BlockMatrix:
        """Return the matrix with its rows as in a file: itself if they are.

        Raises:  ArgumentError if no format of a file has the weights
        """

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


@dataclass(slots=True, eq=False, repr=False)
class FloatMatrix(QuantizedMatrix):
    """An array of floats (N, K) with the interface of quantised weights."""

    array: Array

    @property
    def format(self) -> str:  # type: ignore[override]  # derived
        """The name of the dtype in a file: "F32", "F16" or "BF16"."""
        return FORMATS_OF_FLOATS.get(self.array.dtype, str(self.array.dtype))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the array."""
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The array."""
        return (self.array,)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the array."""
        shape: tuple[int, int] = self.array.shape
        return shape

    def rows(self, index: Any) -> Array:
        """Return the rows at `index` in the dtype of the array."""
        return self.array[index]

    def in_blocks(self) -> BlockMatrix:
        """Raise ArgumentError: floats are stored as they are."""
        raise ArgumentError("an array of floats has no blocks", hint="use BlockMatrix.quantized")

    def widen(self) -> Array:
        """Return the array in float32: itself if it is."""
        return widen(self.array)

    def product(self, x: Array, bias: Array | None = None) -> Array:
        """Return x · matrixᵀ + bias.  Shapes: x (..., K), bias (N,) -> (..., N)"""
        y: Array = run("linear", x, self.array, bias)
        return y


Matrix: TypeAlias = Array | QuantizedMatrix


def as_matrix(matrix: Matrix) -> QuantizedMatrix:
    """Return the interface of an array of floats, or of a matrix that has it already."""
    return matrix if isinstance(matrix, QuantizedMatrix) else FloatMatrix(matrix)
