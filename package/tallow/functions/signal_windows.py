"""Windows for spectra. Periodic windows omit the last point, which would equal the first of the next window.

Source: Harris 1978, "On the use of windows for harmonic analysis with the discrete Fourier transform".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.core.creation import Device, Dtype, place
from tallow.core.factories import creates
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.dtypes import default_or
from tallow.errors import DtypeError, ShapeError
from tallow.ops.dims import as_int

HostArray = np.ndarray[Any, Any]


def _positions(name: str, window_length: int, periodic: bool) -> HostArray:
    """Return numbers from 0 at the first point of the window to 1 at the last, or at the omitted one if periodic."""
    window_length = as_int(window_length, name)
    if window_length < 0:
        raise ShapeError(f"{name}: requires non-negative window_length, got {window_length}")
    points = np.arange(window_length, dtype=np.float64)
    return points / max(window_length if periodic else window_length - 1, 1)


def _window(name: str, values: HostArray, dtype: Dtype, device: Device, requires_grad: bool) -> Tensor:
    d = default_or(dtype)
    if not d.is_floating_point:
        raise DtypeError(f"{name}: expects a floating point dtype, got {d.name}")
    return place(np.ones(1) if values.size == 1 else values, d, device, requires_grad)


@public("tl")
@creates
def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return (1 - cos 2πt) / 2, t from 0 to 1."""
    t = _positions("hann_window", window_length, periodic)
    return _window("hann_window", 0.5 - 0.5 * np.cos(2 * np.pi * t), dtype, device, requires_grad)


@public("tl")
@creates
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return α - β cos 2πt, t from 0 to 1."""
    t = _positions("hamming_window", window_length, periodic)
    return _window("hamming_window", alpha - beta * np.cos(2 * np.pi * t), dtype, device, requires_grad)


@public("tl")
@creates
def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return 0.42 - 0.5 cos 2πt + 0.08 cos 4πt, t from 0 to 1."""
    t = _positions("blackman_window", window_length, periodic)
    values = 0.42 - 0.5 * np.cos(2 * np.pi * t) + 0.08 * np.cos(4 * np.pi * t)
    return _window("blackman_window", values, dtype, device, requires_grad)


@public("tl")
@creates
def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the triangle 1 - |2t - 1|, t from 0 to 1."""
    t = _positions("bartlett_window", window_length, periodic)
    return _window("bartlett_window", 1 - np.abs(2 * t - 1), dtype, device, requires_grad)


@public("tl")
@creates
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return I0(β √(1 - (2t - 1)²)) / I0(β), t from 0 to 1; I0 is the modified Bessel function."""
    t = _positions("kaiser_window", window_length, periodic)
    values = np.i0(beta * np.sqrt(np.clip(1 - (2 * t - 1) ** 2, 0, None))) / np.i0(beta)
    return _window("kaiser_window", values, dtype, device, requires_grad)
