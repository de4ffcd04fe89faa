"""torch.nn.attention: select attention kernels. tallow has one implementation, so the selection has no effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(Enum):
    """The attention kernels of PyTorch."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """Do nothing: attention computes the same inside the block."""
    yield
