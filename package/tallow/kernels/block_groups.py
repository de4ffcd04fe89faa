"""Quantised blocks of GGUF files as codes, scales and shifts in arrays of their own, by which devices multiply."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tallow.devices import to_host
from tallow.kernels.block_matrix import BlockMatrix
from tallow.kernels.gguf_blocks import CHUNK, FORMATS
from tallow.kernels.gguf_format import Floats, Scaled
from tallow.kernels.quantized import QuantizedMatrix, pack_int4

MIDDLE = np.int8(8)  # of codes from 0 to 15
IN_A_LOAD = 32  # codes of four bits in 16 bytes, which are of one group


def grouped(matrix: BlockMatrix) -> QuantizedMatrix | None:
    """Return the weights of a matrix in new memory of the host: codes of 8 bits, or of 4 if they fit.

    Without shifts the weights are the same, with shifts up to rounding. Scales that float16 holds are float16.

    Returns: None for half precision, and for formats in which a code stands for several weights
    """
    if matrix.is_half:
        return None
    matrix = matrix.separated()
    layout = FORMATS[matrix.format]
    records = np.ascontiguousarray(to_host(matrix.blocks)).reshape(-1).view(layout.record)
    parts: list[Scaled] = []
    step = CHUNK // layout.weights
    with np.errstate(all="ignore"):  # damaged scales may be infinite or NaN
        for start in range(0, len(records), step):
            part = layout.read(records[start : start + step])
            if not isinstance(part, Scaled):
                return None
            parts.append(part)
        if not parts:
            return None
        rows = matrix.shape[0]
        codes = np.concatenate([part.codes for part in parts]).reshape(rows, -1).view(np.int8)
        scales = np.concatenate([part.scales for part in parts]).reshape(rows, -1)
        if any(part.shifts is None for part in parts):
            return QuantizedMatrix(_packed(codes, scales), _half_if_exact(scales))
        shifts = np.concatenate([part.shifts for part in parts]).reshape(rows, -1)
        return _around_zero(codes, scales, shifts)


def _around_zero(codes: npt.NDArray[np.int8], scales: Floats, shifts: Floats) -> QuantizedMatrix:
    """Move codes from 0 to 15, which have shifts in any case, to the range of four bits."""
    if codes.size and codes.max() < 2 * MIDDLE:
        codes, shifts = codes - MIDDLE, shifts + scales * np.float32(MIDDLE)
    return QuantizedMatrix(_packed(codes, scales), scales, shifts)


def _packed(codes: npt.NDArray[np.int8], scales: Floats) -> npt.NDArray[Any]:
    fits = codes.size and codes.min() >= -MIDDLE and codes.max() < MIDDLE
    return pack_int4(codes) if fits and codes.shape[1] // scales.shape[1] % IN_A_LOAD == 0 else codes


def _half_if_exact(scales: Floats) -> npt.NDArray[Any]:
    half = scales.astype(np.float16)
    return half if np.array_equal(half.astype(np.float32), scales, equal_nan=True) else scales
