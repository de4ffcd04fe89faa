"""Complex numbers: their parts, conjugates, and tensors made of parts."""

from __future__ import annotations

from tallow import dtypes
from tallow.core.apply import apply
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import DtypeError
from tallow.ops import complex_numbers as ops


@public("tl Tensor", "conj_physical")
def conj(input: Tensor) -> Tensor:
    """Return the complex conjugates; real numbers themselves.

    Unlike PyTorch's, the result is computed at once, so that it is no view and `is_conj` is False.
    """
    return apply(ops.conjugate, input) if input.is_complex() else input


@public("Tensor")
def conj_physical_(input: Tensor) -> Tensor:
    """Replace the numbers by their complex conjugates."""
    return input.copy_(conj(input)) if input.is_complex() else input


@public("tl Tensor", "resolve_neg")
def resolve_conj(input: Tensor) -> Tensor:
    """Return the input itself: conjugates are computed at once."""
    return input


@public("tl Tensor", "is_neg")
def is_conj(input: Tensor) -> bool:
    """Return False: conjugates are computed at once."""
    return False


@public("tl")
def real(input: Tensor) -> Tensor:
    """Return the real parts, as a view; the input itself if it is not complex."""
    return input.real


@public("tl")
def imag(input: Tensor) -> Tensor:
    """Return the imaginary parts, as a view. Raises: UnsupportedError for a dtype that is not complex."""
    return input.imag


@public("tl Tensor")
def isreal(input: Tensor) -> Tensor:
    """Return whether each element has no imaginary part."""
    return input.imag == 0 if input.is_complex() else input.new_ones(input.shape, dtype=dtypes.bool)


@public("tl")
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Return the complex numbers real + i · imag.

    Raises:  DtypeError unless both are float32, or both float64
    """
    _expect_parts("complex", real, imag)
    return apply(ops.complex_of, real, imag)


@public("tl")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Return the complex numbers abs · (cos(angle) + i · sin(angle)).

    Raises:  DtypeError unless both are float32, or both float64
    """
    _expect_parts("polar", abs, angle)
    return apply(ops.complex_of, abs * angle.cos(), abs * angle.sin())


def _expect_parts(name: str, a: Tensor, b: Tensor) -> None:
    if a.array.dtype not in ops.WHOLES or a.dtype is not b.dtype:
        raise DtypeError(f"{name}: expected two tensors of float32, or two of float64, but got {a.dtype} and {b.dtype}")
