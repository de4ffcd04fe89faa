"""Names of `torch.cuda` that tallow itself does not have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tallow import accelerator, cuda
from tallow.compat.absent import absent
from tallow.compat.torch.cuda import memory, random
from tallow.cuda import is_available as is_initialized
from tallow.errors import UnsupportedError

_NVIDIA_SMI = "clock_rate device_memory_used memory_usage power_draw temperature utilization"
_CUPY = "check_error cudart current_blas_handle current_solver_handle"
_STREAMS = "ExternalStream GreenContext StreamContext get_stream_from_external"
_ABSENT = {
    "nvidia-smi shows it": _NVIDIA_SMI,
    "call cupy.cuda.runtime, or cupy.cuda.get_cublas_handle": _CUPY,
    "use torch.cuda.stream": _STREAMS,
}
ABSENT = {name: absent(f"torch.cuda.{name}", hint) for hint, names in _ABSENT.items() for name in names.split()}
globals().update(ABSENT)
globals().update({name: getattr(home, name) for home in (memory, random) for name in home.__all__})
__all__ = [  # noqa: PLE0604 - the rest are lists of texts
    *ABSENT,
    *memory.__all__,
    *random.__all__,
    "can_device_access_peer",
    "device_of",
    "get_arch_list",
    "get_gencode_flags",
    "get_sync_debug_mode",
    "init",
    "ipc_collect",
    "is_initialized",
    "is_tf32_supported",
    "set_stream",
    "set_sync_debug_mode",
]


def init() -> None:
    """Check that there is a GPU. Raises: DeviceError, which says what is missing"""
    cuda.current_device()


def ipc_collect() -> None:
    """Do nothing: processes share no memory of a GPU."""


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Return whether a GPU reads the memory of another. Raises: DeviceError without a GPU"""
    runtime = cuda._cupy().cuda.runtime
    return bool(runtime.deviceCanAccessPeer(cuda._index(device), cuda._index(peer_device)))


@contextmanager
def device_of(obj: Any) -> Iterator[None]:
    """Make the GPU of a tensor the current one within a block. A tensor on the CPU changes nothing."""
    if not obj.is_cuda:
        yield
        return
    with cuda.device(obj.device):
        yield


def get_arch_list() -> list[str]:
    """Return no architectures: kernels are compiled at first use."""
    return []


def get_gencode_flags() -> str:
    """Return no flags: kernels are compiled at first use."""
    return ""


def is_tf32_supported() -> bool:
    """Return whether a GPU has tensor cores for float32, from compute capability 8.0 on."""
    return cuda.is_available() and cuda.get_device_capability()[0] >= 8


def set_stream(stream: Any) -> None:
    """Let the GPU do the work that follows on this stream; None changes nothing."""
    if stream is not None:
        accelerator.set_stream(stream)


def get_sync_debug_mode() -> int:
    """Return 0: waits for the GPU are not reported."""
    return 0


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Accept the default mode. Raises: UnsupportedError for one that reports waits for the GPU"""
    if debug_mode not in (0, "default"):
        raise UnsupportedError("set_sync_debug_mode: waits for the GPU are not reported", hint="use 0")
