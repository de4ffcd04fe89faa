"""Int8 and int4 weights: codes and scales.

A row of a matrix is divided into groups of adjacent elements with one scale each: x ≈ code · scale, and in some formats
one shift, which is added. Codes are int8, or pairs of numbers from -8 to 7 in a byte, stored as 0 to 15, the first in
the lower half. Generating a token reads all
weights of a model once, which dominates its time: these take a quarter or an eighth of the bytes of float32.

Source:  the formats Q8_0 and Q4_0 of llama.cpp; Dettmers et al. 2022, arXiv:2208.07339, absmax quantization
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.dtypes import Array, widen
from tallow.errors import ArgumentError, ShapeError

INT8, TWO_INT4 = np.dtype(np.int8), np.dtype(np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedMatrix:
    """A matrix (N, K) as codes, scales, and shifts or None.

    Shapes:  codes (N, K) int8, or (N, K / 2) uint8;  scales (N, K / group), float32 or half; shifts as scales
    Raises:  ShapeError
    """

    codes: Array
    scales: Array
    shifts: Array | None = None

    def __post_init__(self) -> None:
        if self.codes.ndim != 2 or self.scales.ndim != 2 or self.codes.shape[0] != self.scales.shape[0]:
            raise ShapeError(f"QuantizedMatrix: codes {self.codes.shape} and scales {self.scales.shape} do not fit")
        if not self.scales.shape[1] or self.shape[1] % self.scales.shape[1]:
            raise ShapeError(f"QuantizedMatrix: {self.scales.shape[1]} groups do not divide rows of {self.shape[1]}")
        if self.shifts is not None and self.shifts.shape != self.scales.shape:
            raise ShapeError(f"QuantizedMatrix: shifts {self.shifts.shape} and scales {self.scales.shape} do not fit")

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

    def widen(self) -> Array:
        """Return the matrix in float32: new memory at each call."""
        return self.rows(slice(None))


def quantize_int8(matrix: Array, group: int | None = None) -> QuantizedMatrix:
    """Round to the nearest of 255 values between -max|x| and max|x| of each group, or of the whole row if None."""
    groups = _groups(matrix, group)
    scales = abs(groups).max(axis=-1) / np.float32(127)
    return _quantize(groups, scales, -127, 127)


def quantize_int4(matrix: Array, group: int) -> QuantizedMatrix:
    """Round to the nearest of 16 values: the element of the largest magnitude in a group becomes -8, with any sign."""
    xp, groups = array_module(matrix), _groups(matrix, group)
    if matrix.shape[1] % 2:
        raise ShapeError(f"quantize_int4: rows of {matrix.shape[1]} elements cannot be packed in pairs")
    place = abs(groups).argmax(axis=-1)[..., None]
    largest = xp.take_along_axis(groups, place, axis=-1)[..., 0]
    return _quantize(groups, largest / np.float32(-8), -8, 7)


def _groups(matrix: Array, group: int | None) -> Array:
    rows, width = matrix.shape
    group = width if group is None else group
    if group < 1 or width % group:
        raise ArgumentError(f"groups of {group} do not divide rows of {width}", hint="choose a divisor of in_features")
    return widen(matrix).reshape(rows, -1, group)


def _quantize(groups: Array, scales: Array, low: int, high: int) -> QuantizedMatrix:
    xp = array_module(groups)
    divisor = xp.where(scales == 0, np.float32(1), scales)[..., None]
    codes = xp.clip(xp.rint(groups / divisor), low, high).astype(np.int8).reshape(len(groups), -1)
    return QuantizedMatrix(codes if high > 7 else pack_int4(codes), scales)


def pack_int4(codes: Array) -> Array:
    """Pack pairs of numbers from -8 to 7: int8 (N, K) -> uint8 (N, K / 2)."""
    shifted = (codes + np.int8(8)).astype(np.uint8)
    return shifted[:, ::2] | (shifted[:, 1::2] << np.uint8(4))


def _unpack(pairs: Array) -> Array:
    xp = array_module(pairs)
    nibbles = xp.stack([pairs & np.uint8(15), pairs >> np.uint8(4)], axis=-1).astype(np.int8) - np.int8(8)
    return nibbles.reshape(*pairs.shape[:-1], -1)
