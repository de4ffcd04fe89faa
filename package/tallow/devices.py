"""Devices: where arrays live, and which array library serves them.

`cpu` is NumPy. Any other device is served by a `Backend` that registers itself here; `cuda` is looked for in the
package `tallow_cuda` on first use. Nothing above this module knows which library an array comes from.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np

from tallow.dtypes import Array
from tallow.errors import ArgumentTypeError, DeviceError


class device:
    """A device's type and index: `device("cuda:1")`, `device("cuda", 1)`. Equal ones compare equal.

    `with device("cuda"):` puts new tensors there that name no device.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: str | int | device, index: int | None = None) -> None:
        name = f"cuda:{type}" if isinstance(type, int) else str(type)
        match = re.fullmatch(r"([a-z_]+)(?::(\d+))?", name)
        if match is None or (match[2] and index is not None):
            raise DeviceError(f"{name!r} does not name a device", mend="use 'cpu', 'cuda' or 'cuda:1'")
        self.type = match[1]
        self.index = int(match[2]) if match[2] else index

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


class _Default(threading.local):
    """Where new tensors go that name no device; None for the CPU. Each thread has its own."""

    device: device | None = None

    def __init__(self) -> None:
        self.outside: list[device | None] = []  # what it was outside of the blocks that the thread is in


default = _Default()


class Backend(Protocol):
    """What an array library must offer to serve a device."""

    type: str
    array_type: Any  # the class of its arrays
    module: Any  # the NumPy-like module whose functions take these arrays

    def device_of(self, array: Array) -> device: ...
    def from_host(self, array: np.ndarray[Any, Any], target: device, non_blocking: bool = False) -> Array: ...
    def to_host(self, array: Array) -> np.ndarray[Any, Any]: ...
    def transfer(self, array: Array, target: device) -> Array: ...
    def linalg_errors(self) -> AbstractContextManager[None]: ...
    def is_capturing(self) -> bool: ...


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


def chosen(given: device | str | int | None) -> device:
    """The device that was given, or the default one."""
    return (default.device or CPU) if given is None else device(given)


PROVIDERS = {"cuda": "tallow_cuda", "meta": "tallow.meta"}  # device type -> the package that registers it when imported
_BY_TYPE: dict[str, Backend] = {}
_BY_ARRAY: dict[type, Backend] = {}


# By class of array, the backends that serve several devices. Libraries compute on the one that is current, so that the
# arrays' has to be made so. It is empty as a rule, and asked first: then nobody pays for it.
SEVERAL: dict[type, Any] = {}


def register_backend(backend: Backend) -> None:
    _BY_TYPE[backend.type] = backend
    _BY_ARRAY[backend.array_type] = backend
    if getattr(backend, "several", False):
        SEVERAL[backend.array_type] = backend


def beside(args: Iterable[Any]) -> AbstractContextManager[Any] | None:
    """A block in which the device of the first array or tensor is the current one; None if it is so already."""
    for x in args:
        if isinstance(x, list | tuple):
            found = beside(x)
            if found is not None:
                return found
            continue
        array = getattr(x, "array", x)
        backend = SEVERAL.get(type(array))
        if backend is not None:
            return backend.beside(array)
    return None


def on(target: device) -> AbstractContextManager[Any] | None:
    """As `beside`, for a device that is named."""
    backend = next((b for b in SEVERAL.values() if b.type == target.type), None)
    return None if backend is None or target.index is None else backend.on(target)


def make_current(array: Array) -> None:
    """Let the array's device be the current one, until another is."""
    backend = SEVERAL.get(type(array))
    if backend is not None:
        backend.make_current(array)


register_backend(_Cpu())


def registered(type: str) -> Backend | None:
    """The backend of a device type that has been used."""
    return _BY_TYPE.get(type)


def get_backend(type: str) -> Backend:
    """The backend of a device type, imported on first use.

    Raises: DeviceError when the device type is unknown, or its library or hardware is missing.
    """
    if type not in _BY_TYPE:
        if type not in PROVIDERS:
            known = ", ".join(sorted({*_BY_TYPE, *PROVIDERS}))
            raise DeviceError(f"no device of type {type!r}", mend=f"use one of: {known}")
        importlib.import_module(PROVIDERS[type]).register()
    return _BY_TYPE[type]


def available(type: str) -> Backend | None:
    """The backend of a device type; None where its library or hardware is missing."""
    try:
        return get_backend(type)
    except DeviceError:
        return None


def backend_of(array: Array) -> Backend:
    found = _BY_ARRAY.get(type(array))
    if found is None:
        for array_type, backend in _BY_ARRAY.items():  # a subclass, such as numpy.memmap
            if isinstance(array, array_type):
                return backend
        raise ArgumentTypeError(f"{type(array).__name__} is not an array of a known device")
    return found


def is_array(x: Any) -> bool:
    return type(x) in _BY_ARRAY or isinstance(x, tuple(_BY_ARRAY))


def array_module(*operands: Any) -> Any:
    """NumPy, or the module of the first operand that lives elsewhere. Numbers and None count as NumPy's."""
    for x in operands:
        if type(x) is not np.ndarray:
            backend = _BY_ARRAY.get(type(x))
            if backend is not None:
                return backend.module
    return np


def device_of(array: Array) -> device:
    return CPU if type(array) is np.ndarray else backend_of(array).device_of(array)


def device_type_of(array: Array) -> str:
    return "cpu" if type(array) is np.ndarray else backend_of(array).type


def to_host(array: Array) -> np.ndarray[Any, Any]:
    """The array in NumPy's memory, once the device has computed it; the same object if it is there already."""
    return array if type(array) is np.ndarray else backend_of(array).to_host(array)


def linalg_errors(array: Array) -> AbstractContextManager[None]:
    """A block in which the linear algebra of the array's library raises numpy.linalg.LinAlgError where it fails."""
    return backend_of(array).linalg_errors()


def is_capturing(array: Array) -> bool:
    """Whether what is computed from the array now goes into a CUDA graph, which holds nothing that the host gives."""
    return type(array) is not np.ndarray and backend_of(array).is_capturing()


def is_on(array: Array, target: device) -> bool:
    """Whether the array is there already; a target without an index is any device of its type."""
    backend = backend_of(array)
    if backend.type != target.type or target.index is None:
        return backend.type == target.type
    return backend.device_of(array).index in (None, target.index)  # None: the CPU is one


def move(array: Array, target: device, non_blocking: bool = False) -> Array:
    """The array on `target`; the same object if it is there already.

    Args:  non_blocking: do not wait for a copy out of pinned memory
    """
    backend = get_backend(target.type)
    if is_on(array, target):
        return array
    source = backend_of(array)
    if source.type == target.type:
        return backend.transfer(array, target)
    return backend.from_host(source.to_host(array), target, non_blocking)
