"""A convolution of images of eight-bit integers by weights that are known, with exact sums.

    s = convolution(x - zero, weight) + bias      int32, and what follows as in `integer_product`

Images are arrays of NCHW whose channels may be adjacent in memory, as in `image_convolution`.

Letters: N batch, C channels in, O channels out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ShapeError
from tallow.kernels.blocks.image_convolution import ImageConvolution, Sizes
from tallow.kernels.quantized.integer_product import LARGEST, Codes, scaled
from tallow.kernels.table import ARRAY, kernel, run

IN_FLOAT32 = 1 << 24  # integers below it are exact


@dataclass(slots=True, eq=False)
class IntegerConvolution:
    """The weights and the sizes of a convolution.

    Args:    weight: (O, C / groups, KH, KW), without its zero points, int16
             bias: (O,), added to the sums, int32
             the others: as those of `ImageConvolution`
    Raises:  ShapeError, ArgumentError: the arguments do not fit each other
    """

    weight: Array
    bias: Array
    stride: Sizes
    before: Sizes
    after: Sizes
    dilation: Sizes
    groups: int
    floats: ImageConvolution = field(init=False, repr=False)  # the same, in floats that hold the sums
    packed: object = field(init=False, default=None, repr=False)  # a compiled kernel's own form of the weight

    def __post_init__(self) -> None:
        largest = math.prod(self.weight.shape[1:]) * LARGEST**2 + int(np.abs(self.bias).max(initial=0))
        exact = np.float32 if largest < IN_FLOAT32 else np.float64
        arrays = self.weight.astype(exact), self.bias.astype(exact)
        self.floats = ImageConvolution(*arrays, self.stride, self.before, self.after, self.dilation, self.groups)


def check_factors(block: IntegerConvolution, *factors: Array | None) -> None:
    """Raise ShapeError unless there is a factor and a shift for each channel of the result."""
    shapes = [each.shape for each in factors if each is not None]
    if any(shape != block.bias.shape for shape in shapes):
        raise ShapeError(f"integer_convolution: factors of shape {shapes} for {len(block.bias)} channels")


@kernel("integer_convolution", ARRAY)
def integer_convolution(
    x: Array,
    block: IntegerConvolution,
    zero: int,
    factor: Array | None = None,
    shift: Array | None = None,
    codes: Codes | None = None,
) -> Array:
    """Compute the block.

    Shapes:  x (N, C, H, W), factor and shift (O,) -> (N, O, *out)
    Dtypes:  x uint8, factor and shift float32 -> int32, or float32 with a factor, or uint8 with a factor and codes
    """
    check_factors(block, factor, shift)
    exact = block.floats.weight.dtype
    wide = x.astype(exact)
    if zero:
        wide -= exact.type(zero)
    sums = run("image_convolution", wide, block.floats, None)
    last = sums.transpose(0, 2, 3, 1)
    return scaled(last if factor is not None else last.astype(np.int32), factor, shift, codes).transpose(0, 3, 1, 2)
