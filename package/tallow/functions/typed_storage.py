"""The elements of storages: PyTorch's former class TypedStorage, which `tensor.storage()` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any, Self

from tallow import devices, dtypes
from tallow.core.creation import empty, tensor
from tallow.core.public_api import public
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import ArgumentTypeError
from tallow.functions.casting import CLASS_NAMES
from tallow.functions.storage import CONVERSIONS, UntypedStorage, untyped_storage


class TypedStorage:
    """The elements of a storage, PyTorch's former class: `tensor.storage()`.

    Args:
        args: the number of elements, which are not initialised; or the elements, as a sequence of numbers.
        wrap_storage: the bytes, in the place of `args`.
        dtype: of the elements; the default dtype by default.
        device: of a new storage.
    """

    is_sparse = is_hpu = False

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: dtypes.dtype | None = None,
        device: Any = None,
    ) -> None:
        if len(args) > (wrap_storage is None):
            raise ArgumentTypeError("TypedStorage takes a number of elements, the elements, or wrap_storage")
        self.dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
        if wrap_storage is None:
            data = args[0] if args else 0
            made = empty(data, dtype=self.dtype) if isinstance(data, int) else tensor(data, dtype=self.dtype)
            wrap_storage = untyped_storage(made if device is None else made.to(device))
        self._untyped_storage = wrap_storage

    @property
    def array(self) -> Array:
        """The elements, an array with one dim."""
        memory = self._untyped_storage.array
        return memory[: memory.size // self.dtype.itemsize * self.dtype.itemsize].view(self.dtype.storage)

    def tensor(self) -> Tensor:
        """Return the elements as a tensor on the same memory."""
        return wrap(self.array)

    @property
    def device(self) -> devices.device:
        """The device that holds the elements."""
        return self._untyped_storage.device

    def untyped(self) -> UntypedStorage:
        """Return the bytes."""
        return self._untyped_storage

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._untyped_storage.data_ptr()

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._untyped_storage.nbytes()

    def size(self) -> int:
        """Return the number of elements."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = size

    def element_size(self) -> int:
        """Return the size of an element in bytes."""
        return self.dtype.itemsize

    def __getitem__(self, index: Any) -> Any:
        return self.tensor()[index].tolist()

    def __setitem__(self, index: Any, value: Any) -> None:
        self.tensor()[index] = value.tensor() if isinstance(value, TypedStorage) else value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        lines = "".join(f" {value}\n" for value in self.tolist())
        return f"{lines}[{_CLASS}(dtype={self.dtype}, device={self.device}) of size {len(self)}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(TypedStorage, wrap_storage=self._untyped_storage, dtype=self.dtype), ()

    def tolist(self) -> list[Any]:
        """Return the elements as a list."""
        values: list[Any] = wrap(self.array).tolist()
        return values

    def _over(self, memory: UntypedStorage) -> Self:
        """Return the elements of other bytes; itself for its own."""
        return self if memory is self._untyped_storage else type(self)(wrap_storage=memory, dtype=self.dtype)

    def fill_(self, value: Any) -> Self:
        """Set every element."""
        self.tensor().fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> Self:
        """Copy the bytes of another storage into this one: elements of another dtype are not converted."""
        self._untyped_storage.copy_(source.untyped())
        return self

    def clone(self) -> Self:
        """Return a copy."""
        return self._over(self._untyped_storage.clone())

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        result = memo[id(self)] = self.clone()
        return result

    def resize_(self, size: int) -> Self:
        """Change the number of elements. Raises: as `UntypedStorage.resize_`"""
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return the name of the class of the dtype, or the elements converted to a dtype."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        converted = self.tensor().type(dtype)
        return self if converted.dtype is self.dtype else storage(converted)

    def pickle_storage_type(self) -> str:
        """Return the name of the former class of storages of the dtype, such as "FloatStorage"."""
        return CLASS_NAMES[self.dtype].replace("Tensor", "Storage")

    def to(self, *, device: Any, non_blocking: bool = False) -> Self:
        """Return the storage on a device: itself if it is there already."""
        return self._over(self._untyped_storage.to(device))

    def cpu(self) -> Self:
        """Return the storage on the CPU."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Self:
        """Return the storage on a CUDA device, by default the current one."""
        return self._over(self._untyped_storage.cuda(device))

    def pin_memory(self, device: Any = "cuda") -> Self:
        """Return a copy in page-locked memory."""
        return self._over(self._untyped_storage.pin_memory())

    def share_memory_(self) -> Self:
        """Move the elements to memory that other processes can view. Raises: as `UntypedStorage.share_memory_`"""
        self._untyped_storage.share_memory_()
        return self


_CLASS = "torch.storage.TypedStorage"


def _asking(name: str) -> Callable[..., Any]:
    """Return a method that asks the bytes."""

    def ask(self: TypedStorage, *args: Any) -> Any:
        return getattr(self._untyped_storage, name)(*args)

    ask.__doc__ = getattr(UntypedStorage, name).__doc__
    return ask


def _converting(dtype: dtypes.dtype) -> Callable[[TypedStorage], TypedStorage]:
    def convert(self: TypedStorage) -> TypedStorage:
        return self if self.dtype is dtype else storage(self.tensor().to(dtype))

    convert.__doc__ = f"Return the elements converted to {dtype.name}."
    return convert


for _name in ("is_shared", "resizable", "get_device", "is_pinned"):
    setattr(TypedStorage, _name, _asking(_name))
for _name in ("filename", "is_cuda"):
    setattr(TypedStorage, _name, property(attrgetter(f"_untyped_storage.{_name}")))
for _name, _dtype in CONVERSIONS.items():
    setattr(TypedStorage, _name, _converting(_dtype))


@public("Tensor", "_typed_storage")
def storage(input: Tensor) -> TypedStorage:
    """Return the memory that the tensor is a view of, as elements of its dtype."""
    return TypedStorage(wrap_storage=untyped_storage(input), dtype=input.dtype)
