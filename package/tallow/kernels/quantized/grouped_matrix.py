"""Matrices of int8 or int4 codes, with scales in arrays of their own: what the kernels of a GPU read.

A row is divided into groups of adjacent elements with one scale each: x ≈ code · scale, and in some formats one shift,
which is added. Codes are int8, or pairs of numbers from -8 to 7 in a byte, stored as 0 to 15, the first in the lower
half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.devices import array_module, to_host
from tallow.dtypes import BF16, F16, Array, widen
from tallow.errors import ArgumentError, DtypeError, ShapeError
from tallow.kernels.quantized.block_matrix import HALF_FORMATS, BlockMatrix
from tallow.kernels.quantized.gguf_blocks import CHUNK, FORMATS
from tallow.kernels.quantized.gguf_format import Floats, Scaled
from tallow.kernels.quantized.quantized_matrix import QuantizedMatrix

INT8, TWO_INT4 = np.dtype(np.int8), np.dtype(np.uint8)
SCALES = (np.dtype(np.float32), F16, BF16)
MIDDLE = np.int8(8)  # of codes from 0 to 15
IN_A_LOAD = 32  # codes of four bits in 16 bytes, which are of one group
IN_A_BLOCK = 32  # weights of Q8_0 and Q4_0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupedMatrix(QuantizedMatrix):
    """A matrix (N, K) as codes, scales, and shifts or None.

    Shapes:  codes (N, K) int8, or (N, K / 2) uint8;  scales (N, K / group), float32 or half; shifts as scales
    Raises:  ShapeError, DtypeError
    """

    codes: Array
    scales: Array
    shifts: Array | None = None

    def __post_init__(self) -> None:
        dtypes = [array.dtype for array in self.arrays]
        if dtypes[0] not in (INT8, TWO_INT4) or not all(dtype in SCALES for dtype in dtypes[1:]):
            raise DtypeError(f"GroupedMatrix: {', '.join(map(str, dtypes))} are not codes and scales")
        if self.codes.ndim != 2 or self.scales.ndim != 2 or self.codes.shape[0] != self.scales.shape[0]:
            raise ShapeError(f"GroupedMatrix: codes {self.codes.shape} and scales {self.scales.shape} do not fit")
        if not self.scales.shape[1] or self.shape[1] % self.scales.shape[1]:
            raise ShapeError(f"GroupedMatrix: {self.scales.shape[1]} groups do not divide rows of {self.shape[1]}")
        if self.shifts is not None and self.shifts.shape != self.scales.shape:
            raise ShapeError(f"GroupedMatrix: shifts {self.shifts.shape} and scales {self.scales.shape} do not fit")

    @classmethod
    def of(cls, matrix: BlockMatrix) -> GroupedMatrix:
        """Return the weights of blocks, in new memory of the host: codes of 8 bits, or of 4 if they fit.

        Without shifts the weights are the same, with shifts up to rounding. Scales that float16 holds are float16.

        Raises:  ArgumentError for an empty matrix, and for a format that is not `is_scaled`
        """
        if not (matrix.nbytes and is_scaled(matrix.format)):
            raise ArgumentError(f"GroupedMatrix: the weights of {matrix.format} are not codes times scales")
        matrix = matrix.in_blocks()
        layout, rows = FORMATS[matrix.format], matrix.shape[0]
        records = np.ascontiguousarray(to_host(matrix.blocks)).reshape(-1).view(layout.record)
        step = CHUNK // layout.weights
        with np.errstate(all="ignore"):  # damaged scales may be infinite or NaN
            parts = [_scaled(layout.read(records[i : i + step])) for i in range(0, len(records), step)]
            codes = np.concatenate([part.codes for part in parts]).reshape(rows, matrix.shape[1]).view(np.int8)
            scales = np.concatenate([part.scales for part in parts]).reshape(rows, -1)
            shifts = [part.shifts for part in parts if part.shifts is not None]
            if not shifts:
                return cls(_packed(codes, scales), _half_if_exact(scales))
            return _around_zero(codes, scales, np.concatenate(shifts).reshape(rows, -1))

    @property
    def format(self) -> str:  # type: ignore[override]  # both kinds are frozen
        """The bits of a code, the size of a group, and whether there are shifts, such as "int4 by 32"."""
        bits = 8 if self.codes.dtype == INT8 else 4
        return f"int{bits} by {self.group}" + ("" if self.shifts is None else " with shifts")

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Codes, scales, and shifts if there are some."""
        return (self.codes, self.scales) if self.shifts is None else (self.codes, self.scales, self.shifts)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix, (N, K)."""
        rows, width = self.codes.shape
        return rows, width if self.codes.dtype == INT8 else 2 * width

    @property
    def group(self) -> int:
        """The number of adjacent elements that share a scale."""
        return self.shape[1] // self.scales.shape[1]

    def rows(self, index: Any) -> Array:
        """Return the rows at `index` in float32: (*, K) for an array of integers (*), or a slice of the matrix."""
        codes, scales = self.codes[index], widen(self.scales[index])[..., None]
        values = codes if codes.dtype == INT8 else _unpack(codes)
        groups = values.astype(np.float32).reshape(*scales.shape[:-1], self.group)
        groups *= scales
        if self.shifts is not None:
            groups += widen(self.shifts[index])[..., None]
        return groups.reshape(*scales.shape[:-2], self.shape[1])

    def in_blocks(self) -> BlockMatrix:
        """Return int8 codes as blocks of Q8_0, int4 codes as Q4_0, with scales rounded to float16.

        Rows are extended by zeros to whole blocks.

        Raises:  ArgumentError for shifts, for groups that divide a block, and for scales beyond the range of float16
        """
        (rows, width), whole = self.shape, -(-self.shape[1] // IN_A_BLOCK)
        if self.shifts is not None or (self.group % IN_A_BLOCK and self.group != width):
            raise ArgumentError(f"codes of {self.format} do not fit blocks of {IN_A_BLOCK}")
        eight = self.codes.dtype == INT8
        codes = np.zeros((rows, whole, IN_A_BLOCK), np.int8)
        codes.reshape(rows, -1)[:, :width] = self.codes if eight else _unpack(self.codes)
        name = "Q8_0" if eight else "Q4_0"
        records = np.empty((rows, whole), FORMATS[name].record)
        with np.errstate(over="ignore"):
            scales = widen(self.scales).astype(np.float16)
        if not np.isfinite(scales).all():
            raise ArgumentError(f"scales of {self.format} exceed the range of float16")
        records["d"] = np.repeat(scales, max(self.group // IN_A_BLOCK, 1), axis=1)[:, :whole]
        if eight:
            records["qs"] = codes
        else:
            shifted = (codes + MIDDLE).view(np.uint8)
            records["qs"] = shifted[..., :16] | (shifted[..., 16:] << np.uint8(4))
        return BlockMatrix(records.view(np.uint8).reshape(rows, -1), name)


def is_scaled(format: str) -> bool:
    """Return whether a format's weights are codes of 8 bits times scales, rather than halves or entries of a grid."""
    if format in HALF_FORMATS:
        return False
    layout = FORMATS[format]
    return isinstance(layout.read(np.zeros(1, layout.record)), Scaled)


