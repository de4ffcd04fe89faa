"""Quantise weights to GGUF blocks: the counterpart of gguf_blocks.py.

Formats of 32 weights take the scale from the largest weight. Formats of 256 weights ("k-quants") search scales with a
small error: see gguf_scales.py. The importance of each column, where it is known, turns every format into a search.

Source:  https://github.com/ggml-org/llama.cpp, `ggml/src/ggml-quants.c`, `quantize_row_*_ref`, and with importance
         `quantize_row_*_impl`
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.quantized import gguf_scales
from tallow.kernels.quantized.gguf_blocks import FORMATS
from tallow.kernels.quantized.gguf_format import Codes, Floats, Records
from tallow.kernels.quantized.gguf_scales import Steps

CHUNK = 2**16  # weights quantised at a time, so that intermediate results fit the CPU cache
WITH_IMPORTANCE = Steps(-0.9, 0.05, 37)  # candidates where each weight has its own importance
LARGEST = np.float32(2**30)  # more than any format stores; with weights up to it, sums do not overflow
HALVES = ("d", "m", "dmin")  # fields in float16

# Fills records (N,) from rows (R, K) in float32 and the importance of columns (K,) or None. N is R · K / weights.
Quantizer = Callable[[Floats, Floats | None, Records], None]
QUANTIZERS: dict[str, Quantizer] = {}


def quantize(name: str, rows: Floats, importance: Floats | None = None) -> Codes:
    """Return the blocks of the format `name` for the rows of a matrix.

    Args:
        importance: weight of the squared errors in each column, such as the mean square of the inputs that the column
            is multiplied by. None weighs large weights a little more than small ones.

    Shapes:  rows (R, K), importance (K,) -> (R, bytes of a row) uint8
    Raises:  ArgumentError for an unknown format, and weights that are not finite or exceed the range of float16 scales;
             ShapeError for rows that are not whole blocks
    """
    if name not in QUANTIZERS:
        raise ArgumentError(f"quantize: unknown format {name!r}", hint=f"use one of {', '.join(QUANTIZERS)}")
    layout = FORMATS[name]
    if rows.ndim != 2 or rows.shape[1] % layout.weights:
        raise ShapeError(
            f"quantize: {tuple(rows.shape)} is not rows of whole {name} blocks of {layout.weights} weights"
        )
    if importance is not None:
        importance = _checked_importance(importance, rows.shape[1])
    count, width = rows.shape
    blocks = np.zeros((count, width // layout.weights), layout.record)
    step = max(CHUNK // max(width, 1), 1)
    for start in range(0, count if width else 0, step):
        chunk = np.asarray(rows[start : start + step], np.float32)
        if not np.isfinite(chunk).all():
            raise ArgumentError(f"quantize: {name} cannot store weights that are infinite or NaN")
        records = blocks[start : start + step].reshape(-1)
        largest = abs(chunk).max()
        if largest <= LARGEST:
            with np.errstate(over="ignore"):  # of scales, which is checked
                QUANTIZERS[name](chunk, importance, records)
        fields = [records[field] for field in HALVES if field in (layout.record.names or ())]
        if largest > LARGEST or not all(np.isfinite(values).all() for values in fields):
            raise ArgumentError(f"quantize: weights up to {largest:g} exceed the range of {name}")
    return blocks.view(np.uint8).reshape(count, blocks.shape[1] * layout.record.itemsize)


def _checked_importance(importance: Floats, width: int) -> Floats:
    importance = np.asarray(importance, np.float32)
    if importance.shape != (width,):
        raise ShapeError(f"quantize: importance of shape {importance.shape} for rows of {width} weights")
    if not (np.isfinite(importance).all() and (importance >= 0).all()):
        raise ArgumentError("quantize: the importance of a column is negative, infinite or NaN")
    return importance


def _quantizer(quantizer: Quantizer) -> Quantizer:
    """Register the decorated function for the format of its name."""
    QUANTIZERS[quantizer.__name__] = quantizer
    return quantizer


@_quantizer
def Q4_0(rows: Floats, importance: Floats | None, out: Records) -> None:
    """Fill in d (q - 8)."""
    out["qs"] = _pack(_symmetric(rows, importance, out, half=8), 4, 16)


@_quantizer
def Q5_0(rows: Floats, importance: Floats | None, out: Records) -> None:
    """Fill in d (q - 16)."""
    _put_five_bits(out, _symmetric(rows, importance, out, half=16))


@_quantizer
def Q4_1(rows: Floats, importance: Floats | None, out: Records) -> None:
    """Fill in d q + m."""
    out["qs"] = _pack(_affine(rows, importance, out, top=15), 4, 16)


@_quantizer
def Q5_1(rows: Floats, importance: Floats | None, out: Records) -> None:
    """Fill in d q + m."""
    _put_five_bits(out, _affine(rows, importance, out, top=31))


@_quantizer
def Q8_0(rows: Floats, importance: Floats | None, out: Records) -> None:
    """Fill in d q, rounded half away from zero. The error is too small for `importance` to matter."""
    x = rows.reshape(-1, 32)
    d = abs(x).max(axis=1) / np.float32(127)
    scaled = x * _inverse(d)[:, None]
    magnitude = abs(scaled)
    whole = np.floor(magnitude)
    out["d"] = d
    out["qs"] = np.copysign(whole + (magnitude - whole >= np.float32(0.5)), scaled)


def _symmetric(rows: Floats, importance: Floats | None, out: Records, half: int) -> Codes:
    """Fill in d for weights d (q - half), and return q, (N, 32)."""
    x = rows.reshape(-1, 32)
    if importance is not None:
        found = gguf_scales.symmetric(_groups(rows, 32), _row_weights(rows, importance), half)
        out["d"] = found.scale
        return _codes(found.codes + np.float32(half), 32)
    largest = np.take_along_axis(x, abs(x).argmax(axis=1)[:, None], axis=1)[:, 0]
    d = largest / np.float32(-half)
    out["d"] = d
    return _truncated(x * _inverse(d)[:, None] + np.float32(half + 0.5), 2 * half - 1)


def _affine(rows: Floats, importance: Floats | None, out: Records, top: int) -> Codes:
    """Fill in d and m for weights d q + m, and return q, (N, 32)."""
    x = rows.reshape(-1, 32)
    if importance is not None:
        found = gguf_scales.affine(_groups(rows, 32), _row_weights(rows, importance), top, WITH_IMPORTANCE)
        out["d"], out["m"] = found.scale, -found.minimum
        return _codes(found.codes, 32)
    low = x.min(axis=1)
    d = (x.max(axis=1) - low) / np.float32(top)
    out["d"], out["m"] = d, low
    return _truncated((x - low[:, None]) * _inverse(d)[:, None] + np.float32(0.5), top)


@_quantizer
def Q2_K(rows: Floats, importance: Floats | None, out: Records) -> None:
    """Fill in d s q - dmin m."""
    x = _groups(rows, 16)
    if importance is None:
        found = gguf_scales.affine(x, abs(x), 3, Steps(-0.5, 0.1, 16), absolute=True)
        (d, s), (dmin, m) = _divided(found.scale, 16, 15), _divided(found.minimum, 16, 15)
    else:
        w = _block_weights(rows, importance, 16, factor=1)
        found = gguf_scales.affine(x, w, 3, WITH_IMPORTANCE)
        (d, s), (dmin, m) = _searched(found.scale, w, 16, 15), _searched(found.minimum, w, 16, 15)
    out["d"], out["dmin"] = d, dmin
    out["scales"] = _codes_of_scales(s) | (_codes_of_scales(m) << np.uint8(4))
    out["qs"] = _pack(_codes_with_minima(x, out, s, m, 3), 2, 32)


@_quantizer
def Q3_K(rows: Floats, importance: Floats | None, out: Records) -> None:
    """Fill in d (s - 32) (q - 4)."""
    x = _groups(rows, 16)
    if importance is None:
        scale = gguf_scales.descended(x, x * x, 4).scale.reshape(-1, 16)
        inverse, d = _around_largest(scale, -32)
        s = np.clip(np.rint(inverse * scale), -32, 31)
    else:
        w = _block_weights(rows, importance, 16, factor=2)
        scale = gguf_scales.symmetric(x, w, 4).scale
        found = gguf_scales.symmetric(_groups(scale, 16), _groups(w.sum(axis=0), 16), 32)
        d, s = found.scale, found.codes.T
    out["d"] = d
    packed = (s + np.float32(32)).astype(np.uint8)
    out["scales"] = np.concatenate([_pack(packed & np.uint8(15), 4, 8), _pack(packed >> np.uint8(4), 2, 4)], axis=1)
    q = _codes_around_zero(x, out, s, 4)
    out["qs"] = _pack(q & np.uint8(3), 2, 32)
    out["hmask"] = _pack(q >> np.uint8(2), 1, 32)


@_quantizer
def Q4_K(rows: Floats, importance: Floats | None, out: Records) -> None:
    """Fill in d s q - dmin m."""
    out["qs"] = _pack(_scaled_by_32(rows, importance, out, 15, Steps(-1, 0.1, 21)), 4, 32)


@_quantizer
def Q5_K(rows: Floats, importance: Floats | None, out: Records) -> None:
    """Fill in d s q - dmin m."""
    q = _scaled_by_32(rows, importance, out, 31, Steps(-0.5, 0.1, 16))
    out["qs"] = _pack(q & np.uint8(15), 4, 32)
    out["qh"] = _pack(q >> np.uint8(4), 1, 32)


def _scaled_by_32(rows: Floats, importance: Floats | None, out: Records, top: int, steps: Steps) -> Codes:
    """Fill in d, dmin and the scales of Q4_K and Q5_K, and return the codes, (N, 256)."""
    x = _groups(rows, 32)
    if importance is None:
        w = np.sqrt((x * x).sum(axis=0) / np.float32(32)) + abs(x)
        found = gguf_scales.affine(x, w, top, steps)
        (d, s), (dmin, m) = _divided(found.scale, 8, 63), _divided(found.minimum, 8, 63)
    else:
        w = _block_weights(rows, importance, 32, factor=2)
        found = gguf_scales.affine(x, w, top, WITH_IMPORTANCE)
        (d, s), (dmin, m) = _searched(found.scale, w, 8, 63), _searched(found.minimum, w, 8, 63)
    out["d"], out["dmin"] = d, dmin
    out["scales"] = _packed_six_bits(_codes_of_scales(s), _codes_of_scales(m))
    return _codes_with_minima(x, out, s, m, top)


@_quantizer
def Q6_K(rows: Floats, importance: Floats | None, out: Records) -> None:
    """Fill in d s (q - 32)."""
    x = _groups(rows, 16)
    w = x * x if importance is None else _groups(np.broadcast_to(importance, rows.shape), 16)
    scale = gguf_scales.symmetric(x, w, 32).scale.reshape(-1, 16)
    inverse, d = _around_largest(scale, -128)
    s = np.minimum(np.rint(inverse * scale), np.float32(127))
    out["d"], out["scales"] = d, s
    q = _codes_around_zero(x, out, s, 32)
    out["ql"] = _pack(q & np.uint8(15), 4, 64)
    out["qh"] = _pack(q >> np.uint8(4), 2, 32)


def _divided(scales: Floats, count: int, top: int) -> tuple[Floats, Floats]:
    """Divide `count` scales of each block by the largest: d (N,) and integers (N, count) from 0 to `top`."""
    scales = scales.reshape(-1, count)
    largest = np.maximum(scales.max(axis=1), np.float32(0))
    inverse = np.divide(np.float32(top), largest, out=np.zeros_like(largest), where=largest > 0)
    return largest / np.float32(top), np.clip(np.rint(inverse[:, None] * scales), 0, top)


def _searched(scales: Floats, w: Floats, count: int, top: int) -> tuple[Floats, Floats]:
    """As `_divided`, by a search that weighs each scale with its group's importance."""
    found = gguf_scales.positive(_groups(scales, count), _groups(w.sum(axis=0), count), top)
    return found.scale, found.codes.T


