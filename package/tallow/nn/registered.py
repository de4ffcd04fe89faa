"""Attributes of modules: parameters, buffers and submodules under their names."""

from __future__ import annotations

from typing import Any

BARE = "tallow.nn.module"  # where Module is


class Registered:
    """An attribute of a class of modules: what its instances have registered under a name.

    `Module.__getattr__` finds the same, but only after Python has failed to, and has made an error: 0.5 µs in place of
    0.1 µs. Nothing else may be seen of it. What is in an instance's `__dict__` comes first by Python's rules; instances
    of derived classes, which may get attributes of this name from elsewhere, and instances without such a part find
    what they would find without it.

    Args:
        owner: the class.
    """

    __slots__ = ("name", "owner")

    def __init__(self, owner: type, name: str) -> None:
        self.owner = owner
        self.name = name

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        name = self.name
        if owner is self.owner:
            try:  # written out: a loop would take half of the time again
                if name in (registry := module._parameters):
                    return registry[name]
                if name in (registry := module._modules) or name in (registry := module._buffers):
                    return registry[name]
            except AttributeError:  # before Module.__init__, or of the class itself
                pass
        return _others(name, module, owner)


def _others(name: str, module: Any, owner: type | None) -> Any:
    """Return what Python finds under a name where nothing is registered.

    Raises: AttributeError; for a module, Python then calls `Module.__getattr__`, which looks in all registries
    """
    cls = type(module) if owner is None else owner
    for base in cls.__mro__:
        if name in vars(base) and not isinstance(found := vars(base)[name], Registered):
            return found.__get__(module, cls) if hasattr(type(found), "__get__") else found
    raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}" if module is None else name)


def provide(cls: type, name: str) -> None:
    """Give a class of modules the attribute, unless it has one of this name, or looks for attributes in its own way.

    Module itself gets none, because all classes would inherit it: modules of `tallow.fx` have bare ones as parts.
    """
    if name in vars(cls) or not name.isidentifier():
        return
    looking = next(base for base in cls.__mro__ if "__getattr__" in vars(base))
    if looking is cls or looking.__module__ != BARE:
        return
    if all(isinstance(vars(base)[name], Registered) for base in cls.__mro__ if name in vars(base)):
        type.__setattr__(cls, name, Registered(cls, name))


def names_of_class(cls: type) -> set[str]:
    """Return the names of a class and its bases, without those that instances register."""
    return {name for base in cls.__mro__ for name, value in vars(base).items() if not isinstance(value, Registered)}
