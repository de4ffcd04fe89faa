"""torch.version and `torch.__version__`: the PyTorch version whose API tallow follows, and that of tallow."""

from __future__ import annotations

import re
from typing import Any

from tallow import __version__ as tallow_version

PYTORCH = "2.13.0"  # the version that the parity tests compare with


class TorchVersion(str):
    """A version string that compares by number: TorchVersion("2.13.0") > "2.2"."""

    def _key(self, other: Any) -> tuple[list[int], list[int]] | None:
        if isinstance(other, str):
            return _release(self), _release(other)
        if isinstance(other, tuple | list):
            return _release(self), [int(n) for n in other]
        return None

    def __lt__(self, other: Any) -> bool:
        key = self._key(other)
        return NotImplemented if key is None else key[0] < key[1]

    def __le__(self, other: Any) -> bool:
        key = self._key(other)
        return NotImplemented if key is None else key[0] <= key[1]

    def __gt__(self, other: Any) -> bool:
        key = self._key(other)
        return NotImplemented if key is None else key[0] > key[1]

    def __ge__(self, other: Any) -> bool:
        key = self._key(other)
        return NotImplemented if key is None else key[0] >= key[1]


def _release(version: str) -> list[int]:
    """Return the numbers before any suffix, without trailing zeros: [2, 13] for "2.13.0+tallow"."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(n) for n in match[0].split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


__version__ = TorchVersion(f"{PYTORCH}+tallow.{tallow_version}")
cuda: str | None = None  # the CUDA version of a PyTorch build
hip: str | None = None
git_version = "tallow"
debug = False
