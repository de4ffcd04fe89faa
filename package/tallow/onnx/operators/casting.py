"""ONNX operators between element types: casts, and the bits of one type as another.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tallow as tl
from tallow import Tensor, dtypes
from tallow.errors import ArgumentError
from tallow.onnx.operators.element_types import BITS, FLOAT4, STRING, dtype_of
from tallow.onnx.operators.registry import operator

_SPECIAL = {"+inf": "inf", "-inf": "-inf", "inf": "inf", "nan": "nan"}
_NAMES = {  # of opset 5 and before
    "FLOAT": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "STRING": 8, "BOOL": 9,
    "FLOAT16": 10, "DOUBLE": 11, "UINT32": 12, "UINT64": 13,
}  # fmt: skip


@operator("Cast", since=6)
def cast(x: Any, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    """Convert to an element type.

    Args:
        saturate: what exceeds an eight-bit float becomes its largest number, instead of infinity or NaN.
        round_mode: of powers of two (float8e8m0): up, down or nearest.
    """
    if isinstance(x, np.ndarray):
        return x if to == STRING else _from_strings(x, dtype_of(to))
    if to == STRING:
        return _to_strings(x)
    target = dtype_of(to)
    if x.dtype == target and to not in BITS:
        return x
    if to in BITS:
        return _narrowed(x, to, target)
    if target is tl.float8_e8m0fnu:
        return _to_powers(x, saturate, round_mode)
    if target in dtypes.FLOAT8:
        return _to_float8(x, target, saturate)
    return x.to(target)


@operator("Cast", since=1, until=5)
def cast_to_name(x: Any, *, to: str) -> Any:
    """Convert to an element type, given by name."""
    return cast(x, to=_NAMES[to.upper()])


@operator("CastLike", since=15, whole=True)
def cast_like(x: Any, target_type: Any, *, saturate: int = 1, round_mode: str = "up", narrow_type: int = 0) -> Any:
    """Convert to the element type of `target_type`."""
    if narrow_type:
        return cast(x, to=narrow_type)
    if isinstance(target_type, np.ndarray):
        return x if isinstance(x, np.ndarray) else _to_strings(x)
    if isinstance(x, np.ndarray):
        return _from_strings(x, target_type.dtype)
    if target_type.dtype is tl.float8_e8m0fnu:
        return _to_powers(x, saturate, round_mode)
    if target_type.dtype in dtypes.FLOAT8:
        return _to_float8(x, target_type.dtype, saturate)
    return x.to(target_type.dtype)


def _narrowed(x: Tensor, to: int, holder: tl.dtype) -> Tensor:
    """Convert to numbers of two or four bits: integers drop higher bits, floats round to the nearest."""
    bits, signed = BITS[to]
    if bits == 4 and holder.is_floating_point:
        table = tl.tensor(FLOAT4)
        below = tl.bucketize(x.to(tl.float32).abs(), (table[1:] + table[:-1]) / 2)
        even = (below % 2 == 1) & (x.abs() == ((table[1:] + table[:-1]) / 2)[tl.clamp(below, max=6)])
        rounded = table[tl.clamp(below + even.to(tl.int64), max=7)].copysign(x.to(tl.float32))
        return tl.where(tl.isnan(x), tl.full((), -0.0), rounded)  # the type lacks NaN; -0 as in ml_dtypes
    whole = x.to(tl.int64) & (2**bits - 1)
    if signed:
        whole = tl.where(whole >= 2 ** (bits - 1), whole - 2**bits, whole)
    return whole.to(holder)


def _to_float8(x: Tensor, target: tl.dtype, saturate: int) -> Tensor:
    x = x.to(tl.float32)
    largest = tl.finfo(target).max
    if saturate:
        return tl.clamp(x, -largest, largest).to(target)
    if target is tl.float8_e4m3fn:  # PyTorch's cast saturates
        x = tl.where(x.abs() >= largest + 16, tl.full((), tl.nan), x)
    return x.to(target)


def _to_powers(x: Tensor, saturate: int, round_mode: str) -> Tensor:
    """Convert to powers of two from 2^-127 to 2^127.  Raises: ArgumentError for an unknown rounding"""
    modes = {"up": tl.ceil, "down": tl.floor, "nearest": None}
    if round_mode not in modes:
        raise ArgumentError(f"Cast: round_mode={round_mode!r}", hint="use up, down or nearest")
    x = x.to(tl.float64)
    fraction, exponent = tl.frexp(x)  # x = fraction · 2^exponent, with a fraction from 1/2
    exponent = exponent - 1
    up = {"up": fraction > 0.5, "down": fraction > 1, "nearest": fraction >= 0.75}[round_mode]
    exponent = exponent + up.to(exponent.dtype)
    power = tl.pow(2.0, tl.clamp(exponent, -127, 127).to(tl.float64))
    lowest, highest = tl.full((), 2.0**-127, dtype=tl.float64), tl.full((), 2.0**127, dtype=tl.float64)
    missing = tl.full((), tl.nan, dtype=tl.float64)
    power = tl.where(x < lowest, lowest if saturate else missing, power)
    power = tl.where(x > highest, highest if saturate else missing, power)
    return tl.where(tl.isnan(x), missing, power).to(tl.float8_e8m0fnu)


def _from_strings(x: Any, target: tl.dtype) -> Tensor:
    """Read numbers.  Raises: ArgumentError for another text"""

    def number(text: str) -> float:
        try:
            return float(_SPECIAL.get(str(text).strip().lower(), text))
        except ValueError:
            raise ArgumentError(f"Cast: {text!r:.40} is no number") from None

    values = np.array([number(text) for text in x.reshape(-1)], np.float64).reshape(x.shape)
    return tl.tensor(values).to(target)


def _to_strings(x: Tensor) -> Any:
    """Write numbers: the shortest text of floats that is read as the same number."""
    array = x.to(tl.float32).numpy() if x.dtype is tl.bfloat16 else x.numpy()
    texts = [str(int(v)) if array.dtype.kind == "b" else str(v) for v in array.reshape(-1)]
    if array.dtype.kind == "f":
        texts = [{"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(text, text.removesuffix(".0")) for text in texts]
    return np.array(texts, object).reshape(array.shape)


@operator("BitCast", since=26)
def bit_cast(x: Tensor, *, to: int) -> Tensor:
    """Return the bits of the elements as another type of the same width."""
    return x.view(dtype_of(to))
