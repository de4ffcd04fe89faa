"""FloatStorage, LongStorage and so on, PyTorch's former names of storages by dtype."""

from __future__ import annotations

import os
from typing import Any

from tallow import dtypes
from tallow.functions.casting import CLASS_NAMES
from tallow.functions.storage import UntypedStorage
from tallow.functions.typed_storage import TypedStorage


class _LegacyStorage(type):
    """The class of FloatStorage and so on: `isinstance(x, FloatStorage)` checks the dtype."""

    dtype: dtypes.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, wrap_storage: UntypedStorage | None = None) -> TypedStorage:
        """Create a storage of these numbers, an uninitialised one of this size, or one over these bytes."""
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)

    def from_file(cls, filename: str | os.PathLike[str], shared: bool = False, size: int = 0) -> TypedStorage:
        """Map a file, or its first `size` elements, as `UntypedStorage.from_file`."""
        length = size * cls.dtype.itemsize or None
        return cls(wrap_storage=UntypedStorage.from_file(filename, shared, length))


STORAGES: dict[str, type] = {
    (name := kind.replace("Tensor", "Storage")): _LegacyStorage(
        name, (), {"dtype": dtype, "__module__": "torch", "__doc__": f"Storages of {dtype.name}."}
    )
    for dtype, kind in CLASS_NAMES.items()
    if not kind.startswith("UInt")
}