def _scaled(weights: Floats | Scaled) -> Scaled:
    assert isinstance(weights, Scaled)
    return weights


def _around_zero(codes: npt.NDArray[np.int8], scales: Floats, shifts: Floats) -> GroupedMatrix:
    """Move codes from 0 to 15, which have shifts in any case, to the range of four bits."""
    if codes.size and codes.max() < 2 * MIDDLE:
        codes, shifts = codes - MIDDLE, shifts + scales * np.float32(MIDDLE)
    return GroupedMatrix(_packed(codes, scales), scales, shifts)


def _packed(codes: npt.NDArray[np.int8], scales: Floats) -> npt.NDArray[Any]:
    fits = codes.size and codes.min() >= -MIDDLE and codes.max() < MIDDLE
    if not fits or codes.shape[1] // scales.shape[1] % IN_A_LOAD:
        return codes
    shifted = (codes + MIDDLE).astype(np.uint8)
    return shifted[:, ::2] | (shifted[:, 1::2] << np.uint8(4))


def _half_if_exact(scales: Floats) -> npt.NDArray[Any]:
    half = scales.astype(np.float16)
    return half if np.array_equal(half.astype(np.float32), scales, equal_nan=True) else scales


def _unpack(pairs: Array) -> Array:
    xp = array_module(pairs)
    nibbles = xp.stack([pairs & np.uint8(15), pairs >> np.uint8(4)], axis=-1).astype(np.int8) - np.int8(8)
    return nibbles.reshape(*pairs.shape[:-1], -1)
