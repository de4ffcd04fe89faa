"""Names of PyTorch that mean nothing on tallow: they can be imported, and raise where they are used."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

from tallow.errors import UnsupportedError


class _Refusing(type):
    """The class of absent names: a call raises."""

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        raise refusal(f"{cls.__module__}.{cls.__qualname__}", *args, hint=getattr(cls, "_hint", None), **kwargs)


def refusal(name: str, *_args: object, hint: str | None, **_kwargs: object) -> UnsupportedError:
    """Return the error for the use of a name."""
    return UnsupportedError(f"{name}: tallow, which stands in for torch here, has no such feature", hint=hint)


def absent(name: str, hint: str) -> Any:
    """Return a class in the place of a class or function of PyTorch. It can be a base class; a call of it raises.

    Args:
        name: its path, such as "torch.onnx.export".
        hint: what to use in its place.
    """
    home, _, short = name.rpartition(".")
    doc = f"Raise UnsupportedError if called: {hint}."
    return _Refusing(short, (), {"__module__": home, "__doc__": doc, "_hint": hint})


def absent_module(path: str, names: list[str], hint: str) -> ModuleType:
    """Return a module of absent names, such as "torch.distributed.checkpoint"."""
    module = ModuleType(path, f"Names of {path}, which raise in use.")
    vars(module).update({name: absent(f"{path}.{name}", hint) for name in names})
    return module
