"""torch.cpu: the CPU with the functions of a device's module."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

__all__ = [
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


class Stream:
    """A queue of work: the CPU does all in order."""

    def wait_stream(self, stream: Stream) -> None:
        """Do nothing: its work is done."""


def is_available() -> bool:
    """Return True."""
    return True


def is_initialized() -> bool:
    """Return True."""
    return True


def device_count() -> int:
    """Return 1."""
    return 1


def current_device() -> str:
    """Return "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Do nothing: there is one."""


def synchronize(device: Any = None) -> None:
    """Do nothing: a function returns when it is done."""


def current_stream(device: Any = None) -> Stream:
    """Return the queue of the CPU."""
    return Stream()


def stream(stream: Stream) -> nullcontext[None]:
    """Return a block that changes nothing."""
    return nullcontext()
