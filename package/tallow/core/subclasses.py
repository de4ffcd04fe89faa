"""Subclasses of Tensor answer for the functions that get them, by `__torch_function__`.

Tensors proper pay nothing for it: every function reads the arrays of its operands, and the array of a tensor of such a
subclass is a property, which sends the function to `tallow.core.overrides`. The class inherits the functions of Tensor
that ask when they fail; the other methods and the properties, which work with any tensor, get a form that asks first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from types import FunctionType
from typing import Any

from tallow.core.overrides import (
    AskError,
    answers,
    ask,
    disabled,
    is_array_code,
    must_ask,
    subclasses,
    without_subclasses,
)
from tallow.core.tensor import Tensor

_SHORT_WAY = "tallow.core.short_way"
_REFUSED = object()  # in the place of an array: the conditions of an op's short way do not hold for it
# Methods of Tensor that make, find or copy an object of the class itself.
_OF_THE_OBJECT = frozenset(
    ("__new__", "__init__", "__getattr__", "__hash__", "__copy__", "__reduce_ex__", "as_subclass", "physical")
)


class _Array:
    """The property `array` of a subclass that answers."""

    def __get__(self, tensor: Tensor | None, owner: type) -> Any:
        if tensor is None:
            return self
        if not subclasses.are_off:
            reader = sys._getframe(1)
            if reader.f_globals.get("__name__") == _SHORT_WAY or reader.f_code.co_name == "arrays_of":
                return _REFUSED if must_ask(reader) else tensor.__dict__["array"]
            if must_ask(reader):
                raise AskError
        try:
            return tensor.__dict__["array"]
        except KeyError:
            raise AttributeError("array") from None

    def __set__(self, tensor: Tensor, array: Any) -> None:
        tensor.__dict__["array"] = array


def _set_attribute(tensor: Tensor, name: str, value: Any) -> None:
    """Set an attribute. `x.__dict__ = y.__dict__`, which in PyTorch has no values, leaves x its array and history."""
    if name == "__dict__":
        own = {key: kept for key, kept in vars(tensor).items() if key == "array" or hasattr(Tensor, key)}
        value = {key: new for key, new in value.items() if key != "array" and not hasattr(Tensor, key)} | own
    object.__setattr__(tensor, name, value)


@classmethod  # type: ignore[misc]
def _torch_function(
    cls: type[Tensor],
    func: Callable[..., Any],
    types: tuple[type, ...],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a function with tensors of a subclass, and make the tensors that it returns tensors of the subclass.

    Returns: NotImplemented if one of the types is no base class of this one.
    """
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with without_subclasses():
        result = func(*args, **(kwargs or {}))
        return result if func in NOT_WRAPPED else _converted(result, cls)


def _converted(result: Any, cls: type[Tensor]) -> Any:
    """Return a result with its tensors, in tuples and lists too, as tensors of a class."""
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if not isinstance(result, tuple | list):
        return result
    parts = [_converted(part, cls) for part in result]
    if all(part is before for part, before in zip(parts, result, strict=True)):
        return result
    return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)


@classmethod  # type: ignore[misc]
def _init_subclass(cls: type[Tensor], **options: Any) -> None:
    super(Tensor, cls).__init_subclass__(**options)
    own = vars(cls)
    if "__torch_function__" not in own and cls.__module__.partition(".")[0] == "tallow":
        cls.__torch_function__ = staticmethod(disabled)  # type: ignore[attr-defined]  # tallow computes with its own
    if hasattr(cls, "__torch_dispatch__") and cls._watch is None:
        from tallow.core.dispatch import prepare

        prepare(cls)
    if not answers(cls) or isinstance(getattr(cls, "array", None), _Array):
        return
    cls.array = _Array()
    if _definer(cls, "__setattr__") is object:
        cls.__setattr__ = _set_attribute  # type: ignore[assignment]
    if _definer(cls, "__iter__") is Tensor:
        cls.__iter__ = _iterate  # type: ignore[method-assign]
    for name, value in vars(Tensor).items():
        is_private = name.startswith("_") and not name.endswith("__")
        if is_private or name in _OF_THE_OBJECT or _definer(cls, name) is not Tensor:
            continue
        if isinstance(value, property):
            setattr(cls, name, _asking_property(value))
        elif isinstance(value, FunctionType) and not hasattr(value, "__wrapped__") and _works_with_any(value):
            setattr(cls, name, _asking_first(value))


def _iterate(self: Tensor) -> Iterator[Any]:
    """Iterate over the first dim. As in PyTorch, the class is asked for `unbind`."""
    if subclasses.are_off or not self.__dict__["array"].ndim or is_array_code(sys._getframe(1)):
        return Tensor.__iter__(self)
    return iter(ask(Tensor.unbind, (self,), (self, 0), {}))


def _works_with_any(method: FunctionType) -> bool:
    """Return whether a method is one of those that do not ask when they fail."""
    return method.__module__ == Tensor.__module__ or method.__name__ == "backward"


def _definer(cls: type, name: str) -> type | None:
    return next((base for base in cls.__mro__ if name in vars(base)), None)


def _asking_first(method: Any) -> Any:
    """Return a method, or the accessor of a property, that asks the tensor unless tallow's array code calls it."""

    def asking(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if subclasses.are_off or is_array_code(sys._getframe(1)):
            return method(self, *args, **kwargs)
        return ask(method, (self,), (self, *args), kwargs)

    return wraps(method)(asking) if isinstance(method, FunctionType) else asking


def _asking_property(value: property) -> property:
    setter = None if value.fset is None else _asking_first(value.__set__)
    return property(_asking_first(value.__get__), setter, None, value.__doc__)


# The functions whose results stay as they are.
NOT_WRAPPED = frozenset((Tensor.__dict__["grad"].__get__,))

Tensor.__torch_function__ = _torch_function  # type: ignore[attr-defined]
Tensor.__init_subclass__ = _init_subclass  # type: ignore[assignment]
