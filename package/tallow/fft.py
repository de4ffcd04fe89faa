"""Discrete Fourier transforms, as torch.fft.

All have PyTorch's arguments: `n` or `s`, sizes to which the input is cut or filled up with zeros first; `dim`; `norm`,
which is "backward" (the inverse is divided by the number N of points), "ortho" (both by √N) or "forward".

Dtypes:  float32 gives complex64, float64 complex128; integers become the default float dtype
Raises:  ShapeError and DimensionError for sizes and dims that do not fit, ArgumentError for another `norm`, DtypeError
         for complex input of `rfft` and `ihfft`, UnsupportedDtypeError for float16 and bfloat16
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallow import dtypes
from tallow.core.apply import apply
from tallow.core.creation import Device, Dtype, place
from tallow.core.factories import creates
from tallow.core.overrides import overridable
from tallow.core.tensor import Tensor
from tallow.core.write_out import write_out
from tallow.errors import ArgumentError, DimensionError, DtypeError, ShapeError
from tallow.ops.dims import as_int, as_ints, normalize_dims
from tallow.ops.fourier import ADJOINT, fft_complex, fft_of_real, fft_to_real
from tallow.ops.joining import cat

Sizes = Sequence[int] | None
Dims = int | Sequence[int] | None

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

LAST_TWO = (-2, -1)


# ---------------------------------------------------------------------------------------------------- the common parts


def _norm(name: str, norm: str | None) -> str:
    if norm is not None and norm not in ADJOINT:
        raise ArgumentError(
            f"{name}: Invalid normalization mode: {norm!r}", hint="use 'backward', 'ortho' or 'forward'"
        )
    return norm or "backward"


def _floats(input: Tensor) -> Tensor:
    """Return real or complex numbers; integers in the default float dtype."""
    if input.dtype.category < 2:
        return input.to(dtypes.get_default_dtype())
    return input


def _reals(name: str, input: Tensor) -> Tensor:
    if input.is_complex():
        raise DtypeError(f"{name} expects a real input tensor, but got {input.dtype}", hint="use fft, or take x.real")
    return _floats(input)


def _places(name: str, input: Tensor, s: Sizes, dim: Dims) -> tuple[tuple[int, ...], list[int]]:
    """Return the dims of a transform, and the size of each: -1 for that of the input."""
    if (
        s is None
        and type(dim) is tuple
        and len(dim) == 1
        and type(dim[0]) is int
        and 0 <= dim[0] + (n := input.ndim) < 2 * n
    ):
        return (dim[0] % n,), [-1]  # as nearly all are
    if dim is None:
        if s is None:
            dim = range(input.ndim)
        else:
            if len(s) > input.ndim:
                raise ShapeError(
                    f"{name}: got shape with {len(s)} values but input tensor only has {input.ndim} dimensions"
                )
            dim = range(input.ndim - len(s), input.ndim)
    named = as_ints(dim, name)
    if named and not input.ndim:
        raise DimensionError(f"{name}: the dim is {named[0]}, but the tensor has no dims")
    dims = normalize_dims(named, input.ndim, name) if named else ()
    sizes = [-1] * len(dims) if s is None else list(as_ints(s, name))
    if len(sizes) != len(dims):
        raise ShapeError(
            f"{name}: When given, dim and shape arguments must have the same length, got {len(dims)}, {len(sizes)}"
        )
    if any(n < 1 and n != -1 for n in sizes):
        raise ShapeError(f"{name}: Invalid number of data points ({min(sizes)}) specified")
    return dims, sizes


def _resized(name: str, input: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Return the input with these sizes: its first elements along a dim, or zeros behind them."""
    for d, n in zip(dims, sizes, strict=True):
        size = input.shape[d]
        if n not in (-1, size):
            if size > n:
                input = input.narrow(d, 0, n)
            else:
                shape = list(input.shape)
                shape[d] = n - size
                input = apply(cat, [input, input.new_zeros(shape)], d)
        elif not size:
            raise ShapeError(f"{name}: Invalid number of data points (0) specified")
    return input


def _finish(name: str, value: Tensor, out: Tensor | None) -> Tensor:
    return value if out is None else write_out(out, value, name)


def _complex(
    name: str, input: Tensor, s: Sizes, dim: Dims, norm: str | None, inverse: bool, out: Tensor | None
) -> Tensor:
    norm = _norm(name, norm)
    x = _floats(input)
    dims, sizes = _places(name, x, s, dim)
    x = _resized(name, x, dims, sizes)
    if not dims:
        return _finish(name, x.to(x.dtype.to_complex()), out)
    return _finish(name, apply(fft_complex, x, dims, norm, inverse), out)


def _of_real(
    name: str, input: Tensor, s: Sizes, dim: Dims, norm: str | None, out: Tensor | None, *, inverse: bool
) -> Tensor:
    norm = _norm(name, norm)
    x = _reals(name, input)
    dims, sizes = _places(name, x, s, dim)
    if not dims:
        raise ShapeError(f"{name} must transform at least one axis")
    x = _resized(name, x, dims, sizes)
    value: Tensor = apply(fft_of_real, x, dims, ADJOINT[norm] if inverse else norm)
    return _finish(name, value.conj() if inverse else value, out)


