"""Short forms of `to(dtype)`: `x.float()`, `x.long()` and so on.

They have a module of their own because their names hide Python's built-in ones.
"""

from __future__ import annotations

from tallow import dtypes
from tallow.core.apply import apply
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.functions.casting import in_memory_format
from tallow.ops.casting import to_dtype
from tallow.ops.memory_format import memory_format


def _to_dtype(input: Tensor, dtype: dtypes.dtype, memory_format: memory_format | None) -> Tensor:
    return in_memory_format(input if input.dtype is dtype else apply(to_dtype, input, dtype), input, memory_format)


@public("Tensor")
def double(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Convert to float64: `to(tl.float64, memory_format=memory_format)`."""
    return _to_dtype(input, dtypes.float64, memory_format)


@public("Tensor")
def cdouble(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Convert to complex128: `to(tl.complex128, memory_format=memory_format)`."""
    return _to_dtype(input, dtypes.complex128, memory_format)


@public("Tensor")
def cfloat(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Convert to complex64: `to(tl.complex64, memory_format=memory_format)`."""
    return _to_dtype(input, dtypes.complex64, memory_format)


@public("Tensor")
def chalf(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Convert to complex32, whose numbers only convert and move: `to(tl.complex32, memory_format=memory_format)`."""
    return _to_dtype(input, dtypes.complex32, memory_format)


@public("Tensor")
def float(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Convert to float32: `to(tl.float32, memory_format=memory_format)`."""
    return _to_dtype(input, dtypes.float32, memory_format)


@public("Tensor")
def half(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Convert to float16: `to(tl.float16, memory_format=memory_format)`."""
    return _to_dtype(input, dtypes.float16, memory_format)


@public("Tensor")
def bfloat16(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Convert to bfloat16: `to(tl.bfloat16, memory_format=memory_format)`."""
    return _to_dtype(input, dtypes.bfloat16, memory_format)


@public("Tensor")
def long(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Convert to int64: `to(tl.int64, memory_format=memory_format)`."""
    return _to_dtype(input, dtypes.int64, memory_format)


@public("Tensor")
def int(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Convert to int32: `to(tl.int32, memory_format=memory_format)`."""
    return _to_dtype(input, dtypes.int32, memory_format)


@public("Tensor")
def short(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Convert to int16: `to(tl.int16, memory_format=memory_format)`."""
    return _to_dtype(input, dtypes.int16, memory_format)


@public("Tensor")
def char(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Convert to int8: `to(tl.int8, memory_format=memory_format)`."""
    return _to_dtype(input, dtypes.int8, memory_format)


@public("Tensor")
def byte(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Convert to uint8: `to(tl.uint8, memory_format=memory_format)`."""
    return _to_dtype(input, dtypes.uint8, memory_format)


@public("Tensor")
def bool(input: Tensor, memory_format: memory_format | None = None) -> Tensor:
    """Convert to bool: `to(tl.bool, memory_format=memory_format)`."""
    return _to_dtype(input, dtypes.bool, memory_format)
