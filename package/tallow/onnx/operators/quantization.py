"""ONNX operators on quantized tensors: x = (q - zero_point) · scale.

Scales and zero points are one number, one for each index of an axis, or one for each block of an axis.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import tallow as tl
from tallow import Tensor, dtypes
from tallow.onnx.operators.casting import cast
from tallow.onnx.operators.convolution import conv
from tallow.onnx.operators.element_types import BITS, dtype_of, element_type_of, range_of
from tallow.onnx.operators.registry import State, operator

UINT8 = 2  # the element type of results that nothing else determines
EXACT_TERMS = 258  # · 255 · 255 < 2^24


def spread(values: Tensor, x: Tensor, axis: int, block_size: int) -> Tensor:
    """Return scales or zero points in a shape that broadcasts to `x`."""
    if values.numel() == 1:
        return values.reshape(())
    if block_size:
        return tl.repeat_interleave(values, block_size, axis).narrow(axis, 0, x.shape[axis])
    if values.dim() != 1:
        return values
    form = [1] * x.dim()
    form[axis] = -1
    return values.reshape(form)


@operator("QuantizeLinear", since=10, whole=True)
def quantize_linear(
    x: Tensor,
    y_scale: State,
    y_zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
    narrow_type: int = 0,
) -> Tensor:
    """Return x / scale + zero_point, rounded to the nearest even integer or eight-bit float within its range.

    Args:    precision: the element type of the division; by default that of `y_scale`
    """
    output_dtype = output_dtype or (narrow_type if y_zero_point is not None else 0)
    exact = y_scale.dtype if not precision else dtype_of(precision)
    quotient = x.to(exact) / spread(y_scale, x, axis, block_size).to(exact)
    target = y_zero_point.dtype if y_zero_point is not None and not output_dtype else dtype_of(output_dtype or UINT8)
    if target.is_floating_point:
        return cast(quotient, to=output_dtype or element_type_of(target), saturate=saturate)
    rounded = tl.round(quotient)
    if y_zero_point is not None:
        rounded = rounded + spread(y_zero_point, x, axis, block_size).to(rounded.dtype)
    if output_dtype in BITS:
        bits, signed = BITS[output_dtype]
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    else:
        low, high = range_of(target)
    return tl.clamp(rounded, low, high).to(target)


@operator("DequantizeLinear", since=10, whole=True)
def dequantize_linear(
    x: Tensor,
    x_scale: State,
    x_zero_point: Tensor | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Tensor:
    """Return (x - zero_point) · scale, in the dtype of `x_scale`."""
    target = dtype_of(output_dtype) if output_dtype else x_scale.dtype
    return shifted(x, x_zero_point, axis, block_size).to(target) * spread(x_scale, x, axis, block_size).to(target)


def shifted(x: Tensor, zero_point: Tensor | None, axis: int = 1, block_size: int = 0) -> Tensor:
    """Return x - zero_point: eight-bit integers in int32, others in float64, which holds them exactly."""
    wide = x.to(tl.float32 if x.dtype in dtypes.FLOAT8 else tl.float64 if x.dtype.itemsize > 2 else tl.int32)
    if zero_point is None:
        return wide
    return wide - spread(zero_point, x, axis, block_size).to(wide.dtype)


@operator("DynamicQuantizeLinear", since=11, whole=True)
def dynamic_quantize_linear(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return `x` in uint8, with the scale and the zero point that its range and zero need."""
    low, high = tl.clamp(tl.amin(x), max=0.0), tl.clamp(tl.amax(x), min=0.0)
    scale = (high - low) / 255
    scale = tl.where(scale == 0, tl.ones_like(scale), scale)
    zero_point = tl.clamp(tl.round(-low / scale), 0, 255)
    return tl.clamp(tl.round(x / scale) + zero_point, 0, 255).to(tl.uint8), scale, zero_point.to(tl.uint8)


def _product(a: Tensor, a_zero_point: Tensor | None, b: Tensor, b_zero_point: Tensor | None) -> Tensor:
    """Multiply matrices of eight-bit integers exactly; zero points are one number, one per row of a or column of b.

    BLAS computes products of floats alone; float32 holds sums of EXACT_TERMS products.

    Dtypes:  float32 with the integers of one such sum, otherwise float64
    """
    left = _shifted_bytes(a, a_zero_point, -2 if a.dim() > 1 else -1)
    right = _shifted_bytes(b, b_zero_point, -1)
    rows = -2 if b.dim() > 1 else 0
    terms = b.shape[rows]
    if terms <= EXACT_TERMS:
        return tl.matmul(left, right)
    parts = [(start, min(EXACT_TERMS, terms - start)) for start in range(0, terms, EXACT_TERMS)]
    sums = [tl.matmul(left.narrow(-1, *part), right.narrow(rows, *part)) for part in parts]
    return sum((each.to(tl.float64) for each in sums[1:]), sums[0].to(tl.float64))


def _shifted_bytes(x: Tensor, zero_point: Tensor | None, axis: int) -> Tensor:
    """Return x - zero_point in float32."""
    wide = x.to(tl.float32)
    return wide if zero_point is None else wide - spread(zero_point, x, axis, 0).to(tl.float32)


def _exact(terms: int) -> tl.dtype:
    """Return the floats, whose products BLAS computes, that hold sums of products of eight bits exactly."""
    return tl.float32 if terms <= EXACT_TERMS else tl.float64


@operator("MatMulInteger", since=10, whole=True)
def matmul_integer(
    a: Tensor, b: Tensor, a_zero_point: Tensor | None = None, b_zero_point: Tensor | None = None
) -> Tensor:
    """Return the product of eight-bit integers in int32."""
    return _product(a, a_zero_point, b, b_zero_point).to(tl.int32)


@operator("QLinearMatMul", since=10, whole=True)
def qlinear_matmul(
    a: Tensor,
    a_scale: State,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: State,
    b_zero_point: Tensor,
    y_scale: State,
    y_zero_point: Tensor,
) -> Tensor:
    """Return the product of quantized matrices, quantized."""
    sums = _product(a, a_zero_point, b, b_zero_point)
    rows, columns = spread(a_scale, a, -2, 0), spread(b_scale, b, -1, 0)
    real = sums * (rows.to(tl.float64) * columns.to(tl.float64))
    return quantize_linear(real, y_scale.to(tl.float64), y_zero_point, axis=-1)


@operator("ConvInteger", since=10, whole=True)
def conv_integer(
    x: Tensor,
    w: Tensor,
    x_zero_point: Tensor | None = None,
    w_zero_point: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Return the convolution of eight-bit integers in int32; pads hold the zero point."""
    exact = _exact(math.prod(w.shape[1:]))
    return conv(
        shifted(x, x_zero_point).to(exact),
        shifted(w, w_zero_point, 0).to(exact),
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    ).to(tl.int32)


@operator("QLinearConv", since=10, whole=True)
def qlinear_conv(
    x: Tensor,
    x_scale: State,
    x_zero_point: Tensor,
    w: Tensor,
    w_scale: State,
    w_zero_point: Tensor,
    y_scale: State,
    y_zero_point: Tensor,
    b: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Return the convolution of quantized tensors, quantized; `b` counts in steps of x_scale · w_scale."""
    sums = conv(
        shifted(x, x_zero_point).to(tl.float64),
        shifted(w, w_zero_point, 0).to(tl.float64),
        None if b is None else b.to(tl.float64),
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    steps = x_scale.to(tl.float64) * spread(w_scale, sums, 1, 0).to(tl.float64)
    return quantize_linear(sums * steps, y_scale.to(tl.float64), y_zero_point)
