"""Decide whether modules compute exactly what a fused block computes, and notice when they change.

A model describes the modules that its fused block replaces as a `Pattern`. `why_not` compares modules with it, and
`Blocks` keeps the blocks that were built from modules that match, until something in those modules changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter, is_
from typing import Any, Generic, TypeVar

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.devices import device_type_of
from tallow.errors import TallowError
from tallow.nn.block_buffer import BlockBuffer
from tallow.nn.hooks import STRUCTURE
from tallow.nn.module import Module
from tallow.tape.writes import last_write, writes

T = TypeVar("T")

Parts = Callable[[], Mapping[str, Module]]
ELEMENTS = frozenset({dtypes.float32, dtypes.float16, dtypes.bfloat16})


@dataclass(frozen=True)
class Kind:
    """The requirements of a fused block for one class of modules.

    Attributes:
        settings: attributes that the block is built from, or that decide whether it may run.
        allowed: attributes that must be one of these objects.
        dropout: attributes with a probability, which must be 0 in training mode.
        methods: a subclass that overrides none of these computes the same. Without any, every subclass is refused.
        is_called: the block calls the module, whatever is in it.
        copied: the block holds a copy of the module's parameters, whatever their dtype.
    """

    settings: tuple[str, ...] = ()
    allowed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    dropout: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    is_called: bool = False
    copied: bool = False

    @property
    def attributes(self) -> tuple[str, ...]:
        """All attributes to watch."""
        return (*self.settings, *self.allowed, *self.dropout)


@dataclass(frozen=True)
class Pattern:
    """The modules that a fused block replaces.

    Attributes:
        kinds: every class of module that may occur, by class.
        elements: the dtypes that parameters may have. All parameters must have the same.
        device_types: the devices that parameters may be on; None means any.
    """

    kinds: Mapping[type[Module], Kind]
    elements: frozenset[dtypes.dtype] = ELEMENTS
    device_types: frozenset[str] | None = None

    def kind_of(self, cls: type[Module]) -> Kind | None:
        """Return the kind of a class, which may be that of a base class that computes the same; None for another."""
        if cls in self.kinds:
            return self.kinds[cls]
        for base, kind in self.kinds.items():
            if kind.methods and issubclass(cls, base) and _inherits(cls, base, kind.methods):
                return kind
        return None


def _inherits(cls: type[Module], base: type[Module], methods: Iterable[str]) -> bool:
    return all(getattr(cls, name) is getattr(base, name) for name in methods)


def why_not(parts: Mapping[str, Module], pattern: Pattern) -> str | None:
    """Return why modules cannot run fused, naming the module at fault; None if they can.

    Args:    parts: modules by the names to report. Each is compared with the pattern, and so is everything in it.
    """
    elements: set[dtypes.dtype] = set()  # of all parameters so far
    return next(filter(None, (_why_not(name, module, pattern, elements) for name, module in parts.items())), None)


def _why_not(name: str, module: Module, pattern: Pattern, elements: set[dtypes.dtype]) -> str | None:
    kind = pattern.kind_of(type(module))
    if kind is None:
        return f"{name} is a {type(module).__name__}, which no fused block computes"
    if kind.is_called:
        return None
    if module.has_hooks():
        return f"{name} has hooks"
    if "forward" in vars(module):
        return f"{name} has a forward of its own"
    if module.training and any(getattr(module, attribute) for attribute in kind.dropout):
        return f"{name} is in training mode and has dropout"
    for attribute, values in kind.allowed.items():
        value = getattr(module, attribute)
        if not any(value is each for each in values):
            if values == (None,):
                return f"{name} has a {attribute}, which the fused block does not take"
            return f"{name}.{attribute} is {_described(value)}; the fused block has {_listed(map(_described, values))}"
    for attribute, parameter in module._parameters.items():
        if parameter is not None:
            elements.add(parameter.dtype)
            reason = _unfit(f"{name}.{attribute}", parameter, pattern, elements)
        else:
            reason = f"{name} has no weight" if attribute == "weight" else None
        if reason is not None:
            return reason
    for attribute, child in module._modules.items():
        place = f"{name}.{attribute}"
        reason = f"{place} is None" if child is None else _why_not(place, child, pattern, elements)
        if reason is not None:
            return reason
    return None


def _unfit(name: str, parameter: Tensor, pattern: Pattern, elements: set[dtypes.dtype]) -> str | None:
    """Return why a fused block cannot read a parameter, or None."""
    if not elements <= pattern.elements:
        names = _listed(dtype.name for dtype in pattern.elements)
        return f"{name} is {parameter.dtype.name}; the fused block takes {names}"
    if len(elements) > 1:
        return f"{name} is {parameter.dtype.name}, and other parameters have another dtype"
    device_type = device_type_of(parameter.array)
    if pattern.device_types is not None and device_type not in pattern.device_types:
        return f"{name} is on {device_type}; the fused block runs on {_listed(pattern.device_types)}"
    return None


def _described(value: Any) -> str:
    return getattr(value, "__name__", type(value).__name__).lstrip("_")


def _listed(names: Iterable[str]) -> str:
    return " or ".join(sorted(names))


class Snapshot:
    """The arrays, modules, hooks and settings that blocks were built from.

    `holds` runs before every token, so it compares the structure of the modules only after a change to any module. It
    always compares arrays, because `Module.to` replaces the array of a parameter. Blocks read arrays where they are, so
    that a write into one needs no new blocks; except half-precision arrays that are no matrices, of which they hold
    copies in float32, and the parameters of modules whose `Kind` says so.
    """

    def __init__(self, parts: Parts, pattern: Pattern) -> None:
        self._parts = parts
        self._pattern = pattern
        self._changes = STRUCTURE.changes
        self._structure = list(_structure(parts(), pattern))
        tensors = [value for value in self._structure if isinstance(value, Tensor)]
        self._tensors = [tensor for tensor in tensors if not isinstance(tensor, BlockBuffer)]
        self._arrays = list(map(_ARRAY, self._tensors))
        self._buffers = [tensor for tensor in tensors if isinstance(tensor, BlockBuffer)]
        self._held = list(map(_HELD, self._buffers))
        self._copied = [array for array in self._arrays if array.ndim != 2 and array.dtype in dtypes.HALVES]
        modules = (value for value in self._structure if isinstance(value, Module))
        copied = (module for module in modules if (kind := pattern.kind_of(type(module))) is not None and kind.copied)
        self._copied += [parameter.array for module in copied for parameter in module.parameters()]
        self._last_write, self._hidden_writes = writes.last, writes.hidden

    def holds(self) -> bool:
        """Return whether nothing has changed."""
        if not all(map(is_, map(_ARRAY, self._tensors), self._arrays)):
            return False
        if not all(map(is_, map(_HELD, self._buffers), self._held)):
            return False
        if self._copied and self._written():
            return False
        changes = STRUCTURE.changes
        if changes == self._changes:
            return True
        structure = list(_structure(self._parts(), self._pattern))
        self._changes = changes
        return len(structure) == len(self._structure) and all(map(is_, structure, self._structure))

    def _written(self) -> bool:
        """Return whether an array that blocks hold a copy of may have been written in place."""
        if writes.hidden != self._hidden_writes:
            return True
        last = writes.last
        if last == self._last_write:
            return False
        written = any(last_write(array) > self._last_write for array in self._copied)
        self._last_write = last
        return written


_ARRAY, _HELD = attrgetter("array"), attrgetter("held")


def _structure(parts: Mapping[str, Module], pattern: Pattern) -> Iterator[Any]:
    """Yield everything that determines the result of modules: modules, tensors, settings, presence of hooks."""
    for part in parts.values():
        for module in _modules(part, pattern):
            yield module
            yield module.has_hooks()
            yield "forward" in vars(module)
            yield from module._parameters.values()
            yield from module._buffers.values()
            kind = pattern.kind_of(type(module))
            if kind is not None:
                yield from (getattr(module, name) for name in kind.attributes)
                yield module.training and any(getattr(module, name) for name in kind.dropout)


def _modules(module: Module, pattern: Pattern) -> Iterator[Module]:
    """Yield a module and those in it, without those in modules that the block calls."""
    yield module
    kind = pattern.kind_of(type(module))
    if kind is None or not kind.is_called:
        for child in module.children():
            yield from _modules(child, pattern)


class Blocks(Generic[T]):
    """A cache of a result built from modules; rebuilt when they change.

    Attributes:
        reason: why the modules run instead; None if they run fused.
    """

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern
        self._snapshot: Snapshot | None = None
        self._built: T | None = None
        self.reason: str | None = None

    def current(self, parts: Parts, build: Callable[[], T], limit: Callable[[], str | None] = lambda: None) -> T | None:
        """Return the result of `build` for the present modules; None, with a `reason`, if they cannot run fused.

        Args:
            parts: returns the modules by name.
            build: called when something has changed since the last call. A TallowError from it is a refusal.
            limit: called before `build`; returns another reason not to run fused, or None.
        """
        if self._snapshot is not None and self._snapshot.holds():
            return self._built
        self._snapshot = self._built = None
        self.reason = limit() or why_not(parts(), self._pattern)
        if self.reason is None:
            try:
                self._built = build()
            except TallowError as error:  # such as sizes that differ between layers, where heads were removed
                self.reason = str(error).splitlines()[0]
            else:
                self._snapshot = Snapshot(parts, self._pattern)
        return self._built

    def discard(self) -> None:
        """Rebuild at the next call."""
        self._snapshot = None