def _to_real(
    name: str, input: Tensor, s: Sizes, dim: Dims, norm: str | None, out: Tensor | None, *, inverse: bool
) -> Tensor:
    norm = _norm(name, norm)
    x = _floats(input)
    x = x if x.is_complex() else x.to(x.dtype.to_complex())
    dims, sizes = _places(name, x, s, dim)
    if not dims:
        raise ShapeError(f"{name} must transform at least one axis")
    n = 2 * (x.shape[dims[-1]] - 1) if sizes[-1] == -1 else sizes[-1]
    if n < 1:
        raise ShapeError(f"{name}: Invalid number of data points ({n}) specified")
    x = _resized(name, x, dims, [*sizes[:-1], n // 2 + 1])
    x, norm = (x, norm) if inverse else (x.conj(), ADJOINT[norm])
    return _finish(name, apply(fft_to_real, x, n, dims, norm), out)


def _one(n: int | None) -> Sizes:
    return None if n is None else (as_int(n, "fft"),)


# ------------------------------------------------------------------------------------------------------ the transforms


def fft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the Fourier transform along `dim`, X_k = Σ_j x_j exp(-2πi jk / n)."""
    return _complex("fft", input, _one(n), (dim,), norm, False, out)


def ifft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the inverse of `fft`."""
    return _complex("ifft", input, _one(n), (dim,), norm, True, out)


def rfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the first n // 2 + 1 coefficients of the transform of real numbers; the others are their conjugates."""
    return _of_real("rfft", input, _one(n), (dim,), norm, out, inverse=False)


def irfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the inverse of `rfft`: `n` real numbers, 2 (size - 1) by default."""
    return _to_real("irfft", input, _one(n), (dim,), norm, out, inverse=True)


def hfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the transform, which is real, of numbers x_{-j} = conj(x_j) given by the first n // 2 + 1 of them."""
    return _to_real("hfft", input, _one(n), (dim,), norm, out, inverse=False)


def ihfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the inverse of `hfft`."""
    return _of_real("ihfft", input, _one(n), (dim,), norm, out, inverse=True)


def fft2(
    input: Tensor, s: Sizes = None, dim: Dims = LAST_TWO, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute `fft` along two dims."""
    return _complex("fft2", input, s, dim, norm, False, out)


def ifft2(
    input: Tensor, s: Sizes = None, dim: Dims = LAST_TWO, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute `ifft` along two dims."""
    return _complex("ifft2", input, s, dim, norm, True, out)


def rfft2(
    input: Tensor, s: Sizes = None, dim: Dims = LAST_TWO, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute `rfft` along the last of two dims, and `fft` along the other."""
    return _of_real("rfft2", input, s, dim, norm, out, inverse=False)


def irfft2(
    input: Tensor, s: Sizes = None, dim: Dims = LAST_TWO, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the inverse of `rfft2`."""
    return _to_real("irfft2", input, s, dim, norm, out, inverse=True)


def hfft2(
    input: Tensor, s: Sizes = None, dim: Dims = LAST_TWO, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute `hfft` along the last of two dims, and `fft` along the other."""
    return _to_real("hfft2", input, s, dim, norm, out, inverse=False)


def ihfft2(
    input: Tensor, s: Sizes = None, dim: Dims = LAST_TWO, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the inverse of `hfft2`."""
    return _of_real("ihfft2", input, s, dim, norm, out, inverse=True)


def fftn(
    input: Tensor, s: Sizes = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute `fft` along several dims, all by default."""
    return _complex("fftn", input, s, dim, norm, False, out)


def ifftn(
    input: Tensor, s: Sizes = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute `ifft` along several dims, all by default."""
    return _complex("ifftn", input, s, dim, norm, True, out)


def rfftn(
    input: Tensor, s: Sizes = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute `rfft` along the last of several dims, and `fft` along the others."""
    return _of_real("rfftn", input, s, dim, norm, out, inverse=False)


def irfftn(
    input: Tensor, s: Sizes = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the inverse of `rfftn`."""
    return _to_real("irfftn", input, s, dim, norm, out, inverse=True)


def hfftn(
    input: Tensor, s: Sizes = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute `hfft` along the last of several dims, and `fft` along the others."""
    return _to_real("hfftn", input, s, dim, norm, out, inverse=False)


def ihfftn(
    input: Tensor, s: Sizes = None, dim: Dims = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Compute the inverse of `hfftn`."""
    return _of_real("ihfftn", input, s, dim, norm, out, inverse=True)


# --------------------------------------------------------------------------------------------------------- the helpers


@creates
def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of the coefficients of `fft` of `n` samples at distances `d`: 0, 1, ..., -1 by n d."""
    return place(np.fft.fftfreq(as_int(n, "fftfreq"), d), dtypes.default_or(dtype), device, requires_grad)


@creates
def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of the coefficients of `rfft`: 0, 1, ..., n // 2 by n d."""
    return place(np.fft.rfftfreq(as_int(n, "rfftfreq"), d), dtypes.default_or(dtype), device, requires_grad)


def fftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """Move the coefficient of frequency 0 to the middle of each dim."""
    dims = normalize_dims(tuple(range(input.ndim)) if dim is None else as_ints(dim, "fftshift"), input.ndim, "fftshift")
    return input.roll([input.shape[i] // 2 for i in dims], list(dims))


def ifftshift(input: Tensor, dim: Dims = None) -> Tensor:
    """Move the middle of each dim to its start; the inverse of `fftshift`."""
    dims = normalize_dims(
        tuple(range(input.ndim)) if dim is None else as_ints(dim, "ifftshift"), input.ndim, "ifftshift"
    )
    return input.roll([(input.shape[i] + 1) // 2 for i in dims], list(dims))


for _name in __all__:
    if not _name.endswith("freq"):  # the others have a tensor, which may answer for them
        globals()[_name] = overridable(globals()[_name])
