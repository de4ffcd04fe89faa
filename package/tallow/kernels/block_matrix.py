"""Matrices as they are in GGUF files: in quantised blocks, or in half precision.

The bytes stay as they are in the file, usually in mapped memory. Products read them directly ("quantized_linear");
`rows` and `widen` convert some or all of them to float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tallow.devices import array_module, to_host
from tallow.dtypes import BF16, F16, Array, widen
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.gguf_blocks import FORMATS, dequantize
from tallow.kernels.gguf_quantize import quantize

HALF_FORMATS = {"F16": F16, "BF16": BF16}  # by name: a block is one weight


@dataclass(frozen=True, slots=True, eq=False)
class BlockMatrix:
    """A matrix (N, K) of rows of quantised blocks, or of bytes of half-precision floats.

    Args:    format: a name in tallow.kernels.gguf_blocks.FORMATS, such as "Q4_0", or in HALF_FORMATS
    Shapes:  blocks (N, bytes of a row), uint8
    Raises:  ArgumentError for an unknown format, ShapeError for rows that are not whole blocks
    """

    blocks: Array
    format: str

    def __post_init__(self) -> None:
        if self.format not in FORMATS and self.format not in HALF_FORMATS:
            names = ", ".join((*FORMATS, *HALF_FORMATS))
            raise ArgumentError(f"BlockMatrix: unknown format {self.format!r}", hint=f"use one of {names}")
        size, _ = self._block
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
    def _block(self) -> tuple[int, int]:
        """The bytes and the weights of a block."""
        if self.format in HALF_FORMATS:
            return F16.itemsize, 1
        return FORMATS[self.format].record.itemsize, FORMATS[self.format].weights

    @property
    def is_half(self) -> bool:
        """True for a matrix of half-precision floats, which is not quantised."""
        return self.format in HALF_FORMATS

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix, (N, K)."""
        size, weights = self._block
        return self.blocks.shape[0], self.blocks.shape[1] // size * weights

    @property
    def nbytes(self) -> int:
        """The number of bytes of all blocks."""
        return self.blocks.nbytes

    def rows(self, index: Any) -> Array:
        """Return the rows at `index` in float32: (*, K) for an array of integers (*), or a slice of the matrix."""
        chosen = to_host(self.blocks[index])
        if self.is_half:
            return array_module(self.blocks).asarray(widen(chosen.view(HALF_FORMATS[self.format])))
        weights = dequantize(self.format, chosen.reshape(-1)).reshape(*chosen.shape[:-1], self.shape[1])
        return array_module(self.blocks).asarray(weights)

    def widen(self) -> Array:
        """Return the whole matrix in float32: new memory at each call."""
        return self.rows(slice(None))
