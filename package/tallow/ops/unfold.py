"""Extracting patches from an image, and summing patches into an image."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.errors import ShapeError
from tallow.ops.table import Array, Result, op
from tallow.ops.windows import IntOrInts, Sizes, add_windows, expect_filled, inner, pad_zeros, sizes, spans, windows


class _Patches:
    """The sizes of one call, and both directions.

    Shapes:  image (N, C, H, W), patches (N, C · kH · kW, L), L the number of windows
    """

    def __init__(
        self,
        name: str,
        image: Sizes,
        kernel_size: IntOrInts,
        dilation: IntOrInts,
        padding: IntOrInts,
        stride: IntOrInts,
    ) -> None:
        self.image = image
        self.kernel = sizes(name, "kernel_size", kernel_size, 2, 1)
        self.dilation = sizes(name, "dilation", dilation, 2, 1)
        self.padding = sizes(name, "padding", padding, 2, 0)
        self.stride = sizes(name, "stride", stride, 2, 1)
        self.padded = tuple(n + 2 * p for n, p in zip(image, self.padding, strict=True))
        reach = spans(self.kernel, self.dilation)
        self.out = tuple((n - r) // s + 1 for n, r, s in zip(self.padded, reach, self.stride, strict=True))
        if min(self.out) < 1:
            raise ShapeError(
                f"{name}: no window fits: kernel_size={self.kernel}, dilation={self.dilation} cover {reach}, the "
                f"padded image is {self.padded}"
            )

    def take(self, x: Array) -> Array:
        x = pad_zeros(x, self.padding, self.padding)
        view = windows(x, self.kernel, self.stride, self.dilation, self.out)
        n, c = x.shape[:2]
        return view.reshape(n, c * self.kernel[0] * self.kernel[1], self.out[0] * self.out[1])

    def add(self, patches: Array) -> Array:
        n, rows, _ = patches.shape
        channels = rows // (self.kernel[0] * self.kernel[1])
        padded = array_module(patches).zeros((n, channels, *self.padded), patches.dtype)
        add_windows(padded, patches.reshape(n, channels, *self.kernel, *self.out), self.stride, self.dilation)
        return array_module(padded).ascontiguousarray(padded[inner(self.padding, self.image)])


@op("F", batched="itself")
def unfold(
    input: Array, kernel_size: IntOrInts, dilation: IntOrInts = 1, padding: IntOrInts = 0, stride: IntOrInts = 1
) -> Result:
    """Extract all windows of an image, each as a column.

    Shapes:  input (N, C, H, W) or (C, H, W) -> (N, C · kH · kW, L) or without N, L the number of windows
    """
    if input.ndim not in (3, 4):
        raise ShapeError(f"unfold: expected 3D or 4D input, got {tuple(input.shape)}")
    expect_filled("unfold", input.shape, 2)
    patches = _Patches("unfold", input.shape[-2:], kernel_size, dilation, padding, stride)
    if input.ndim == 3:
        return patches.take(input[None])[0], lambda g: (lambda: patches.add(g[None])[0],)
    return patches.take(input), lambda g: (lambda: patches.add(g),)


unfold.linear(lambda x, *, patches: patches.take(x if x.ndim == 4 else x[None]))


@op("F", batched="itself")
def fold(
    input: Array,
    output_size: IntOrInts,
    kernel_size: IntOrInts,
    dilation: IntOrInts = 1,
    padding: IntOrInts = 0,
    stride: IntOrInts = 1,
) -> Result:
    """Sum patches into an image, the adjoint of `unfold`: overlapping windows add up.

    Shapes:  input (N, C · kH · kW, L) or without N -> (N, C, H, W) or without N
    """
    if input.ndim not in (2, 3):
        raise ShapeError(f"fold: expected 2D or 3D input, got {tuple(input.shape)}")
    expect_filled("fold", input.shape, 1)
    image = sizes("fold", "output_size", output_size, 2, 1)
    patches = _Patches("fold", image, kernel_size, dilation, padding, stride)
    rows, columns = patches.kernel[0] * patches.kernel[1], patches.out[0] * patches.out[1]
    if input.shape[-2] % rows or input.shape[-1] != columns:
        raise ShapeError(
            f"fold: input {tuple(input.shape)} does not fit output_size={image}, kernel_size={patches.kernel}; "
            f"expected (N, a multiple of {rows}, {columns})"
        )
    if input.ndim == 2:
        return patches.add(input[None])[0], lambda g: (lambda: patches.take(g[None])[0],)
    return patches.add(input), lambda g: (lambda: patches.take(g),)


fold.linear(lambda x, *, patches: patches.add(x if x.ndim == 3 else x[None]))
