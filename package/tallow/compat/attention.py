"""torch.nn.attention: which of PyTorch's attention kernels may be used. tallow has one, which serves for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(Enum):
    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """A block in which attention computes as it does elsewhere."""
    yield
