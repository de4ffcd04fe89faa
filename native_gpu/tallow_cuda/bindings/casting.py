"""Conversion between float32, float16 and bfloat16 in one pass; see src/convert.cu."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.dtypes import Array, dtype
from tallow.kernels import kernel
from tallow_cuda.launching import FLOATS, contiguous
from tallow_cuda.rows import launch_map
from tallow_cuda.sources import element, load


def float32_or_halves(array: Array, to: dtype) -> bool:
    """An array of float32, float16 or bfloat16, for another of them."""
    return array.dtype in FLOATS and to.storage in FLOATS


@kernel("cast_half", "cuda", accepts=float32_or_halves)
def cast_half(array: Array, to: dtype) -> Array:
    """Convert the array to another of the three dtypes.

    An array that is contiguous except for the order of its axes, such as a transposed matrix, keeps that order: cuBLAS
    reads it directly, without a pass over memory to transpose it.
    """
    order = sorted(range(array.ndim), key=lambda axis: array.strides[axis], reverse=True)
    outward = contiguous(array.transpose(order))
    y = array_module(array).empty(outward.shape, to.storage)
    launch_map(load("convert.cu", "convert", X=element(outward), Y=element(y)), outward, y)
    return y.transpose([order.index(axis) for axis in range(array.ndim)])
