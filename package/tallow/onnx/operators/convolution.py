"""ONNX convolutions.

Shapes:  x (B, C, *spatial), weight (O, C / group, *kernel) -> (B, O, *result)
Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import tallow as tl
import tallow.nn.functional as F
from tallow import Tensor
from tallow.errors import ArgumentError, ShapeError
from tallow.onnx.operators.bounds import MOST_TIMES, USUAL, check_made, check_padded
from tallow.onnx.operators.registry import operator
from tallow.onnx.operators.windows import explicit_pads, last_dim_first, same_pads

_CONVOLUTIONS: dict[int, Callable[..., Tensor]] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED: dict[int, Callable[..., Tensor]] = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def _function(table: dict[int, Callable[..., Tensor]], rank: int) -> Callable[..., Tensor]:
    if rank not in table:
        raise ShapeError(f"convolution with {rank} spatial dims", hint="1, 2 or 3 are computed")
    return table[rank]


@operator("Conv", since=1)
def conv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Convolve; `auto_pad` SAME_UPPER and SAME_LOWER pad for ceil(size / stride) elements."""
    kernel = tuple(kernel_shape or w.shape[2:])
    rank = len(kernel)
    stride, dilation = tuple(strides or (1,) * rank), tuple(dilations or (1,) * rank)
    if auto_pad.startswith("SAME"):
        before, after = same_pads(tuple(x.shape[2:]), kernel, stride, dilation, auto_pad)
    else:
        before, after = explicit_pads(pads, rank, auto_pad)
    check_padded("Conv", x, before, after)
    if before != after:
        x, before = F.pad(x, last_dim_first(before, after)), (0,) * rank
    return _function(_CONVOLUTIONS, rank)(x, w, b, stride, before, dilation, group)


