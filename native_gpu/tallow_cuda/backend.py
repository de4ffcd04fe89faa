"""CuPy as a backend of `tallow.devices`: arrays on the GPU, and copies from and to them.

A bfloat16 tensor is a `uint16` array of bit patterns, as on the CPU, so copies move bytes and never convert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import cupy
import cupyx
import numpy as np

from tallow.devices import device
from tallow.errors import DeviceError, KernelCompileError
from tallow_cuda import overlapping, packages
from tallow_cuda.cublas import Cublas
from tallow_cuda.launching import argument
from tallow_cuda.memory import Memory, graph_pool
from tallow_cuda.sources import with_headers
from tallow_cuda.uploads import Uploads, is_pinned, pinned

if TYPE_CHECKING:
    from tallow.fused.steps import DecodeStep
    from tallow_cuda.decoding import GraphedStep

SHARED_WITHOUT_ASKING = 40 * 1024  # bytes of dynamic shared memory for any launch: 48 KiB less the static part


class CupyBackend:
    """Backend of `cuda` and `cuda:N`; without an index, the current CUDA device."""

    type = "cuda"
    array_type = cupy.ndarray
    module = cupy

    def __init__(self) -> None:
        self.kernels: dict[Any, Callable[..., None]] = {}  # compiled by tallow_cuda.sources
        self.cublas = Cublas()
        self.gemm = self.cublas.gemm
        pool = cupy.get_default_memory_pool()
        self.memory = Memory(pool)
        self._uploads = Uploads()
        if cupy.cuda.get_allocator() == pool.malloc:  # not if the program has set its own allocator
            cupy.cuda.set_allocator(self.memory.allocate)

        self.several = cupy.cuda.runtime.getDeviceCount() > 1

    def device_of(self, array: cupy.ndarray) -> device:
        """Return the device of an array."""
        return _device(array.device.id)

    def guard(self, array: cupy.ndarray) -> cupy.cuda.Device | None:
        """Return the array's device as a context manager; None if it is the current one."""
        return None if array.device.id == cupy.cuda.runtime.getDevice() else array.device

    def guard_on(self, target: device) -> cupy.cuda.Device | None:
        """Return the target device as a context manager; None if it is the current one."""
        return None if target.index == cupy.cuda.runtime.getDevice() else _cuda_device(target)

    def make_current(self, array: cupy.ndarray) -> None:
        """Make the array's device the current one."""
        array.device.use()

    def from_host(self, array: np.ndarray[Any, Any], target: device, non_blocking: bool = False) -> cupy.ndarray:
        """Copy a NumPy array to `target`.

        Raises: DeviceError during a graph capture.
        """
        with _cuda_device(target):
            if cupy.cuda.get_current_stream().is_capturing():  # a replay would copy from memory that is already freed
                raise DeviceError(
                    "this cannot be part of a CUDA graph: a copy from the host while the stream is capturing",
                    hint="copy to the device before the capture, and write into that tensor before each replay",
                )
            return self._uploads.upload(array, non_blocking)

    def pin(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return a copy in pinned host memory, which the GPU reads directly."""
        return pinned(array)

    def is_pinned(self, array: np.ndarray[Any, Any]) -> bool:
        """Return whether the array is in pinned memory."""
        return is_pinned(array)

    def to_host(self, array: cupy.ndarray) -> np.ndarray[Any, Any]:
        """Return a copy on the host."""
        return cupy.asnumpy(array)

    def transfer(self, array: cupy.ndarray, target: device) -> cupy.ndarray:
        """Copy an array to another GPU."""
        with array.device:
            if not (array.flags.c_contiguous or array.flags.f_contiguous):
                array = cupy.ascontiguousarray(array)  # CuPy copies only contiguous arrays to another device
            computed = _record_event()
        with _cuda_device(target):
            cupy.cuda.get_current_stream().wait_event(computed)
            copy = cupy.array(array)  # a copy in the target's memory; asarray would keep the source's
            copied = _record_event()
        with array.device:
            cupy.cuda.get_current_stream().wait_event(copied)  # before its memory is reused for another array
        return copy

    @contextmanager
    def linalg_errors(self) -> Iterator[None]:
        """Raise on cuSOLVER failures inside the block; by default CuPy returns an undefined result.

        Raises:  DeviceError if cuSOLVER is missing or too old
        """
        try:
            with cupyx.errstate(linalg="raise"):
                yield
        except ImportError as error:
            raise DeviceError(
                f"linear algebra on a GPU needs cuSOLVER and cuSPARSE: {error}", hint=packages()
            ) from error
        except RuntimeError as error:
            if "is not available" not in str(error):  # such as geev, which requires CUDA 12.6
                raise
            raise DeviceError(f"this cuSOLVER is too old: {error}", hint=packages()) from error

    def is_capturing(self) -> bool:
        """Return whether the current stream is capturing a graph."""
        return bool(cupy.cuda.get_current_stream().is_capturing())

    def compile_kernel(self, source: str, name: str, options: Sequence[str] = ()) -> Callable[..., None]:
        """Compile the kernel `name` of a source, as `tallow.cuda.compile_kernel` does.

        NVRTC compiles it for the current device, unless it is in CuPy's cache on disk.

        Raises:  KernelCompileError, with the compiler's messages
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
                    f"the source has no kernel {name!r}: {error}", hint='declare it extern "C" __global__ void'
                ) from error

        functions[cupy.cuda.runtime.getDevice()] = load()

        def run(
            grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared_mem: int = 0, overlaps: bool = False
        ) -> None:
            index = cupy.cuda.runtime.getDevice()
            function = functions.get(index)
            if function is None:
                function = functions[index] = load()
            if shared_mem > SHARED_WITHOUT_ASKING and function.max_dynamic_shared_size_bytes < shared_mem:
                function.max_dynamic_shared_size_bytes = shared_mem
            values = tuple(map(argument, args))
            if overlaps:
                stream = cupy.cuda.get_current_stream().ptr
                overlapping.launch(function.kernel.ptr, grid, block, values, shared_mem, stream)
            else:
                function(grid, block, values, shared_mem=shared_mem)

        return run

    def decode_runner(self, step: DecodeStep) -> GraphedStep:
        """Run the steps of a fused decoder as a CUDA graph; see `tallow.fused.steps`."""
        from tallow_cuda.decoding import GraphedStep  # `tallow.cuda` and what it imports, for decoding only

        return GraphedStep(step)

    graph_pool = staticmethod(graph_pool)

    def prepare_capture(self) -> None:
        """Create what the current stream needs before it captures a graph."""
        self.cublas.prepare()

    def can_overlap(self) -> bool:
        """Return whether kernels of a graph can overlap: on compute capability 9.0 or later, and with CUDA 12.3."""
        return self.compute_capability() >= (9, 0) and cupy.cuda.runtime.driverGetVersion() >= 12030

    def compute_capability(self) -> tuple[int, int]:
        """Return the compute capability of the current device: (8, 0) for Ampere, (9, 0) for Hopper."""
        digits = cupy.cuda.Device().compute_capability
        return int(digits[:-1]), int(digits[-1])

    def multiprocessors(self) -> int:
        """Return the number of multiprocessors of the current device."""
        return _attribute("MultiProcessorCount", cupy.cuda.runtime.getDevice())

    def shared_bytes(self) -> tuple[int, int]:
        """Return the shared memory that one block, and all blocks of a multiprocessor, can use on the current device.

        In bytes: 64 KiB each on compute capability 7.5, 227 and 228 KiB on 9.0.
        """
        current = cupy.cuda.runtime.getDevice()
        per_multiprocessor = _attribute("MaxSharedMemoryPerMultiprocessor", current)
        return _attribute("MaxSharedMemoryPerBlockOptin", current), per_multiprocessor

    def allow_tf32(self, allowed: bool) -> None:
        """Allow products of float32 matrices in TF32, with ten bits of precision, on tensor cores."""
        self.cublas.allow_tf32 = allowed
        linalg = cupy._core._routines_linalg  # CuPy's own switch is an environment variable, read once
        kind = linalg.COMPUTE_TYPE_TF32 if allowed else linalg.COMPUTE_TYPE_DEFAULT
        linalg.set_compute_type(np.float32, kind)


def _record_event() -> cupy.cuda.Event:
    """Record an event on the current stream, after all work submitted so far."""
    return cupy.cuda.get_current_stream().record(cupy.cuda.Event(disable_timing=True))


@cache
def _attribute(name: str, index: int) -> int:
    runtime = cupy.cuda.runtime  # Device().attributes queries all of them
    return int(runtime.deviceGetAttribute(getattr(runtime, f"cudaDevAttr{name}"), index))


@cache
def _device(index: int) -> device:
    return device("cuda", index)


def _cuda_device(target: device) -> cupy.cuda.Device:
    count = cupy.cuda.runtime.getDeviceCount()
    if target.index is not None and target.index >= count:
        raise DeviceError(f"device not found: {str(target)!r}", hint=f"the last one is 'cuda:{count - 1}'")
    return cupy.cuda.Device(target.index)
