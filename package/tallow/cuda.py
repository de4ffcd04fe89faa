"""torch.cuda, as far as programs ask before they have a GPU: `"cuda" if tl.cuda.is_available() else "cpu"`."""

from __future__ import annotations

from tallow import random
from tallow.devices import get_backend
from tallow.errors import DeviceError
from tallow.names import names_of

__all__ = ["device_count", "is_available", "manual_seed", "manual_seed_all"]


def device_count() -> int:
    """How many GPUs there are; 0 without CuPy."""
    try:
        return get_backend("cuda").module.cuda.runtime.getDeviceCount()
    except DeviceError:
        return 0


def is_available() -> bool:
    return device_count() > 0


def manual_seed(seed: int) -> None:
    """Seed the numbers of all devices, which are drawn from one generator."""
    random.manual_seed(seed)


manual_seed_all = manual_seed

__getattr__, __dir__ = names_of(__name__)
