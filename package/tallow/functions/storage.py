"""Storages: the memory behind tensors, as bytes, as in torch.UntypedStorage; and tensors laid over them.

A storage is the array that owns the memory of a tensor, seen as bytes. Each call of `untyped_storage()` makes a new
object for it; `data_ptr()` and `_cdata` are equal for tensors that share memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from tallow import devices, dtypes
from tallow.core.creation import Device, Dtype, empty, given_once
from tallow.core.factories import creates
from tallow.core.public_api import public
from tallow.core.size import Size
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import ArgumentError, DeviceError, GraphError, UnsupportedError
from tallow.ops.dims import as_ints
from tallow.ops.memory_format import contiguous_format, preserve_format
from tallow.ops.memory_format import memory_format as MemoryFormat
from tallow.tape.graph import note_write
from tallow.tape.writes import owner_of


class UntypedStorage:
    """A block of bytes on a device.

    Args:
        data: the number of bytes, which are not initialised; or the bytes themselves, as a sequence of numbers.

    Attributes:
        array: the bytes, a NumPy or CuPy array of uint8 with one dim.
    """

    array: Array
    is_sparse = is_sparse_csr = is_hpu = False

    def __init__(self, data: int | Sequence[int] = 0, *, device: Any = "cpu") -> None:
        host = np.empty(data, np.uint8) if isinstance(data, int) else np.asarray(data, np.uint8)
        self.array = devices.move(host, devices.device(device))

    @classmethod
    def over(cls, array: Array) -> Self:
        """Return the storage of an array: the memory of the array that owns it."""
        self = object.__new__(cls)
        self.array = _bytes_of(owner_of(array))
        return self

    @classmethod
    def from_file(cls, filename: str | os.PathLike[str], shared: bool = False, nbytes: int | None = None) -> Self:
        """Map a file, or its first `nbytes` bytes. Writes reach the file only if `shared`.

        A shared file is created if it is missing, and made longer.

        Raises: OSError if the file cannot be read; ArgumentError if it is shorter than `nbytes`.
        """
        if shared and nbytes is not None and not os.path.exists(filename):
            open(filename, "xb").close()
        length = os.path.getsize(filename) if nbytes is None else nbytes
        self = object.__new__(cls)
        if length == 0:
            self.array = np.empty(0, np.uint8)
            return self
        try:
            self.array = np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(length,)).view(np.ndarray)
        except ValueError as error:
            raise ArgumentError(f"UntypedStorage.from_file: {os.fspath(filename)}: {error}") from error
        return self

    @property
    def device(self) -> devices.device:
        """The device that holds the bytes."""
        return devices.device_of(self.array)

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

    @property
    def is_cuda(self) -> bool:
        """Return whether the bytes are on a CUDA device."""
        return self.device.type == "cuda"

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.cpu().array.__array_interface__

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self.array.size

    size = __len__ = nbytes

    def element_size(self) -> int:
        """Return 1: elements are bytes."""
        return 1

    def data_ptr(self) -> int:
        """Return the address of the first byte; 0 if there is none, as on device "meta"."""
        return 0 if not self.array.size or self.device.type == "meta" else wrap(self.array).data_ptr()

    def __getitem__(self, index: int | slice) -> Any:
        """Return a byte as an int, or a part of the bytes as a storage on the same memory."""
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise ArgumentError(f"a slice of a storage has step 1, got {index.step}")
            part = object.__new__(type(self))
            part.array = self.array[index]
            return part
        return int(self.array[index])

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self.array[index] = value.array if isinstance(value, UntypedStorage) else value

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.nbytes()} bytes on {self.device}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.cpu().array,)

    def tolist(self) -> list[int]:
        """Return the bytes as a list of ints."""
        values: list[int] = self.cpu().array.tolist()
        return values

    def to(self, device: Any) -> Self:
        """Return the storage on a device: itself if it is there already."""
        moved = devices.move(self.array, devices.device(device))
        if moved is self.array:
            return self
        result = object.__new__(type(self))
        result.array = moved
        return result

    def cpu(self) -> Self:
        """Return the storage on the CPU."""
        return self.to("cpu")

    def clone(self) -> Self:
        """Return a copy."""
        result = object.__new__(type(self))
        result.array = self.array.copy()
        return result

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        result = memo[id(self)] = self.clone()
        return result

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> Self:
        """Copy the bytes of another storage of the same length into this one."""
        self.array[...] = source.to(self.device).array
        return self

    def fill_(self, value: int) -> Self:
        """Set every byte."""
        self.array[...] = value
        return self

    def resize_(self, size: int) -> Self:
        """Change the number of bytes. Tensors that were laid over the former bytes keep those.

        Raises: UnsupportedError if the bytes are those of a tensor: it cannot follow.
        """
        if size == self.array.size:
            return self
        if self.array.base is not None:
            raise UnsupportedError(
                f"cannot resize the storage of a tensor from {self.array.size} to {size} bytes",
                hint="make a new tensor, or call its method resize_",
            )
        resized = devices.array_module(self.array).empty(size, np.uint8)
        resized[: self.array.size] = self.array[:size]
        self.array = resized
        return self

    def untyped(self) -> Self:
        """Return the storage itself."""
        return self

    def is_shared(self) -> bool:
        """Return whether other processes can view the memory, see `Tensor.share_memory_`."""
        return wrap(self.array).is_shared()

    def share_memory_(self) -> Self:
        """Move the bytes to memory that other processes can view, as `Tensor.share_memory_`.

        Raises: UnsupportedError if the bytes are those of a tensor: it cannot follow.
        """
        if not self.is_shared():
            if self.array.base is not None:
                raise UnsupportedError("share_memory_: the storage of a tensor", hint="tensor.share_memory_()")
            self.array = wrap(self.array).share_memory_().array
        return self

    def resizable(self) -> bool:
        """Return whether `resize_` can change the length: not of the memory of a tensor, or of a file."""
        return self.array.base is None

    @property
    def filename(self) -> str | None:
        """The path of the file that `from_file` has mapped to share it; None for other storages."""
        base: Any = self.array
        while base is not None and not isinstance(base, np.memmap):
            base = getattr(base, "base", None)
        return None if base is None or base.mode == "c" else str(base.filename)

    def byteswap(self, dtype: dtypes.dtype) -> None:
        """Reverse the bytes of each element of a dtype: of each of its two parts, for complex numbers."""
        width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        if self.array.size % width:
            raise ArgumentError(f"byteswap: {self.array.size} bytes are no whole number of elements of {dtype.name}")
        elements = self.array.reshape(-1, width)
        elements[...] = elements[:, ::-1].copy()

    def new(self) -> Self:
        """Return an empty storage on the device."""
        return type(self)(device=self.device)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the class, or the bytes as numbers of a dtype, in a storage of theirs."""
        return "torch.storage.UntypedStorage" if dtype is None else wrap(self.array).type(dtype).storage()

    def get_device(self) -> int | None:
        """Return the number of the CUDA device; None on the CPU."""
        return self.device.index

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Self:
        """Return the storage on a CUDA device, by default the current one."""
        return self.to("cuda" if device is None else device)

    def is_pinned(self, device: Any = "cuda") -> bool:
        """Return whether the memory is page-locked."""
        return bool(wrap(self.array).is_pinned())

    def pin_memory(self, device: Any = "cuda") -> Self:
        """Return a copy in page-locked memory."""
        result = object.__new__(type(self))
        result.array = wrap(self.array).pin_memory().array
        return result


