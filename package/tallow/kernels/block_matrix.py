"""Matrices in the quantised blocks of GGUF files.

The blocks stay as they are in the file, usually in mapped memory. Products read them directly ("quantized_linear");
`rows` and `widen` convert some or all of them to float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tallow.devices import array_module, to_host
from tallow.dtypes import Array, widen
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.gguf_blocks import FORMATS, dequantize
from tallow.kernels.gguf_quantize import quantize


@dataclass(frozen=True, slots=True, eq=False)
class BlockMatrix:
    """A matrix (N, K) of rows of quantised blocks.

    Args:    format: a name in tallow.kernels.gguf_blocks.FORMATS, such as "Q4_0"
    Shapes:  blocks (N, bytes of a row), uint8
    Raises:  ArgumentError for an unknown format, ShapeError for rows that are not whole blocks
    """

    blocks: Array
    format: str

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ArgumentError(f"BlockMatrix: unknown format {self.format!r}", hint=f"use one of {', '.join(FORMATS)}")
        size = FORMATS[self.format].record.itemsize
        if self.blocks.dtype != "u1" or self.blocks.ndim != 2 or self.blocks.shape[1] % size:
            raise ShapeError(
                f"BlockMatrix: {self.blocks.dtype} of shape {tuple(self.blocks.shape)} is not rows of whole "
                f"{self.format} blocks of {size} bytes"
            )

    @classmethod
    def quantized(cls, weights: Array, format: str) -> BlockMatrix:
        """Round a matrix of floats to blocks, on the host.

        Args:    format: a name in tallow.kernels.gguf_quantize.QUANTIZERS
        Shapes:  weights (N, K)
        Raises:  as tallow.kernels.gguf_quantize.quantize
        """
        return cls(quantize(format, widen(to_host(weights))), format)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix, (N, K)."""
        layout = FORMATS[self.format]
        return self.blocks.shape[0], self.blocks.shape[1] // layout.record.itemsize * layout.weights

    @property
    def nbytes(self) -> int:
        """The number of bytes of all blocks."""
        return self.blocks.nbytes

    def rows(self, index: Any) -> Array:
        """Return the rows at `index` in float32: (*, K) for an array of integers (*), or a slice of the matrix."""
        chosen = to_host(self.blocks[index])
        weights = dequantize(self.format, chosen.reshape(-1)).reshape(*chosen.shape[:-1], self.shape[1])
        return array_module(self.blocks).asarray(weights)

    def widen(self) -> Array:
        """Return the whole matrix in float32: new memory at each call."""
        return self.rows(slice(None))
