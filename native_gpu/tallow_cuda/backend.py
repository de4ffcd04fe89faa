"""CuPy as a backend of `tallow.devices`: which arrays are on the GPU, and how they get there and back.

A bfloat16 tensor is a `uint16` array of bit patterns here as on the CPU, so moving copies bytes and never converts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import cupy
import cupyx
import numpy as np

from tallow.devices import device
from tallow.errors import DeviceError, KernelCompileError
from tallow_cuda import packages
from tallow_cuda.cublas import Cublas
from tallow_cuda.launching import argument
from tallow_cuda.memory import Memory, graph_pool
from tallow_cuda.sources import with_headers
from tallow_cuda.uploads import Uploads, is_pinned, pinned

SHARED_WITHOUT_ASKING = 40 * 1024  # bytes of dynamic shared memory that every launch may have, of 48 KiB with its own


class CupyBackend:
    """Serves `cuda` and `cuda:N`; without an index, the current CUDA device."""

    type = "cuda"
    array_type = cupy.ndarray
    module = cupy

    def __init__(self) -> None:
        self.kernels: dict[Any, Callable[..., None]] = {}  # what tallow_cuda.sources has compiled
        self.cublas = Cublas()
        self.gemm = self.cublas.gemm
        pool = cupy.get_default_memory_pool()
        self.memory = Memory(pool)
        self._uploads = Uploads()
        if cupy.cuda.get_allocator() == pool.malloc:  # not where the program has chosen one of its own
            cupy.cuda.set_allocator(self.memory.allocate)

        self.several = cupy.cuda.runtime.getDeviceCount() > 1

    def device_of(self, array: cupy.ndarray) -> device:
        return _device(array.device.id)

    def beside(self, array: cupy.ndarray) -> cupy.cuda.Device | None:
        """The array's device, to enter; None if it is the current one."""
        return None if array.device.id == cupy.cuda.runtime.getDevice() else array.device

    def on(self, target: device) -> cupy.cuda.Device | None:
        return None if target.index == cupy.cuda.runtime.getDevice() else _cuda_device(target)

    def make_current(self, array: cupy.ndarray) -> None:
        array.device.use()

    def from_host(self, array: np.ndarray[Any, Any], target: device, non_blocking: bool = False) -> cupy.ndarray:
        with _cuda_device(target):
            if cupy.cuda.get_current_stream().is_capturing():  # a replay would copy what is no longer there
                raise DeviceError(
                    "this cannot be part of a CUDA graph: a copy from the host, while the stream is capturing",
                    mend="copy to the device before the capture, and write into that tensor before each replay",
                )
            return self._uploads.upload(array, non_blocking)

    def pin(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A copy in memory of the host's that the GPU reads by itself."""
        return pinned(array)

    def is_pinned(self, array: np.ndarray[Any, Any]) -> bool:
        return is_pinned(array)

    def to_host(self, array: cupy.ndarray) -> np.ndarray[Any, Any]:
        return cupy.asnumpy(array)

    def transfer(self, array: cupy.ndarray, target: device) -> cupy.ndarray:
        with array.device:
            if not (array.flags.c_contiguous or array.flags.f_contiguous):
                array = cupy.ascontiguousarray(array)  # CuPy copies nothing else to another device
            computed = _moment()
        with _cuda_device(target):
            cupy.cuda.get_current_stream().wait_event(computed)
            made = cupy.array(array)  # a copy in the target's memory; asarray would keep the source's
            copied = _moment()
        with array.device:
            cupy.cuda.get_current_stream().wait_event(copied)  # before its memory is given to another array
        return made

    @contextmanager
    def linalg_errors(self) -> Iterator[None]:
        """Within the block, cuSOLVER is asked whether it failed; by default CuPy gives what it left, whatever it is.

        Raises:  DeviceError where cuSOLVER is missing or too old
        """
        try:
            with cupyx.errstate(linalg="raise"):
                yield
        except ImportError as error:
            raise DeviceError(
                f"linear algebra on a GPU needs cuSOLVER and cuSPARSE: {error}", mend=packages()
            ) from error
        except RuntimeError as error:
            if "is not available" not in str(error):  # as of geev, which came with CUDA 12.6
                raise
            raise DeviceError(f"this cuSOLVER is too old: {error}", mend=packages()) from error

    def is_capturing(self) -> bool:
        return bool(cupy.cuda.get_current_stream().is_capturing())

    def compile_kernel(self, source: str, name: str, options: Sequence[str] = ()) -> Callable[..., None]:
        """The kernel `name` of a source, as `tallow.cuda.compile_kernel` has it: compiled by NVRTC for the card that is
        there, or taken from CuPy's cache on disk.

        Raises:  KernelCompileError, with what the compiler says
        """
        functions: dict[int, Any] = {}  # by device: each loads its own

        def load() -> Any:
            module = cupy.RawModule(code=with_headers(source), options=("-std=c++17", *options))
            try:
                return module.get_function(name)
            except cupy.cuda.compiler.CompileException as error:
                raise KernelCompileError(f"{name}: the kernel does not compile:\n{error.get_message()}") from error
            except cupy.cuda.driver.CUDADriverError as error:
                raise KernelCompileError(
                    f"the source has no kernel {name!r}: {error}", mend='declare it extern "C" __global__ void'
                ) from error

        functions[cupy.cuda.runtime.getDevice()] = load()

        def run(grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared_mem: int = 0) -> None:
            index = cupy.cuda.runtime.getDevice()
            function = functions.get(index)
            if function is None:
                function = functions[index] = load()
            if shared_mem > SHARED_WITHOUT_ASKING and function.max_dynamic_shared_size_bytes < shared_mem:
                function.max_dynamic_shared_size_bytes = shared_mem
            function(grid, block, tuple(map(argument, args)), shared_mem=shared_mem)

        return run

    graph_pool = staticmethod(graph_pool)

    def prepare_capture(self) -> None:
        """Make what the current stream has to have before it captures a graph."""
        self.cublas.prepare()

    def compute_capability(self) -> tuple[int, int]:
        """That of the current device: (8, 0) is Ampere's, (9, 0) Hopper's."""
        digits = cupy.cuda.Device().compute_capability
        return int(digits[:-1]), int(digits[-1])

    def multiprocessors(self) -> int:
        """How many the current device has."""
        return _attribute("MultiProcessorCount", cupy.cuda.runtime.getDevice())

    def shared_bytes(self) -> tuple[int, int]:
        """Of shared memory, that a block can have on the current device, and that the blocks of a multiprocessor have
        together: 64 KiB each on compute capability 7.5, 227 and 228 on 9.0."""
        current = cupy.cuda.runtime.getDevice()
        together = _attribute("MaxSharedMemoryPerMultiprocessor", current)
        return _attribute("MaxSharedMemoryPerBlockOptin", current), together

    def allow_tf32(self, allowed: bool) -> None:
        """Whether products of float32 matrices may be of ten bits of precision, on tensor cores."""
        self.cublas.allow_tf32 = allowed
        linalg = cupy._core._routines_linalg  # CuPy's own switch is an environment variable, read once
        kind = linalg.COMPUTE_TYPE_TF32 if allowed else linalg.COMPUTE_TYPE_DEFAULT
        linalg.set_compute_type(np.float32, kind)


def _moment() -> cupy.cuda.Event:
    """When all is done that the current stream was given so far."""
    return cupy.cuda.get_current_stream().record(cupy.cuda.Event(disable_timing=True))


@cache
def _attribute(name: str, index: int) -> int:
    runtime = cupy.cuda.runtime  # Device().attributes asks for all of them
    return int(runtime.deviceGetAttribute(getattr(runtime, f"cudaDevAttr{name}"), index))


@cache
def _device(index: int) -> device:
    return device("cuda", index)


def _cuda_device(target: device) -> cupy.cuda.Device:
    count = cupy.cuda.runtime.getDeviceCount()
    if target.index is not None and target.index >= count:
        raise DeviceError(f"there is no device {str(target)!r}", mend=f"the last one is 'cuda:{count - 1}'")
    return cupy.cuda.Device(target.index)
