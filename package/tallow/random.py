"""Random numbers: the same seed gives the same numbers on CPython and in Pyodide.

Numbers are drawn on the host by NumPy's PCG64 and moved to the device that asks. Only what dropout keeps on a device is
drawn there, by a counter and the same seed, see tallow.ops.philox: so it differs from what the CPU would keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tallow.errors import ArgumentError
from tallow.names import names_of
from tallow.offer import offer
from tallow.tensor import Tensor, wrap


class Generator:
    """A source of random numbers with a state of its own, as torch.Generator.

    Attributes:
        numpy: the `numpy.random.Generator` that draws.
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device = device
        self._seed: int | None = None  # drawn from the operating system when first needed
        self._numpy: np.random.Generator | None = None
        self._counter = 0  # how far devices have drawn

    @property
    def numpy(self) -> np.random.Generator:
        if self._numpy is None:  # made late: NumPy loads its random numbers on first use
            self._numpy = np.random.Generator(np.random.PCG64(self.initial_seed()))
        return self._numpy

    def manual_seed(self, seed: int) -> Generator:
        """Start over from `seed`, any Python integer; negative ones wrap around as in PyTorch."""
        self._seed, self._numpy, self._counter = int(seed) % 2**64, None, 0
        return self

    def seed(self) -> int:
        """Start over from a seed of the operating system's, and return it."""
        self._seed, self._numpy, self._counter = None, None, 0
        return self.initial_seed()

    def initial_seed(self) -> int:
        if self._seed is None:
            self._seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        return self._seed

    def reserve(self, count: int) -> tuple[int, int]:
        """The key by which a device draws, and the first of `count` values of the counter that nobody else gets."""
        first, self._counter = self._counter, self._counter + count
        return self.initial_seed(), first

    def get_state(self) -> Tensor:
        """All there is to know about what comes next, as bytes."""
        state = self.numpy.bit_generator.state
        parts = (
            (state["state"]["state"], 16),
            (state["state"]["inc"], 16),
            (state["has_uint32"], 4),
            (state["uinteger"], 4),
            (self.initial_seed(), 8),
            (self._counter, 8),
        )
        words = b"".join(n.to_bytes(size, "little") for n, size in parts)
        return wrap(np.frombuffer(words, np.uint8).copy())

    def set_state(self, state: Tensor) -> Generator:
        """Go on from where `get_state` was called."""
        words = state.numpy().tobytes()
        if len(words) not in (40, 56):
            raise ArgumentError(f"set_state: expected the 56 bytes of get_state, got {len(words)}")
        places = ((0, 16), (16, 32), (32, 36), (36, 40), (40, 48), (48, 56))
        n = [int.from_bytes(words[i:j], "little") for i, j in places]
        if len(words) == 56:  # a checkpoint may have the former 40, which are the host's alone
            self._seed, self._counter = n[4], n[5]
        self.numpy.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": n[0], "inc": n[1]},
            "has_uint32": n[2],
            "uinteger": n[3],
        }
        return self


default_generator = Generator()


@offer("tl")
def manual_seed(seed: int) -> Generator:
    """Seed the generator that everything uses which is not given one of its own."""
    return default_generator.manual_seed(seed)


@offer("tl")
def seed() -> int:
    """Seed that generator from the operating system."""
    return default_generator.seed()


@offer("tl")
def initial_seed() -> int:
    return default_generator.initial_seed()


@offer("tl")
def get_rng_state() -> Tensor:
    return default_generator.get_state()


@offer("tl")
def set_rng_state(new_state: Tensor) -> None:
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Within the block the numbers go their own way; after it they go on from where they were before.

    Args:  devices: as PyTorch's, without effect: one generator draws for all
    """
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)


__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]
__getattr__, __dir__ = names_of(__name__)
