"""The weights of a tensor on their way to a GGUF file: floats that are converted, or blocks that stay as they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tallow import dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.io.gguf_layout import PLAIN, data_bytes
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.gguf_blocks import FORMATS
from tallow.kernels.quantized.gguf_quantize import quantize

PART = 2**20  # elements converted at a time


@dataclass(frozen=True)
class Target:
    """A tensor as it will be in the file.

    Attributes:
        format: a name in TYPES, such as "F16" or "Q4_K".
        get: returns the weights when it is their turn: floats, or blocks of `format`, with all rows one below another.
        importance: of the columns, for `quantize`.
        finite: whether to refuse weights that are infinite or NaN even if they need no conversion.
    """

    format: str
    shape: tuple[int, ...]
    get: Callable[[], Weights]
    importance: Array | None = None
    finite: bool = False

    @property
    def bytes(self) -> int:
        """The size of the data in bytes."""
        return data_bytes(self.format, self.shape)


class Weights(ABC):
    """The weights of one tensor."""

    @property
    @abstractmethod
    def format(self) -> str | None:
        """The format of blocks; None for floats."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor; of blocks that of their matrix, (N, K)."""

    @abstractmethod
    def floats(self) -> Tensor:
        """Return the weights as a tensor of floats."""

    @abstractmethod
    def selected(self, rows: Array) -> Weights:
        """Return the rows at some indices."""

    @abstractmethod
    def turned(self) -> Weights:
        """Return the matrix (out, in) of a weight that its module stores as (in, out). Blocks are (out, in) already."""

    @abstractmethod
    def data(self, name: str, target: Target) -> Iterator[Array]:
        """Yield the data of the file, some rows at a time.  Raises: ArgumentError for weights that it cannot store"""


@dataclass(frozen=True)
class Floats(Weights):
    """A tensor, which is converted to the format of the file."""

    tensor: Tensor

    @property
    def format(self) -> None:
        """None."""
        return None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        return tuple(self.tensor.shape)

    def floats(self) -> Tensor:
        """Return the tensor."""
        return self.tensor

    def selected(self, rows: Array) -> Floats:
        """Return the rows at some indices, on the host."""
        return Floats(wrap(self.tensor.detach().cpu().array[rows]))

    def turned(self) -> Floats:
        """Return the transposed tensor."""
        return Floats(self.tensor.detach().T)

    def data(self, name: str, target: Target) -> Iterator[Array]:
        """Yield converted rows."""
        _check_shape(name, self.shape, target.shape, target.shape)
        array = self.tensor.detach().cpu().array
        rows = array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array.reshape(1, -1)
        step = max(PART // max(rows.shape[1], 1), 1)
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            yield _quantised(name, part, target) if target.format in FORMATS else self._converted(name, part, target)

    def _converted(self, name: str, rows: Array, target: Target) -> Array:
        dtype = PLAIN[target.format]
        converted = dtypes.cast(rows, dtype)
        if (target.finite or dtype is not self.tensor.dtype) and not np.isfinite(dtypes.widen(converted)).all():
            raise ArgumentError(
                f"tensor {name!r:.200} has weights that are infinite, NaN, or beyond the range of {target.format}"
            )
        return np.ascontiguousarray(converted)


@dataclass(frozen=True)
class Blocks(Weights):
    """A matrix of blocks, which is copied to the file. Interleaved rows are separated when they are read."""

    matrix: BlockMatrix

    @property
    def format(self) -> str:
        """The format, as in a file."""
        return self.matrix.stored_format

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix, (N, K)."""
        return self.matrix.shape

    def floats(self) -> Tensor:
        """Return the matrix in float32."""
        return wrap(self.matrix.widen())

    def selected(self, rows: Array) -> Blocks:
        """Return the rows at some indices."""
        return Blocks(BlockMatrix(self.matrix.in_blocks().blocks[rows], self.format))

    def turned(self) -> Blocks:
        """Return the matrix itself."""
        return self

    def data(self, name: str, target: Target) -> Iterator[Array]:
        """Yield the blocks of the whole matrix."""
        _check_shape(name, self.shape, (prod(target.shape[:-1]), target.shape[-1]), target.shape)
        yield np.ascontiguousarray(self.matrix.in_blocks().blocks)


def weights_of(value: Tensor | BlockMatrix) -> Weights:
    """Return the weights of a tensor or a matrix of blocks."""
    return Blocks(value) if isinstance(value, BlockMatrix) else Floats(value)


def joined(parts: Sequence[Weights]) -> Weights:
    """Return several matrices of one shape one below another: blocks of one format stay blocks."""
    blocks = [part.matrix.in_blocks().blocks for part in parts if isinstance(part, Blocks)]
    formats = {part.format for part in parts}
    if len(blocks) == len(parts) and len(formats) == 1:
        return Blocks(BlockMatrix(np.concatenate(blocks), str(formats.pop())))
    return Floats(wrap(np.stack([part.floats().cpu().array for part in parts])))


def _check_shape(name: str, shape: tuple[int, ...], expected: tuple[int, ...], target: tuple[int, ...]) -> None:
    if shape != expected:
        raise ArgumentError(f"tensor {name!r:.200} has the shape {shape}, not {target}")


def _quantised(name: str, rows: Array, target: Target) -> Array:
    try:
        return quantize(target.format, dtypes.widen(rows), target.importance)
    except ArgumentError as error:
        raise ArgumentError(f"tensor {name!r:.200}: {error}") from None
