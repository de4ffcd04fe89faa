"""silu, gelu and their gradients; see src/{silu,gelu}.cu."""

from __future__ import annotations

from tallow.dtypes import Array
from tallow.kernels import kernel
from tallow_cuda.launching import is_float
from tallow_cuda.rows import float_arrays, map_arrays


def float_array(x: Array, *_: object) -> bool:
    """A float32, float16 or bfloat16 array."""
    return is_float(x)


@kernel("silu", "cuda", accepts=float_array)
def silu(x: Array) -> Array:
    """Return x · sigmoid(x), in the dtype of x.  Shapes: any -> the same."""
    return map_arrays("silu.cu", "silu", x)


@kernel("silu_backward", "cuda", accepts=float_arrays)
def silu_backward(x: Array, g: Array) -> Array:
    """Return g times the derivative of silu at x, in the dtype of g.  Shapes: x, g the same -> the same."""
    return map_arrays("silu.cu", "silu_backward", x, gradient=g)


@kernel("gelu", "cuda", accepts=float_array)
def gelu(x: Array, approximate: str) -> Array:
    """Return x · Φ(x), in the dtype of x; `approximate` is "none" or "tanh".  Shapes: any -> the same."""
    return map_arrays("gelu.cu", "gelu", x, TANH=int(approximate == "tanh"))


def slope_and_gradient(x: Array, g: Array, approximate: str) -> bool:
    """Two float32, float16 or bfloat16 arrays of one shape."""
    return float_arrays(x, g)


@kernel("gelu_backward", "cuda", accepts=slope_and_gradient)
def gelu_backward(x: Array, g: Array, approximate: str) -> Array:
    """Return g times the derivative of gelu at x, in the dtype of g.  Shapes: x, g the same -> the same."""
    return map_arrays("gelu.cu", "gelu_backward", x, gradient=g, TANH=int(approximate == "tanh"))
