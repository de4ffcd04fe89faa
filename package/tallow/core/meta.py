"""Device "meta": tensors with a shape and a dtype, and no memory.

A model created on it uses no memory. Loading a checkpoint replaces these arrays with those of the file. Computing with
a tensor that is still on this device raises DeviceError, so a weight that was never loaded does not go unnoticed.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import numpy as np

from tallow import devices
from tallow.errors import DeviceError, ShapeError
from tallow.kernels.table import PREFERENCE


class MetaArray(np.ndarray[Any, Any]):
    """An array of any shape with one element, repeated by strides of zero."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> NoReturn:
        raise _no_data(ufunc.__name__)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> NoReturn:
        raise _no_data(func.__name__)


def empty(shape: tuple[int, ...], dtype: Any) -> MetaArray:
    """Return an array with this shape and dtype, and no memory."""
    try:
        return np.broadcast_to(np.zeros((), dtype), shape).view(MetaArray)
    except ValueError as error:
        raise ShapeError(f"a tensor of shape {shape} exceeds what this platform can address: {error}") from error


def _no_data(what: str) -> DeviceError:
    return DeviceError(f"{what}: a tensor on device 'meta' has no data", hint="load the model's weights first")


class _Meta:
    type = "meta"
    array_type = MetaArray
    module = sys.modules[__name__]

    def device_of(self, array: Any) -> devices.device:
        return devices.device("meta")

    def from_host(self, array: np.ndarray[Any, Any], target: devices.device, non_blocking: bool = False) -> MetaArray:
        return empty(array.shape, array.dtype)

    def to_host(self, array: Any) -> NoReturn:
        raise _no_data("copy")

    def transfer(self, array: Any, target: devices.device) -> Any:
        return array

    def linalg_errors(self) -> AbstractContextManager[None]:
        return nullcontext()

    def is_capturing(self) -> bool:
        return False


def register() -> None:
    """Register the device."""
    devices.register_backend(_Meta())
    PREFERENCE["meta"] = ()


def __getattr__(name: str) -> NoReturn:
    """Raise DeviceError for any function that an op looks up in its array module."""
    raise AttributeError(name) if name.startswith("__") else _no_data(name)
