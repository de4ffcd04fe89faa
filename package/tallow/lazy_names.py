"""Module attributes that are imported at first use, and the error for attributes that do not exist."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from opcode import opmap
from types import FrameType
from typing import Any

from tallow.errors import MissingImportError, MissingNameError

PEERS = {"tallow.keras": "Keras", "tallow.transformers": "transformers"}  # whose names a package has


def import_name(target: str) -> Any:
    """Return what "tallow.io:load" or, for a module, "tallow.io" names."""
    home, _, attribute = target.partition(":")
    value = importlib.import_module(home)
    return getattr(value, attribute) if attribute else value


def names_of(
    module: str,
    lazy: Mapping[str, str] | None = None,
    registry: Mapping[str, Any] | None = None,
    rule: Callable[[str], str | None] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a module: `__getattr__, __dir__ = names_of(__name__)`.

    Args:
        lazy: name -> target, written as entry points are: "tallow.io:load", or "tallow.io" for a module. The target is
            imported at the first use of the name.
        registry: further names and their values. It may grow while the program runs.
        rule: returns the target of a name that no table lists, such as one of a family; None for other names.

    Raises:  (the `__getattr__`) MissingNameError for any other name; MissingImportError in `from module import name` if
             another package of tallow has the name
    """
    lazy = lazy or {}
    registry = {} if registry is None else registry  # not `or`: it may be empty now and grow later

    def get(name: str) -> Any:
        if name in registry:
            return registry[name]
        target = lazy.get(name) or (rule(name) if rule is not None else None)
        if target is None:
            if _imports_name(sys._getframe(1)) and (home := _home_among_peers(module, name)):
                raise MissingImportError(
                    f"cannot import name {name!r} from {module!r}", hint=f"from {home} import {name}"
                )
            raise missing(module, name)
        value = import_name(target)
        vars(sys.modules[module])[name] = value  # so that Python does not call `__getattr__` for this name again
        return value

    def listing() -> list[str]:
        own = vars(sys.modules[module])
        dunders = {name for name in own if name.startswith("__")}
        return sorted({*own.get("__all__", own), *dunders, *lazy, *registry})

    return get, listing


def _imports_name(frame: FrameType) -> bool:
    """Return whether a frame runs `from module import name`: of an AttributeError, Python would drop the hint."""
    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


def _home_among_peers(module: str, name: str) -> str | None:
    """Return the package with transformers' or another library's names that has a name; None if there is none."""
    others = (home for home in PEERS if not module.startswith(home))
    return next((home for home in others if name in dir(importlib.import_module(home))), None)


def missing(module: str, name: str) -> MissingNameError:
    """Return the error for a name that a module does not have."""
    peer = PEERS.get(".".join(module.split(".")[:2]), "PyTorch")
    hint = f"tallow may not support this {peer} name yet; see dir({module})"
    return MissingNameError(f"module {module!r} has no attribute {name!r}", hint=hint)
