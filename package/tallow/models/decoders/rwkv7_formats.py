"""Names in all files of an RWKV-7; apart from the layers, which the readers of files do not need."""

from __future__ import annotations

MIXES = ("r", "w", "k", "v", "a", "g")  # what has a share of its own of the position before
