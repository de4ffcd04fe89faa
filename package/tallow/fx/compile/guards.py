"""Guards: what a program reads besides tensors among its arguments, and whether that is still the same.

They are found before the program runs, by a walk from the function to what its code names: variables of closures,
defaults and globals, and from there modules, containers, objects, and the functions that these may call. Numbers,
strings and the identity of objects are compared; an attribute of an object only if some code of the program has its
name. A recorded run that changes what it reads breaks its own guards, and is not repeated.

What code may do is judged by its names alone, without running it: a function that has the name `print`, or the module
`random`, is refused, whether it gets there or not. Functions of tallow are not looked into: what matters in them is
recorded, see `tallow.fx.compile.recorder`.
"""

from __future__ import annotations

import inspect
import sys
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dis import get_instructions
from enum import Enum
from functools import lru_cache, partial
from itertools import pairwise
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from tallow.core.tensor import Tensor
from tallow.dtypes import dtype
from tallow.nn.hooks import STRUCTURE
from tallow.nn.module import Module
from tallow.optim.lr_scheduler import LRScheduler
from tallow.optim.optimizer import Optimizer

PLAIN = (int, float, complex, str, bytes, bool, type(None), np.generic, np.dtype, Enum, range, slice, dtype)
_VIEWS: dict[Any, Any] = {}
_OF_BUILTINS = (type(_VIEWS.keys()), type(_VIEWS.values()), type(_VIEWS.items()), type(_VIEWS.__len__))
STATEFUL = (np.ndarray, bytearray, memoryview, array, deque, MappingProxyType, *_OF_BUILTINS)
OF_TENSORS = frozenset(vars(Tensor)) | {"array"}  # attributes that are not the program's
MOST_OBJECTS = 100_000
ABSENT = object()
_REGISTRIES = "_parameters _buffers _modules _forward_hooks _forward_pre_hooks _backward_hooks _backward_pre_hooks"
REGISTRIES = frozenset(_REGISTRIES.split())
FOLLOWING = frozenset(("_hooks_with_kwargs", "_non_persistent_buffers_set"))  # sets that change only with registries
TRUSTED = frozenset(("tallow", "tallow_cuda", "numpy"))
HOLDERS = frozenset(("types", "collections", "functools", "contextlib"))  # whose code reads what their objects hold
_SAFE = "abc builtins collections contextlib copy dataclasses enum functools itertools math numbers operator re reprlib"
SAFE = frozenset(_SAFE.split()) | {"__future__", "types", "typing", *("_" + name for name in _SAFE.split())}
_REFUSED = "breakpoint compile eval exec globals help input locals open print set_default_dtype vars"
REFUSED = frozenset(_REFUSED.split())  # functions whose effects or results no guard sees
DRAWN = frozenset(("random", "load", "fromfile", "memmap"))  # of NumPy's names
_ANY_NAME = "getattr setattr delattr __dict__ attrgetter __getattribute__"
ANY_NAME = frozenset(_ANY_NAME.split())  # with these, a program may mean any attribute
_ASSIGNS = {"STORE_GLOBAL": "assigns a global variable", "DELETE_GLOBAL": "deletes a global variable"}
OPCODES = {"IMPORT_NAME": "imports a module", **_ASSIGNS}
HELD: dict[Any, tuple[str, ...]] = {  # what objects of Python refer to
    MethodType: ("__self__", "__func__"),
    partial: ("func", "args", "keywords"),
    classmethod: ("__func__",),
    staticmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
}
_CACHED: Any = type(lru_cache(len))

_disabled: dict[CodeType, str] = {}


def disable(function: Any, reason: str = "is not to be compiled") -> None:
    """Let programs that reach a function run eagerly."""
    _disabled[inspect.unwrap(getattr(function, "__func__", function)).__code__] = reason


class Unfit(Exception):
    """The program may do what cannot be repeated; the text goes on after "it"."""


