"""com.microsoft: products of quantized weights, and operators on quantized tensors.

Source:  https://github.com/microsoft/onnxruntime, docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import tallow as tl
import tallow.nn.functional as F
from tallow import Tensor
from tallow.core.whole_calls import recorded_whole
from tallow.errors import ArgumentError, ShapeError
from tallow.onnx.operators.element_types import range_of
from tallow.onnx.operators.pooling import average_pool
from tallow.onnx.operators.quantization import (
    dequantize_linear,
    dynamic_quantize_linear,
    matmul_integer,
    quantize_linear,
    shifted,
    spread,
)
from tallow.onnx.operators.registry import State
from tallow.onnx.operators.registry import operator as any_operator

operator = partial(any_operator, domain="com.microsoft")

operator("QuantizeLinear", since=1, whole=True)(quantize_linear)
operator("DequantizeLinear", since=1, whole=True)(dequantize_linear)


def unpacked(packed: Tensor, bits: int, count: int) -> Tensor:
    """Return the numbers of bytes, the lowest bits first: the first `count` of each row.

    Raises:  ArgumentError for a number of bits other than 2, 4 and 8
    """
    if bits not in (2, 4, 8):
        raise ArgumentError(f"{bits} bits", hint="2, 4 and 8 are computed")
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (packed.numpy()[..., None] >> shifts) & np.uint8(2**bits - 1)
    return tl.tensor(numbers.reshape((*packed.shape[:-1], -1))[..., :count])


def block_weights(
    b: Tensor, scales: Tensor, zero_points: Tensor | None, rows: int, columns: int, bits: int, block_size: int
) -> Tensor:
    """Return the weights (rows, columns) of blocks along the columns.

    Raises:  ShapeError if the bytes do not fit
    """
    blocks = -(-columns // block_size)
    if b.numel() != rows * blocks * (block_size * bits // 8):
        raise ShapeError(f"{tuple(b.shape)} bytes for ({rows}, {columns}) weights of {bits} bits", hint="check K and N")
    numbers = unpacked(b.reshape(rows, -1), bits, blocks * block_size).reshape(rows, blocks, block_size)
    if zero_points is None:
        middle: Any = 2 ** (bits - 1)
    elif zero_points.dtype is tl.uint8 and zero_points.numel() != rows * blocks * (8 // bits if bits < 8 else 0):
        middle = unpacked(zero_points.reshape(rows, -1), bits, blocks).unsqueeze(-1).to(tl.float32)
    else:
        middle = zero_points.reshape(rows, blocks, 1).to(tl.float32)
    wide = (numbers.to(tl.float32) - middle) * scales.reshape(rows, blocks, 1).to(tl.float32)
    return wide.reshape(rows, -1)[:, :columns]


@operator("MatMulNBits", since=1, whole=True)
@recorded_whole
def matmul_nbits(
    a: Tensor,
    b: Tensor,
    scales: State,
    zero_points: Tensor | None = None,
    g_idx: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int,
) -> Tensor:
    """Multiply by weights of blocks of `bits` bits; `accuracy_level` may lower the accuracy of the sums.

    Shapes:  a (..., K), b (N, blocks, bytes), scales (N · blocks), zero_points (N · bytes) -> (..., N)
    """
    weights = block_weights(b, scales, zero_points, N, K, bits, block_size)
    if g_idx is not None:  # the block of each column
        raise ArgumentError("MatMulNBits: g_idx", hint="export with columns in the order of their blocks")
    return F.linear(a, weights.to(a.dtype), bias)


@operator("GatherBlockQuantized", since=1, whole=True)
@recorded_whole
def gather_block_quantized(
    data: Tensor,
    indices: Tensor,
    scales: State,
    zero_points: Tensor | None = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Tensor:
    """Take rows of a table of blocks, in the dtype of `scales`.

    Shapes:  data (N, bytes) in uint8 or (N, D), indices (*I), scales (N, blocks) -> (*I, D)
    Raises:  ArgumentError unless rows are taken and blocks lie along the last dim
    """
    if gather_axis % data.dim() != 0 or quantize_axis % data.dim() != data.dim() - 1:
        raise ArgumentError(
            f"GatherBlockQuantized: gather_axis={gather_axis}, quantize_axis={quantize_axis}",
            hint="rows are taken, and blocks lie along the last dim",
        )
    blocks, index = scales.shape[-1], indices.to(tl.int64)
    rows = data[index]
    if data.dtype is tl.uint8:
        rows = unpacked(rows, bits, rows.shape[-1] * (8 // bits))
    middle: Any = 2 ** (bits - 1) if data.dtype is tl.uint8 else 0
    if zero_points is not None:
        taken = zero_points[index]
        middle = (unpacked(taken, bits, blocks) if taken.dtype is tl.uint8 else taken).to(tl.float32)
        middle = tl.repeat_interleave(middle, block_size, -1)[..., : rows.shape[-1]]
    factors = tl.repeat_interleave(scales[index], block_size, -1)[..., : rows.shape[-1]]
    return ((rows.to(tl.float32) - middle) * factors.to(tl.float32)).to(scales.dtype)


@operator("MatMulIntegerToFloat", since=1, whole=True)
def matmul_integer_to_float(
    a: Tensor,
    b: Tensor,
    a_scale: State,
    b_scale: State,
    a_zero_point: Tensor | None = None,
    b_zero_point: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """Return the product of quantized matrices as floats."""
    sums = matmul_integer(a, b, a_zero_point, b_zero_point)
    y = sums.to(a_scale.dtype) * (spread(a_scale, a, -2, 0) * spread(b_scale, b, -1, 0))
    return y if bias is None else y + bias


@operator("DynamicQuantizeMatMul", since=1, whole=True)
def dynamic_quantize_matmul(
    a: Tensor, b: Tensor, b_scale: State, b_zero_point: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """Quantize `a` by its range, and multiply by a quantized matrix."""
    numbers, scale, zero_point = dynamic_quantize_linear(a)
    return matmul_integer_to_float(numbers, b, scale, b_scale, zero_point, b_zero_point, bias)


@operator("QGemm", since=1, whole=True)
def qgemm(
    a: Tensor,
    a_scale: State,
    a_zero_point: Tensor,
    b: Tensor,
    b_scale: State,
    b_zero_point: Tensor,
    c: Tensor | None = None,
    y_scale: State | None = None,
    y_zero_point: Tensor | None = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    """Return alpha · a @ b + c of quantized matrices, quantized or without `y_scale` as floats; `c` is in int32."""
    left, right = a.T if transA else a, b.T if transB else b
    sums = matmul_integer(left, right, a_zero_point, b_zero_point)
    if c is not None:
        sums = sums + c
    y = sums.to(tl.float64) * (alpha * a_scale.to(tl.float64) * spread(b_scale, right, -1, 0).to(tl.float64))
    return y.to(tl.float32) if y_scale is None else quantize_linear(y, y_scale.to(tl.float64), y_zero_point)


def _on_floats(
    function: Callable[..., Tensor], operands: Sequence[Tensor | None], y_scale: Any, y_zero_point: Any
) -> Tensor:
    """Apply a function to quantized tensors, each followed by its scale and zero point, and quantize the result."""
    given: Sequence[Any] = operands
    values = [dequantize_linear(*given[i : i + 3]) for i in range(0, len(given), 3)]
    return quantize_linear(function(*values), y_scale, y_zero_point)


def _number(zero_point: Tensor | None) -> Any:
    return 0.0 if zero_point is None else zero_point.to(tl.float32)


def _in_codes(numbers: Tensor, like: Tensor) -> Tensor:
    """Return numbers, rounded, in the dtype of codes."""
    return tl.clamp(tl.round(numbers), *range_of(like.dtype)).to(like.dtype)


def _multiplied_and_added(codes: Tensor, factor: Tensor, terms: Tensor) -> Tensor:
    """Return codes · factor + terms in float32, rounded once."""
    return (codes.to(tl.float64) * factor.to(tl.float64) + terms.to(tl.float64)).to(tl.float32)


@operator("QLinearAdd", since=1, whole=True)
def qlinear_add(
    a: Tensor, a_scale: State, a_zero: Tensor | None, b: Tensor, b_scale: State, b_zero: Tensor | None,
    y_scale: State, y_zero: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Add quantized tensors; halves between two codes go where onnxruntime's sums in float32 bring them."""
    a_factor, b_factor = a_scale / y_scale, b_scale / y_scale
    shift = _number(y_zero) - (a_factor * _number(a_zero) + b_factor * _number(b_zero))
    sums = _multiplied_and_added(a, a_factor, _multiplied_and_added(b, b_factor, shift))
    return _in_codes(sums, a if y_zero is None else y_zero)


