"""Activations that draw random numbers, and variants of softmax."""

from __future__ import annotations

from typing import Any

from tallow import devices, dtypes
from tallow.apply import apply
from tallow.errors import ArgumentError
from tallow.functions.elementwise import where
from tallow.functions.like import zeros_like
from tallow.offer import offer
from tallow.ops.softmax import softmax
from tallow.random import default_generator
from tallow.tensor import Tensor, wrap


@offer("F")
def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """softmax(-input) along `dim`."""
    return apply(softmax, -input, dim, dtype)


@offer("tl F")
def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """x where it is positive, elsewhere a · x: a is drawn from [lower, upper] for each element, or their mean.

    Source: Xu et al. 2015, arXiv:1505.00853
    """
    if lower > upper:
        raise ArgumentError(f"rrelu: lower bound {lower} is greater than upper bound {upper}")
    slope: Any = (lower + upper) / 2
    if training:
        drawn = default_generator.numpy.uniform(lower, upper, input.array.shape)
        slope = wrap(devices.move(dtypes.cast(drawn, input.dtype), input.device))
    slope = where(input.detach() > 0, 1.0, slope)
    return input.mul_(slope) if inplace else input * slope


@offer("tl F")
def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """`rrelu` in place."""
    return rrelu(input, lower, upper, training, inplace=True)


@offer("F")
def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample from the categorical distribution of `logits` along `dim`, as differentiable weights that sum to one.

    y = softmax((logits + n) / tau),  n = -ln(-ln u) with u uniform

    Args:
        hard: one-hot weights, which still pass on the gradient of the soft ones.
        eps: without effect, as in PyTorch.

    Source: Jang et al. 2016, arXiv:1611.01144
    """
    noise = default_generator.numpy.gumbel(size=logits.array.shape)
    drawn = wrap(devices.move(dtypes.cast(noise, logits.dtype), logits.device))
    soft: Tensor = apply(softmax, (logits + drawn) / tau, dim)
    if not hard:
        return soft
    value = soft.detach()
    one_hot = zeros_like(value).scatter_(dim, value.argmax(dim, keepdim=True), 1.0)
    return one_hot - value + soft
