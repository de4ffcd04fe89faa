"""ONNX's random numbers. With a seed, a node returns the same numbers in each call.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import tallow as tl
from tallow import Tensor
from tallow.onnx.operators.bounds import check_made
from tallow.onnx.operators.element_types import dtype_of
from tallow.onnx.operators.registry import operator


def generator_of(seed: float | None) -> tl.Generator | None:
    """Return a generator for the seed of a node, which is a float; None for the default one."""
    if seed is None:
        return None
    return tl.Generator().manual_seed(struct.unpack("<I", struct.pack("<f", seed))[0])


@operator("RandomNormal", since=1, whole=True, folds=False)
def random_normal(
    *, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None, shape: Sequence[int]
) -> Tensor:
    """Draw from a normal distribution."""
    check_made("RandomNormal", shape)
    return (tl.randn(tuple(shape), generator=generator_of(seed)) * scale + mean).to(dtype_of(dtype))


@operator("RandomUniform", since=1, whole=True, folds=False)
def random_uniform(
    *, dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None, shape: Sequence[int]
) -> Tensor:
    """Draw evenly from [low, high)."""
    check_made("RandomUniform", shape)
    return (tl.rand(tuple(shape), generator=generator_of(seed)) * (high - low) + low).to(dtype_of(dtype))


@operator("RandomNormalLike", since=1, whole=True, folds=False)
def random_normal_like(
    x: Tensor, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Tensor:
    """Draw from a normal distribution, in the shape of `x`."""
    drawn = random_normal(mean=mean, scale=scale, seed=seed, shape=tuple(x.shape))
    return drawn.to(x.dtype if dtype is None else dtype_of(dtype))


@operator("RandomUniformLike", since=1, whole=True, folds=False)
def random_uniform_like(
    x: Tensor, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0, seed: float | None = None
) -> Tensor:
    """Draw evenly from [low, high), in the shape of `x`."""
    drawn = random_uniform(high=high, low=low, seed=seed, shape=tuple(x.shape))
    return drawn.to(x.dtype if dtype is None else dtype_of(dtype))


@operator("Bernoulli", since=15, whole=True, folds=False)
def bernoulli(x: Tensor, *, dtype: int | None = None, seed: float | None = None) -> Tensor:
    """Draw 1 with the probability of each element, else 0."""
    drawn = tl.bernoulli(x, generator=generator_of(seed))
    return drawn.to(x.dtype if dtype is None else dtype_of(dtype))


@operator("Multinomial", since=7, whole=True, folds=False)
def multinomial(x: Tensor, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Tensor:
    """Draw classes from unnormalized log-probabilities.

    Shapes:  (B, classes) -> (B, sample_size)
    """
    check_made("Multinomial", (len(x), sample_size), x)
    drawn = tl.multinomial(tl.softmax(x, -1), sample_size, replacement=True, generator=generator_of(seed))
    return drawn.to(dtype_of(dtype))
