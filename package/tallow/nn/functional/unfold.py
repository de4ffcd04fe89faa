"""Taking an image apart into patches, and adding patches up to an image."""

from __future__ import annotations

from tallow.apply import apply
from tallow.offer import offer
from tallow.ops.unfold import col2im, im2col
from tallow.ops.windows import IntOrInts
from tallow.tensor import Tensor


@offer("F")
def unfold(
    input: Tensor, kernel_size: IntOrInts, dilation: IntOrInts = 1, padding: IntOrInts = 0, stride: IntOrInts = 1
) -> Tensor:
    """All windows of an image, each a column.

    Shapes:  input (N, C, H, W) or (C, H, W) -> (N, C · kH · kW, L) or without N, L the number of windows
    """
    return apply(im2col, input, kernel_size, dilation, padding, stride)


@offer("F")
def fold(
    input: Tensor,
    output_size: IntOrInts,
    kernel_size: IntOrInts,
    dilation: IntOrInts = 1,
    padding: IntOrInts = 0,
    stride: IntOrInts = 1,
) -> Tensor:
    """The adjoint of `unfold`: where windows overlap, they add up.

    Shapes:  input (N, C · kH · kW, L) or without N -> (N, C, H, W) or without N
    """
    return apply(col2im, input, output_size, kernel_size, dilation, padding, stride)
