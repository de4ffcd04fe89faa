"""Activations that draw random numbers, and variants of softmax."""

from __future__ import annotations

from typing import Any

from tallow import devices, dtypes
from tallow.core.apply import apply, apply_inplace
from tallow.core.public_api import public
from tallow.core.tensor import Tensor, wrap
from tallow.core.whole_calls import recorded_whole
from tallow.errors import ArgumentError, warn
from tallow.functions.elementwise import where
from tallow.functions.like import zeros_like
from tallow.ops.activation import leaky_relu
from tallow.ops.checks import expect_float
from tallow.ops.softmax import log_softmax, softmax
from tallow.random import default_generator


@public("F", name="softmax")
def softmax_along(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return exponential weights along `dim` that sum to one; see `tallow.softmax`.

    Args:
        dim: without it the first dim of 0-d, 1-d and 3-d tensors, the second of others, with a warning.
        dtype: converts the input first.
    """
    return softmax.call(input, _implicit_dim("softmax", input) if dim is None else dim, dtype)


@public("F", name="log_softmax")
def log_softmax_along(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the logarithm of `softmax`; the arguments are the same. See `tallow.log_softmax`."""
    return log_softmax.call(input, _implicit_dim("log_softmax", input) if dim is None else dim, dtype)


@public("F")
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return `softmax` of -input; the arguments are the same."""
    return softmax.call(-input, _implicit_dim("softmin", input) if dim is None else dim, dtype)


def _implicit_dim(name: str, input: Tensor) -> int:
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if input.ndim in (0, 1, 3) else 1


@public("tl F", checked=True)
@recorded_whole
def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return x where it is positive, elsewhere a · x.

    In training a is drawn from [lower, upper] for each element; otherwise it is their mean.

    Source: Xu et al. 2015, arXiv:1505.00853
    """
    if lower > upper:
        raise ArgumentError(f"rrelu: lower bound {lower} is greater than upper bound {upper}")
    if not training:
        mean: Tensor = (apply_inplace if inplace else apply)(leaky_relu, input, (lower + upper) / 2)
        return mean
    slopes = default_generator.numpy.uniform(lower, upper, input.array.shape)
    slope = where(input.detach() > 0, 1.0, wrap(devices.move(dtypes.cast(slopes, input.dtype), input.device)))
    return input.mul_(slope) if inplace else input * slope


@public("tl F")
def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """Compute `rrelu` in place."""
    return rrelu(input, lower, upper, training, inplace=True)


@public("F")
@recorded_whole
def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Sample from the categorical distribution of `logits` along `dim`, as differentiable weights that sum to one.

    y = softmax((logits + n) / tau),  n = -ln(-ln u) with u uniform

    Args:
        hard: return one-hot weights, with the gradient of the soft ones.
        eps: has no effect, as in PyTorch.

    Source: Jang et al. 2016, arXiv:1611.01144
    """
    expect_float("gumbel_softmax", logits.array)
    noise = default_generator.numpy.gumbel(size=logits.array.shape)
    shift = wrap(devices.move(dtypes.cast(noise, logits.dtype), logits.device))
    soft: Tensor = apply(softmax, (logits + shift) / tau, dim)
    if not hard:
        return soft
    value = soft.detach()
    one_hot = zeros_like(value).scatter_(dim, value.argmax(dim, keepdim=True), 1.0)
    return one_hot - value + soft
