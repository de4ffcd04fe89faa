"""Windows of M points for spectra, as torch.signal.windows.

All take `sym`: False leaves out the last point, which would equal the first of the next window, as Fourier transforms
want it. A window of one point is 1.

Raises:  ArgumentError for a negative M, another argument out of its range, or a dtype but float32 and float64
Source:  Harris 1978, "On the use of windows for harmonic analysis with the discrete Fourier transform"; Nuttall 1981,
         "Some windows with very good sidelobe behavior"
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.core.creation import Device, Dtype, place
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.ops.dims import as_int
from tallow.ops.memory_format import layout as Layout
from tallow.ops.memory_format import strided

HostArray = np.ndarray[Any, Any]

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _points(name: str, M: int, sym: bool) -> tuple[HostArray, float]:
    """Return the numbers of the points, and the distance from the first one to the last, or to the one left out."""
    # PyTorch reads a length of 0 or 1 as a number of any type, which tensors of floats have.
    M = int(M) if isinstance(M, Tensor) and not M.ndim and M.item() in (0, 1) else as_int(M, name)
    if M < 0:
        raise ArgumentError(f"{name} requires non-negative window length, got M={M}")
    return np.arange(M, dtype=np.float64), float(max(M - 1 if sym else M, 1))


def _window(name: str, values: HostArray, dtype: Dtype, layout: Layout, device: Device, requires_grad: bool) -> Tensor:
    if layout is not strided:
        raise ArgumentError(f"{name} is implemented for strided tensors only, got: {layout}")
    d = dtypes.default_or(dtype)
    if d not in (dtypes.float32, dtypes.float64):
        raise ArgumentError(f"{name} expects float32 or float64 dtypes, got: {d}")
    return place(np.ones(1) if len(values) == 1 else values, d, device, requires_grad)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Dtype = None,
    layout: Layout = strided,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return Σ_i (-1)^i a_i cos 2πit, t from 0 to 1."""
    points, span = _points("general_cosine", M, sym)
    weights = list(a)
    if not weights:
        raise ArgumentError("general_cosine: coefficients must be a non-empty list")
    t = points / span
    values = sum((-1) ** i * weight * np.cos(2 * np.pi * i * t) for i, weight in enumerate(weights))
    return _window("general_cosine", np.asarray(values), dtype, layout, device, requires_grad)


def general_hamming(M: int, *, alpha: float = 0.54, **options: Any) -> Tensor:
    """Return α - (1 - α) cos 2πt, t from 0 to 1. Options: as `hann`."""
    return general_cosine(M, a=(alpha, 1 - alpha), **options)


def hamming(M: int, **options: Any) -> Tensor:
    """Return 0.54 - 0.46 cos 2πt, t from 0 to 1. Options: as `hann`."""
    return general_cosine(M, a=(0.54, 0.46), **options)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: Dtype = None,
    layout: Layout = strided,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return (1 - cos 2πt) / 2, t from 0 to 1."""
    return general_cosine(
        M, a=(0.5, 0.5), sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(M: int, **options: Any) -> Tensor:
    """Return 0.42 - 0.5 cos 2πt + 0.08 cos 4πt, t from 0 to 1. Options: as `hann`."""
    return general_cosine(M, a=(0.42, 0.5, 0.08), **options)


def nuttall(M: int, **options: Any) -> Tensor:
    """Return the sum of four cosines with the least side lobes. Options: as `hann`."""
    return general_cosine(M, a=(0.3635819, 0.4891775, 0.1365995, 0.0106411), **options)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: Dtype = None,
    layout: Layout = strided,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the triangle 1 - |2t - 1|, t from 0 to 1."""
    points, span = _points("bartlett", M, sym)
    return _window("bartlett", 1 - np.abs(2 * points / span - 1), dtype, layout, device, requires_grad)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Dtype = None,
    layout: Layout = strided,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return half a period of a sine, at the middles of its M parts, or of M + 1 if not `sym`."""
    points, _ = _points("cosine", M, sym)
    parts = max(len(points) if sym else len(points) + 1, 1)
    return _window("cosine", np.sin(np.pi * (points + 0.5) / parts), dtype, layout, device, requires_grad)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Dtype = None,
    layout: Layout = strided,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return exp(-|n - center| / tau), n from 0. The center is in the middle by default, and always if `sym`."""
    if tau <= 0:
        raise ArgumentError(f"exponential: Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ArgumentError("exponential: Center must be None for symmetric windows")
    points, span = _points("exponential", M, sym)
    middle = span / 2 if center is None else center
    return _window("exponential", np.exp(-np.abs(points - middle) / tau), dtype, layout, device, requires_grad)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Dtype = None,
    layout: Layout = strided,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return exp(-((n - middle) / std)² / 2), n from 0."""
    if std <= 0:
        raise ArgumentError(f"gaussian: Standard deviation must be positive, got: {std} instead.")
    points, span = _points("gaussian", M, sym)
    return _window("gaussian", np.exp(-(((points - span / 2) / std) ** 2) / 2), dtype, layout, device, requires_grad)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Dtype = None,
    layout: Layout = strided,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return I0(β √(1 - (2t - 1)²)) / I0(β), t from 0 to 1; I0 is the modified Bessel function."""
    if beta < 0:
        raise ArgumentError(f"kaiser: beta must be non-negative, got: {beta} instead.")
    points, span = _points("kaiser", M, sym)
    beta = float(beta)  # of a tensor too, whose dtype NumPy may lack
    values = np.i0(beta * np.sqrt(np.clip(1 - (2 * points / span - 1) ** 2, 0, None))) / np.i0(beta)
    return _window("kaiser", values, dtype, layout, device, requires_grad)
