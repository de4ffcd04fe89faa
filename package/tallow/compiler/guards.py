"""Guards: what a recorded run has read besides its tensors, and whether it is still the same.

The guards of a plan are found by walking from what the program's functions name: their closures, defaults and global
variables, and from there through modules, containers and objects. Numbers, strings and the identity of objects are
compared; an attribute is compared only if some function that ran has its name. Learning rates and other options of an
optimizer are not guarded: its update reads them in every run.

A walk begins before the function that it serves runs. So if a run changes what it reads, the guards fail right after
it, and no plan is made.
"""

from __future__ import annotations

import dis
import gc
import sysconfig
from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from types import CellType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tallow.core.tensor import Tensor
from tallow.nn.hooks import STRUCTURE
from tallow.nn.module import Module
from tallow.optim.lr_scheduler import LRScheduler
from tallow.optim.optimizer import Optimizer

PLAIN = (int, float, complex, str, bytes, bool, type(None), np.generic, np.dtype, Enum)
MOST_OBJECTS = 100_000
STATEFUL = (np.ndarray, bytearray, memoryview, array, deque)
ABSENT = object()
_REGISTRIES = "_parameters _buffers _modules _forward_hooks _forward_pre_hooks _backward_hooks _backward_pre_hooks"
REGISTRIES = frozenset(_REGISTRIES.split())
# Sets of a module that change only with its registries.
FOLLOWING = frozenset(("_hooks_with_kwargs", "_non_persistent_buffers_set"))
LIBRARIES = frozenset(("tallow", "tallow_cuda", "numpy", "builtins", "abc", "typing", "enum"))
# Names whose use means that any attribute may be read.
DYNAMIC = frozenset(("getattr", "__dict__", "vars", "attrgetter", "__getattribute__"))
_LIBRARY = tuple({sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")})


@dataclass
class Check:
    """One comparison: what `owner` holds under `key` is still `value`.

    Attributes:
        owner: a dict, a list, a tuple, a cell or an object.
        kind: how to look up: "item", "length", "members" of a set, "cell" or "attribute".
        is_named: it matters only if a function names `key`.
        is_counted: `STRUCTURE` counts its changes.
        is_walked: what it finds is guarded, too.
    """

    owner: Any
    kind: str
    key: Any
    value: Any
    where: str
    is_named: bool = False
    is_counted: bool = False
    is_walked: bool = True

    def current(self) -> Any:
        """Return what is there now."""
        owner, key = self.owner, self.key
        if self.kind == "cell":
            return cell_value(owner)
        if self.kind == "length":
            return len(owner)
        if self.kind == "members":
            return frozenset(owner)
        if self.kind == "attribute":
            return getattr(owner, key, ABSENT)
        if isinstance(owner, dict):
            return owner.get(key, ABSENT)
        return owner[key] if key < len(owner) else ABSENT

    def source(self, owner: str, value: str, namespace: dict[str, Any]) -> str:
        """Return the source of a comparison by identity; `namespace` gets what it refers to."""
        namespace[owner], namespace[value] = self.owner, self.value
        if self.kind == "length":
            return f"len({owner}) == {self.value}"
        if self.kind == "members":
            return f"{owner} == {value}"
        if self.kind == "cell":
            return f"{owner}.cell_contents is {value}"
        if self.kind == "attribute":
            return f"{owner}.{self.key} is {value}"
        key = repr(self.key) if isinstance(self.key, str | int) else f"{value}_key"
        namespace[f"{value}_key"] = self.key
        return (
            f"{owner}.get({key}, ABSENT) is {value}" if isinstance(self.owner, dict) else f"{owner}[{key}] is {value}"
        )

    def holds(self) -> bool:
        """Return whether the value is the same object, or an equal number or string."""
        now = self.current()
        if self.kind == "members":
            return bool(now == self.value)
        return now is self.value or (type(now) is type(self.value) and isinstance(now, PLAIN) and now == self.value)


def cell_value(cell: CellType) -> Any:
    """Return what a variable of a closure holds; ABSENT before it is assigned."""
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


@dataclass
class Guards:
    """The guards of one recording.

    Attributes:
        reachable: id of an array -> the tensor that has it, for every tensor that the walk has found.
        names: attributes that functions have named.
    """

    reachable: dict[int, Tensor]
    names: set[str] = field(default_factory=set)
    checks: list[Check] = field(default_factory=list)
    _seen: dict[int, Any] = field(default_factory=dict)
    _codes: set[CodeType] = field(default_factory=set)

    def add_frame(self, frame: FrameType) -> None:
        """Guard what a function of the program reads, which is about to run."""
        code = frame.f_code
        if code in self._codes:
            return
        self._codes.add(code)
        self.names.update(code.co_names, (c for c in code.co_consts if isinstance(c, str)))
        if code.co_freevars and (function := _function_of(frame)) is not None:
            self.walk(function, code.co_name)
        instructions = dis.get_instructions(code)
        for name in {i.argval for i in instructions if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}:
            if name in frame.f_globals:
                value = frame.f_globals[name]
                self.checks.append(Check(frame.f_globals, "item", name, value, name))
                self.walk(value, name)

    def walk(self, root: Any, where: str) -> None:
        """Guard an object and what it holds."""
        stack = [(root, where)]
        while stack:
            value, where = stack.pop()
            if isinstance(value, PLAIN) or id(value) in self._seen:
                continue
            self._seen[id(value)] = value
            if len(self._seen) > MOST_OBJECTS:
                raise TooMany
            if isinstance(value, Tensor):
                self.reachable[id(value.array)] = value
            else:
                for check in _checks_of(value, where):
                    self.checks.append(check)
                    if check.is_walked and check.value is not ABSENT:
                        stack.append((check.value, check.where))

    def relevant(self) -> list[Check]:
        """Return the checks of what functions have named."""
        named = self.names
        takes_all = not DYNAMIC.isdisjoint(named)
        return [check for check in self.checks if takes_all or not check.is_named or check.key in named]

    def unseen(self) -> str | None:
        """Return what may change without a change that a guard sees; None if nothing."""
        return next((check.where for check in self.relevant() if _is_stateful(check.value)), None)

    def changed(self) -> str | None:
        """Return what the run has changed itself; None if nothing."""
        return next((check.where for check in self.relevant() if not check.holds()), None)


class TooMany(Exception):
    """The function reaches more objects than can be guarded."""

    def __init__(self) -> None:
        super().__init__(f"reaches more than {MOST_OBJECTS:,} objects")


class Compared:
    """The guards of a plan, ready to be compared.

    Identity is compared first, by one generated expression. Where that fails, each value is compared by itself, and an
    equal number is as good as the same.
    """

    def __init__(self, checks: list[Check]) -> None:
        self.counted = [check for check in checks if check.is_counted]
        self.others = [check for check in checks if not check.is_counted]
        self.failed = ""
        self._changes = STRUCTURE.changes
        namespace: dict[str, Any] = {"ABSENT": ABSENT}
        terms = [check.source(f"o{i}", f"k{i}", namespace) for i, check in enumerate(self.others)]
        self._are_identical = eval(f"lambda: {' and '.join(dict.fromkeys(terms)) or True}", namespace)

    def hold(self) -> bool:
        """Return whether everything is as it was."""
        try:
            is_same = self._are_identical()
        except (ValueError, IndexError, AttributeError):  # an empty cell, a shorter list
            is_same = False
        if not is_same and not self._all_hold(self.others):
            return False
        if STRUCTURE.changes != self._changes:
            if not self._all_hold(self.counted):
                return False
            self._changes = STRUCTURE.changes
        return True

    def _all_hold(self, checks: list[Check]) -> bool:
        for check in checks:
            if not check.holds():
                self.failed = check.where
                return False
        return True


def _is_stateful(value: Any) -> bool:
    """Return whether an object has contents that no check compares: an iterator, an array, a buffer, a queue."""
    return isinstance(value, STATEFUL) or (hasattr(type(value), "__next__") and not isinstance(value, type))


def _checks_of(value: Any, where: str) -> Iterator[Check]:
    """Yield the checks of one object."""
    if isinstance(value, list | tuple):
        if isinstance(value, list):
            yield Check(value, "length", None, len(value), f"len({where})")
        for i, part in enumerate(value):
            yield Check(value, "item", i, part, f"{where}[{i}]")
    elif isinstance(value, dict):
        yield Check(value, "length", None, len(value), f"len({where})")
        for key, part in value.items():
            yield Check(value, "item", key, part, f"{where}[{key!r}]")
    elif isinstance(value, set):
        yield Check(value, "members", None, frozenset(value), where)
    elif isinstance(value, FunctionType):
        yield from _checks_of(value.__dict__, where)
        if not value.__module__ or not value.__module__.startswith("tallow."):
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                yield Check(cell, "cell", None, cell_value(cell), name)
            for part in (value.__defaults__, value.__kwdefaults__):
                if part is not None:
                    yield Check(
                        value, "attribute", "__defaults__" if isinstance(part, tuple) else "__kwdefaults__", part, where
                    )
    elif isinstance(value, MethodType):
        yield Check(value, "attribute", "__self__", value.__self__, where)
        yield Check(value, "attribute", "__func__", value.__func__, where)
    elif isinstance(value, partial):
        for name in ("func", "args", "keywords"):
            yield Check(value, "attribute", name, getattr(value, name), where)
    elif isinstance(value, Optimizer):
        yield from _checks_of_optimizer(value, where)
    elif isinstance(value, ModuleType):
        if not is_of_libraries(value.__name__) and not _is_of_library(getattr(value, "__file__", None)):
            for name, part in list(vars(value).items()):
                if isinstance(part, (*PLAIN, Tensor, list, dict)) and not name.startswith("__"):
                    yield Check(vars(value), "item", name, part, f"{where}.{name}", is_named=True)
    elif isinstance(value, type):
        if not is_of_libraries(value.__module__):
            for base in (base for base in value.__mro__ if not is_of_libraries(base.__module__)):
                for name, part in list(vars(base).items()):
                    if isinstance(part, (*PLAIN, Tensor, list, dict, tuple)) and not name.startswith("__"):
                        yield Check(base, "attribute", name, part, f"{where}.{name}", is_named=True)
    elif not isinstance(value, Module) and type(value).__module__.startswith("tallow.compiler"):  # by what it compiles
        if (function := getattr(value, "function", None)) is not None:
            yield Check(value, "attribute", "function", function, where)
    elif not isinstance(value, LRScheduler):
        yield from _checks_of_object(value, where)


def _checks_of_optimizer(optimizer: Optimizer, where: str) -> Iterator[Check]:
    groups = f"{where}.param_groups"
    yield Check(optimizer.__dict__, "item", "param_groups", optimizer.param_groups, groups, is_walked=False)
    yield Check(optimizer.param_groups, "length", None, len(optimizer.param_groups), f"len({groups})")
    for i, group in enumerate(optimizer.param_groups):
        place = f"{groups}[{i}]"
        yield Check(group, "item", "params", group["params"], f"{place}['params']")
        for name, option in group.items():
            if name != "params":  # named only by a program that reads it, and then the plan would hold its value
                yield Check(group, "item", name, option, f"{place}[{name!r}]", is_named=True)
    for name in ("_step_pre_hooks", "_step_post_hooks"):
        yield Check(optimizer.__dict__, "item", name, getattr(optimizer, name), f"{where}.{name}")


def _checks_of_object(value: Any, where: str) -> Iterator[Check]:
    """Yield the checks of an instance: its attributes, and those of its class."""
    kind = type(value)
    own = getattr(value, "__dict__", None)
    is_module = isinstance(value, Module)
    if isinstance(own, dict) and (is_module or not _is_plain_library(kind)):
        yield Check(own, "length", None, len(own), f"the attributes of {where}", is_counted=is_module)
        for name, part in list(own.items()):
            if is_module and name in REGISTRIES:
                yield from _checks_of_registry(own, name, part, where)
            else:
                is_walked = not is_module or name not in FOLLOWING
                yield Check(own, "item", name, part, f"{where}.{name}", True, is_counted=is_module, is_walked=is_walked)
    for base in kind.__mro__[:-1]:
        for name in getattr(base, "__slots__", ()) if not is_of_libraries(base.__module__) else ():
            yield Check(value, "attribute", name, getattr(value, name, ABSENT), f"{where}.{name}", is_named=True)
    if not _is_plain_library(kind):
        yield from _checks_of(kind, kind.__name__)


def _checks_of_registry(own: dict[str, Any], name: str, registry: Any, where: str) -> Iterator[Check]:
    """Yield the checks of the parameters, buffers, children or hooks of a module, whose changes `STRUCTURE` counts."""
    yield Check(own, "item", name, registry, f"{where}.{name}", is_counted=True, is_walked=False)
    yield Check(registry, "length", None, len(registry), f"len({where}.{name})", is_counted=True)
    for key, part in registry.items():
        yield Check(registry, "item", key, part, f"{where}.{key}", is_counted=True)


def is_of_libraries(module: str) -> bool:
    """Return whether a module is of the packages whose own settings are not guarded."""
    return module.partition(".")[0] in LIBRARIES


def _is_plain_library(kind: type) -> bool:
    """Return whether a class is of NumPy or the standard library, whose objects are compared by identity."""
    module = kind.__module__.partition(".")[0]
    return module in ("numpy", "builtins", "functools", "collections", "typing", "threading", "logging", "re", "_io")


def _is_of_library(filename: str | None) -> bool:
    return filename is None or (filename.startswith(_LIBRARY) and "site-packages" not in filename)


def _function_of(frame: FrameType) -> FunctionType | None:
    """Return the function that a frame runs, which holds the variables of its closure."""
    code = frame.f_code
    values = {name: frame.f_locals.get(name, ABSENT) for name in code.co_freevars}
    for referrer in gc.get_referrers(code):
        if isinstance(referrer, FunctionType) and all(
            cell_value(cell) is values[name]
            for name, cell in zip(code.co_freevars, referrer.__closure__ or (), strict=True)
        ):
            return referrer
    return None
