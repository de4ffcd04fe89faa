"""Names: of nodes in a graph, and of functions in generated code."""

from __future__ import annotations

import builtins
import importlib
import keyword
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import tallow.nn.functional  # noqa: F401 - fills the table of public functions
from tallow.core.public_api import PUBLIC
from tallow.dtypes import float32
from tallow.errors import MissingNameError
from tallow.ops.table import OPS

# Names that the generated code gives a meaning of its own.
RESERVED = frozenset((*keyword.kwlist, *dir(builtins), "inf", "nan", "self", "tallow", "torch"))
# Where public functions are found, the place that PyTorch's users write first.
PLACES = {"tl": "tallow", "F": "tallow.nn.functional", "linalg": "tallow.linalg", "special": "tallow.special"}
METHODS = "tallow.Tensor"
_SHOWN = frozenset((*PLACES.values(), METHODS))
CALL = "call"  # the attribute of an op that is not published, with its function


class Namespace:
    """The names in a graph: each is used once, and none hides a keyword or a builtin."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._last: dict[str, int] = {}  # base -> the number of its last name

    def create_name(self, candidate: str) -> str:
        """Return the candidate, or with a number after it if it is taken."""
        candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        if candidate in self._used or candidate in RESERVED:
            numbered = re.fullmatch(r"(.*?)_(\d+)", candidate)
            base = numbered[1] if numbered else candidate
            number = self._last.get(base, 0) + 1
            while f"{base}_{number}" in self._used:
                number += 1
            self._last[base] = number
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        return candidate

    def use(self, name: str) -> None:
        """Take note of a name that is given from outside."""
        self._used.add(name)


def candidate_for(target: str | Callable[..., Any]) -> str:
    """Return the name that a node with this target gets if it is free, in snake case and without dunders."""
    name = target if isinstance(target, str) else qualified_name(target).removesuffix(f".{CALL}").rpartition(".")[2]
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()


@cache
def _public_names() -> dict[int, str]:
    """Return id of a public function of tallow -> its qualified name. The table keeps the functions alive."""
    names: dict[int, str] = {}
    for place, module in (*PLACES.items(), ("Tensor", METHODS), ("Tensor_", METHODS)):
        for name, function in PUBLIC[place].items():
            if names.setdefault(id(function), f"{module}.{name}") != f"{module}.{name}":
                own = function.__name__
                if name == own and names[id(function)].startswith(f"{module}."):
                    names[id(function)] = f"{module}.{name}"  # its own name, rather than an alias
    for op in OPS.values():  # those that are not published
        if op.function.__module__.startswith("tallow."):
            names.setdefault(id(op.call), f"{op.function.__module__}.{op.name}.{CALL}")
    return names


def qualified_name(function: Any) -> str:
    """Return the dotted name by which a function or class is found: "tallow.nn.functional.relu", "_operator.add".

    Functions of Python's builtins have no module in front: "getattr".
    """
    if (public := _public_names().get(id(function))) is not None:
        return public
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__
    module = getattr(function, "__module__", None)
    if module is None or module == "builtins":
        return name
    return f"{module}.{name}"


def shown_root() -> str:
    """Return the package that printed names begin with: "torch" while tallow stands in for it, as dtypes print."""
    return repr(float32).partition(".")[0]


def shown_name(function: Any) -> str:
    """Return the qualified name of a function as code and texts show it."""
    name = qualified_name(function)
    module, _, own = name.rpartition(".")
    if module == "_operator":
        return f"operator.{own}"
    return f"{shown_root()}{module.removeprefix('tallow')}.{own}" if module in _SHOWN else name


def is_tensor_method(function: Any) -> bool:
    """Return whether a function is a method of Tensor and nothing else."""
    return qualified_name(function).startswith(f"{METHODS}.")


def is_of_tallow(function: Any) -> bool:
    """Return whether generated code can name a function by its public name in tallow."""
    return id(function) in _public_names()


def find(qualified: str) -> Any:
    """Return the object with a qualified name.  Raises: MissingNameError"""
    parts = qualified.split(".")
    if hasattr(builtins, qualified):
        return getattr(builtins, qualified)
    for length in range(len(parts) - 1, 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            value = getattr(value, part)
        return value
    raise MissingNameError(f"there is no function {qualified!r}")
