"""silu, silu_mul, gelu, gelu_mul and their gradients, see src/{silu,silu_mul,gelu}.cu."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow_cuda.launching import contiguous, cuda, is_float
from tallow_cuda.rows import launch_map
from tallow_cuda.sources import element, load


def float_array(x: Array, *_: object) -> bool:
    """A float32, float16 or bfloat16 array."""
    return is_float(x)


def float_arrays(*arrays: Array) -> bool:
    """Float32, float16 or bfloat16 arrays of one shape, the last a gradient, the others of one dtype."""
    return is_float(*arrays) and len({a.shape for a in arrays}) == 1 and len({a.dtype for a in arrays[:-1]}) == 1


def _map(file: str, name: str, *arrays: Array, gradient: Array | None = None, **defines: int) -> Array:
    """What the kernel makes of arrays of one shape and dtype, and then of a gradient: an array like the last."""
    given = tuple(map(contiguous, arrays if gradient is None else (*arrays, gradient)))
    made = array_module(given[0]).empty_like(given[-1])
    launch_map(load(file, name, X=element(given[0]), G=element(gradient), **defines), *given, made)
    return made


@cuda("silu", float_array)
def silu(x: Array) -> Array:
    """x · sigmoid(x), in the dtype of x.  Shapes: any -> the same."""
    return _map("silu.cu", "silu", x)


@cuda("silu_backward", float_arrays)
def silu_backward(x: Array, g: Array) -> Array:
    """g times the slope of silu at x, in the dtype of g.  Shapes: x, g the same -> the same."""
    return _map("silu.cu", "silu_backward", x, gradient=g)


def two_of_one_dtype(a: Array, b: Array) -> bool:
    """Two arrays of one shape and one dtype: float32, float16 or bfloat16."""
    return is_float(a) and a.dtype == b.dtype and a.shape == b.shape


@cuda("silu_mul", two_of_one_dtype)
def silu_mul(a: Array, b: Array) -> Array:
    """a · sigmoid(a) · b, in their dtype.  Shapes: a, b the same -> the same."""
    return _map("silu_mul.cu", "silu_mul", a, b)


@cuda("silu_mul_backward", float_arrays)
def silu_mul_backward(a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    """The gradients of a and b, in the dtype of g.  Shapes: all the same."""
    return _gate_backward("silu_mul.cu", "silu_mul_backward", a, b, g)


def _gate_backward(file: str, name: str, a: Array, b: Array, g: Array, **defines: int) -> tuple[Array, Array]:
    a, b, g = contiguous(a), contiguous(b), contiguous(g)
    empty_like = array_module(g).empty_like
    da, db = empty_like(g), empty_like(g)
    launch_map(load(file, name, X=element(a), G=element(g), **defines), a, b, g, da, db)
    return da, db


@cuda("gelu", float_array)
def gelu(x: Array, approximate: str) -> Array:
    """x · Φ(x), in the dtype of x; `approximate` is "none" or "tanh".  Shapes: any -> the same."""
    return _map("gelu.cu", "gelu", x, TANH=int(approximate == "tanh"))


def slope_and_gradient(x: Array, g: Array, approximate: str) -> bool:
    """Two float32, float16 or bfloat16 arrays of one shape."""
    return float_arrays(x, g)


@cuda("gelu_backward", slope_and_gradient)
def gelu_backward(x: Array, g: Array, approximate: str) -> Array:
    """g times the slope of gelu at x, in the dtype of g.  Shapes: x, g the same -> the same."""
    return _map("gelu.cu", "gelu_backward", x, gradient=g, TANH=int(approximate == "tanh"))


@cuda("gelu_mul", two_of_one_dtype)
def gelu_mul(a: Array, b: Array) -> Array:
    """gelu(a) · b, by tanh, in their dtype.  Shapes: a, b the same -> the same."""
    return _map("gelu.cu", "gelu_mul", a, b, TANH=1)


@cuda("gelu_mul_backward", float_arrays)
def gelu_mul_backward(a: Array, b: Array, g: Array) -> tuple[Array, Array]:
    """The gradients of a and b, in the dtype of g.  Shapes: all the same."""
    return _gate_backward("gelu.cu", "gelu_mul_backward", a, b, g, TANH=1)
