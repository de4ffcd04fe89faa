"""torch.utils.dlpack: share memory with other libraries."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from tallow.core.creation import from_dlpack
from tallow.core.tensor import Tensor

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(IntEnum):
    """The numbers of DLPack for kinds of devices."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor: Tensor) -> Any:
    """Return a capsule of DLPack that shares memory with a tensor; `from_dlpack` takes it once."""
    return tensor.__dlpack__()
