"""Names of `torch` that tallow itself does not have.

This folder is the room of the stand-in: each file is named as the module of PyTorch whose names it has. It is imported
only while `tallow.compat` is installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import tallow
from tallow.compat.absent import absent, refusal
from tallow.compat.core_ops import (  # noqa: F401 - names of torch
    _batch_norm_no_update,
    _batch_norm_with_update,
    _chunk_cat,
    _log_softmax_backward_data,
    _native_batch_norm_legit,
    _safe_softmax,
    _softmax_backward_data,
    _unsafe_masked_index,
    _unsafe_masked_index_put_accumulate,
)
from tallow.compat.foreach import foreach
from tallow.compat.stand_in import is_module
from tallow.compat.symbols import cond, sym_float, sym_int, sym_ite, sym_max, sym_min, sym_not, sym_sum
from tallow.compat.torch import _C
from tallow.compat.torch._C import TensorType
from tallow.compat.typed_storages import STORAGES
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentTypeError, DeviceError, MissingNameError
from tallow.functions.storage import UntypedStorage
from tallow.functions.typed_storage import TypedStorage

__file__ = tallow.__file__
AcceleratorError = DeviceError  # for `except` clauses
PyTorchFileReader = absent("torch.PyTorchFileReader", "torch.load(path, mmap=True) reads only what is used")


class SymInt:
    """An unknown size of a program that is being exported. Sizes are known here, so no object is one."""


class SymFloat:
    """An unknown number of a program that is being exported. Numbers are known here, so no object is one."""


class SymBool:
    """An unknown condition of a program that is being exported. Conditions are known here, so no object is one."""


def _assert_async(condition: Tensor, message: str = "Expected Tensor to be nonzero") -> None:
    """Raise RuntimeError with the message if the only element is zero."""
    if not condition.item():
        raise RuntimeError(message)


def _check(cond: Any, message: Callable[[], str] | None = None) -> None:
    """Raise RuntimeError with the text of `message` unless the condition is true."""
    _check_with(RuntimeError, cond, message)


def _check_with(error_type: type[Exception], cond: Any, message: Callable[[], str] | None = None) -> None:
    if not isinstance(cond, bool):
        raise ArgumentTypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        raise error_type(str(message()) if message else "Expected cond to be True, but got False")


def _check_index(cond: Any, message: Callable[[], str] | None = None) -> None:
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Callable[[], str] | None = None) -> None:
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Callable[[], str] | None = None) -> None:
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Callable[[], str] | None = None) -> None:
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all(cond: Tensor, message: Callable[[], str] | None = None) -> None:
    """Raise RuntimeError with the text of `message` unless every element is true."""
    _check(_is_all_true(cond), message)


def _is_all_true(condition: Tensor) -> Any:
    return bool(condition.all())


def _shape_as_tensor(input: Tensor) -> Tensor:
    return tallow.tensor(list(input.shape), dtype=tallow.int64)


def get_device_module(device: Any = None) -> Any:
    """Return the module of a device's functions, such as `torch.cuda`; that of the GPU, if there is one, for None.

    Raises: RuntimeError if there is none for the device.
    """
    kind = tallow.device(device).type if device is not None else "cuda" if tallow.cuda.is_available() else "cpu"
    if not is_module(name := f"torch.{kind}"):
        raise DeviceError(f"Device {kind!r} does not have a corresponding module registered as {name!r}")
    return importlib.import_module(name)


def is_storage(obj: Any) -> bool:
    """Return whether an object is the storage of a tensor."""
    return isinstance(obj, UntypedStorage | TypedStorage)


def set_flush_denormal(mode: bool) -> bool:
    """Return False: the processor's treatment of subnormal numbers stays as it is, as on systems without the choice."""
    return False


def set_warn_always(b: bool) -> None:
    """Accept False. Raises: UnsupportedError for True: Python's filters decide how often a warning appears"""
    if b:
        raise refusal("torch.set_warn_always", hint="warnings.simplefilter('always')")


def is_warn_always_enabled() -> bool:
    """Return False: Python's filters decide how often a warning appears."""
    return False


def __getattr__(name: str) -> Any:
    if name.startswith("_foreach_"):
        return foreach(name)
    if name in STORAGES:
        return STORAGES[name]
    if not name.startswith("_") and name in vars(_C):  # as PyTorch has those of its extension module
        return vars(_C)[name]
    raise MissingNameError(f"module {__name__!r} has no attribute {name!r}")


def typename(obj: Any, /) -> str:
    """Return the name of a tensor's type, or of an object's class, with its module."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", None)
    return kind.__qualname__ if module in (None, "builtins") else f"{module}.{kind.__qualname__}"


__all__ = [
    "AcceleratorError",
    "SymBool",
    "SymFloat",
    "SymInt",
    "TensorType",
    "_assert_async",
    "_check",
    "_check_index",
    "_check_not_implemented",
    "_check_tensor_all",
    "_check_type",
    "_check_value",
    "_check_with",
    "_is_all_true",
    "_shape_as_tensor",
    "cond",
    "get_device_module",
    "is_storage",
    "is_warn_always_enabled",
    "set_flush_denormal",
    "set_warn_always",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sum",
    "typename",
]
