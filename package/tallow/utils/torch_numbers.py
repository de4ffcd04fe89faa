"""Random numbers that PyTorch's CPU generator draws from the same seed.

tallow's own generator is NumPy's PCG64 (see `tallow.random`). The order of a Trainer's samples, the masks of a collator
with a seed, and watermarks come from here instead, so that they are those of transformers and PyTorch.

Source:  Matsumoto & Nishimura 1998, the Mersenne Twister; its use as in ATen/native/TensorFactories.cpp (randperm) and
         ATen/core/DistributionsHelper.h
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class TorchNumbers:
    """A generator with the stream of `torch.Generator().manual_seed(seed)`."""

    def __init__(self, seed: int) -> None:
        self._draw = np.random.RandomState(seed % 2**32)

    def words(self, count: int) -> npt.NDArray[np.uint32]:
        """Return the next numbers of 32 bits."""
        return self._draw.randint(0, 2**32, size=count, dtype=np.uint32)

    def randperm(self, n: int, count: int | None = None) -> list[int]:
        """Return the first `count` entries of a permutation of n integers, for n below 2^32 / 20; as torch.randperm.

        Args:    count: None means all; fewer take as many draws
        """
        last = max(n - 1, 0)
        order, words = list(range(n)), self.words(last if count is None else min(count, last)).tolist()
        for i, word in enumerate(words):
            j = i + word % (n - i)
            order[i], order[j] = order[j], order[i]
        return order[:count]

    def bernoulli(self, p: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return True with the probabilities `p`; as torch.bernoulli of float32."""
        uniform = (self.words(p.size) & np.uint32(2**24 - 1)) * np.float32(2.0**-24)
        return uniform.reshape(p.shape) < p.astype(np.float32)

    def integers(self, high: int, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Return integers from 0 to `high` - 1, below 2^28; as torch.randint."""
        return (self.words(int(np.prod(shape))) % np.uint32(high)).astype(np.int64).reshape(shape)


class NumPyNumbers:
    """As TorchNumbers, with the stream of a NumPy generator."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._draw = generator

    def bernoulli(self, p: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return True with the probabilities `p`."""
        return self._draw.binomial(1, p, size=p.shape).astype(bool)

    def integers(self, high: int, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Return integers from 0 to `high` - 1."""
        return self._draw.integers(0, high, size=shape, dtype=np.int64)
