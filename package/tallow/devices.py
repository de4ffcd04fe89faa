"""Devices, and the array libraries that serve them.

`cpu` is NumPy. Other devices are served by a `Backend` that registers itself here; `cuda` is imported from the package
`tallow_cuda` at first use. The modules above this one work with the arrays of any backend.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, wraps
from typing import Any, Protocol, TypeVar

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ArgumentTypeError, DeviceError

F = TypeVar("F", bound=Callable[..., Any])


class device:
    """A device type and index: `device("cuda:1")`, `device("cuda", 1)`.

    `with device("cuda"):` makes it the device of new tensors that are created without one.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: str | int | device, index: int | None = None) -> None:
        name = f"cuda:{type}" if isinstance(type, int) else str(type)
        self.type, named = parsed(name)
        if named is not None and index is not None:
            raise _no_device(name)
        self.index = index if named is None else named

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + ("" if self.index is None else f", index={self.index}") + ")"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)

    def __enter__(self) -> device:
        default.outside.append(default.device)
        default.device = self
        return self

    def __exit__(self, *exc_info: object) -> None:
        default.device = default.outside.pop()


# A device of each can be named; whether anything serves it is known when a tensor is put there.
PYTORCHS_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip


@lru_cache(maxsize=64)
def parsed(name: str) -> tuple[str, int | None]:
    """Return the type and the index in the name of a device.  Raises: DeviceError"""
    match = re.fullmatch(r"([a-z_]+)(?::(\d+))?", name)
    if match is None:
        raise _no_device(name)
    if match[1] not in PYTORCHS_TYPES and match[1] not in PROVIDERS and match[1] not in _BY_TYPE:
        raise _unknown(match[1])
    return match[1], int(match[2]) if match[2] else None


def _unknown(type: str) -> DeviceError:
    return DeviceError(
        f"Expected one of {', '.join(PYTORCHS_TYPES)} device type at start of device string; "
        f"no device of type {type!r}",
        hint=f"use one of: {', '.join(sorted({*_BY_TYPE, *PROVIDERS}))}",
    )


def _no_device(name: str) -> DeviceError:
    return DeviceError(f"{name!r} does not name a device", hint="use 'cpu', 'cuda' or 'cuda:1'")


class _Default(threading.local):
    """The device of new tensors that are created without one; None is the CPU. Each thread has its own."""

    device: device | None = None

    def __init__(self) -> None:
        self.outside: list[device | None] = []  # the default outside of each block that the thread is in


default = _Default()


class Backend(Protocol):
    """The interface of an array library that serves a device."""

    type: str
    array_type: Any  # the class of its arrays
    module: Any  # the NumPy-like module whose functions take these arrays

    def device_of(self, array: Array) -> device:
        """Return the device that holds an array."""

    def from_host(self, array: np.ndarray[Any, Any], target: device, non_blocking: bool = False) -> Array:
        """Copy a NumPy array to a device; `non_blocking` does not wait if its memory is pinned."""

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        """Return the elements as a NumPy array; on the CPU the array itself."""

    def transfer(self, array: Array, target: device) -> Array:
        """Copy an array to another device of this backend."""

    def linalg_errors(self) -> AbstractContextManager[None]:
        """Return a context in which failing decompositions raise `numpy.linalg.LinAlgError`."""

    def is_capturing(self) -> bool:
        """Return whether computations are captured in a CUDA graph now."""


class _Cpu:
    type = "cpu"
    array_type: Any = np.ndarray
    module: Any = np

    def device_of(self, array: Array) -> device:
        return CPU

    def from_host(self, array: np.ndarray[Any, Any], target: device, non_blocking: bool = False) -> Array:
        return array

    def to_host(self, array: Array) -> np.ndarray[Any, Any]:
        return array

    def transfer(self, array: Array, target: device) -> Array:
        return array

    def linalg_errors(self) -> AbstractContextManager[None]:
        return nullcontext()

    def is_capturing(self) -> bool:
        return False


CPU = device("cpu")


def chosen(spec: device | str | int | None) -> device:
    """Return the device, or the default device for None."""
    if spec is None:
        return default.device or CPU
    return spec if type(spec) is device else device(spec)


# Device type -> the module that registers its backend when imported.
PROVIDERS = {"cuda": "tallow_cuda", "meta": "tallow.core.meta"}
_BY_TYPE: dict[str, Backend] = {}
_BY_ARRAY: dict[type, Backend] = {}
_STAND_INS: set[type] = set()


# Class of array -> backend, for backends that serve several devices. Their libraries compute on the current device, so
# the device of the arrays must be current. Usually this is empty; callers check it first, so that one device costs
# nothing. Computation enters by `apply`, `kernels.run`, `backward` or an optimizer's step, which guard; functions that
# compute on arrays directly are `guarded`.
MULTI_DEVICE: dict[type, Any] = {}


def register_backend(backend: Backend) -> None:
    """Register the backend of a device type."""
    _BY_TYPE[backend.type] = backend
    _BY_ARRAY[backend.array_type] = backend
    if getattr(backend, "several", False):
        MULTI_DEVICE[backend.array_type] = backend