def _around_largest(scales: Floats, target: int) -> tuple[Floats, Floats]:
    """Return the factors (N, 1) that map the scale of the largest magnitude in each row to `target`, and d (N,)."""
    largest = np.take_along_axis(scales, abs(scales).argmax(axis=1)[:, None], axis=1)
    usable = abs(largest) >= gguf_scales.SMALLEST
    inverse = np.divide(np.float32(target), largest, out=np.zeros_like(largest), where=usable)
    return inverse, _inverse(inverse[:, 0])


def _codes_with_minima(x: Floats, out: Records, s: Floats, m: Floats, top: int) -> Codes:
    """Return the codes (N, 256) of weights d s q - dmin m, with d and dmin as stored."""
    scale = (out["d"].astype(np.float32)[:, None] * s).reshape(-1)
    minimum = (out["dmin"].astype(np.float32)[:, None] * m).reshape(-1)
    codes = np.divide(x + minimum, scale, out=np.zeros_like(x), where=scale != 0)
    return _codes(np.clip(np.rint(codes), 0, top), 256)


def _codes_around_zero(x: Floats, out: Records, s: Floats, half: int) -> Codes:
    """Return the codes (N, 256) of weights d s (q - half), with d as stored."""
    scale = (out["d"].astype(np.float32)[:, None] * s).reshape(-1)
    codes = np.divide(x, scale, out=np.zeros_like(x), where=scale != 0)
    return _codes(np.clip(np.rint(codes), -half, half - 1) + np.float32(half), 256)


