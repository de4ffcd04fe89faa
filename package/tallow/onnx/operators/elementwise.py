"""ONNX operators that compute element by element: arithmetic, comparison, logic, bits.

Shapes:  operands broadcast as NumPy's
Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

import inspect
import operator as python
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

import tallow as tl
from tallow import Tensor
from tallow.errors import ArgumentError
from tallow.onnx.operators.registry import operator
from tallow.ops.dims import normalize_dim

Binary = Callable[[Tensor, Tensor], Tensor]

# ONNX's name: first opset, and the function that computes the same.
SAME: dict[str, tuple[int, Callable[..., Any]]] = {
    "Abs": (1, tl.abs),
    "Neg": (1, python.neg),
    "Sign": (9, tl.sign),
    "Reciprocal": (1, tl.reciprocal),
    "Floor": (1, tl.floor),
    "Ceil": (1, tl.ceil),
    "Round": (11, tl.round),  # halves go to the even number
    "Sqrt": (1, tl.sqrt),
    "Exp": (1, tl.exp),
    "Log": (1, tl.log),
    "Erf": (9, tl.erf),
    "Sin": (7, tl.sin),
    "Cos": (7, tl.cos),
    "Tan": (7, tl.tan),
    "Asin": (7, tl.asin),
    "Acos": (7, tl.acos),
    "Atan": (7, tl.atan),
    "Sinh": (9, tl.sinh),
    "Cosh": (9, tl.cosh),
    "Asinh": (9, tl.asinh),
    "Acosh": (9, tl.acosh),
    "Atanh": (9, tl.atanh),
    "IsNaN": (9, tl.isnan),
    "Not": (1, tl.logical_not),
    "LessOrEqual": (12, python.le),
    "GreaterOrEqual": (12, python.ge),
    "BitwiseAnd": (18, tl.bitwise_and),
    "BitwiseOr": (18, tl.bitwise_or),
    "BitwiseXor": (18, tl.bitwise_xor),
    "BitwiseNot": (18, tl.bitwise_not),
}


def with_uint16(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes uint16 too, for which tallow has no arithmetic, as PyTorch: in int32."""

    def compute(*operands: Any) -> Any:
        if all(operand.dtype is not tl.uint16 for operand in operands):
            return function(*operands)
        result = function(*(operand.to(tl.int32) for operand in operands))
        return result if result.dtype is tl.bool else result.to(tl.uint16)

    # The signature tells the number of operands, the name where the code of graphs finds the function.
    compute.__name__ = compute.__qualname__ = f"{function.__name__}_with_uint16"
    compute.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    globals()[compute.__name__] = compute
    return compute


for _name, (_since, _function) in SAME.items():
    operator(_name, since=_since)(with_uint16(_function))


