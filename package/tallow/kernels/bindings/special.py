"""erf; see src/elementwise/gelu_f32.c."""

from __future__ import annotations

from tallow.kernels.bindings.arrays import float32_array
from tallow.kernels.bindings.threads import EXPONENTIAL, element_kernel
from tallow.kernels.library import BACKEND, POINTER, SIZE, function
from tallow.kernels.table import kernel

if BACKEND == "native":  # the libraries for WASM have no room for it
    _erf = function("tl_erf_f32", None, POINTER, POINTER, SIZE)
    kernel("erf", BACKEND, accepts=float32_array)(element_kernel("erf", _erf, EXPONENTIAL))
