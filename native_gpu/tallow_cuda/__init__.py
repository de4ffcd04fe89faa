"""The device `cuda`: CuPy behind tallow's device hooks.

`tallow.devices` imports this package and calls `register` on the first use of `cuda`; nothing in tallow imports it by
name, and only this package imports CuPy. Ops then run unchanged on CuPy arrays.
"""

from __future__ import annotations

import os
import sys
from functools import cache, partial
from types import ModuleType
from typing import Any

from tallow import backends
from tallow.devices import Backend, register_backend
from tallow.dtypes import CONVERTERS
from tallow.errors import DeviceError
from tallow.extras import install_command
from tallow.kernels import register_provider, run


@cache  # programs ask again and again whether there is a GPU
def packages() -> str:
    """Return a hint: the commands that install or update the dependencies of the CUDA path."""
    cuda12, cuda13 = (
        install_command(f"cuda{version}", otherwise=f"cupy-cuda{version}x").replace("install", "install -U", 1)
        for version in (12, 13)
    )
    return f"nvidia-smi shows the CUDA version; for CUDA 12: {cuda12}; for CUDA 13: {cuda13}"


def register() -> None:
    """Register `cuda` as a device of this process.

    Raises: DeviceError when CuPy, the driver or a GPU is missing.
    """
    cupy = _import_cupy()
    _require_gpu(cupy)
    from tallow_cuda.backend import CupyBackend  # not at the top: it imports CuPy

    backend = CupyBackend()
    if backends.cuda.matmul.allow_tf32:  # set before the device was registered
        backend.allow_tf32(True)
    register_backend(backend)
    register_kernels(backend)
    refuse_after_fork(backend)


def refuse_after_fork(backend: Backend) -> None:
    """In processes forked from this one, replace the backend by one that raises: CUDA does not work there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: register_backend(_Forked(backend)))


class _Forked:
    """A backend whose every use raises DeviceError."""

    def __init__(self, backend: Backend) -> None:
        self.type, self.array_type, self.several = backend.type, backend.array_type, False

    def __getattr__(self, name: str) -> Any:
        raise DeviceError(
            "a process that was forked from one that uses CUDA cannot use CUDA",
            hint="in a dataset, keep tensors on the CPU; or start workers with multiprocessing_context='spawn'",
        )


def register_kernels(backend: Backend) -> None:
    """Register the kernels for ops on this backend's arrays. Each is compiled on first use."""
    CONVERTERS[backend.array_type] = partial(run, "cast_half")
    register_provider("cuda", _provide)


def _provide() -> dict[str, str]:
    from tallow_cuda import bindings as bindings  # each module registers what it binds

    return {}


def _import_cupy() -> ModuleType:
    if sys.platform == "emscripten":
        raise DeviceError("a browser tab has no CUDA", hint="use device='cpu'")
    try:
        import cupy  # optional: extras cuda12 and cuda13
    except ImportError as error:
        raise DeviceError(
            f"device 'cuda' needs CuPy: {error}",
            hint=packages(),
        ) from error
    return cupy


def _require_gpu(cupy: ModuleType) -> None:
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        has, wants = runtime.driverGetVersion(), runtime.runtimeGetVersion()  # 0 without a driver, 12090 for 12.9
        if 0 < has < wants:
            raise DeviceError(
                f"the NVIDIA driver is too old: it is for CUDA {_version(has)}, CuPy for {_version(wants)}: {error}",
                hint="update the driver, or install tallow's extra for its version, cuda12 or cuda13",
            ) from error
        raise DeviceError(
            f"device 'cuda' needs an NVIDIA GPU and its driver: {error}",
            hint="install NVIDIA's driver, until nvidia-smi lists a GPU; or use device='cpu'",
        ) from error
    if count == 0:
        raise DeviceError("device 'cuda' needs an NVIDIA GPU, and none is visible", hint="check CUDA_VISIBLE_DEVICES")


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
