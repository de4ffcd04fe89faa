"""The order of a tensor's elements in memory, under PyTorch's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class memory_format:
    """What `clone`, `contiguous`, `to` and `empty_like` take as their `memory_format`."""

    name: str

    def __repr__(self) -> str:
        return f"tallow.{self.name}"

    def __reduce__(self) -> str:
        return self.name


contiguous_format = memory_format("contiguous_format")  # row-major
preserve_format = memory_format("preserve_format")  # as the tensor that is copied
channels_last = memory_format("channels_last")  # (N, C, H, W) with the channels of a pixel side by side
channels_last_3d = memory_format("channels_last_3d")  # the same for (N, C, D, H, W)

CHANNELS_LAST_NDIM = {channels_last: 4, channels_last_3d: 5}
