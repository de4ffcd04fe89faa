"""cuBLAS through its C interface: products of half-precision matrices, which CuPy widens or lacks.

CuPy's own wrapper also refuses to run during a CUDA graph capture.

Source:  NVIDIA, "cuBLAS", cublasGemmStridedBatchedEx, cublasSetWorkspace; CUDA graphs support
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import c_int, c_longlong, c_void_p
from functools import cache
from typing import Any

import cupy
import numpy as np

from tallow.dtypes import BF16, F16
from tallow.errors import DeviceError
from tallow_cuda import packages
from tallow_cuda.matrices import Operand

WORKSPACE_BYTES = 32 << 20  # what NVIDIA recommends for Hopper
HOST_POINTERS = 0
DEFAULT_ALGORITHM = -1
COMPUTE_32F, COMPUTE_32F_TF32 = 68, 77  # cublasComputeType_t
TYPES: Mapping[Any, int] = {np.dtype(np.float32): 0, F16: 2, BF16: 14}  # cudaDataType
ONE, ZERO = ctypes.c_float(1.0), ctypes.c_float(0.0)


@cache
def _library() -> ctypes.CDLL:
    from cuda import pathfinder  # a dependency of CuPy, which also finds its libraries with it

    try:
        path = pathfinder.load_nvidia_dynamic_lib("cublas").abs_path
    except pathfinder.DynamicLibNotFoundError as error:
        raise DeviceError(f"products on a GPU need cuBLAS: {error}", hint=packages()) from error
    library = ctypes.CDLL(path)
    library.cublasGemmStridedBatchedEx.argtypes = [
        *(c_void_p, c_int, c_int, c_int, c_int, c_int, c_void_p),  # handle, operations, m, n, k, alpha
        *(c_void_p, c_int, c_int, c_longlong) * 2,  # a and b: address, type, leading dimension, stride
        *(c_void_p, c_void_p, c_int, c_int, c_longlong),  # beta, and c
        *(c_int, c_int, c_int),  # batch, compute type, algorithm
    ]
    library.cublasSetStream_v2.argtypes = [c_void_p, c_void_p]
    library.cublasSetWorkspace_v2.argtypes = [c_void_p, c_void_p, ctypes.c_size_t]
    library.cublasSetPointerMode_v2.argtypes = [c_void_p, c_int]
    return library


class Cublas:
    """The cuBLAS handles of a process: one per device and stream, each with its own workspace."""

    def __init__(self) -> None:
        self.allow_tf32 = False
        self._handles: dict[tuple[int, int], tuple[int, Any]] = {}

    def gemm(self, a: Operand, b: Operand, c: Operand, m: int, n: int, k: int, batch: int, add: bool = False) -> None:
        """Compute C = A · B, or C += A · B, for a batch of matrices in column-major order, on the current stream.

        Shapes:  A (m, k), B (k, n), C (m, n); the strides of operands are those between matrices
        Dtypes:  A and B both float32, float16 or bfloat16; C as these, or float32
        Raises:  DeviceError, with cuBLAS's status
        """
        compute = COMPUTE_32F_TF32 if self.allow_tf32 and a.dtype == np.float32 else COMPUTE_32F
        status = _library().cublasGemmStridedBatchedEx(
            self._handle(), a.transposed, b.transposed, m, n, k, ctypes.addressof(ONE),
            a.address, TYPES[a.dtype], a.leading, a.stride,
            b.address, TYPES[b.dtype], b.leading, b.stride,
            ctypes.addressof(ONE if add else ZERO), c.address, TYPES[c.dtype], c.leading, c.stride,
            batch, compute, DEFAULT_ALGORITHM,
        )  # fmt: skip
        _check(status, f"a product of ({m}, {k}) and ({k}, {n})")

    def prepare(self) -> None:
        """Create the handle of the current stream.

        That waits for the device and allocates memory, which is not possible during a capture; and the memory would
        belong to the graph.
        """
        self._handle()

    def _handle(self) -> int:
        """Return the handle of the current stream, which keeps its stream and workspace, as graph capture requires."""
        stream = cupy.cuda.get_current_stream().ptr
        key = (cupy.cuda.runtime.getDevice(), stream)
        if key not in self._handles:
            library = _library()
            handle = c_void_p()
            _check(library.cublasCreate_v2(ctypes.byref(handle)), "a handle")
            memory = cupy.cuda.alloc(WORKSPACE_BYTES)
            _check(library.cublasSetStream_v2(handle, stream), "the stream")
            _check(library.cublasSetWorkspace_v2(handle, memory.ptr, WORKSPACE_BYTES), "the workspace")
            _check(library.cublasSetPointerMode_v2(handle, HOST_POINTERS), "the pointer mode")
            assert handle.value is not None
            self._handles[key] = (handle.value, memory)
        return self._handles[key][0]


def _check(status: int, what: str) -> None:
    if status:
        raise DeviceError(f"cuBLAS refused {what}: status {status}")
