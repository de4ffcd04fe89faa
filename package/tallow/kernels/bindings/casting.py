"""Conversions between float32 and halves; see src/{narrow_f32,linear_f16,linear_bf16}.c."""

from __future__ import annotations

import numpy as np

from tallow.dtypes import BF16, F16, HALVES, Array, Dtype
from tallow.kernels.bindings.arrays import FLOAT32
from tallow.kernels.bindings.matrices import DTYPES
from tallow.kernels.bindings.threads import ELEMENT, by_rows
from tallow.kernels.library import BACKEND, INT, POINTER, SIZE, function
from tallow.kernels.table import kernel, minimum

_narrow = function("tl_narrow_f32", None, POINTER, POINTER, SIZE, INT)
_widen = {
    F16: function("tl_widen_f16", None, POINTER, POINTER, SIZE),
    BF16: function("tl_widen_bf16", None, POINTER, POINTER, SIZE),
}
LEAST = 1 << 12  # elements; NumPy takes as long for fewer


@minimum(LEAST)
def float32_or_halves(array: Array, to: Dtype) -> bool:
    """A contiguous array of at least {minimum} elements, of float32 for a half or of a half for float32."""
    source, target = array.dtype, to.storage
    if array.size < LEAST or not (target in HALVES if source == FLOAT32 else target == FLOAT32 and source in HALVES):
        return False
    return bool(array.flags.c_contiguous and array.flags.aligned)


@kernel("cast_half", BACKEND, accepts=float32_or_halves)
def cast_half(array: Array, to: Dtype) -> Array:
    """Return the array in another dtype."""
    y = np.empty(array.shape, to.storage)
    if array.dtype == FLOAT32:
        by_rows(_narrow, (y, array), array.size, ELEMENT * array.size, DTYPES[y.dtype])
    else:
        by_rows(_widen[array.dtype], (y, array), array.size, ELEMENT * array.size)
    return y