@operator("ConvTranspose", since=1)
def conv_transpose(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Transposed convolution.

    Shapes:  w (C, O / group, *kernel)
    """
    kernel = tuple(kernel_shape or w.shape[2:])
    rank = len(kernel)
    stride, dilation = tuple(strides or (1,) * rank), tuple(dilations or (1,) * rank)
    more = tuple(output_padding or (0,) * rank)
    function = _function(_TRANSPOSED, rank)
    if math.prod(stride) > MOST_TIMES or max((*more, *dilation, *map(abs, pads or ()))) > USUAL:
        spans = zip(x.shape[2:], stride, dilation, kernel, strict=True)
        check_made("ConvTranspose", (*x.shape[:2], *((n - 1) * s + d * (k - 1) + 1 for n, s, d, k in spans)), x, w)
    if output_shape is None and not auto_pad.startswith("SAME"):
        before, after = explicit_pads(pads, rank, auto_pad)
        if before == after and all(m < max(s, d) for m, s, d in zip(more, stride, dilation, strict=True)):
            return function(x, w, b, stride, before, more, group, dilation)
    else:
        sizes = tuple(x.shape[2:])
        wanted = output_shape or [size * s for size, s in zip(sizes, stride, strict=True)]
        totals = [
            s * (size - 1) + m + d * (k - 1) + 1 - want
            for size, s, m, d, k, want in zip(sizes, stride, more, dilation, kernel, wanted[-rank:], strict=True)
        ]
        small = [total // 2 for total in totals]
        large = [total - half for total, half in zip(totals, small, strict=True)]
        # SAME_UPPER: the larger half is padded at the end
        before, after = (tuple(small), tuple(large)) if auto_pad != "SAME_LOWER" else (tuple(large), tuple(small))
        if output_shape is not None and auto_pad != "SAME_UPPER":
            before, after = tuple(large), tuple(small)
    whole = function(x, w, b, stride, 0, 0, group, dilation)  # (B, O, *all that the kernels reach)
    amounts = [each for f, l, m in reversed(list(zip(before, after, more, strict=True))) for each in (-f, m - l)]
    return F.pad(whole, amounts) if b is None else _pad_with(whole, amounts, b)


def _pad_with(x: Tensor, amounts: list[int], bias: Tensor) -> Tensor:
    """Crop, or pad with the bias, which is the value where no kernel reaches."""
    if max(amounts) <= 0:
        return F.pad(x, amounts)
    shape = (1, -1) + (1,) * (x.dim() - 2)
    return F.pad(x - bias.reshape(shape), amounts) + bias.reshape(shape)


@operator("CausalConvWithState", since=27)
def causal_conv_with_state(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    past_state: Tensor | None = None,
    *,
    activation: str = "none",
) -> tuple[Tensor, Tensor]:
    """Convolve each channel with its kernel over the present and the past; the state holds the last K - 1 steps.

    Shapes:  x (B, C, T), weight (C, 1, K), past_state (B, C, K - 1) -> (B, C, T), (B, C, K - 1)
    Raises:  ArgumentError for an activation other than none, silu and swish
    """
    if activation not in ("none", "silu", "swish"):
        raise ArgumentError(f"CausalConvWithState: activation={activation!r}", hint='use "none" or "silu"')
    kept = weight.shape[-1] - 1
    past = x.new_zeros((x.shape[0], x.shape[1], kept)) if past_state is None else past_state
    whole = tl.cat([past, x], -1)
    y = F.conv1d(whole, weight, bias, groups=weight.shape[0])
    return (y if activation == "none" else F.silu(y)), whole[..., whole.shape[-1] - kept :]


@operator("Col2Im", since=18, whole=True, folds=False)
def col2im(
    x: Tensor,
    image_shape: Tensor,
    block_shape: Tensor,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Sum blocks, which are columns, to an image.

    Shapes:  x (B, C · block, L) -> (B, C, *image_shape)
    """
    image, block = [tuple(int(n) for n in each.tolist()) for each in (image_shape, block_shape)]
    check_made("Col2Im", (*x.shape[:2], *image), x)
    rank = len(image)
    stride, dilation = tuple(strides or (1,) * rank), tuple(dilations or (1,) * rank)
    before, after = explicit_pads(pads, rank, "NOTSET")
    if rank == 2 and before == after:
        return F.fold(x, image, block, dilation, before, stride)
    # A transposed convolution with one channel for each place of a block puts every column where it belongs.
    padded = [size + f + l for size, f, l in zip(image, before, after, strict=True)]
    steps = [(p - d * (k - 1) - 1) // s + 1 for p, d, k, s in zip(padded, dilation, block, stride, strict=True)]
    area = x.shape[1]
    for k in block:
        area = area if k == 0 else area // k
    places = x.shape[1] // area
    columns = x.reshape(x.shape[0] * area, places, *steps)
    kernel = tl.eye(places, dtype=x.dtype).reshape(places, 1, *block)
    whole = _function(_TRANSPOSED, rank)(columns, kernel, None, stride, 0, 0, 1, dilation)
    amounts = [
        each
        for have, f, want in reversed(list(zip(whole.shape[2:], before, image, strict=True)))
        for each in (-f, want + f - have)
    ]
    return F.pad(whole, amounts).reshape(x.shape[0], area, *image)


@operator("DeformConv", since=19, whole=True)
def deform_conv(
    x: Tensor,
    w: Tensor,
    offset: Tensor,
    b: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Convolve with samples that `offset` moves and `mask` weighs, for each place of the kernel and of the result.

    Shapes:  x (B, C, H, W), offset (B, offset_group · kh · kw · 2, h, w), mask (B, offset_group · kh · kw, h, w)
    Source:  Zhu et al. 2018, arXiv:1811.11168
    """
    batch, channels, height, width = x.shape
    kernel_h, kernel_w = w.shape[2:]
    (stride_h, stride_w), (dilation_h, dilation_w) = strides or (1, 1), dilations or (1, 1)
    (top, left), _ = explicit_pads(pads, 2, "NOTSET")
    out_h, out_w = offset.shape[2:]
    moved = offset.reshape(batch * offset_group, kernel_h * kernel_w, 2, out_h, out_w)
    rows = tl.arange(kernel_h).repeat_interleave(kernel_w).reshape(-1, 1, 1) * dilation_h - top
    columns = tl.arange(kernel_w).repeat(kernel_h).reshape(-1, 1, 1) * dilation_w - left
    y = moved[:, :, 0] + rows + (tl.arange(out_h) * stride_h).reshape(-1, 1)
    z = moved[:, :, 1] + columns + tl.arange(out_w) * stride_w  # (B·G, kh·kw, h, w)
    # In float64, so that whole positions stay whole.
    grid = tl.stack([(2 * z.to(tl.float64) + 1) / width - 1, (2 * y.to(tl.float64) + 1) / height - 1], -1)
    samples = F.grid_sample(
        x.to(tl.float64).reshape(batch * offset_group, channels // offset_group, height, width),
        grid.reshape(batch * offset_group, -1, out_w, 2),
        align_corners=False,
    ).to(x.dtype)
    samples = samples.reshape(batch, offset_group, channels // offset_group, kernel_h * kernel_w, out_h, out_w)
    if mask is not None:
        samples = samples * mask.reshape(batch, offset_group, 1, kernel_h * kernel_w, out_h, out_w)
    samples = samples.reshape(batch, group, channels // group * kernel_h * kernel_w, out_h * out_w)
    weights = w.reshape(group, w.shape[0] // group, -1)
    y = tl.matmul(weights, samples).reshape(batch, w.shape[0], out_h, out_w)
    return y if b is None else y + b.reshape(-1, 1, 1)
