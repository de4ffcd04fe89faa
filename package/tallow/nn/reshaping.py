"""Layers that move elements: flattening, patches, channels to pixels, and back."""

from __future__ import annotations

from collections.abc import Sequence

from tallow.errors import ArgumentTypeError
from tallow.nn import functional as F
from tallow.nn.module import Module
from tallow.tensor import Tensor

Sizes = int | Sequence[int]


class Flatten(Module):
    """Make one dim of start_dim to end_dim.  Shapes: (N, ...) -> (N, product of the others), by default"""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Make several dims of one."""

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
    """The patches of a picture, as columns.

    Args:    as torch.nn.Unfold; sizes are one number, or one each for height and width
    Shapes:  (N, C, H, W) -> (N, C · kernel places, patches), or both without N
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
    """The sum of patches, each at its place in a picture; the opposite of Unfold where they do not overlap.

    Args:    as torch.nn.Fold; output_size: height and width of the picture
    Shapes:  (N, C · kernel places, patches) -> (N, C, *output_size), or both without N
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
    """Make pixels of channels.  Shapes: (..., C · r², H, W) -> (..., C, H · r, W · r)

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
    """Make channels of pixels.  Shapes: (..., C, H · r, W · r) -> (..., C · r², H, W)"""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Take channels from each group in turn.  Shapes: (N, C, ...) -> the same

    Source:  Zhang et al. 2017, arXiv:1707.01083
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
