"""Kernels that start while the kernels before them still run, by the driver's C interface: CuPy has no function for it.

A kernel of decoding takes a few microseconds, of which the start and the end take more than one, in which the card does
little. If kernels overlap, the next one reads its weights in that time; see src/memory.cuh.

Source:  NVIDIA, "CUDA C++ Programming Guide", programmatic dependent launch; "CUDA Driver API", cuLaunchKernelEx
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from tallow.devices import get_backend
from tallow.errors import DeviceError

PROGRAMMATIC_STREAM_SERIALIZATION = 6  # CUlaunchAttributeID


class Attribute(ctypes.Structure):
    """CUlaunchAttribute: an id, and a value of 64 bytes at a multiple of 8."""

    _fields_ = (("id", ctypes.c_int), ("value", ctypes.c_longlong * 8))


class Configuration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("attribute_count", ctypes.c_uint),
    )


class _State(threading.local):
    on = False


_state = _State()


@contextmanager
def overlapping() -> Iterator[None]:
    """Let the kernels of a captured graph overlap, those that wait for the kernels before them, if the card can.

    Until they wait, they read only weights. So the graph must not write weights.
    """
    backend: Any = get_backend("cuda")
    _state.on = backend.can_overlap()
    try:
        yield
    finally:
        _state.on = False


def is_on() -> bool:
    """Return whether kernels overlap."""
    return _state.on


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def launch(
    function: int, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared_bytes: int, stream: int
) -> None:
    """Launch a kernel that may overlap with those before it.

    Args:
        function, stream: the driver's handles.
        args: NumPy scalars, and arrays on the device.

    Raises:  DeviceError
    """
    values = [np.array(x if isinstance(x, np.generic) else np.uint64(x.data.ptr)) for x in args]
    pointers = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
    attribute = Attribute(PROGRAMMATIC_STREAM_SERIALIZATION, (1,))
    configuration = Configuration(_three(grid), _three(block), shared_bytes, stream, ctypes.pointer(attribute), 1)
    error = _driver().cuLaunchKernelEx(ctypes.byref(configuration), ctypes.c_void_p(function), pointers, None)
    if error:
        raise DeviceError(f"cuLaunchKernelEx returned {error}")


def _three(sizes: Sequence[int]) -> Any:
    return (ctypes.c_uint * 3)(*sizes, *[1] * (3 - len(sizes)))
