"""A convolution of images with what a network for images does next: a sum with another image, and an activation.

    y = scale · action(convolution(x) + bias + plus) + shift

Images are arrays of NCHW whose channels may be adjacent in memory: a compiled kernel returns them so, and reads them so
without a copy. Fused, the result is written once, instead of once by each of three ops.

Letters: N batch, C channels in, O channels out.

    block = ImageConvolution(weight, bias, (1, 1), (1, 1), (1, 1), (1, 1), 1, "clamp", 0.0, 6.0)    # once
    y = kernels.run("image_convolution", x, block, None)                                            # for every image
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tallow.devices import array_module
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.table import ARRAY, kernel, run

Sizes = tuple[int, int]
ACTIONS = ("nothing", "clamp", "hard_swish", "silu")  # in the order of channels_last_f32.c


@dataclass(slots=True, eq=False)
class ImageConvolution:
    """One convolution, checked when it is made so that a call need not check it.

    Args:    before, after: zeros at the two ends of each spatial dim
             action: what follows: "nothing", "clamp" to [low, high], "hard_swish", "silu"
             scale, shift: of the result
    Shapes:  weight (O, C / groups, KH, KW), bias (O,)
    Raises:  ShapeError, ArgumentError: the arguments do not fit each other
    """

    weight: Array
    bias: Array | None
    stride: Sizes
    before: Sizes
    after: Sizes
    dilation: Sizes
    groups: int
    action: str = "nothing"
    low: float = -math.inf
    high: float = math.inf
    scale: float = 1.0
    shift: float = 0.0
    packed: object = field(init=False, default=None, repr=False)  # a compiled kernel's own form of the weight

    def __post_init__(self) -> None:
        shape, bias = self.weight.shape, self.bias
        if (
            len(shape) != 4
            or min(shape) < 1
            or shape[0] % self.groups
            or (bias is not None and bias.shape != shape[:1])
        ):
            raise ShapeError(
                f"ImageConvolution: weight {shape} and bias {None if bias is None else bias.shape} do not fit, with "
                f"groups={self.groups}"
            )
        if min(self.stride + self.dilation) < 1 or min(self.before + self.after) < 0:
            raise ArgumentError("ImageConvolution: stride and dilation must be positive, and no pad negative")
        if self.action not in ACTIONS or not self.low <= self.high:
            raise ArgumentError(f"ImageConvolution: action={self.action!r} with limits {self.low} and {self.high}")

    def out(self, x: tuple[int, ...]) -> Sizes:
        """Return the sizes of a result.  Raises: ShapeError for an image of another shape, or too small a one"""
        channels, kernel = self.weight.shape[1] * self.groups, self.weight.shape[2:]
        if len(x) != 4 or x[1] != channels:
            raise ShapeError(f"ImageConvolution: an image of shape {x} for {channels} channels")
        height, width = (
            (n + b + a - d * (k - 1) - 1) // s + 1
            for n, b, a, d, k, s in zip(x[2:], self.before, self.after, self.dilation, kernel, self.stride, strict=True)
        )
        if min(height, width) < 1:
            raise ShapeError(f"ImageConvolution: an image of shape {x} is smaller than the kernel {tuple(kernel)}")
        return height, width


def check_plus(plus: Array | None, shape: tuple[int, ...]) -> None:
    """Raise ShapeError unless what is added has the shape of the result."""
    if plus is not None and plus.shape != shape:
        raise ShapeError(f"image_convolution: an image of shape {plus.shape} is added to one of shape {shape}")


@kernel("image_convolution", ARRAY, round_like=0)
def image_convolution(x: Array, block: ImageConvolution, plus: Array | None) -> Array:
    """Compute the block.  Shapes:  x (N, C, H, W), plus as the result -> (N, O, *out)"""
    out = block.out(x.shape)
    xp = array_module(x)
    settings = (block.stride, block.before, block.dilation, block.groups)
    y = run("convolution", x, block.weight, block.bias, *settings, out)
    check_plus(plus, y.shape)
    if plus is not None:
        y += plus
    if block.action == "clamp":
        y = xp.clip(y, block.low, block.high)
    elif block.action == "hard_swish":
        y *= xp.clip(y / 6 + 0.5, 0, 1)
    elif block.action == "silu":
        y = run("silu", y)
    return y if (block.scale, block.shift) == (1, 0) else y * block.scale + block.shift


@kernel("image_max_pool", ARRAY, round_like=0)
def image_max_pool(x: Array, kernel: Sizes, stride: Sizes, before: Sizes, dilation: Sizes, out: Sizes) -> Array:
    """Return the maxima of windows.  Shapes:  x (N, C, H, W) -> (N, C, *out)"""
    return run("max_pool", x, kernel, stride, before, dilation, out)[0]
