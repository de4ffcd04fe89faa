"""torch.cuda.random: the generator of GPUs, which is the default generator here: it serves all devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallow import cuda, random
from tallow.core.tensor import Tensor
from tallow.random import initial_seed as initial_seed

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def get_rng_state(device: Any = "cuda") -> Tensor:
    """Return the state of the generator. Raises: DeviceError without a GPU"""
    cuda.current_device()
    return random.get_rng_state()


def get_rng_state_all() -> list[Tensor]:
    """Return the state of the generator for each GPU."""
    return [random.get_rng_state() for _ in range(cuda.device_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Set the state of the generator. Raises: DeviceError without a GPU"""
    cuda.current_device()
    random.set_rng_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Set the state of the generator once for each GPU; the last state stays."""
    for state in new_states:
        set_rng_state(state)


def seed() -> None:
    """Seed the generator from the operating system."""
    random.seed()


seed_all = seed
