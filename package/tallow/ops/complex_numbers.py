"""Real and imaginary parts, conjugates and angles of complex numbers. Their closures are real-linear, see
`tallow.ops.complex_rules`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.errors import DtypeError, ShapeError
from tallow.ops.checks import unsupported
from tallow.ops.second_order import Derived, Gradients
from tallow.ops.table import Array, Result, op

PARTS: dict[Any, np.dtype[Any]] = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}
WHOLES: dict[Any, np.dtype[Any]] = {part: whole for whole, part in PARTS.items()}


def _expect_complex(name: str, input: Array) -> None:
    if input.dtype not in PARTS:
        raise DtypeError(f"{name} is not implemented for tensors with non-complex dtypes, got {input.dtype.name}")


@op("", dtypes="keep", view=True, batched="elementwise")
def real_of(input: Array) -> Result:
    """Return the real parts, as a view."""
    _expect_complex("real", input)
    whole = input.dtype  # the closure must not hold the array, which may be written
    return input.real, lambda g: (g.astype(whole),)


real_of.second(lambda g, *, whole: [g + 0j])


@op("", dtypes="keep", view=True, batched="elementwise")
def imag_of(input: Array) -> Result:
    """Return the imaginary parts, as a view."""
    _expect_complex("imag", input)
    whole = input.dtype
    return input.imag, lambda g: ((g * 1j).astype(whole, copy=False),)


imag_of.second(lambda g, *, whole: [g * 1j])


@op("tl", dtypes="keep", view=True)
def view_as_real(input: Array) -> Result:
    """Return a view of real numbers with one more dim, of size 2: the real and the imaginary part.

    Raises:  DtypeError for a dtype that is not complex
    """
    _expect_complex("view_as_real", input)
    part = PARTS[input.dtype]
    pairs = array_module(input).lib.stride_tricks.as_strided(
        input.real, (*input.shape, 2), (*input.strides, part.itemsize)
    )
    return pairs, lambda g: (_whole(g),)


def _whole(pairs: Array) -> Array:
    return array_module(pairs).ascontiguousarray(pairs).view(WHOLES[pairs.dtype]).reshape(pairs.shape[:-1])


@view_as_real.second
def _(g: Derived) -> Gradients:
    return [view_as_complex.call(g.contiguous())]


@op("tl", dtypes="keep", view=True)
def view_as_complex(input: Array) -> Result:
    """Return a view of complex numbers whose parts are in the last dim of the input, of size 2.

    Raises:  UnsupportedDtypeError for a dtype other than float32 and float64; ShapeError if the last dim is not of size
        2 and contiguous, or another stride is odd
    """
    if input.dtype not in WHOLES:
        raise unsupported("view_as_complex", input.dtype, "float32 or float64")
    if not input.ndim or input.shape[-1] != 2:
        raise ShapeError(f"view_as_complex: tensor must have a last dimension of size 2, got shape {input.shape}")
    whole = WHOLES[input.dtype]
    if input.strides[-1] != input.itemsize and input.size:
        raise ShapeError("view_as_complex: tensor must have a last dimension with stride 1", hint="use contiguous()")
    if any(s % whole.itemsize and n > 1 for s, n in zip(input.strides[:-1], input.shape[:-1], strict=True)):
        raise ShapeError("view_as_complex: tensor must have a stride divisible by 2 for all but last dimension")
    return input.view(whole)[..., 0], lambda g: (_pairs(g),)


def _pairs(whole: Array) -> Array:
    return array_module(whole).stack((whole.real, whole.imag), axis=-1)


@view_as_complex.second
def _(g: Derived) -> Gradients:
    return [view_as_real.call(g)]


@op("", dtypes="promote", batched="elementwise")
def complex_of(real: Array, imag: Array) -> Result:
    """Return real + i · imag, broadcast."""
    value = _whole(array_module(real).stack(array_module(real).broadcast_arrays(real, imag), axis=-1))
    return value, lambda g: (lambda: g.real, lambda: g.imag)


complex_of.second(lambda g: [g.real, g.imag])


@op("", dtypes="keep", batched="elementwise")
def conjugate(input: Array) -> Result:
    """Return the complex conjugates, in new memory."""
    return input.conj(), lambda g: (g.conj(),)


conjugate.second(lambda g: [g.conj()])


@op("tl Tensor Tensor_", dtypes="float", batched="elementwise")
def angle(input: Array) -> Result:
    """Return the angle of each number in radians: of real numbers 0, or π for negative ones."""
    xp = array_module(input)
    if input.dtype not in PARTS:
        value = xp.where(input != input, input, xp.where(input < 0, input.dtype.type(np.pi), input.dtype.type(0)))
        return value, lambda g: (xp.zeros_like(g),)

    def backward(g: Array) -> tuple[Array]:
        square = input.real**2 + input.imag**2
        is_zero = square == 0
        return (xp.where(is_zero, 0, g / xp.where(is_zero, 1, square)) * (input * 1j),)

    return xp.angle(input), backward


@angle.second
def _(g: Derived, *, input: Derived = None) -> Gradients:
    if input is None:
        return [g * 0]
    square = input.real**2 + input.imag**2
    is_zero = square.detach() == 0
    return [(g / square.masked_fill(is_zero, 1)).masked_fill(is_zero, 0) * (input * 1j)]
