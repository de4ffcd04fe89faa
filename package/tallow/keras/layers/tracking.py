"""Lists of layers as attributes of a layer or model: what is in them is found as an attribute would be."""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from typing import Any

from tallow.nn import Module


class LayerList(Module, MutableSequence[Any]):
    """What a list that is assigned to an attribute of a layer becomes, if it is empty or has layers in it.

    It is used as the list was. Layers in it are children under their index; anything else may stand beside them.
    """

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__()
        self.__dict__["items"] = list(items)
        self._number()

    def _number(self) -> None:
        self._modules = {str(i): item for i, item in enumerate(self.items) if isinstance(item, Module)}

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __setitem__(self, index: Any, item: Any) -> None:
        self.items[index] = item
        self._number()

    def __delitem__(self, index: Any) -> None:
        del self.items[index]
        self._number()

    def __len__(self) -> int:
        return len(self.items)

    def insert(self, index: int, item: Any) -> None:
        self.items.insert(index, item)
        self._number()

    def __add__(self, other: Iterable[Any]) -> list[Any]:
        return [*self.items, *other]

    def __eq__(self, other: object) -> bool:
        return self.items == (other.items if isinstance(other, LayerList) else other)

    __hash__ = Module.__hash__


def tracked(value: Any) -> Any:
    """`value`, or a LayerList for a list in which layers are, or may come to be."""
    if type(value) is list and (not value or any(isinstance(item, Module) for item in value)):
        return LayerList(value)
    if type(value) is tuple and any(isinstance(item, Module) for item in value):
        return LayerList(value)
    return value
