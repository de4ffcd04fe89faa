"""Conversions between float32, float16 and bfloat16 in one pass, for `tallow.dtypes`; see src/convert.cu."""

from __future__ import annotations

from tallow.devices import array_module
from tallow.dtypes import Array, dtype
from tallow.kernels.table import enabled
from tallow_cuda.launching import FLOATS, contiguous
from tallow_cuda.rows import launch_map
from tallow_cuda.sources import element, load


def convert(array: Array, to: dtype) -> Array | None:
    """The array in another of the three dtypes, or None for any other dtype."""
    if array.dtype not in FLOATS or to.storage not in FLOATS or not enabled():
        return None
    array = contiguous(array)
    y = array_module(array).empty(array.shape, to.storage)
    launch_map(load("convert.cu", "convert", X=element(array), Y=element(y)), array, y)
    return y