def binary(name: str) -> Callable[[Binary], Binary]:
    """Register an operator of two operands: with NumPy's broadcasting, and as it was before opset 7."""

    def register(plain: Binary) -> Binary:
        function = with_uint16(plain)

        def before_7(a: Tensor, b: Tensor, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
            return function(a, _aligned(a, b, axis, broadcast))

        before_7.__name__ = before_7.__qualname__ = f"{plain.__name__}_before_7"
        globals()[before_7.__name__] = before_7  # where the code of graphs finds it
        operator(name, since=1, until=6, whole=True)(before_7)
        operator(name, since=7)(function)
        return plain

    return register


def _aligned(a: Tensor, b: Tensor, axis: int | None, broadcast: int) -> Tensor:
    """Return `b` with ones after its dims, so that they meet those of `a` from `axis` on."""
    if not broadcast or axis is None:
        return b
    axis = normalize_dim(axis, a.dim(), "axis")
    return b.reshape((*b.shape, *(1,) * (a.dim() - axis - b.dim())))


binary("Add")(python.add)
binary("Sub")(python.sub)
binary("Mul")(python.mul)
binary("And")(tl.logical_and)
binary("Or")(tl.logical_or)
binary("Xor")(tl.logical_xor)
binary("Less")(python.lt)
binary("Greater")(python.gt)


@binary("Div")
def div(a: Tensor, b: Tensor) -> Tensor:
    """Divide; integers round towards zero."""
    return a / b if a.dtype.is_floating_point else tl.div(a, b, rounding_mode="trunc")


@binary("Pow")
def power(a: Tensor, b: Tensor) -> Tensor:
    """Raise `a` to `b`; the result has the dtype of `a`."""
    return tl.pow(a, b) if a.dtype == b.dtype else tl.pow(a, b).to(a.dtype)


@operator("Equal", since=7)
def equal(a: Any, b: Any) -> Tensor:
    """Compare; strings too."""
    if isinstance(a, np.ndarray):
        return tl.tensor(np.equal(a, b).astype(bool))
    return a.to(tl.int32) == b.to(tl.int32) if a.dtype == tl.uint16 else a == b


@operator("Equal", since=1, until=6, whole=True)
def equal_before_7(a: Tensor, b: Tensor, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
    """Compare; `b` meets the dims of `a` from `axis` on."""
    return equal(a, _aligned(a, b, axis, broadcast))


@operator("Mod", since=10)
def mod(a: Tensor, b: Tensor, *, fmod: int = 0) -> Tensor:
    """Return the remainder: with the sign of `b`, or with `fmod` that of `a`."""
    return with_uint16(tl.fmod if fmod else tl.remainder)(a, b)


@operator("Max", since=1)
def maximum(*inputs: Tensor) -> Tensor:
    """Return the largest of the operands' elements."""
    return reduce(with_uint16(tl.maximum), inputs)


@operator("Min", since=1)
def minimum(*inputs: Tensor) -> Tensor:
    """Return the smallest of the operands' elements."""
    return reduce(with_uint16(tl.minimum), inputs)


@operator("Sum", since=1)
def total(*inputs: Tensor) -> Tensor:
    """Add all operands."""
    return reduce(python.add, inputs)


@operator("Mean", since=1)
def mean(*inputs: Tensor) -> Tensor:
    """Average all operands."""
    return reduce(python.add, inputs) / len(inputs)


@operator("IsInf", since=10)
def isinf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    """Return where infinities are, of both signs or of one."""
    if detect_negative and detect_positive:
        return tl.isinf(x)
    if detect_negative:
        return tl.isneginf(x)
    return tl.isposinf(x) if detect_positive else tl.zeros_like(x, dtype=tl.bool)


@operator("BitShift", since=11)
def bit_shift(x: Tensor, y: Tensor, *, direction: str) -> Tensor:
    """Shift the bits of unsigned integers.  Raises: ArgumentError for a direction other than LEFT and RIGHT"""
    if direction not in ("LEFT", "RIGHT"):
        raise ArgumentError(f"BitShift: direction={direction!r}", hint='use "LEFT" or "RIGHT"')
    return with_uint16(tl.bitwise_left_shift if direction == "LEFT" else tl.bitwise_right_shift)(x, y)


@operator("Where", since=9)
def where(condition: Tensor, x: Any, y: Any) -> Any:
    """Choose elements of `x` where `condition` is true, else of `y`; strings too."""
    if isinstance(x, np.ndarray):
        return np.where(condition.numpy(), x, y)
    return tl.where(condition, x, y)


@operator("Clip", since=11)
def clip(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """Limit to [low, high], or without both to finite numbers; where low exceeds high, the result is high."""
    return _finite(x) if low is None and high is None else tl.clamp(x, low, high)


def _finite(x: Tensor) -> Tensor:
    """Limit floats to the range of their dtype, the default limits of Clip."""
    if not x.is_floating_point():
        return x
    return tl.clamp(x, tl.finfo(x.dtype).min, tl.finfo(x.dtype).max)


@operator("Clip", since=1, until=10)
def clip_to(x: Tensor, *, min: float | None = None, max: float | None = None) -> Tensor:
    """Limit to [min, max], or without both to finite numbers."""
    return _finite(x) if min is None and max is None else tl.clamp(x, min, max)
