"""The names a module answers to beside its own: what is imported when it is first asked for, and what is missing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from tallow.errors import MissingNameError


def names_of(
    module: str, later: Mapping[str, str] | None = None, offered: Mapping[str, Any] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module: `__getattr__, __dir__ = names_of(__name__)`.

    Args:
        later: name -> what it stands for, as entry points are written: "tallow.io:load", or "tallow.io" for a module;
            imported at the first use of the name.
        offered: further names, which may be added to as the program runs.
    Raises:  (the `__getattr__`) MissingNameError for any other name
    """
    later = later or {}
    offered = {} if offered is None else offered  # not `or`: it may be empty now, and fill up later

    def get(name: str) -> Any:
        if name in offered:
            return offered[name]
        if name not in later:
            raise missing(module, name)
        home, _, attribute = later[name].partition(":")
        found = importlib.import_module(home)
        if attribute:
            found = getattr(found, attribute)
        vars(sys.modules[module])[name] = found  # the next time Python finds it by itself
        return found

    def listing() -> list[str]:
        own = vars(sys.modules[module])
        dunders = {name for name in own if name.startswith("__")}
        return sorted({*own.get("__all__", own), *dunders, *later, *offered})

    return get, listing


def missing(module: str, name: str) -> MissingNameError:
    """The error for a name that a module does not have."""
    whose = "Keras'" if module.startswith("tallow.keras") else "PyTorch's"
    mend = f"it may be a name of {whose} that tallow does not have yet; see dir({module})"
    return MissingNameError(f"module {module!r} has no attribute {name!r}", mend=mend)
