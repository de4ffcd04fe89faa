"""CuPy as a backend of `tallow.devices`: which arrays are on the GPU, and how they get there and back.

A bfloat16 tensor is a `uint16` array of bit patterns here as on the CPU, so moving copies bytes and never converts.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from tallow.devices import device
from tallow.errors import DeviceError
from tallow_cuda.memory import Memory


class CupyBackend:
    """Serves `cuda` and `cuda:N`; without an index, the current CUDA device."""

    type = "cuda"
    array_type = cupy.ndarray
    module = cupy

    def __init__(self) -> None:
        pool = cupy.get_default_memory_pool()
        self.memory = Memory(pool)
        if cupy.cuda.get_allocator() == pool.malloc:  # not where the program has chosen one of its own
            cupy.cuda.set_allocator(self.memory.allocate)

    def device_of(self, array: cupy.ndarray) -> device:
        return device("cuda", array.device.id)

    def from_host(self, array: np.ndarray[Any, Any], target: device) -> cupy.ndarray:
        with _cuda_device(target):
            return cupy.asarray(array)

    def to_host(self, array: cupy.ndarray) -> np.ndarray[Any, Any]:
        return cupy.asnumpy(array)

    def transfer(self, array: cupy.ndarray, target: device) -> cupy.ndarray:
        with _cuda_device(target):
            return cupy.array(array)  # a copy in the target's memory; asarray would keep the source's

    def allow_tf32(self, allowed: bool) -> None:
        """Whether products of float32 matrices may be of ten bits of precision, on tensor cores."""
        linalg = cupy._core._routines_linalg  # CuPy's own switch is an environment variable, read once
        kind = linalg.COMPUTE_TYPE_TF32 if allowed else linalg.COMPUTE_TYPE_DEFAULT
        linalg.set_compute_type(np.float32, kind)


def _cuda_device(target: device) -> cupy.cuda.Device:
    count = cupy.cuda.runtime.getDeviceCount()
    if target.index is not None and target.index >= count:
        raise DeviceError(f"there is no device {str(target)!r}", mend=f"the last one is 'cuda:{count - 1}'")
    return cupy.cuda.Device(target.index)
