"""Matrices as they are in GGUF files: in quantised blocks, or in half precision.

The bytes stay as they are in the file, usually in mapped memory; or their rows are interleaved, which some compiled
kernels multiply faster (kernels/quantized/interleaved.py). Products read them directly ("quantized_linear"); `rows`
and `widen` convert some or all of them to float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tallow.devices import array_module, to_host
from tallow.dtypes import BF16, F16, Array, widen
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.quantized.gguf_blocks import FORMATS, dequantize
from tallow.kernels.quantized.gguf_quantize import quantize
from tallow.kernels.quantized.interleaved import SUFFIX, separated_rows
from tallow.kernels.quantized.quantized_matrix import QuantizedMatrix

HALF_FORMATS = {"F16": F16, "BF16": BF16}  # by name: a block is one weight


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BlockMatrix(QuantizedMatrix):
    """A matrix (N, K) of rows of quantised blocks, or of bytes of half-precision floats.

    Args:    format: a name in `gguf_blocks.FORMATS`, such as "Q4_0", or in HALF_FORMATS; with "x16" added,
                     such as "Q4_0x16", if the rows are interleaved
    Shapes:  blocks (N, bytes of a row), uint8
    Raises:  ArgumentError for an unknown format, ShapeError for rows that are not whole blocks
    """

    blocks: Array
    format: str

    def __post_init__(self) -> None:
        if self.format.removesuffix(SUFFIX) not in FORMATS and self.format not in HALF_FORMATS:
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

        Args:    format: a name in tallow.kernels.quantized.gguf_quantize.QUANTIZERS
        Shapes:  weights (N, K)
        Raises:  as tallow.kernels.quantized.gguf_quantize.quantize
        """
        return cls(quantize(format, widen(to_host(weights))), format)

    @property
    def _block(self) -> tuple[int, int]:
        """The bytes and the weights of a block."""
        if self.format in HALF_FORMATS:
            return F16.itemsize, 1
        layout = FORMATS[self.stored_format]
        return layout.record.itemsize, layout.weights

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
    def arrays(self) -> tuple[Array, ...]:
        """The blocks."""
        return (self.blocks,)

    def rows(self, index: Any) -> Array:
        """Return the rows at `index` in float32: (*, K) for an array of integers (*), or a slice of the matrix."""
        chosen = to_host(self._stored(index))
        if self.is_half:
            return array_module(self.blocks).asarray(widen(chosen.view(HALF_FORMATS[self.format])))
        weights = dequantize(self.stored_format, chosen.reshape(-1)).reshape(*chosen.shape[:-1], self.shape[1])
        return array_module(self.blocks).asarray(weights)

    def _stored(self, index: Any) -> Array:
        """Return the bytes of rows as they are in a file."""
        if not self.is_interleaved:
            return self.blocks[index]
        return separated_rows(self.blocks, self.stored_format, index)

    @property
    def is_interleaved(self) -> bool:
        """True if the rows are interleaved."""
        return self.format.endswith(SUFFIX)

    @property
    def stored_format(self) -> str:
        """The format of the rows as in a file."""
        return self.format.removesuffix(SUFFIX)

    def in_blocks(self) -> BlockMatrix:
        """Return the matrix with its rows as in a file: itself, or new memory if they are interleaved."""
        return BlockMatrix(self._stored(slice(None)), self.stored_format) if self.is_interleaved else self