def register_arrays(backend: Any) -> None:
    """Register what stands for arrays of other devices, such as those of tensors under vmap."""
    _BY_ARRAY[backend.array_type] = backend
    _STAND_INS.add(backend.array_type)


def has_elements(array: Array) -> bool:
    """Return whether an array holds numbers, and does not just stand for arrays that do."""
    return type(array) not in _STAND_INS


def guard_for(args: Iterable[Any]) -> AbstractContextManager[Any] | None:
    """Return a block that makes the device of the first array or tensor current; None if it is current already."""
    for x in args:
        if isinstance(x, list | tuple):
            guard = guard_for(x)
            if guard is not None:
                return guard
            continue
        array = getattr(x, "array", x)
        backend = MULTI_DEVICE.get(type(array))
        if backend is not None:
            return backend.guard(array)
    return None


def guard_on(target: device) -> AbstractContextManager[Any] | None:
    """Return a block that makes a named device current; None if it is current already."""
    backend = next((b for b in MULTI_DEVICE.values() if b.type == target.type), None)
    return None if backend is None or target.index is None else backend.guard_on(target)


def guarded(function: F) -> F:
    """Run a function with the device of its first tensor current. For functions that compute on arrays directly."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        guard = guard_for((*args, *kwargs.values())) if MULTI_DEVICE else None
        if guard is None:
            return function(*args, **kwargs)
        with guard:
            return function(*args, **kwargs)

    return run  # type: ignore[return-value]


def make_current(array: Array) -> None:
    """Make the array's device the current one, until another is."""
    backend = MULTI_DEVICE.get(type(array))
    if backend is not None:
        backend.make_current(array)


register_backend(_Cpu())


def registered(type: str) -> Backend | None:
    """Return the backend of a device type if it has been used; else None."""
    return _BY_TYPE.get(type)


def get_backend(type: str) -> Backend:
    """Return the backend of a device type; import it at first use.

    Raises: DeviceError when the device type is unknown, or its library or hardware is missing.
    """
    if type not in _BY_TYPE:
        if type not in PROVIDERS:
            raise _unknown(type)
        importlib.import_module(PROVIDERS[type]).register()
    return _BY_TYPE[type]


def is_loaded(type: str) -> bool:
    """Return whether the backend of a device type has been used, and so may have work."""
    return type in _BY_TYPE


def available(type: str) -> Backend | None:
    """Return the backend of a device type; None if its library or hardware is missing."""
    try:
        return get_backend(type)
    except DeviceError:
        return None


def backend_of(array: Array) -> Backend:
    """Return the backend that an array belongs to."""
    exact = _BY_ARRAY.get(type(array))
    if exact is None:
        for array_type, backend in _BY_ARRAY.items():  # a subclass, such as numpy.memmap
            if isinstance(array, array_type):
                return backend
        raise ArgumentTypeError(f"{type(array).__name__} is not an array of a known device")
    return exact


def is_array(x: Any) -> bool:
    """Return whether x is an array of a known device."""
    return type(x) in _BY_ARRAY or isinstance(x, tuple(_BY_ARRAY))


def array_module(*operands: Any) -> Any:
    """Return the array library of the operands: that of the first one that is not a NumPy array, or NumPy."""
    for x in operands:
        if type(x) is not np.ndarray:
            backend = _BY_ARRAY.get(type(x))
            if backend is not None:
                return backend.module
    return np


def device_of(array: Array) -> device:
    """Return the device that holds an array."""
    return CPU if type(array) is np.ndarray else backend_of(array).device_of(array)


def device_type_of(array: Array) -> str:
    """Return the type of the device that holds an array."""
    return "cpu" if type(array) is np.ndarray else backend_of(array).type


def to_host(array: Array) -> np.ndarray[Any, Any]:
    """Return the array as a NumPy array, after waiting for the device; the same object if it is one already."""
    return array if type(array) is np.ndarray else backend_of(array).to_host(array)


def linalg_errors(array: Array) -> AbstractContextManager[None]:
    """Return a block in which the linear algebra of the array's library raises numpy.linalg.LinAlgError on failure."""
    return backend_of(array).linalg_errors()


def is_capturing(array: Array) -> bool:
    """Return whether computations on the array are captured in a CUDA graph, which cannot copy from the host."""
    return type(array) is not np.ndarray and backend_of(array).is_capturing()


def is_on(array: Array, target: device) -> bool:
    """Return whether the array is on the target. A target without an index means any device of its type."""
    backend = backend_of(array)
    if backend.type != target.type or target.index is None:
        return backend.type == target.type
    return backend.device_of(array).index in (None, target.index)  # None: the CPU is one


def move(array: Array, target: device, non_blocking: bool = False) -> Array:
    """Return the array on `target`; the same object if it is there already.

    Args:
        non_blocking: do not wait for a copy from pinned memory.
    """
    backend = get_backend(target.type)
    if is_on(array, target):
        return array
    source = backend_of(array)
    if source.type == target.type:
        return backend.transfer(array, target)
    return backend.from_host(source.to_host(array), target, non_blocking)