def _row_weights(rows: Floats, importance: Floats) -> Floats:
    """Return importance · √(σ² + x²) in groups (32, N), with the mean square σ² of each row."""
    squares = rows * rows
    return _groups(importance * np.sqrt(squares.mean(axis=1, keepdims=True) + squares), 32)


def _block_weights(rows: Floats, importance: Floats, size: int, factor: int) -> Floats:
    """Return importance · √(factor · σ² + x²) in groups (size, N), with the mean square σ² of each 256 weights."""
    squares = (rows * rows).reshape(len(rows), -1, 256)
    root = np.sqrt(np.float32(factor) * squares.mean(axis=2, keepdims=True) + squares)
    return _groups(importance.reshape(-1, 256) * root, size)


def _groups(values: Floats, size: int) -> Floats:
    """Return consecutive values as columns: (size, N)."""
    return np.ascontiguousarray(values.reshape(-1, size).T)


def _codes(groups: Floats, weights: int) -> Codes:
    """Return groups (size, N) as the codes of blocks (N, weights): the inverse of `_groups`."""
    return groups.T.astype(np.uint8).reshape(-1, weights)


def _codes_of_scales(scales: Floats) -> Codes:
    return scales.astype(np.uint8)


def _truncated(values: Floats, top: int) -> Codes:
    return np.minimum(values, np.float32(top)).astype(np.uint8)


