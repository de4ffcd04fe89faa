"""`keras.random`: tensors of random numbers.

The `seed` of each function is an integer, which gives the same numbers at every call; a `SeedGenerator`, which
continues from call to call; or None, for tallow's default generator, which `keras.utils.set_random_seed` seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.keras.dtype_names import as_dtype
from tallow.keras.layers.regularization import dropout_mask
from tallow.lazy_names import names_of
from tallow.nn import init
from tallow.random import Generator, default_generator


class SeedGenerator:
    """A separate random number generator; the same seed gives the same numbers."""

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        self.name = name or "seed_generator"
        self.generator = Generator()
        self.seed = self.generator.seed() if seed is None else seed
        self.generator.manual_seed(self.seed)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor arguments."""
        return {"seed": self.seed, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SeedGenerator:
        """Create a generator from its configuration."""
        return cls(**config)


Seed = int | SeedGenerator | None


def normal(
    shape: Sequence[int], mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Seed = None
) -> Tensor:
    """Draw from N(mean, stddev²)."""
    return tl.randn(shape, generator=_generator(seed), dtype=as_dtype(dtype)) * stddev + mean


def uniform(
    shape: Sequence[int], minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: Seed = None
) -> Tensor:
    """Draw uniformly from minval up to, but not including, maxval; an integer dtype draws integers."""
    kind = as_dtype(dtype)
    if not kind.is_floating_point:
        return randint(shape, int(minval), int(maxval), kind, seed)
    return tl.rand(shape, generator=_generator(seed), dtype=kind) * (maxval - minval) + minval


def truncated_normal(
    shape: Sequence[int], mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Seed = None
) -> Tensor:
    """Draw from N(mean, stddev²), drawing again values more than two stddev from the mean."""
    result = tl.empty(shape, dtype=as_dtype(dtype))
    limit = 2 * stddev
    return init.trunc_normal_(result, mean, stddev, mean - limit, mean + limit, _generator(seed))


def gamma(shape: Sequence[int], alpha: Any, dtype: Any = None, seed: Seed = None) -> Tensor:
    """Draw from the gamma distribution with shape `alpha`, a number or an array that broadcasts, and scale 1."""
    return _sample("gamma", shape, dtype, seed, alpha)


def beta(shape: Sequence[int], alpha: Any, beta: Any, dtype: Any = None, seed: Seed = None) -> Tensor:
    """Draw from the beta distribution with `alpha` and `beta`, numbers or arrays that broadcast."""
    return _sample("beta", shape, dtype, seed, alpha, beta)


def binomial(shape: Sequence[int], counts: Any, probabilities: Any, dtype: Any = None, seed: Seed = None) -> Tensor:
    """Draw the number of successes in `counts` trials with these probabilities, numbers or arrays that broadcast."""
    return _sample("binomial", shape, dtype, seed, counts, probabilities)


def _sample(distribution: str, shape: Sequence[int], dtype: Any, seed: Seed, *parameters: Any) -> Tensor:
    generator = _generator(seed) or default_generator
    arrays = [np.asarray(p.numpy(force=True) if isinstance(p, Tensor) else p) for p in parameters]
    if distribution == "binomial":
        arrays[0] = arrays[0].astype(np.int64)
    return tl.tensor(getattr(generator.numpy, distribution)(*arrays, size=tuple(shape)), dtype=as_dtype(dtype))


def randint(shape: Sequence[int], minval: int, maxval: int, dtype: Any = "int32", seed: Seed = None) -> Tensor:
    """Draw integers from minval up to, but not including, maxval."""
    return tl.randint(minval, maxval, tuple(shape), generator=_generator(seed), dtype=as_dtype(dtype))


def categorical(logits: Any, num_samples: int, dtype: Any = "int32", seed: Seed = None) -> Tensor:
    """Draw classes with the probabilities softmax(logits).

    Shapes:  logits (B, C) -> (B, num_samples)
    """
    probabilities = tl.as_tensor(logits).softmax(-1)
    return tl.multinomial(probabilities, num_samples, True, generator=_generator(seed)).to(as_dtype(dtype))


def shuffle(x: Any, axis: int = 0, seed: Seed = None) -> Tensor:
    """Return the slices of x along an axis in random order."""
    x = tl.as_tensor(x)
    return x.index_select(axis, tl.randperm(x.shape[axis], generator=_generator(seed)).to(x.device))


def dropout(inputs: Any, rate: float, noise_shape: Sequence[int | None] | None = None, seed: Seed = None) -> Tensor:
    """Apply dropout as `keras.layers.Dropout` does in training."""
    x = tl.as_tensor(inputs)
    shape = [n if m is None else m for n, m in zip(x.shape, noise_shape or (None,) * x.ndim, strict=True)]
    return x * dropout_mask(x, rate, shape, _generator(seed))


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

__getattr__, __dir__ = names_of(__name__)
