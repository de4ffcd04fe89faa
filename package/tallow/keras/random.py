"""`keras.random`: tensors of random numbers.

Each function has a `seed`: an integer, which gives the same numbers at every call; a `SeedGenerator`, which goes on
from call to call; or None, for tallow's default generator, which `keras.utils.set_random_seed` seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.keras.layers.regularization import kept
from tallow.keras.layers.weighted import as_dtype
from tallow.nn import init
from tallow.random import Generator, default_generator
from tallow.tensor import Tensor


class SeedGenerator:
    """Random numbers of its own, the same each time for one seed."""

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        self.name = name or "seed_generator"
        self.generator = Generator()
        self.seed = self.generator.seed() if seed is None else seed
        self.generator.manual_seed(self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self.seed, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SeedGenerator:
        return cls(**config)


Seed = int | SeedGenerator | None


def normal(
    shape: Sequence[int], mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Seed = None
) -> Tensor:
    """From N(mean, stddev²)."""
    return tl.randn(*shape, generator=_generator(seed), dtype=as_dtype(dtype)) * stddev + mean


def uniform(
    shape: Sequence[int], minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: Seed = None
) -> Tensor:
    """Evenly from minval up to maxval, which is left out; of an integer dtype, whole numbers."""
    kind = as_dtype(dtype)
    if not kind.is_floating_point:
        return randint(shape, int(minval), int(maxval), kind, seed)
    return tl.rand(*shape, generator=_generator(seed), dtype=kind) * (maxval - minval) + minval


def truncated_normal(
    shape: Sequence[int], mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Seed = None
) -> Tensor:
    """From N(mean, stddev²), what lies further than two stddev from the mean drawn again."""
    filled = tl.empty(*shape, dtype=as_dtype(dtype))
    reach = 2 * stddev
    return init.trunc_normal_(filled, mean, stddev, mean - reach, mean + reach, _generator(seed))


def gamma(shape: Sequence[int], alpha: Any, dtype: Any = None, seed: Seed = None) -> Tensor:
    """From the gamma distribution of shape `alpha`, a number or what broadcasts, and scale 1."""
    return _drawn("gamma", shape, dtype, seed, alpha)


def beta(shape: Sequence[int], alpha: Any, beta: Any, dtype: Any = None, seed: Seed = None) -> Tensor:
    """From the beta distribution of `alpha` and `beta`, numbers or what broadcasts."""
    return _drawn("beta", shape, dtype, seed, alpha, beta)


def binomial(shape: Sequence[int], counts: Any, probabilities: Any, dtype: Any = None, seed: Seed = None) -> Tensor:
    """How many of `counts` trials succeed, each with these probabilities; both are numbers or what broadcasts."""
    return _drawn("binomial", shape, dtype, seed, counts, probabilities)


def _drawn(distribution: str, shape: Sequence[int], dtype: Any, seed: Seed, *parameters: Any) -> Tensor:
    generator = _generator(seed) or default_generator
    given = [np.asarray(p.numpy(force=True) if isinstance(p, Tensor) else p) for p in parameters]
    if distribution == "binomial":
        given[0] = given[0].astype(np.int64)
    return tl.tensor(getattr(generator.numpy, distribution)(*given, size=tuple(shape)), dtype=as_dtype(dtype))


def randint(shape: Sequence[int], minval: int, maxval: int, dtype: Any = "int32", seed: Seed = None) -> Tensor:
    """Whole numbers from minval up to maxval, which is left out."""
    return tl.randint(minval, maxval, tuple(shape), generator=_generator(seed), dtype=as_dtype(dtype))


def categorical(logits: Any, num_samples: int, dtype: Any = "int32", seed: Seed = None) -> Tensor:
    """Classes drawn with the probabilities softmax(logits).  Shapes:  logits (B, C) -> (B, num_samples)"""
    probabilities = tl.as_tensor(logits).softmax(-1)
    return tl.multinomial(probabilities, num_samples, True, generator=_generator(seed)).to(as_dtype(dtype))


def shuffle(x: Any, axis: int = 0, seed: Seed = None) -> Tensor:
    """The slices of x along an axis, in random order."""
    x = tl.as_tensor(x)
    return x.index_select(axis, tl.randperm(x.shape[axis], generator=_generator(seed)).to(x.device))


def dropout(inputs: Any, rate: float, noise_shape: Sequence[int | None] | None = None, seed: Seed = None) -> Tensor:
    """`keras.layers.Dropout` in training."""
    x = tl.as_tensor(inputs)
    shape = [n if m is None else m for n, m in zip(x.shape, noise_shape or (None,) * x.ndim, strict=True)]
    return x * kept(x, rate, shape, _generator(seed))


def _generator(seed: Seed) -> Generator | None:
    if isinstance(seed, SeedGenerator):
        return seed.generator
    return None if seed is None else Generator().manual_seed(seed)


__all__ = [
    "SeedGenerator",
    "beta",
    "binomial",
    "categorical",
    "dropout",
    "gamma",
    "normal",
    "randint",
    "shuffle",
    "truncated_normal",
    "uniform",
]
