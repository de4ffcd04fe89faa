"""Layers that rearrange elements: flatten, extract patches, shuffle pixels and channels, and their inverses."""

from __future__ import annotations

from collections.abc import Sequence

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError
from tallow.nn import functional as F
from tallow.nn.module import Module

Sizes = int | Sequence[int]


class Flatten(Module):
    """Flatten dimensions start_dim to end_dim into one.  Shapes: (N, ...) -> (N, product of the rest) by default"""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split a dimension into several.  Shapes: (..., product of sizes, ...) -> (..., *unflattened_size, ...)"""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(unflattened_size, list | tuple) or not all(isinstance(n, int) for n in unflattened_size):
            raise ArgumentTypeError(f"Unflatten: unflattened_size must be a tuple of ints, not {unflattened_size!r}")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Unfold(Module):
    """Extract sliding patches of an image as columns.

    Args:    as torch.nn.Unfold; sizes are one number, or one each for height and width
    Shapes:  (N, C, H, W) -> (N, C · kernel size, patches), or both without N
    """

    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """Sum patches into an image, each at its position; the inverse of Unfold where patches do not overlap.

    Args:    as torch.nn.Fold; output_size: height and width of the image
    Shapes:  (N, C · kernel size, patches) -> (N, C, *output_size), or both without N
    """

    def __init__(
        self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class PixelShuffle(Module):
    """Rearrange channels into pixels.  Shapes: (..., C · r², H, W) -> (..., C, H · r, W · r)

    Source:  Shi et al. 2016, arXiv:1609.05158
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Rearrange pixels into channels.  Shapes: (..., C, H · r, W · r) -> (..., C · r², H, W)"""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Interleave the channels of groups.  Shapes: (N, C, ...) -> the same

    Source:  Zhang et al. 2017, arXiv:1707.01083
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
