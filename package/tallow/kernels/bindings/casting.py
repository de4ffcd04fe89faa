"""Conversions between float32 and halves, for tallow.dtypes; see src/{narrow_f32,linear_f16,linear_bf16}.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import BF16, F16, HALVES, Array, Dtype
from tallow.kernels.bindings.arrays import FLOAT32
from tallow.kernels.bindings.matrices import DTYPES
from tallow.kernels.bindings.threads import ELEMENT, by_rows
from tallow.kernels.library import BACKEND, INT, POINTER, SIZE, function
from tallow.kernels.table import may_choose

_narrow = function("tl_narrow_f32", None, POINTER, POINTER, SIZE, INT)
_widen = {
    F16: function("tl_widen_f16", None, POINTER, POINTER, SIZE),
    BF16: function("tl_widen_bf16", None, POINTER, POINTER, SIZE),
}
LEAST = 1 << 12  # elements; NumPy takes as long for fewer


def convert(array: Array, to: Dtype) -> Array | None:
    """Return a contiguous array converted from float32 to a half or back; None for other arrays and conversions."""
    source, target, size = array.dtype, to.storage, array.size
    if size < LEAST or not (target in HALVES if source == FLOAT32 else target == FLOAT32 and source in HALVES):
        return None
    if not (array.flags.c_contiguous and array.flags.aligned and may_choose(BACKEND)):
        return None
    y = np.empty(array.shape, target)
    if source == FLOAT32:
        by_rows(_narrow, (y, array), size, ELEMENT * size, DTYPES[target])
    else:
        by_rows(_widen[source], (y, array), size, ELEMENT * size)
    return y