def _converting(dtype: dtypes.dtype) -> Callable[[Any], Any]:
    def convert(self: UntypedStorage) -> Any:
        return self.type(dtype)

    convert.__doc__ = f"Return the elements as {dtype.name} in a TypedStorage."
    return convert


CONVERSIONS = {
    "bfloat16": dtypes.bfloat16,
    "bool": dtypes.bool,
    "byte": dtypes.uint8,
    "char": dtypes.int8,
    "complex_double": dtypes.complex128,
    "complex_float": dtypes.complex64,
    "double": dtypes.float64,
    "float": dtypes.float32,
    "half": dtypes.float16,
    "int": dtypes.int32,
    "long": dtypes.int64,
    "short": dtypes.int16,
    **{name: getattr(dtypes, name) for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")},
}
for _name, _dtype in CONVERSIONS.items():
    setattr(UntypedStorage, _name, _converting(_dtype))


def _bytes_of(owner: Array) -> Array:
    """Return the whole memory of an array that owns it, as bytes in their order."""
    if devices.device_type_of(owner) == "meta":
        return devices.array_module(owner).empty((owner.size * owner.itemsize,), np.uint8)
    if owner.dtype == np.uint8 and owner.ndim == 1 and owner.flags.c_contiguous:
        return owner
    in_order = owner.transpose(sorted(range(owner.ndim), key=lambda d: -owner.strides[d]))
    if not in_order.flags.c_contiguous:
        raise UnsupportedError("untyped_storage: the memory has gaps, as that of an array of a foreign library")
    return in_order.reshape(-1).view(np.uint8)


@public("tl")
@creates
def from_file(
    filename: str | os.PathLike[str],
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of one dim over the memory of a file, as `UntypedStorage.from_file`.

    Args:
        shared: let writes to the tensor reach the file, which is created or made longer where necessary.
        size: the number of elements.

    Raises: OSError if the file cannot be read; ArgumentError if it is shorter; DeviceError for another device than cpu.
    """
    result = empty(0, dtype=dtype, device=device)
    if result.device.type != "cpu":
        raise DeviceError(
            f"from_file: a file is mapped on cpu, not on {result.device}", hint="move the result with to()"
        )
    storage = UntypedStorage.from_file(filename, bool(shared), size * result.itemsize)
    return wrap(storage.array.view(result.array.dtype)).requires_grad_(requires_grad)


@public("Tensor")
def untyped_storage(input: Tensor) -> UntypedStorage:
    """Return the memory that the tensor is a view of, as bytes."""
    return UntypedStorage.over(input.array)


@public("Tensor_")
def set_(
    input: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Sequence[int] | None = None
) -> Tensor:
    """Lay the tensor over the memory of another tensor, or of a storage; over none without a source.

    Args:
        storage_offset: elements before the first one.
        size: by default all elements of a storage, in one dim, or the shape of a tensor.
        stride: in elements; row-major by default.

    Raises: ArgumentError if the elements lie outside of the storage; GraphError for a tensor that is not a leaf.
    """
    if input._node is not None:
        raise GraphError("set_: the tensor is not a leaf", hint="use tensor.detach()")
    if source is None:
        source = UntypedStorage()
    if isinstance(source, Tensor):
        if source.dtype is not input.dtype:
            raise ArgumentError(f"set_: a tensor of {input.dtype} cannot be laid over one of {source.dtype}")
        if size is None:
            _replace(input, source.array.view())
            return input
        source = untyped_storage(source)
    bytes_of = source.untyped()
    if size is None:
        size = ((bytes_of.nbytes() // input.itemsize) - storage_offset,)
    shape = as_ints(tuple(size) if isinstance(size, Sequence) else (size,), "set_")
    _replace(input, _laid_over(bytes_of.array, input.array.dtype, storage_offset, shape, stride))
    return input


def _replace(tensor: Tensor, array: Array) -> None:
    """Give a tensor another array. Its history as a view of another tensor ends."""
    tensor.array = array
    tensor._base = tensor._view = tensor._base_node = None


def _laid_over(
    memory: Array, dtype: np.dtype[Any], offset: int, size: Sequence[int], stride: Sequence[int] | None
) -> Array:
    if stride is None:
        stride = [math.prod(tuple(size)[d + 1 :]) for d in range(len(size))]
    if len(stride) != len(size) or min((*size, *stride), default=0) < 0:
        raise ArgumentError(f"a tensor of size {tuple(size)} and stride {tuple(stride)}: natural numbers, one per dim")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if offset < 0 or (0 not in size and (last + 1) * dtype.itemsize > memory.size):
        raise ArgumentError(
            f"a tensor of size {tuple(size)}, stride {tuple(stride)} and offset {offset} reaches byte "
            f"{(last + 1) * dtype.itemsize} of a storage of {memory.size} bytes"
        )
    steps = tuple(step * dtype.itemsize for step in stride)
    if type(memory) is np.ndarray:
        return np.ndarray(tuple(size), dtype, memory, offset * dtype.itemsize, steps)
    xp = devices.array_module(memory)
    if devices.device_type_of(memory) == "meta":
        return xp.empty(tuple(size), dtype)
    elements = memory[: memory.size // dtype.itemsize * dtype.itemsize].view(dtype)
    return xp.lib.stride_tricks.as_strided(elements[offset:], tuple(size), steps)


@public("Tensor_")
def resize_(input: Tensor, *sizes: Any, size: Any = None, memory_format: MemoryFormat | None = None) -> Tensor:
    """Change the shape, row-major over the same memory. Elements beyond the memory are not initialised.

    Raises: GraphError for a tensor that requires grad, UnsupportedError for another memory format.
    """
    if memory_format not in (None, contiguous_format, preserve_format):
        raise UnsupportedError(f"resize_: {memory_format}", hint="call contiguous(memory_format=...) on the result")
    if input.requires_grad:
        raise GraphError("cannot resize variables that require grad", hint="use tensor.detach()")
    sizes = given_once(sizes, size, "resize_")
    shape = as_ints(sizes[0] if len(sizes) == 1 else sizes, "resize_")
    if tuple(shape) == tuple(input.array.shape):
        return input
    memory = untyped_storage(input)
    start = input.storage_offset()
    if (start + math.prod(shape)) * input.itemsize <= memory.nbytes():
        _replace(input, _laid_over(memory.array, input.array.dtype, start, shape, None))
        return input
    larger = empty(shape, dtype=input.dtype, device=input.device).array
    if input.device.type != "meta":
        held = memory.array[: memory.nbytes() // input.itemsize * input.itemsize].view(input.array.dtype)[start:]
        larger.reshape(-1)[: held.size] = held
    _replace(input, larger)
    return input


@public("Tensor_")
def resize_as_(input: Tensor, the_template: Tensor, memory_format: MemoryFormat | None = None) -> Tensor:
    """Change the shape to that of another tensor, as `resize_`."""
    return resize_(input, the_template.shape, memory_format=memory_format)


@public("Tensor_")
def as_strided_(input: Tensor, size: Size, stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Change size, stride and offset, in elements, over the same memory. Raises: as `set_`."""
    offset = input.storage_offset() if storage_offset is None else storage_offset
    return set_(input, untyped_storage(input), offset, size, stride)


@public("Tensor")
def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Return whether both tensors have the same memory, offset, size and stride."""
    own, other = input.array, tensor.array
    same_layout = own.shape == other.shape and own.strides == other.strides and own.dtype == other.dtype
    return same_layout and input.data_ptr() == tensor.data_ptr()


@public("Tensor")
def is_shared(input: Tensor) -> bool:
    """Return whether other processes can view the memory, see `share_memory_`. True on a CUDA device."""
    if input.is_cuda:
        return True
    base: Any = input.array
    while base is not None and not hasattr(base, "shared_file"):
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    return base is not None


@public("Tensor_")
def share_memory_(input: Tensor) -> Tensor:
    """Move the elements to memory that other processes can view, if they are not there yet.

    Processes that start by fork share it; those that start by spawn, and queues, if the tensor is sent through
    `torch.multiprocessing`.

    Raises: UnsupportedError where the platform cannot share memory, such as a browser.
    """
    if is_shared(input):
        return input
    if not isinstance(input.array, np.ndarray) or input.is_meta:
        raise DeviceError(f"share_memory_: the tensor is on {input.device}", hint="use tensor.cpu()")
    from tallow.core.shared_memory import shared_array  # pages have no processes, and start without it

    shared = shared_array(input.array.shape, input.array.dtype)
    shared[...] = input.array
    _replace(input, shared)
    note_write(input)
    return input
