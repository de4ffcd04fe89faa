"""Elementwise functions, most of them tallow's own under NumPy's name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.keras.functions.operands import as_operand, floats, promoted, tensor

# Names that Keras and tallow share.
UNARY = (
    "abs absolute arccos arccosh arcsin arcsinh arctan arctanh bitwise_not cos cosh deg2rad exp exp2 expm1 "
    "isfinite isinf isnan isneginf isposinf log log10 log1p log2 logical_not negative rad2deg reciprocal sign signbit "
    "sin sinc sinh sqrt square tan tanh trunc"
)
BINARY = (
    "arctan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor fmax fmin fmod gcd heaviside "
    "hypot lcm ldexp logical_and logical_or logical_xor maximum minimum nextafter"
)
KERAS_ONLY = "erf erfc erfinv rsqrt"  # in keras.ops, not in keras.ops.numpy
# Keras' name -> tallow's name
RENAMED = {
    "add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "div", "true_divide": "div",
    "floor_divide": "floor_divide", "mod": "remainder", "power": "pow", "equal": "eq", "not_equal": "ne",
    "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift",
}  # fmt: skip
RENAMED_UNARY = {"bitwise_invert": "bitwise_not", "fabs": "abs"}


def _unary(name: str) -> Callable[..., Any]:
    function = getattr(tl, name)

    def apply(x: Any) -> Any:
        return function(tensor(x))

    return apply


def _binary(name: str) -> Callable[..., Any]:
    function = getattr(tl, name)

    def apply(x1: Any, x2: Any) -> Any:
        if isinstance(x1, bool | int | float) and isinstance(x2, Tensor):
            return function(as_operand(x1, x2), x2)
        x1 = tensor(x1)
        return function(x1, as_operand(x2, x1))

    return apply


def round(x: Any, decimals: int = 0) -> Tensor:
    """Round to a number of decimals."""
    return tl.round(tensor(x), decimals=decimals)


def floor(x: Any) -> Tensor:
    """Return the largest integers not above x, as floats."""
    return floats(x).floor()


def ceil(x: Any) -> Tensor:
    """Return the smallest integers not below x, as floats."""
    return floats(x).ceil()


def logaddexp(x1: Any, x2: Any) -> Tensor:
    """Return log(exp(x1) + exp(x2))."""
    return tl.logaddexp(floats(x1), floats(x2))


def logaddexp2(x1: Any, x2: Any) -> Tensor:
    """Return log2(2^x1 + 2^x2)."""
    return tl.logaddexp2(floats(x1), floats(x2))


def matmul(x1: Any, x2: Any) -> Tensor:
    """Return the product of matrices or vectors, in the dtype to which theirs promote."""
    return tl.matmul(*promoted(x1, x2))


def cbrt(x: Any) -> Tensor:
    """Return the cube root."""
    x = floats(x)
    return x.sign() * x.abs() ** (1 / 3)


def divide_no_nan(x1: Any, x2: Any) -> Tensor:
    """Return x1 / x2, and 0 where x2 is 0."""
    x1, x2 = floats(x1), tensor(x2)
    is_zero = x2 == 0
    return tl.where(is_zero, 0.0, x1 / tl.where(is_zero, tl.ones_like(x2), x2))


def isclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Return whether elements are equal within a tolerance."""
    return tl.isclose(tensor(x1), tensor(x2), rtol=rtol, atol=atol, equal_nan=equal_nan)


def allclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Return whether all elements are equal within a tolerance."""
    return isclose(x1, x2, rtol, atol, equal_nan).all()


def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Replace NaN and infinities by finite numbers."""
    return tl.nan_to_num(tensor(x), nan, posinf, neginf)


# tallow has no complex dtypes, so these functions treat every input as real.


def real(x: Any) -> Tensor:
    """Return x unchanged: all tallow dtypes are real."""
    return tensor(x)


def imag(x: Any) -> Tensor:
    """Return zeros: all tallow dtypes are real."""
    return tl.zeros_like(tensor(x))


def conjugate(x: Any) -> Tensor:
    """Return x unchanged: all tallow dtypes are real."""
    return tensor(x)


def isreal(x: Any) -> Tensor:
    """Return True for all elements: all tallow dtypes are real."""
    return tl.ones_like(tensor(x), dtype=tl.bool)


def angle(x: Any) -> Tensor:
    """Return 0 for numbers from 0 on, π for negative ones, and NaN for NaN."""
    x = floats(x)
    return tl.where(x < 0, math.pi, tl.where(x.isnan(), x, tl.zeros_like(x)))


# Coefficients of Abramowitz & Stegun, 9.8.1 and 9.8.2, for |x| up to 3.75 and above, in ascending powers.
I0_NEAR = (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)
I0_FAR = (
    0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633, 0.00392377,
)  # fmt: skip
I0_EDGE = 3.75


def i0(x: Any) -> Tensor:
    """Return the modified Bessel function of the first kind, of order 0.

    Dtypes:  any float; accurate to 2e-7
    Source:  Abramowitz & Stegun, Handbook of Mathematical Functions, 9.8.1 and 9.8.2
    """
    size = floats(x).abs()
    near, far = size.clamp(max=I0_EDGE) / I0_EDGE, size.clamp(min=I0_EDGE)
    is_near = size <= I0_EDGE
    beyond = far.exp() / far.sqrt() * _polynomial(I0_EDGE / far, I0_FAR)
    return tl.where(is_near, _polynomial(near * near, I0_NEAR), beyond)


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    y = tl.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        y = y * x + coefficient
    return y


OWN = (
    allclose, angle, cbrt, ceil, conjugate, divide_no_nan, floor, i0, imag, isclose, isreal, logaddexp, logaddexp2,
    matmul, nan_to_num, real, round,
)  # fmt: skip

NUMPY: dict[str, Callable[..., Any]] = {
    **{name: _unary(name) for name in UNARY.split()},
    **{name: _unary(tallow_name) for name, tallow_name in RENAMED_UNARY.items()},
    **{name: _binary(name) for name in BINARY.split()},
    **{name: _binary(tallow_name) for name, tallow_name in RENAMED.items()},
    **{function.__name__: function for function in OWN},
    "conj": conjugate,
}
CORE = {name: _unary(name) for name in KERAS_ONLY.split()}