class Check:
    """One comparison: what `owner` holds under `key` is still `value`.

    Args:
        kind: how to look up: "item", "length", "keys" in their order, "members" of a set, "cell" or "attribute"; "walk"
            compares nothing.
        is_named: it matters only if the program has the name `key`.
        is_counted: `STRUCTURE` counts its changes.
        is_walked: what it finds is guarded, too. An attribute that is not matters only if it is named itself.
    """

    __slots__ = ("is_counted", "is_named", "is_walked", "key", "kind", "owner", "value", "where")

    def __init__(
        self, owner: Any, kind: str, key: Any, value: Any, where: str,
        is_named: bool = False, is_counted: bool = False, is_walked: bool = True,
    ) -> None:  # fmt: skip
        self.owner, self.kind, self.key, self.value, self.where = owner, kind, key, value, where
        self.is_named, self.is_counted, self.is_walked = is_named, is_counted, is_walked

    def holds(self) -> bool:
        """Return whether the value is the same object, or an equal number or string."""
        owner, key, now = self.owner, self.key, ABSENT
        if self.kind == "walk":
            return True
        if self.kind == "cell":
            now = cell_value(owner)
        elif self.kind == "length":
            now = len(owner)
        elif self.kind == "keys":
            return bool((*owner,) == self.value)
        elif self.kind == "members":
            return bool(owner == self.value)
        elif self.kind == "attribute":
            now = getattr(owner, key, ABSENT)
        elif isinstance(owner, dict | MappingProxyType):
            now = owner.get(key, ABSENT)
        elif key < len(owner):
            now = owner[key]
        return now is self.value or are_equal(now, self.value)

    def source(self, name: Callable[[Any], str]) -> str:
        """Return the source of a comparison by identity; `name` returns the name of an object."""
        owner, value = name(self.owner), name(self.value)
        key = repr(self.key) if type(self.key) in (str, int) else name(self.key)
        if self.value is ABSENT and self.kind == "item":
            return f"{key} not in {owner}"
        return {
            "item": f"{owner}[{key}] is {value}",
            "length": f"len({owner}) == {value}",
            "keys": f"(*{owner},) == {value}",
            "members": f"{owner} == {value}",
            "cell": f"{owner}.cell_contents is {value}",
            "attribute": f"{owner}.{self.key} is {value}",
        }[self.kind]


def are_equal(a: Any, b: Any) -> bool:
    """Return whether two values are equal numbers or strings of one type, with the same sign of zero."""
    if type(a) is not type(b) or not isinstance(a, PLAIN) or isinstance(a, slice):
        return False
    return bool(a == b) and (bool(a != 0) or str(a) == str(b))


def cell_value(cell: CellType) -> Any:
    """Return what a variable of a closure holds; ABSENT before it is assigned."""
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


