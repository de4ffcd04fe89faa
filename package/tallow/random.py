"""Random numbers: the same seed gives the same numbers on CPython and in Pyodide.

Numbers are drawn on the host by NumPy's PCG64 and moved to the device that asks.
"""

from __future__ import annotations

import secrets

import numpy as np

from tallow.offer import offer


class Generator:
    """A source of random numbers with a state of its own, as torch.Generator."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.manual_seed(secrets.randbits(64))

    def manual_seed(self, seed: int) -> Generator:
        """Start over from `seed`, any Python integer; negative ones wrap around as in PyTorch."""
        self._seed = seed % 2**64
        self.numpy = np.random.Generator(np.random.PCG64(self._seed))
        return self

    def seed(self) -> int:
        """Start over from a seed of the operating system's, and return it."""
        return self.manual_seed(secrets.randbits(64)).initial_seed()

    def initial_seed(self) -> int:
        return self._seed


default_generator = Generator()


@offer("tl")
def manual_seed(seed: int) -> Generator:
    """Seed the generator that everything uses which is not given one of its own."""
    return default_generator.manual_seed(seed)
