"""Lists of layers as attributes of a layer or model, with their layers registered as children."""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from typing import Any

from tallow.nn import Module


class LayerList(Module, MutableSequence[Any]):
    """The list that replaces an assigned attribute if it is empty or contains layers.

    It behaves like a list. Its layers are children named by their index; other items are allowed.
    """

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__()
        self.__dict__["items"] = list(items)
        self._renumber()

    def _renumber(self) -> None:
        self._modules = {str(i): item for i, item in enumerate(self.items) if isinstance(item, Module)}

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __setitem__(self, index: Any, item: Any) -> None:
        self.items[index] = item
        self._renumber()

    def __delitem__(self, index: Any) -> None:
        del self.items[index]
        self._renumber()

    def __len__(self) -> int:
        return len(self.items)

    def insert(self, index: int, item: Any) -> None:
        """Insert an item before `index`."""
        self.items.insert(index, item)
        self._renumber()

    def __add__(self, other: Iterable[Any]) -> list[Any]:
        return [*self.items, *other]

    def __eq__(self, other: object) -> bool:
        return self.items == (other.items if isinstance(other, LayerList) else other)

    __hash__ = Module.__hash__


def track(value: Any) -> Any:
    """Return `value`, or a LayerList if it is a list or tuple with layers, or an empty list."""
    if type(value) is list and (not value or any(isinstance(item, Module) for item in value)):
        return LayerList(value)
    if type(value) is tuple and any(isinstance(item, Module) for item in value):
        return LayerList(value)
    return value
