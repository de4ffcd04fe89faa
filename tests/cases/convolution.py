"""Convolutions, unfold and fold."""

from __future__ import annotations

import warnings
from typing import Any

from cases import case, functional, integers, normal


def conv_same(m: Any, x: Any, w: Any, **options: Any) -> Any:
    """Return the convolution with padding="same", without PyTorch's warning about even kernel sizes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(m, f"conv{w.ndim - 2}d")(x, w, padding="same", **options)


LONG_SUMS = {"atol": 1e-5}  # sums of dozens of products in a different order
x1, x2, x3 = normal(2, 4, 9), normal(2, 4, 6, 7), normal(2, 4, 5, 4, 6)

case("conv1d", functional("conv1d"), x1, normal(6, 4, 3), normal(6))
case("conv1d", functional("conv1d", stride=2, padding=1), x1, normal(6, 4, 3))
case("conv1d", functional("conv1d", groups=2), integers(2, 4, 9), integers(6, 2, 3), integers(6), grad=False)
case(
    "conv2d", functional("conv2d", padding=1), integers(2, 3, 5, 4, high=99), integers(2, 3, 2, 2, high=99), grad=False
)
case("conv_transpose2d", functional("conv_transpose2d", stride=2), integers(2, 3, 4), integers(2, 3, 2, 2), grad=False)
case("conv1d", functional("conv1d", padding="same", dilation=2), x1, normal(6, 4, 3), normal(6))
case("conv1d", conv_same, x1, normal(6, 4, 4))
case("conv1d", functional("conv1d", padding="valid", stride=3), x1, normal(6, 4, 2))
case("conv1d", functional("conv1d", groups=2), x1, normal(6, 2, 3), normal(6))
case("conv1d", functional("conv1d", groups=4, padding=2), x1, normal(8, 1, 3), normal(8))
case("conv1d", functional("conv1d"), x1[0], normal(6, 4, 3), normal(6))
case("conv1d", functional("conv1d", stride=(2,), padding=(1,), dilation=(1,)), x1, normal(6, 4, 1))
case("conv1d", functional("conv1d"), normal(0, 4, 5), normal(6, 4, 3))
case("conv1d", functional("conv1d", groups=4), normal(0, 4, 5), normal(8, 1, 3))
case("conv1d", lambda m, x, w, b: m.conv1d(x, w, b, 2, 1, 1, 1), x1, normal(6, 4, 3), normal(6))
# The 24 products of an output are up to 8 and cancel, in an order that depends on the device.
case("conv2d", functional("conv2d"), x2, normal(6, 4, 3, 2), normal(6), atol=4e-6)
case("conv2d", functional("conv2d", stride=(2, 1), padding=(1, 2)), x2, normal(6, 4, 3, 3))
case("conv2d", functional("conv2d", dilation=(2, 3), padding=2), x2, normal(6, 4, 3, 2), normal(6))
case("conv2d", lambda m, x, w: conv_same(m, x, w, dilation=(1, 2)), x2, normal(6, 4, 2, 4))
case("conv2d", functional("conv2d", groups=2, stride=3, padding=1), x2, normal(6, 2, 3, 3), normal(6))
case("conv2d", functional("conv2d", groups=4, stride=2, padding=1), x2, normal(4, 1, 3, 3), normal(4))
case("conv2d", functional("conv2d"), x2, normal(6, 4, 1, 1), normal(6))
case("conv2d", functional("conv2d", stride=5), x2[0], normal(6, 4, 3, 3))
case("conv3d", functional("conv3d"), x3, normal(3, 4, 2, 3, 2), normal(3), **LONG_SUMS)
case(
    "conv3d",
    functional("conv3d", stride=2, padding=(1, 0, 2), dilation=(1, 2, 1)),
    x3,
    normal(3, 4, 2, 2, 3),
    **LONG_SUMS,
)
case("conv3d", lambda m, x, w: conv_same(m, x, w, groups=4), x3[0], normal(8, 1, 3, 2, 3))
case("conv_transpose1d", functional("conv_transpose1d"), x1, normal(4, 3, 3), normal(3))
case("conv_transpose1d", functional("conv_transpose1d", stride=3, padding=2, output_padding=2), x1, normal(4, 3, 4))
case("conv_transpose1d", functional("conv_transpose1d", dilation=3, output_padding=2), x1[0], normal(4, 3, 2))
case("conv_transpose1d", functional("conv_transpose1d", groups=2, stride=2), x1, normal(4, 3, 3), normal(6))
case("conv_transpose1d", functional("conv_transpose1d", groups=4, padding=1), x1, normal(4, 2, 3), normal(8))
case(
    "conv_transpose2d",
    functional("conv_transpose2d", stride=(2, 1)),
    *(x2, normal(4, 3, 2, 3), normal(3)),
    atol=5e-6,  # sums up to 14, of which some cancel
)
case(
    "conv_transpose2d",
    functional("conv_transpose2d", stride=2, padding=1, output_padding=(1, 0), groups=2, dilation=2),
    *(x2, normal(4, 3, 3, 3), normal(6)),
    atol=5e-6,
)
case(
    "conv_transpose3d",
    functional("conv_transpose3d", stride=2, padding=1),
    x3,
    normal(4, 2, 3, 2, 3),
    normal(2),
    **LONG_SUMS,
)
case("unfold", functional("unfold", kernel_size=(2, 3)), x2)
case("unfold", functional("unfold", kernel_size=2, dilation=2, padding=1, stride=(1, 3)), x2[0])
case("fold", functional("fold", output_size=(4, 5), kernel_size=(2, 3)), normal(2, 18, 9))
case("fold", functional("fold", output_size=6, kernel_size=2, dilation=2, padding=1, stride=2), normal(8, 9))