class Guards:
    """The guards of one program.

    Attributes:
        seen: id -> each object that the walk has met; it keeps them alive.
        names: all names in the code of the program.
        catches: the program may go on after an error.
    """

    def __init__(self) -> None:
        self.seen: dict[int, Any] = {}
        self.names = {"forward"}
        self.catches = False
        self.checks: list[Check] = []
        self._waiting: dict[str, list[Check]] = defaultdict(list)  # for a function that has their name

    def walk(self, root: Any, where: str) -> None:
        """Guard an object and what the program may reach from it.  Raises: Unfit"""
        stack = [(root, where)]
        while stack:
            value, where = stack.pop()
            if value is not ABSENT and not isinstance(value, PLAIN) and id(value) not in self.seen:
                self.seen[id(value)] = value
                if len(self.seen) > MOST_OBJECTS:
                    raise Unfit(f"reaches more than {MOST_OBJECTS:,} objects")
                for check in self._checks_of(value, where):
                    self.checks.append(check)
                    if check.is_walked and check.is_named and not self.reads(check.key):
                        self._waiting[check.key].append(check)
                    elif check.is_walked:
                        stack.append((check.value, check.where))
            if not stack:
                for name in [name for name in self._waiting if self.reads(name)]:
                    stack += [(check.value, check.where) for check in self._waiting.pop(name)]
        if id(np) in self.seen and (drawn := DRAWN & self.names):
            raise Unfit(f"uses numpy.{min(drawn)}")

    def reads(self, name: Any) -> bool:
        """Return whether the program may read an attribute of this name."""
        return name in self.names or not ANY_NAME.isdisjoint(self.names)

    def relevant(self) -> list[Check]:
        """Return the checks of what the program names.  Raises: Unfit if its changes cannot be seen"""
        relevant = [
            check
            for check in self.checks
            if not check.is_named or check.key in self.names or (check.is_walked and self.reads(check.key))
        ]
        for check in relevant:
            if check.kind != "walk" and is_stateful(check.value) and (not check.is_counted or self.reads(check.key)):
                raise Unfit(f"uses {check.where}, whose changes no guard sees")
        return relevant

    # ---------------------------------------------------------------------------------------------- kinds of objects

    def _checks_of(self, value: Any, where: str) -> Iterator[Check]:
        """Yield the checks of one object."""
        if isinstance(value, Tensor):
            for name in vars(value).keys() - OF_TENSORS:
                yield Check(vars(value), "item", name, vars(value)[name], f"{where}.{name}", is_named=True)
            return
        if str(getattr(value, "__module__", "")).startswith("numpy.random"):
            raise Unfit(f"uses {where}, which draws random numbers")
        if isinstance(value, _CACHED) and _is_of_program(value):
            raise Unfit(f"uses {where}, which keeps its results")
        if isinstance(value, FunctionType):
            yield from self._of_function(value, where)
        elif isinstance(value, list | tuple):
            if isinstance(value, list):
                yield Check(value, "length", None, len(value), f"len({where})")
            for i, part in enumerate(value):
                yield Check(value, "item", i, part, f"{where}[{i}]")
        elif isinstance(value, dict):
            yield Check(value, "keys", None, tuple(value), f"the keys of {where}")
            for key, part in value.items():
                yield Check(value, "item", key, part, f"{where}[{key!r}]")
        elif isinstance(value, set | frozenset):
            yield Check(value, "members", None, frozenset(value), where)
        elif (kind := next((kind for kind in HELD if isinstance(value, kind)), None)) is not None:
            for name in HELD[kind]:
                yield Check(value, "attribute", name, getattr(value, name), where)
        elif isinstance(value, BuiltinFunctionType):
            if not isinstance(value.__self__, ModuleType):
                yield Check(value, "attribute", "__self__", value.__self__, where)
            elif value.__name__ in REFUSED or (value.__module__ or "").partition(".")[0] not in SAFE | TRUSTED:
                raise Unfit(f"calls {value.__module__}.{value.__name__}")
        elif isinstance(value, ModuleType):
            yield from _of_module(value, where)
        elif isinstance(value, type):
            yield from _of_class(value, where)
        elif isinstance(value, Optimizer):
            yield Check(vars(value), "item", "param_groups", value.param_groups, f"{where}.param_groups", True)
            yield from _of_subclass(value)
        elif isinstance(value, LRScheduler):
            yield from _of_subclass(value)
        elif type(value).__module__.startswith("tallow.fx.compile.") and not isinstance(
            value, Module
        ):  # by what it compiles, not by its plans
            yield Check(value, "attribute", "function", value.function, where)
        else:
            yield from _of_object(value, where)

    def _of_function(self, function: FunctionType, where: str) -> Iterator[Check]:
        """Yield the checks of what a function reads.  Raises: Unfit for what it names"""
        own, code = function.__globals__.get("__name__") or "", function.__code__
        if (inner := getattr(inspect.unwrap(function), "__code__", None)) in _disabled:
            raise Unfit(f"reaches {inner.co_name}, and {inner.co_name} {_disabled[inner]}")
        root = own.partition(".")[0]
        if root in TRUSTED and (function.__module__ or "").startswith(own[:6]):
            return
        if root in sys.stdlib_module_names and root not in SAFE and not function.__name__.startswith("__"):
            raise Unfit(f"calls {own}.{code.co_name}")
        yield from self._checks_of(function.__dict__, where)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            yield Check(cell, "cell", None, cell_value(cell), name)
        yield Check(function, "attribute", "__code__", code, where, is_walked=False)  # notebooks reload it in place
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(function, name) is not None:
                yield Check(function, "attribute", name, getattr(function, name), where)
        if root in TRUSTED or root in SAFE:  # a decorator of theirs, around a function of the program
            return
        for part in _codes(code):
            self.names.update(part.co_names, (c for c in part.co_consts if isinstance(c, str)))
            reads, catches, unfit = _facts(part)
            self.catches |= catches
            refused = sorted(REFUSED.intersection(part.co_names).difference(function.__globals__))
            if unfit or refused:
                raise Unfit(unfit or f"calls {refused[0]}")
            for name in reads:
                value = function.__globals__.get(name, ABSENT)
                if name == "id" and value is ABSENT:
                    raise Unfit("calls id")
                yield Check(function.__globals__, "item", name, value, name)

    def finds_attributes(self) -> bool:
        """Return whether the program may find out that a tensor has an attribute which it did not have before."""
        return self.catches or not (ANY_NAME | {"hasattr"}).isdisjoint(self.names)


