"""Initialize parameters in place, as in torch.nn.init.

Random numbers come from the default generator unless `generator` is given. Autograd does not record these functions. A
tensor on device "meta" is left unchanged. Each function returns the tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tallow import devices, dtypes
from tallow.core.deprecated import older_name
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.lazy_names import names_of
from tallow.random import Generator, default_generator
from tallow.tape.graph import note_write

Values = np.ndarray[Any, Any]

GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
GAINS |= {f"conv{transposed}{d}d": 1.0 for transposed in ("", "_transpose") for d in (1, 2, 3)}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that preserves variance through a nonlinearity; `param` is the slope of leaky_relu."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity not in GAINS:
        raise ArgumentError(
            f"unknown nonlinearity {nonlinearity!r}", hint=f"use leaky_relu or one of {', '.join(GAINS)}"
        )
    return GAINS[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with values from U(a, b)."""
    source = generator or default_generator
    return _fill(tensor, lambda shape: a + (b - a) * source.numpy.random(shape, dtype=np.float64))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with values from N(mean, std²)."""
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
    """Fill with values from N(mean, std²), redrawing those outside [a, b]."""

    def draw(shape: tuple[int, ...]) -> Values:
        source = (generator or default_generator).numpy
        values = mean + std * source.standard_normal(shape)
        while (outside := (values < a) | (values > b)).any():
            values[outside] = mean + std * source.standard_normal(int(outside.sum()))
        return values

    return _fill(tensor, draw)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`."""
    return _fill(tensor, lambda shape: np.full(shape, val, dtype=np.float64))


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on the diagonal and zeros elsewhere."""
    if tensor.ndim != 2:
        raise ArgumentError(f"eye_ takes a matrix, not a tensor of shape {tuple(tensor.shape)}")
    return _fill(tensor, lambda shape: np.eye(*shape, dtype=np.float64))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it passes its input channels through, within each group.

    Shapes:  tensor (O, C / groups, *kernel), one to three kernel dimensions; groups divides O
    """
    if tensor.ndim not in (3, 4, 5) or groups < 1 or tensor.shape[0] % groups:
        raise ArgumentError(
            f"dirac_ takes 3 to 5 dims, the first a multiple of groups={groups}, not shape {tuple(tensor.shape)}"
        )

    def values(shape: tuple[int, ...]) -> Values:
        weight: Values = np.zeros(shape, dtype=np.float64)
        outputs = shape[0] // groups
        channels = np.arange(min(outputs, shape[1]), dtype=np.int64)
        center = tuple(n // 2 for n in shape[2:])
        for group in range(groups):
            index: tuple[Any, ...] = (group * outputs + channels, channels, *center)
            weight[index] = 1
        return weight

    return _fill(tensor, values)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with `gain` times an orthogonal matrix, with all dimensions after the first flattened to one.

    The rows are orthonormal if there are fewer rows than columns, else the columns.

    Source:  Saxe et al. 2013, arXiv:1312.6120
    """
    if tensor.ndim < 2:
        raise ArgumentError(f"orthogonal_ takes at least 2 dims, not shape {tuple(tensor.shape)}")

    def draw(shape: tuple[int, ...]) -> Values:
        rows, columns = shape[0], math.prod(shape[1:])
        normal = (generator or default_generator).numpy.standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(normal)
        q = q * np.sign(np.diagonal(r))  # makes q uniformly distributed over the orthogonal matrices
        return gain * (q if rows >= columns else q.T).reshape(shape)

    return _fill(tensor, draw) if tensor.numel() else tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill with values from N(0, std²), with the fraction `sparsity` of each column set to 0.  Source: Martens 2010"""
    if tensor.ndim != 2:
        raise ArgumentError(f"sparse_ takes a matrix, not a tensor of shape {tuple(tensor.shape)}")

    def draw(shape: tuple[int, ...]) -> Values:
        source = (generator or default_generator).numpy
        values = std * source.standard_normal(shape)
        keys = source.random(shape)
        np.put_along_axis(values, keys.argsort(axis=0)[: math.ceil(sparsity * shape[0])], 0.0, axis=0)
        return values

    return _fill(tensor, draw)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill from U(-b, b) with b = gain · √(6 / (fan_in + fan_out)).  Source: Glorot & Bengio 2010."""
    bound = gain * math.sqrt(6 / sum(fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill from N(0, std²) with std = gain · √(2 / (fan_in + fan_out)).  Source: Glorot & Bengio 2010."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fan_in_and_fan_out(tensor))), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill from U(-b, b) with b = gain · √(3 / fan).  Source: He et al. 2015, arXiv:1502.01852."""
    bound = math.sqrt(3) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill from N(0, std²) with std = gain / √fan.  Source: He et al. 2015, arXiv:1502.01852."""
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentError(f"mode={mode!r}", hint="use 'fan_in' or 'fan_out'")
    fan = fan_in_and_fan_out(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return the number of inputs of each output and of outputs of each input; a kernel counts all its elements."""
    if tensor.ndim < 2:
        raise ArgumentError(f"fan-in and fan-out need at least 2 dims, not shape {tuple(tensor.shape)}")
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


_calculate_fan_in_and_fan_out = fan_in_and_fan_out  # PyTorch's name, called by the code of many models


def _fill(tensor: Tensor, values: Callable[[tuple[int, ...]], Values]) -> Tensor:
    """Fill a tensor with `values(shape)`; a meta tensor computes nothing."""
    if tensor.device.type != "meta":
        array = np.asarray(values(tuple(tensor.shape)))  # for shape (), `values` returns a scalar
        tensor.array[...] = devices.move(dtypes.cast(array, tensor.dtype), tensor.device)
        note_write(tensor)
    return tensor


OLDER_NAMES = {
    function.__name__.removesuffix("_"): older_name(function.__name__.removesuffix("_"), function)
    for function in (
        uniform_, normal_, constant_, eye_, dirac_, orthogonal_, sparse_,
        xavier_uniform_, xavier_normal_, kaiming_uniform_, kaiming_normal_,
    )
}  # fmt: skip

__getattr__, __dir__ = names_of(__name__, registry=OLDER_NAMES)
