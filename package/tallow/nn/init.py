"""Filling parameters with their first values, in place: `torch.nn.init`'s names.

Numbers come from the default generator unless another is given. Nothing is recorded for autograd. A tensor on device
"meta" is left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.autograd.graph import note_write
from tallow.deprecated import older_name
from tallow.errors import ArgumentError
from tallow.names import names_of
from tallow.random import Generator, default_generator
from tallow.tensor import Tensor

Values = np.ndarray[Any, Any]

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
    source = generator or default_generator
    return _fill(tensor, lambda shape: a + (b - a) * source.numpy.random(shape, dtype=np.float64))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Values from N(mean, std²)."""
    source = generator or default_generator
    return _fill(tensor, lambda shape: mean + std * source.numpy.standard_normal(shape))


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Values from N(mean, std²), those outside [a, b] drawn again."""

    def draw(shape: tuple[int, ...]) -> Values:
        source = (generator or default_generator).numpy
        values = mean + std * source.standard_normal(shape)
        while (outside := (values < a) | (values > b)).any():
            values[outside] = mean + std * source.standard_normal(int(outside.sum()))
        return values

    return _fill(tensor, draw)


def constant_(tensor: Tensor, val: float) -> Tensor:
    return _fill(tensor, lambda shape: np.full(shape, val, dtype=np.float64))


def ones_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    if tensor.ndim != 2:
        raise ArgumentError(f"eye_ takes a matrix, not a tensor of shape {tuple(tensor.shape)}")
    return _fill(tensor, lambda shape: np.eye(*shape, dtype=np.float64))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The weight of a convolution that passes its channels on unchanged, within each group.

    Shapes:  tensor (O, C / groups, *kernel), one to three kernel dims; groups divides O
    """
    if tensor.ndim not in (3, 4, 5) or groups < 1 or tensor.shape[0] % groups:
        raise ArgumentError(
            f"dirac_ takes 3 to 5 dims, the first a multiple of groups={groups}, not shape {tuple(tensor.shape)}"
        )

    def values(shape: tuple[int, ...]) -> Values:
        filled: Values = np.zeros(shape, dtype=np.float64)
        outputs = shape[0] // groups
        kept = np.arange(min(outputs, shape[1]), dtype=np.int64)
        middle = tuple(n // 2 for n in shape[2:])
        for group in range(groups):
            place: tuple[Any, ...] = (group * outputs + kept, kept, *middle)
            filled[place] = 1
        return filled

    return _fill(tensor, values)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """An orthogonal matrix times `gain`, all dims after the first taken as one.

    If it is wider than high, its rows are orthonormal; otherwise its columns.

    Source:  Saxe et al. 2013, arXiv:1312.6120
    """
    if tensor.ndim < 2:
        raise ArgumentError(f"orthogonal_ takes two dims at least, not shape {tuple(tensor.shape)}")

    def draw(shape: tuple[int, ...]) -> Values:
        rows, columns = shape[0], math.prod(shape[1:])
        drawn = (generator or default_generator).numpy.standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(drawn)
        q = q * np.sign(np.diagonal(r))  # without the choice of signs, q would not be uniformly distributed
        return gain * (q if rows >= columns else q.T).reshape(shape)

    return _fill(tensor, draw) if tensor.numel() else tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Values from N(0, std²), of which the part `sparsity` of each column is 0.  Source: Martens 2010"""
    if tensor.ndim != 2:
        raise ArgumentError(f"sparse_ takes a matrix, not a tensor of shape {tuple(tensor.shape)}")

    def draw(shape: tuple[int, ...]) -> Values:
        source = (generator or default_generator).numpy
        values = std * source.standard_normal(shape)
        lots = source.random(shape)
        np.put_along_axis(values, lots.argsort(axis=0)[: math.ceil(sparsity * shape[0])], 0.0, axis=0)
        return values

    return _fill(tensor, draw)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """U(-b, b) with b = gain · √(6 / (fan_in + fan_out)).  Source: Glorot & Bengio 2010."""
    bound = gain * math.sqrt(6 / sum(fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """N(0, std²) with std = gain · √(2 / (fan_in + fan_out)).  Source: Glorot & Bengio 2010."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fan_in_and_fan_out(tensor))), generator)


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
    fan = fan_in_and_fan_out(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs reach an output, and how many outputs an input reaches; a window counts each of its places."""
    if tensor.ndim < 2:
        raise ArgumentError(f"fan in and fan out need two dims at least, not shape {tuple(tensor.shape)}")
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


_calculate_fan_in_and_fan_out = fan_in_and_fan_out  # PyTorch's name, which the code of many models calls


def _fill(tensor: Tensor, values: Callable[[tuple[int, ...]], Values]) -> Tensor:
    """Write what `values` gives for the tensor's shape; nothing is computed for a tensor without memory."""
    if tensor.device.type != "meta":
        drawn = np.asarray(values(tuple(tensor.shape)))  # which for shape () is a plain number
        tensor.array[...] = devices.move(dtypes.cast(drawn, tensor.dtype), tensor.device)
        note_write(tensor)
    return tensor


OLDER_NAMES = {
    function.__name__.removesuffix("_"): older_name(function.__name__.removesuffix("_"), function)
    for function in (
        uniform_, normal_, constant_, eye_, dirac_, orthogonal_, sparse_,
        xavier_uniform_, xavier_normal_, kaiming_uniform_, kaiming_normal_,
    )
}  # fmt: skip

__getattr__, __dir__ = names_of(__name__, offered=OLDER_NAMES)
