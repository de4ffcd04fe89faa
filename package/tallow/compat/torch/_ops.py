"""torch._ops: the classes of `torch.ops`."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import tallow
from tallow.compat import core_ops
from tallow.compat.absent import absent
from tallow.compat.libraries import load_library
from tallow.compat.registry import OPS, existing
from tallow.core.overloads import OpOverloadPacket, packet_of
from tallow.core.tensor import Tensor
from tallow.errors import MissingNameError
from tallow.nn import functional


class _OpNamespace:
    """The ops of a namespace that programs have defined."""

    def __init__(self, name: str) -> None:
        self.name = self.__name__ = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise MissingNameError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        return packet_of(f"{self.name}::{name}", self._find(name))

    def _find(self, name: str) -> Callable[..., Any]:
        return existing(self.name, name)

    def __dir__(self) -> list[str]:
        prefix = f"{self.name}::"
        return sorted({name.removeprefix(prefix) for name in OPS if name.startswith(prefix)})


def _convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    *flags: object,
) -> Any:
    """Compute a convolution with any number of dims, which has a function of its own for each here."""
    dims = f"{weight.ndim - 2}d"
    if transposed:
        transpose = getattr(functional, f"conv_transpose{dims}")
        return transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return getattr(functional, f"conv{dims}")(input, weight, bias, stride, padding, dilation, groups)


# Ops of PyTorch's core that have another name among tallow's functions.
_ALIASES: dict[str, Callable[..., Any]] = {
    "_to_copy": lambda self, **options: self.to(**options, copy=True),
    "_unsafe_view": lambda self, size: self.reshape(size),
    "_softmax": lambda self, dim, half_to_float: functional.softmax(self, dim),
    "_log_softmax": lambda self, dim, half_to_float: functional.log_softmax(self, dim),
    "_convolution": _convolution,
    "convolution": _convolution,
    "_sparse_addmm": lambda self, mat1, mat2, *, beta=1, alpha=1: self.mul(beta) + (mat1 @ mat2).mul(alpha),
    "_sparse_mm_reduce_impl": absent("torch.ops.aten._sparse_mm_reduce_impl", "multiply by a sparse tensor with @"),
    "index": lambda self, indices: self[tuple(slice(None) if index is None else index for index in indices)],
    "_pin_memory": lambda self, device=None: self.pin_memory(),
    "_local_scalar_dense": lambda self: self.item(),
    "alias": lambda self: self.view_as(self),
    "lift_fresh": lambda self: self,
    "slice": lambda self, dim=0, start=None, end=None, step=1: _sliced(self, dim, slice(start, end, step)),
    "sym_size": lambda self, dim: self.shape[dim],
}


def _sliced(tensor: Tensor, dim: int, part: slice) -> Any:
    index: list[slice] = [slice(None)] * tensor.ndim
    index[dim] = part
    return tensor[tuple(index)]


class _Core(_OpNamespace):
    """The ops of PyTorch's core: tallow's functions of their names, and those that programs add."""

    def _find(self, name: str) -> Callable[..., Any]:
        if f"{self.name}::{name}" in OPS and OPS[f"{self.name}::{name}"].functions:
            return existing(self.name, name)
        return core_function(name) or existing(self.name, name)


def core_function(name: str) -> Callable[..., Any] | None:
    """Return tallow's function for an op of PyTorch's core, if it has one."""
    if name in _ALIASES:
        return _ALIASES[name]
    for home in (core_ops, tallow, functional, Tensor):
        found = getattr(home, name, None)
        if callable(found) and (home is not core_ops or found.__module__ == core_ops.__name__):
            function: Callable[..., Any] = found
            return function
    return None


def _compiled(path: str | os.PathLike[str]) -> OSError:
    return OSError(f"{os.fspath(path)} is compiled for PyTorch: tallow, which stands in for torch here, cannot load it")


class _Ops:
    """torch.ops: the namespaces of ops."""

    def __init__(self) -> None:
        self.loaded_libraries: set[str] = set()

    def __getattr__(self, name: str) -> _OpNamespace:
        if name.startswith("__"):
            raise MissingNameError(f"module 'torch.ops' has no attribute {name!r}")
        if name == "profiler":  # its ops are functions of this module
            importlib.import_module("tallow.compat.torch.autograd.profiler")
        namespace = _Core(name) if name in ("aten", "prims") else _OpNamespace(name)
        self.__dict__[name] = namespace
        return namespace

    def load_library(self, path: str | os.PathLike[str]) -> None:
        """Register the functions that tallow has for the ops of a library.

        Raises: OSError if there are none: libraries are compiled for PyTorch.
        """
        if not load_library(os.fspath(path)):
            raise _compiled(path)


class _Classes:
    """torch.classes: classes of libraries in C++, of which there is none."""

    def __init__(self) -> None:
        self.loaded_libraries: set[str] = set()

    def load_library(self, path: str | os.PathLike[str]) -> None:
        """Raise OSError: libraries are compiled for PyTorch."""
        raise _compiled(path)


ops, classes = _Ops(), _Classes()


class HigherOrderOperator:
    """The base class of functions of functions, for graphs."""

    def __init__(self, name: str, **options: Any) -> None:
        self._name, self._options = name, options
