"""Move elements between channels and positions."""

from __future__ import annotations

from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.ops.dims import as_int


@public("tl F")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Rearrange channels into blocks of r × r pixels.

    Shapes:  input (..., C · r², H, W) -> (..., C, H · r, W · r)
    Source:  Shi et al. 2016, arXiv:1609.05158
    """
    r = upscale_factor
    *lead, channels, height, width = _image("pixel_shuffle", input)
    if r < 1 or channels % (r * r):
        raise ShapeError(f"pixel_shuffle: {channels} channels are not divisible by the square of upscale_factor {r}")
    n = len(lead)
    blocks = input.reshape(*lead, channels // (r * r), r, r, height, width)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return blocks.permute(order).reshape(*lead, channels // (r * r), height * r, width * r)


@public("tl F")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Invert pixel_shuffle.  Shapes: input (..., C, H · r, W · r) -> (..., C · r², H, W)"""
    r = downscale_factor
    *lead, channels, height, width = _image("pixel_unshuffle", input)
    if r < 1 or height % r or width % r:
        raise ShapeError(f"pixel_unshuffle: {height} × {width} pixels are not divisible by downscale_factor {r}")
    n = len(lead)
    blocks = input.reshape(*lead, channels, height // r, r, width // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return blocks.permute(order).reshape(*lead, channels * r * r, height // r, width // r)


@public("tl F", "native_channel_shuffle")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleave groups of channels.

    Shapes:  input (N, C, ...) -> the same
    Source:  Zhang et al. 2017, arXiv:1707.01083
    """
    if input.ndim < 3:
        raise ShapeError(f"channel_shuffle: expected input of more than 2 dims, got {tuple(input.shape)}")
    n, channels, *rest = input.shape
    groups = as_int(groups, "channel_shuffle")
    if groups < 1:
        raise ArgumentError(f"channel_shuffle: groups must be positive, got {groups}")
    if channels % groups:
        raise ShapeError(f"channel_shuffle: {channels} channels are not divisible by {groups} groups")
    return input.reshape(n, groups, channels // groups, *rest).transpose(1, 2).reshape(n, channels, *rest)


def _image(name: str, input: Tensor) -> tuple[int, ...]:
    if input.ndim < 3:
        raise ShapeError(f"{name}: expected input of at least 3 dims (C, H, W), got {tuple(input.shape)}")
    return input.shape  # not of the array: exported sizes may vary