@operator("QLinearMul", since=1, whole=True)
def qlinear_mul(
    a: Tensor, a_scale: State, a_zero: Tensor | None, b: Tensor, b_scale: State, b_zero: Tensor | None,
    y_scale: State, y_zero: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Multiply quantized tensors; halves between two codes go where onnxruntime's products in float32 bring them."""
    products = (shifted(a, a_zero) * shifted(b, b_zero)).to(tl.float32)
    return _in_codes(products * (a_scale * b_scale / y_scale) + _number(y_zero), a if y_zero is None else y_zero)


@operator("QLinearSigmoid", since=1, whole=True)
def qlinear_sigmoid(
    x: Tensor, x_scale: State, x_zero: Tensor | None, y_scale: State, y_zero: Tensor | None = None
) -> Tensor:
    """Return the sigmoid of a quantized tensor."""
    return _on_floats(tl.sigmoid, (x, x_scale, x_zero), y_scale, y_zero)


@operator("QLinearLeakyRelu", since=1, whole=True)
def qlinear_leaky_relu(
    x: Tensor, x_scale: State, x_zero: Tensor | None, y_scale: State, y_zero: Tensor | None = None, *,
    alpha: float = 0.01,
) -> Tensor:  # fmt: skip
    """Multiply what is below zero by `alpha`."""
    return _on_floats(lambda values: F.leaky_relu(values, alpha), (x, x_scale, x_zero), y_scale, y_zero)


@operator("QLinearSoftmax", since=1, whole=True)
def qlinear_softmax(
    x: Tensor, x_scale: State, x_zero: Tensor | None, y_scale: State, y_zero: Tensor | None = None, *,
    axis: int = -1, opset: int,
) -> Tensor:  # fmt: skip
    """Return the softmax of a quantized tensor, as Softmax of an opset."""

    def function(values: Tensor) -> Tensor:
        if opset >= 13:
            return tl.softmax(values, axis)
        return tl.softmax(values.flatten(axis), -1).reshape(values.shape)

    return _on_floats(function, (x, x_scale, x_zero), y_scale, y_zero)


@operator("QLinearConcat", since=1, whole=True)
def qlinear_concat(y_scale: State, y_zero: Tensor, *operands: Tensor, axis: int) -> Tensor:
    """Concatenate quantized tensors."""
    return _on_floats(lambda *values: tl.cat(values, axis), operands, y_scale, y_zero)


@operator("QLinearGlobalAveragePool", since=1, whole=True)
def qlinear_global_average_pool(
    x: Tensor, x_scale: State, x_zero: Tensor | None, y_scale: State, y_zero: Tensor | None = None, *,
    channels_last: int = 0,
) -> Tensor:  # fmt: skip
    """Return the mean of each channel of a quantized tensor."""
    over = tuple(range(1, x.dim() - 1) if channels_last else range(2, x.dim()))
    return _on_floats(lambda values: tl.mean(values, over, keepdim=True), (x, x_scale, x_zero), y_scale, y_zero)


@operator("QLinearAveragePool", since=1, whole=True)
def qlinear_average_pool(
    x: Tensor,
    x_scale: State,
    x_zero: Tensor | None,
    y_scale: State,
    y_zero: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    channels_last: int = 0,
    count_include_pad: int = 0,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Tensor:
    """Return the mean of each window of a quantized tensor."""

    def function(values: Tensor) -> Tensor:
        pooled = average_pool(
            values.movedim(-1, 1) if channels_last else values,
            auto_pad=auto_pad,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            kernel_shape=kernel_shape,
            pads=pads,
            strides=strides,
        )
        return pooled.movedim(1, -1) if channels_last else pooled

    return _on_floats(function, (x, x_scale, x_zero), y_scale, y_zero)