@lru_cache(1 << 12)
def _facts(code: CodeType) -> tuple[tuple[str, ...], bool, str]:
    """Return the global names that code reads, whether it catches errors, and why it is unfit, or ""."""
    steps = [(step.opname, step.argval) for step in get_instructions(code)]
    names = [opname for opname, _ in steps]
    catches = (
        "CHECK_EXC_MATCH" in names or "suppress" in code.co_names or ("PUSH_EXC_INFO", "POP_TOP") in pairwise(names)
    )
    reads = dict.fromkeys(argval for opname, argval in steps if "GLOBAL" in opname or opname == "LOAD_NAME")
    return tuple(reads), catches, next((OPCODES[name] for name in names if name in OPCODES), "")


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function, and of the functions in it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _of_module(module: ModuleType, where: str) -> Iterator[Check]:
    """Yield the checks of a module of the program: the names that code has.  Raises: Unfit"""
    if module.__name__.startswith("numpy.random"):
        raise Unfit(f"uses {where}, which draws random numbers")
    root = module.__name__.partition(".")[0]
    if root in TRUSTED or root in SAFE:
        return
    if root in sys.stdlib_module_names:
        raise Unfit(f"uses the module {module.__name__}")
    for name, part in list(vars(module).items()):
        if not name.startswith("__"):
            yield Check(vars(module), "item", name, part, f"{where}.{name}", is_named=True)


def _is_of_program(kind: Any) -> bool:
    """Return whether a class or a function is neither of tallow, nor of NumPy, nor of Python."""
    root = kind.__module__.partition(".")[0]
    return root not in TRUSTED and root not in sys.stdlib_module_names


def _of_class(kind: type, where: str) -> Iterator[Check]:
    """Yield the checks of a class of the program, with its bases: attributes and methods.  Raises: Unfit"""
    root = kind.__module__.partition(".")[0]
    if root in sys.stdlib_module_names and root not in SAFE:
        raise Unfit(f"uses {kind.__module__}.{kind.__name__}")
    if _is_of_program(type(kind)):
        yield Check(kind, "walk", None, type(kind), type(kind).__name__)
    for base in kind.__mro__ if _is_of_program(kind) else ():
        is_own = _is_of_program(base)
        for name, part in list(vars(base).items()) if base is not object else ():
            is_special = name.startswith("__") and name.endswith("__")
            if is_special and not (is_own and isinstance(part, FunctionType | classmethod | staticmethod)):
                continue
            # Looked up by the class, a new attribute of a class in between is seen, too.
            is_usual = type(kind) is type and isinstance(part, (FunctionType, property, *PLAIN)) and name.isidentifier()
            owner = kind if is_usual and getattr(kind, name, ABSENT) is part else vars(base)
            if is_own or owner is kind:
                how = "attribute" if owner is kind else "item"
                yield Check(owner, how, name, part, f"{where}.{name}", not is_special, is_walked=is_own)


