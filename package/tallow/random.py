"""Random numbers: the same seed gives the same numbers on CPython and in Pyodide.

NumPy's PCG64 draws numbers on the host, which are then moved to the device. Only dropout on a GPU draws its mask there,
from a counter and the same seed (tallow.ops.philox), so its mask differs from that of the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tallow import devices
from tallow.core.public_api import public
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError
from tallow.lazy_names import names_of
from tallow.tape.modes import mode


class Generator:
    """A random number generator with its own state, as torch.Generator.

    Attributes:
        numpy: the `numpy.random.Generator` that draws.
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device = devices.device(device)
        self._seed: int | None = None  # drawn from the operating system when first needed
        self._numpy: np.random.Generator | None = None
        self._counter = 0  # the next value of the counter for draws on a device

    @property
    def numpy(self) -> np.random.Generator:
        """The NumPy generator that draws.

        Raises: ArgumentError within a function of `vmap` that must not draw
        """
        if mode.batching is not None:
            mode.batching.check_draw()
        return self._numpy or self._drawn_from()

    def _drawn_from(self) -> np.random.Generator:
        if self._numpy is None:  # created late: NumPy loads its random module on first use
            self._numpy = np.random.Generator(np.random.PCG64(self.initial_seed()))
        return self._numpy

    def manual_seed(self, seed: int) -> Generator:
        """Restart from `seed`, any Python integer; negative ones wrap around as in PyTorch."""
        self._seed, self._numpy, self._counter = int(seed) % 2**64, None, 0
        return self

    def seed(self) -> int:
        """Restart from a seed of the operating system, and return it."""
        self._seed, self._numpy, self._counter = None, None, 0
        return self.initial_seed()

    def initial_seed(self) -> int:
        """Return the seed that the generator started from."""
        if self._seed is None:
            self._seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        return self._seed

    def reserve(self, count: int) -> tuple[int, int]:
        """Reserve `count` values of the counter for a draw on a device. Return the key, and the first value.

        Raises: as `numpy`
        """
        if mode.batching is not None:
            mode.batching.check_draw()
        first, self._counter = self._counter, self._counter + count
        return self.initial_seed(), first

    def get_state(self) -> Tensor:
        """Return the state as a tensor of bytes; see `set_state`."""
        state = self._drawn_from().bit_generator.state
        parts = (
            (state["state"]["state"], 16),
            (state["state"]["inc"], 16),
            (state["has_uint32"], 4),
            (state["uinteger"], 4),
            (self.initial_seed(), 8),
            (self._counter, 8),
        )
        state_bytes = b"".join(n.to_bytes(size, "little") for n, size in parts)
        return wrap(np.frombuffer(state_bytes, np.uint8).copy())

    def set_state(self, state: Tensor) -> Generator:
        """Continue from a state that `get_state` returned."""
        state_bytes = state.numpy().tobytes()
        if len(state_bytes) not in (40, 56):
            raise ArgumentError(f"set_state: expected the 56 bytes of get_state, got {len(state_bytes)}")
        ranges = ((0, 16), (16, 32), (32, 36), (36, 40), (40, 48), (48, 56))
        n = [int.from_bytes(state_bytes[i:j], "little") for i, j in ranges]
        if len(state_bytes) == 56:  # an older checkpoint has 40, the state of the host only
            self._seed, self._counter = n[4], n[5]
        self._drawn_from().bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": n[0], "inc": n[1]},
            "has_uint32": n[2],
            "uinteger": n[3],
        }
        return self


default_generator = Generator()


@public("tl")
def manual_seed(seed: int) -> Generator:
    """Seed the default generator."""
    return default_generator.manual_seed(seed)


@public("tl")
def seed() -> int:
    """Seed the default generator from the operating system, and return the seed."""
    return default_generator.seed()


@public("tl")
def initial_seed() -> int:
    """Return the seed that the default generator started from."""
    return default_generator.initial_seed()


@public("tl")
def get_rng_state() -> Tensor:
    """Return the state of the default generator."""
    return default_generator.get_state()


@public("tl")
def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Restore the state of the default generator at the end of the block.

    Args:
        devices: has no effect: one generator serves all devices.
        enabled: False leaves the state as it is at the end.
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
