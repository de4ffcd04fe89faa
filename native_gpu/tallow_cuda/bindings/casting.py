"""Conversion between float32, float16 and bfloat16 in one pass, for `tallow.dtypes`; see src/convert.cu."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.dtypes import Array, dtype
from tallow.kernels.table import enabled
from tallow_cuda.launching import FLOATS, contiguous
from tallow_cuda.rows import launch_map
from tallow_cuda.sources import element, load


def convert(array: Array, to: dtype) -> Array | None:
    """Convert the array to another of the three dtypes; return None for any other dtype.

    An array that is contiguous except for the order of its axes, such as a transposed matrix, keeps that order: cuBLAS
    reads it directly, without a pass over memory to transpose it.
    """
    if array.dtype not in FLOATS or to.storage not in FLOATS or not enabled():
        return None
    order = sorted(range(array.ndim), key=lambda axis: array.strides[axis], reverse=True)
    outward = contiguous(array.transpose(order))
    y = array_module(array).empty(outward.shape, to.storage)
    launch_map(load("convert.cu", "convert", X=element(outward), Y=element(y)), outward, y)
    return y.transpose([order.index(axis) for axis in range(array.ndim)])