def _of_subclass(value: Any) -> Iterator[Check]:
    """Yield the checks of an optimizer or a scheduler, whose methods are recorded as a whole.  Raises: Unfit"""
    kind, own = type(value), vars(value)
    # A class of the program changes its attributes in its own methods, which are called again.
    for name in {"step"} if _is_of_program(kind) else own.keys() | {"step"}:
        yield Check(own, "item", name, own.get(name, ABSENT), f"{kind.__name__}.{name}", is_named=True, is_walked=False)
    if isinstance(value, LRScheduler) and any("step" in vars(base) for base in filter(_is_of_program, kind.__mro__)):
        raise Unfit(f"uses {kind.__name__}, whose step is not that of tallow")
    if _is_of_program(kind):
        yield Check(value, "walk", None, kind, kind.__name__)


def _of_object(value: Any, where: str) -> Iterator[Check]:
    """Yield the checks of an instance: its attributes, and its class."""
    kind, own = type(value), getattr(value, "__dict__", None)
    is_module, is_own = isinstance(value, Module), _is_of_program(kind)
    is_read_unseen = kind.__module__.startswith("tallow.") or kind.__module__.partition(".")[0] in HOLDERS
    if isinstance(own, dict) and (is_own or is_read_unseen):
        yield Check(own, "keys", None, tuple(own), f"the attributes of {where}", is_counted=is_module)
        for name, part in list(own.items()):
            if is_module and name in REGISTRIES:
                is_empty = not part  # what it has may be replaced without a count, as by module._modules[name] = other
                yield Check(own, "item", name, part, f"{where}.{name}", is_counted=True, is_walked=False)
                yield Check(part, "keys", None, tuple(part), f"the keys of {where}.{name}", is_counted=is_empty)
                for key, entry in part.items():
                    yield Check(part, "item", key, entry, f"{where}.{key}")
            else:  # code of tallow and of Python may read any attribute of its objects, and of modules
                is_walked = not is_module or name not in FOLLOWING
                is_named = not is_module and not is_read_unseen
                yield Check(own, "item", name, part, f"{where}.{name}", is_named, is_module, is_walked)
    for base in kind.__mro__[:-1]:
        for name in getattr(base, "__slots__", ()) if _is_of_program(base) else ():
            yield Check(value, "attribute", name, getattr(value, name, ABSENT), f"{where}.{name}", is_named=True)
    if is_own:
        yield Check(value, "walk", None, kind, kind.__name__)


def is_stateful(value: Any) -> bool:
    """Return whether an object has contents that no check compares: an array, an iterator, a file, a generator."""
    if isinstance(value, STATEFUL) or (hasattr(type(value), "__next__") and not isinstance(value, type)):
        return True
    kind = type(value)
    root = kind.__module__.partition(".")[0]
    if root == "numpy":
        return not isinstance(value, np.generic | np.dtype | np.ufunc) and not callable(value)
    return root in sys.stdlib_module_names and root not in SAFE and not isinstance(value, PLAIN)


class Compared:
    """The guards of a plan, ready to be compared.

    Identity is compared first, by one generated expression. Where that fails, each value is compared by itself, and an
    equal number is as good as the same.
    """

    def __init__(self, checks: list[Check]) -> None:
        self.counted = [check for check in checks if check.is_counted]
        self.others = [check for check in checks if not check.is_counted and check.kind != "walk"]
        self.failed = ""
        self._changes = STRUCTURE.changes
        namespace: dict[str, Any] = {}

        def name(x: Any) -> str:
            namespace[known := f"k{id(x)}"] = x
            return known

        terms = dict.fromkeys(check.source(name) for check in self.others)
        self._are_identical = eval(f"lambda: {' and '.join(terms) or True}", namespace)

    def hold(self) -> bool:
        """Return whether everything is as it was."""
        try:
            is_same = self._are_identical()
        except Exception:  # an empty cell, a shorter list, keys that cannot be compared
            is_same = False
        if not is_same and not self._all_hold(self.others):
            return False
        if STRUCTURE.changes != self._changes:
            if not self._all_hold(self.counted):
                return False
            self._changes = STRUCTURE.changes
        return True

    def _all_hold(self, checks: list[Check]) -> bool:
        self.failed = next((check.where for check in checks if not check.holds()), "")
        return not self.failed
