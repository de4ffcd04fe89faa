"""sigmoid, silu, gelu, relu, hardswish, and gradients; see src/elementwise/{silu,gelu,arithmetic,bounded}_f32.c."""

from __future__ import annotations

import math

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.kernels.bindings.arrays import FLOAT32, contiguous, float32_array, is_plain, two_float32_arrays
from tallow.kernels.bindings.threads import ELEMENT, EXPONENTIAL, by_rows, element_kernel, elementwise
from tallow.kernels.library import BACKEND, FLOAT, POINTER, SIZE, function
from tallow.kernels.table import kernel, minimum

_sigmoid = function("tl_sigmoid_f32", None, POINTER, POINTER, SIZE)
_silu = function("tl_silu_f32", None, POINTER, POINTER, SIZE)
_gelu = {
    "none": function("tl_gelu_f32", None, POINTER, POINTER, SIZE),
    "tanh": function("tl_gelu_tanh_f32", None, POINTER, POINTER, SIZE),
}
_gelu_backward = {
    "none": function("tl_gelu_backward_f32", None, POINTER, POINTER, POINTER, SIZE),
    "tanh": function("tl_gelu_tanh_backward_f32", None, POINTER, POINTER, POINTER, SIZE),
}
_clamp_min = function("tl_clamp_min_f32", None, *[POINTER] * 3, *[SIZE] * 3, FLOAT)
_leaky_relu_backward = function("tl_leaky_relu_backward_f32", None, *[POINTER] * 3, *[SIZE] * 3, FLOAT)
_hardswish = function("tl_hardswish_f32", None, POINTER, POINTER, SIZE)
_hardswish_backward = function("tl_hardswish_backward_f32", None, *[POINTER] * 3, SIZE)
NOTHING = math.nan  # the slope of `_leaky_relu_backward` for 0, of infinite elements too
LEAST = 1 << 12  # elements; a call takes longer than NumPy with fewer


def float32_contiguous(x: Array) -> bool:
    """A contiguous float32 array."""
    return (x.dtype is FLOAT32 and x.flags.carray) or is_plain(x)


# 1 / (1 + exp(-x)), and x times that.  Shapes: any -> the same
kernel("sigmoid", BACKEND, accepts=float32_contiguous)(element_kernel("sigmoid", _sigmoid, EXPONENTIAL))
kernel("silu", BACKEND, accepts=float32_array)(element_kernel("silu", _silu, EXPONENTIAL))


@kernel("gelu", BACKEND, accepts=float32_array)
def gelu(x: Array, approximate: str) -> Array:
    """Return x · Φ(x); `approximate` is "none" or "tanh".  Shapes: any -> the same."""
    if approximate not in _gelu:
        raise ArgumentError(f"gelu: approximate={approximate!r}", hint="use 'none' or 'tanh'")
    return elementwise("gelu", _gelu[approximate], EXPONENTIAL, x)


@kernel("gelu_backward", BACKEND, accepts=two_float32_arrays)
def gelu_backward(x: Array, g: Array, approximate: str) -> Array:
    """Return g times the derivative of gelu at x.  Shapes: x, g the same -> the same."""
    if approximate not in _gelu_backward:
        raise ArgumentError(f"gelu: approximate={approximate!r}", hint="use 'none' or 'tanh'")
    return elementwise("gelu_backward", _gelu_backward[approximate], EXPONENTIAL, g, x)


@minimum(LEAST)
def float32_elements(x: Array) -> bool:
    """A contiguous float32 array of at least {minimum} elements."""
    return x.size >= LEAST and is_plain(x)


@kernel("relu", BACKEND, accepts=float32_elements)
def relu(x: Array) -> Array:
    """Return max(x, 0) of each element."""
    x, y = contiguous(x), np.empty(x.shape, FLOAT32)
    by_rows(_clamp_min, (y, x, None), x.size, ELEMENT * x.size, 1, 1, 0.0)
    return y


def two_of_float32_elements(g: Array, y: Array) -> bool:
    """Two contiguous float32 arrays of one shape, of at least 2^12 elements."""
    return float32_elements(y) and two_float32_arrays(g, y)


@kernel("relu_backward", BACKEND, accepts=two_of_float32_elements)
def relu_backward(g: Array, y: Array) -> Array:
    """Return the gradient of x from that of y = relu(x)."""
    return elementwise("relu_backward", _leaky_relu_backward, ELEMENT, g, y, numbers=(1, 1, NOTHING))


def two_of_float32_elements_and_number(x: Array, y: Array, slope: float) -> bool:
    """Two contiguous float32 arrays of one shape, of at least 2^12 elements, and a number that is not NaN."""
    return type(slope) in (float, int) and slope == slope and two_of_float32_elements(x, y)


@kernel("leaky_relu_backward", BACKEND, accepts=two_of_float32_elements_and_number)
def leaky_relu_backward(g: Array, x: Array, slope: float) -> Array:
    """Return g where x is positive and slope · g elsewhere: the gradient of x, or with x as g leaky_relu itself."""
    return elementwise("leaky_relu_backward", _leaky_relu_backward, ELEMENT, g, x, numbers=(1, 1, slope))


# x · min(max(x + 3, 0), 6) / 6, and its gradient
kernel("hardswish", BACKEND, accepts=float32_elements)(element_kernel("hardswish", _hardswish, ELEMENT))


@kernel("hardswish_backward", BACKEND, accepts=two_of_float32_elements)
def hardswish_backward(g: Array, x: Array) -> Array:
    """Return g times the derivative of hardswish at x."""
    return elementwise("hardswish_backward", _hardswish_backward, ELEMENT, g, x)
