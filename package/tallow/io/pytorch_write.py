"""Writing PyTorch's zip format, with what `torch.load(..., weights_only=True)` takes and nothing else."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np

from tallow import devices
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.io.atomic import atomic_write
from tallow.io.pickler import Call, Global, Identity, Pickler
from tallow.io.pytorch_names import STORAGE_OF, UNTYPED
from tallow.io.source import Path
from tallow.io.zip_archive import ZipWriter
from tallow.nn.parameter import Parameter
from tallow.tensor import Tensor

FOLDER = "archive"
VERSION = b"3\n"
ALIGNMENT = 64  # bytes; PyTorch's own


def save(value: Any, target: Path | BinaryIO) -> None:
    """Write tensors and plain containers of them. A path is replaced in one step at the end, or left as it was.

    Tensors that share memory share a storage, as in PyTorch: what lies between the elements of a strided view is
    written with it. A tensor whose strides PyTorch cannot have (negative ones) is written as a copy. Attributes that
    somebody has set on a tensor are not written.

    Args:
        target: a path, or a binary file that can seek.

    Raises:  ArgumentTypeError for what is neither tensor nor plain container; ArgumentError for tensors without data,
        and for tensors that view the same memory as different dtypes
    """
    plan = _Plan(value)
    pickle = Pickler(plan.tensor).dump(value)
    if isinstance(target, str | os.PathLike):
        with atomic_write(target) as file:
            _write(pickle, plan, file)
    else:
        _write(pickle, plan, target)


def _write(pickle: bytes, plan: _Plan, file: BinaryIO) -> None:
    with ZipWriter(file, ALIGNMENT) as archive:
        archive.add(f"{FOLDER}/data.pkl", pickle)
        archive.add(f"{FOLDER}/byteorder", b"little")
        for key, storage in enumerate(plan.storages):
            archive.add(f"{FOLDER}/data/{key}", storage.content())
        archive.add(f"{FOLDER}/version", VERSION)


class _Piece:
    """A tensor's array, and the bytes of memory from its first element to its last."""

    def __init__(self, tensor: Tensor) -> None:
        if tensor.device.type == "meta":
            raise ArgumentError("cannot save a tensor on device 'meta': it has no data", mend="load its weights first")
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
    """The memory under one tensor, or under several that overlap."""

    def __init__(self, first: _Piece) -> None:
        self.first = first
        self.end = first.end

    def take(self, piece: _Piece) -> bool:
        """Whether `piece`, which begins no earlier than those before it, lies in this memory; if so, it is added."""
        if piece.device != self.first.device or piece.begin >= self.end:
            return False
        if piece.dtype is not self.first.dtype or (piece.begin - self.first.begin) % piece.dtype.itemsize:
            raise ArgumentError(
                f"cannot save tensors that view the same memory as {self.first.dtype} and as {piece.dtype}",
                mend="clone() one of them first",
            )
        self.end = max(self.end, piece.end)
        return True

    @property
    def count(self) -> int:
        return (self.end - self.first.begin) // self.first.dtype.itemsize

    def content(self) -> memoryview:
        if not self.count:
            return memoryview(b"")
        array = self.first.array
        as_strided = devices.array_module(array).lib.stride_tricks.as_strided
        flat = as_strided(array, (self.count,), (array.itemsize,))
        return devices.backend_of(flat).to_host(flat).data.cast("B")


class _Plan:
    """Which storages there are, and where in them each tensor of `value` lies."""

    def __init__(self, value: Any) -> None:
        self._pieces: dict[int, _Piece] = {}
        Pickler(self._collect).dump(value)
        self.storages: list[_Storage] = []
        self._keys: dict[int, int] = {}
        by_place = sorted(self._pieces.items(), key=lambda item: (str(item[1].device), item[1].begin))
        for tensor_id, piece in by_place:
            if not (self.storages and self.storages[-1].take(piece)):
                self.storages.append(_Storage(piece))
            self._keys[tensor_id] = len(self.storages) - 1

    def _collect(self, tensor: Tensor) -> Call:
        self._pieces[id(tensor)] = _Piece(tensor)
        return Call((Global(("torch", "Tensor")),))

    def tensor(self, tensor: Tensor) -> Call:
        """How a pickle makes `tensor`."""
        hooks = Call((Global(("collections", "OrderedDict")),))
        is_parameter = isinstance(tensor, Parameter)
        made = self._rebuild(tensor, tensor.requires_grad and not is_parameter, hooks)
        if is_parameter:
            return Call((Global(("torch._utils", "_rebuild_parameter")), made, tensor.requires_grad, hooks))
        return made

    def _rebuild(self, tensor: Tensor, requires_grad: bool, hooks: Call) -> Call:
        piece, key = self._pieces[id(tensor)], self._keys[id(tensor)]
        storage = self.storages[key]
        name = STORAGE_OF.get(piece.dtype)
        typed = name is not None
        kind = Global(("torch", name)) if name else Global(("torch.storage", UNTYPED))
        count = storage.count if typed else storage.count * piece.dtype.itemsize
        identity = Identity(("storage", kind, str(key), str(piece.device), count))
        offset = (piece.begin - storage.first.begin) // piece.dtype.itemsize
        place = (identity, offset, piece.array.shape, piece.strides, requires_grad, hooks)
        if typed:
            return Call((Global(("torch._utils", "_rebuild_tensor_v2")), *place))
        return Call((Global(("torch._utils", "_rebuild_tensor_v3")), *place, piece.dtype))
