"""torch.utils.weak: mappings and references that do not keep a tensor alive, and compare it by identity."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any
from weakref import ref

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(ref):  # type: ignore[type-arg]
    """A weak reference that is equal to others of the same object."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        a, b = self(), other() if isinstance(other, ref) else None
        return self is other if a is None or b is None else a is b


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dict with objects as keys, compared by identity. An entry goes with its key."""

    def __init__(self, dict: Any = None, ref_type: type[WeakIdRef] = WeakIdRef) -> None:
        self.data: dict[WeakIdRef, Any] = {}
        self.ref_type = ref_type
        self.update(dict or {})

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        own = ref(self)

        def remove(dead: Any) -> None:
            if (mapping := own()) is not None:
                mapping.data.pop(dead, None)

        self.data[self.ref_type(key, remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        return self.ref_type(key) in self.data

    def __iter__(self) -> Iterator[Any]:
        return (key for weak in list(self.data) if (key := weak()) is not None)

    def __len__(self) -> int:
        return len(self.data)


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor. A call returns it, or None."""

    def __init__(self, tensor: Any) -> None:
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Any:
        return self.ref()
