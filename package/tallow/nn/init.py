"""Filling parameters with their first values, in place: `torch.nn.init`'s names.

Numbers come from the default generator unless another is given. Nothing is recorded for autograd.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.autograd.graph import note_write
from tallow.errors import ArgumentError, ShapeError
from tallow.random import Generator, default_generator
from tallow.tensor import Tensor

GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
GAINS |= {f"conv{transposed}{d}d": 1.0 for transposed in ("", "_transpose") for d in (1, 2, 3)}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps the variance through a nonlinearity; `param` is leaky_relu's slope."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity not in GAINS:
        raise ArgumentError(
            f"no gain is known for {nonlinearity!r}", mend=f"use leaky_relu or one of {', '.join(GAINS)}"
        )
    return GAINS[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Values from U(a, b)."""
    drawn = (generator or default_generator).numpy.random(tensor.shape, dtype=np.float64)
    return _fill(tensor, a + (b - a) * drawn)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Values from N(mean, std²)."""
    return _fill(tensor, mean + std * (generator or default_generator).numpy.standard_normal(tensor.shape))


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Values from N(mean, std²), those outside [a, b] drawn again."""
    source = (generator or default_generator).numpy
    values = mean + std * source.standard_normal(tensor.shape)
    while (outside := (values < a) | (values > b)).any():
        values[outside] = mean + std * source.standard_normal(int(outside.sum()))
    return _fill(tensor, values)


def constant_(tensor: Tensor, val: float) -> Tensor:
    return _fill(tensor, np.full(tensor.shape, val, dtype=np.float64))


def ones_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    if tensor.ndim != 2:
        raise ShapeError(f"eye_ takes a matrix, not a tensor of shape {tuple(tensor.shape)}")
    return _fill(tensor, np.eye(*tensor.shape, dtype=np.float64))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """U(-b, b) with b = gain · √(6 / (fan_in + fan_out)).  Source: Glorot & Bengio 2010."""
    bound = gain * math.sqrt(6 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """N(0, std²) with std = gain · √(2 / (fan_in + fan_out)).  Source: Glorot & Bengio 2010."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans(tensor))), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """U(-b, b) with b = gain · √(3 / fan).  Source: He et al. 2015, arXiv:1502.01852."""
    bound = math.sqrt(3) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """N(0, std²) with std = gain / √fan.  Source: He et al. 2015, arXiv:1502.01852."""
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f"mode={mode!r}", mend="use 'fan_in' or 'fan_out'")
    fan = _fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs reach an output, and how many outputs an input reaches; a window counts each of its places."""
    if tensor.ndim < 2:
        raise ShapeError(f"fan in and fan out need two dims at least, not shape {tuple(tensor.shape)}")
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def _fill(tensor: Tensor, values: np.ndarray[Any, Any]) -> Tensor:
    tensor.array[...] = devices.move(dtypes.cast(values, tensor.dtype), tensor.device)
    note_write(tensor)
    return tensor