def _inverse(d: Floats) -> Floats:
    """Return 1 / d, with 0 where d is 0 or its inverse is infinite."""
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.float32(1) / d
    return np.where(np.isfinite(inverse), inverse, np.float32(0))


def _pack(codes: Codes, bits: int, run: int) -> Codes:
    """Pack values of 1, 2 or 4 bits in runs of `run` bytes: (N, values) -> (N, bytes)."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    runs = codes.reshape(len(codes), -1, 8 // bits, run)
    return np.bitwise_or.reduce(runs << shifts, axis=2).reshape(len(codes), -1)


def _put_five_bits(out: Records, codes: Codes) -> None:
    out["qs"] = _pack(codes & np.uint8(15), 4, 16)
    out["qh"] = np.packbits(codes >> np.uint8(4), axis=1, bitorder="little")


def _packed_six_bits(scales: Codes, minima: Codes) -> Codes:
    """Pack eight scales and eight minima of 6 bits, (N, 8) each, in 12 bytes, as gguf_blocks.py reads them."""
    high = np.uint8(0x30)
    first = scales[:, :4] | ((scales[:, 4:] & high) << np.uint8(2))
    second = minima[:, :4] | ((minima[:, 4:] & high) << np.uint8(2))
    rest = (scales[:, 4:] & np.uint8(15)) | ((minima[:, 4:] & np.uint8(15)) << np.uint8(4))
    return np.concatenate([first, second, rest], axis=1)
