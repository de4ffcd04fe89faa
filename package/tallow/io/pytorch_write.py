"""Write PyTorch's zip format: what `torch.load(..., weights_only=True)` accepts, else any object that has a pickle."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor
from tallow.dtypes import Array
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.io import whole_objects
from tallow.io.atomic import atomic_write
from tallow.io.pickler import Call, Global, PersistentId, Pickler
from tallow.io.pytorch_names import STORAGE_OF, UNTYPED
from tallow.io.source import Path
from tallow.io.zip_archive import ZipWriter
from tallow.nn.parameter import Parameter
from tallow.ops.memory_format import strided

FOLDER = "archive"
VERSION = b"3\n"
ALIGNMENT = 64  # bytes, as in PyTorch


def save(value: Any, target: Path | BinaryIO) -> None:
    """Save tensors and plain containers, or any other object as a pickle.

    A path is replaced atomically at the end, or unchanged after an error.

    Tensors that share memory share a storage, as in PyTorch: elements between those of a strided view are written with
    it. A tensor whose strides PyTorch does not support (negative ones) is written as a copy. Attributes set on a tensor
    are not written.

    Args:
        target: a path, or a binary file.

    Raises:  PicklingError for an object without a pickle; ArgumentError for tensors without
        data, and for tensors that view the same memory as different dtypes
    """
    try:
        plan = _Plan(value, _plain)
    except ArgumentTypeError:
        plan = _Plan(value, whole_objects.dump)
    _write_to(target, plan)


def save_plain(value: Any, target: Path | BinaryIO) -> None:
    """Save tensors and plain containers, as `save`. Raises: ArgumentTypeError for any other object."""
    _write_to(target, _Plan(value, _plain))


def _write_to(target: Path | BinaryIO, plan: _Plan) -> None:
    if isinstance(target, str | os.PathLike):
        with atomic_write(target) as file:
            _write(plan, file)
    elif _is_seekable(target):
        _write(plan, target)
    else:
        _write(plan, content := io.BytesIO())
        target.write(content.getbuffer())


def _plain(value: Any, tensor: Callable[[Tensor], Call]) -> bytes:
    """Return the pickle of tensors and plain containers."""
    return Pickler(tensor).dump(value)


def _is_seekable(file: BinaryIO) -> bool:
    """Return whether a file knows its position; that of a member of a zip archive does not."""
    is_known = hasattr(file, "seek") and hasattr(file, "tell")
    return is_known and (not hasattr(file, "seekable") or file.seekable())


def _write(plan: _Plan, file: BinaryIO) -> None:
    with ZipWriter(file, ALIGNMENT) as archive:
        archive.add(f"{FOLDER}/data.pkl", plan.pickle)
        archive.add(f"{FOLDER}/byteorder", b"little")
        for key, storage in enumerate(plan.storages):
            archive.add(f"{FOLDER}/data/{key}", storage.content())
        archive.add(f"{FOLDER}/version", VERSION)


class _Span:
    """A tensor's array, and the addresses of its first and last bytes."""

    def __init__(self, tensor: Tensor) -> None:
        if tensor.device.type == "meta":
            raise ArgumentError("cannot save a tensor on device 'meta': it has no data", hint="load its weights first")
        array = tensor.array
        if any(step < 0 or step % array.itemsize for step in array.strides) and array.size:
            array = devices.array_module(array).ascontiguousarray(array)
        self.array: Array = array
        self.dtype = tensor.dtype
        self.device = tensor.device
        self.begin = array.ctypes.data if type(array) is np.ndarray else array.data.ptr
        steps = zip(array.shape, array.strides, strict=True)
        self.end = self.begin + (sum((n - 1) * step for n, step in steps) + array.itemsize if array.size else 0)
        self.strides = tuple(step // array.itemsize for step in array.strides)


class _Storage:
    """The memory of one tensor, or of several that overlap."""

    def __init__(self, first: _Span) -> None:
        self.first = first
        self.end = first.end

    def try_add(self, span: _Span) -> bool:
        """Add `span` if it overlaps this memory, and return whether it does. Spans must come in ascending order."""
        if span.device != self.first.device or span.begin >= self.end:
            return False
        if span.dtype is not self.first.dtype or (span.begin - self.first.begin) % span.dtype.itemsize:
            raise ArgumentError(
                f"cannot save tensors that view the same memory as {self.first.dtype} and as {span.dtype}",
                hint="clone() one of them first",
            )
        self.end = max(self.end, span.end)
        return True

    @property
    def count(self) -> int:
        """The number of elements."""
        return (self.end - self.first.begin) // self.first.dtype.itemsize

    def content(self) -> memoryview:
        """Return the bytes of the storage."""
        if not self.count:
            return memoryview(b"")
        array = self.first.array
        as_strided = devices.array_module(array).lib.stride_tricks.as_strided
        flat = as_strided(array, (self.count,), (array.itemsize,))
        return devices.backend_of(flat).to_host(flat).data.cast("B")


def _parts(tensor: Any) -> tuple[Tensor, ...]:
    """Return the tensors that a sparse tensor consists of: its places and its values."""
    return (*tensor.places, tensor.entries)


class _Plan:
    """The storages to write for `value`, and the position of each tensor in them."""

    def __init__(self, value: Any, dump: Callable[[Any, Callable[[Tensor], Call]], bytes]) -> None:
        self._spans: dict[int, _Span] = {}
        dump(value, self._collect)
        self.storages: list[_Storage] = []
        self._keys: dict[int, int] = {}
        by_address = sorted(self._spans.items(), key=lambda item: (str(item[1].device), item[1].begin))
        for tensor_id, span in by_address:
            if not (self.storages and self.storages[-1].try_add(span)):
                self.storages.append(_Storage(span))
            self._keys[tensor_id] = len(self.storages) - 1
        self.pickle = dump(value, self.tensor)

    def _collect(self, tensor: Tensor) -> Call:
        if tensor.layout is not strided:
            for part in _parts(tensor):
                self._collect(part)
            return Call((Global(("torch", "Tensor")),))
        self._spans[id(tensor)] = _Span(tensor)
        return Call((Global(("torch", "Tensor")),))

    def tensor(self, tensor: Tensor) -> Call:
        """Return the call that rebuilds `tensor`."""
        hooks = Call((Global(("collections", "OrderedDict")),))
        if tensor.layout is not strided:
            layout = Call((Global(("torch.serialization", "_get_layout")), f"torch.{tensor.layout.name}"))
            parts: list[Any] = [self._rebuild(part, False, hooks) for part in _parts(tensor)]
            flags = (tensor.is_coalesced(),) if tensor.is_sparse else ()
            return Call((Global(("torch._utils", "_rebuild_sparse_tensor")), layout, (*parts, tensor.shape, *flags)))
        is_parameter = isinstance(tensor, Parameter)
        rebuild = self._rebuild(tensor, tensor.requires_grad and not is_parameter, hooks)
        if is_parameter:
            return Call((Global(("torch._utils", "_rebuild_parameter")), rebuild, tensor.requires_grad, hooks))
        return rebuild

    def _rebuild(self, tensor: Tensor, requires_grad: bool, hooks: Call) -> Call:
        span, key = self._spans[id(tensor)], self._keys[id(tensor)]
        storage = self.storages[key]
        name = STORAGE_OF.get(span.dtype)
        typed = name is not None
        kind = Global(("torch", name)) if name else Global(("torch.storage", UNTYPED))
        count = storage.count if typed else storage.count * span.dtype.itemsize
        identity = PersistentId(("storage", kind, str(key), str(span.device), count))
        offset = (span.begin - storage.first.begin) // span.dtype.itemsize
        arguments = (identity, offset, span.array.shape, span.strides, requires_grad, hooks)
        if typed:
            return Call((Global(("torch._utils", "_rebuild_tensor_v2")), *arguments))
        return Call((Global(("torch._utils", "_rebuild_tensor_v3")), *arguments, span.dtype))
