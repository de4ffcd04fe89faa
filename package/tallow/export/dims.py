"""Dims whose size is not fixed: `Dim`, and what `dynamic_shapes` says about the arguments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tallow.core.tensor import Tensor, wrap
from tallow.devices import array_module
from tallow.errors import ArgumentError, ArgumentTypeError, UnsupportedError

LARGEST = 1 << 31


class Dim:
    """A dim whose size may differ from that of the example. Arguments that share a Dim have one size there.

    Args:
        name: an identifier, for messages and for the printed program.
        min, max: the sizes that it may have, both included. The example must be at least 2 long, because a size of 1
            broadcasts.

    Example:
        >>> import tallow as tl
        >>> from tallow.export import Dim, export
        >>> program = export(tl.nn.Linear(3, 2), (tl.ones(4, 3),), dynamic_shapes=({0: Dim("batch")},))
        >>> program.module()(tl.ones(7, 3)).shape
        tallow.Size([7, 2])
    """

    AUTO: Dim
    DYNAMIC: Dim
    STATIC: Dim

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError(f"Dim: {name!r:.80} is not a name", hint='pass an identifier: Dim("batch")')
        self.__name__, self.min, self.max = name, 1 if min is None else min, max
        if self.min < 0 or (max is not None and max < self.min):
            raise ArgumentError(f"Dim {name!r}: no size is at least {min} and at most {max}")

    def __repr__(self) -> str:
        limits = [f", {name}={value}" for name, value in (("min", self.min), ("max", self.max)) if value is not None]
        return f"Dim({self.__name__!r}{''.join(limits)})"

    def _derived(self, other: Any) -> Any:
        raise UnsupportedError(
            f"a size computed from {self!r} cannot be declared", hint="declare a Dim of its own for that argument"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = _derived


Dim.AUTO, Dim.DYNAMIC, Dim.STATIC = Dim("AUTO"), Dim("DYNAMIC"), Dim("STATIC")


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Return a Dim for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)


@dataclass(frozen=True)
class Range:
    """The sizes that a dim may have."""

    lower: int
    upper: int | None

    def __contains__(self, size: int) -> bool:
        return self.lower <= size and (self.upper is None or size <= self.upper)

    def __str__(self) -> str:
        return f"at least {self.lower}" + ("" if self.upper is None else f" and at most {self.upper}")


class Declared:
    """The declarations of an export: for each tensor, the name of the Dim of each dim, or None.

    Attributes:
        sizes: name -> (size of the example, another size that is valid).
        thirds: name -> one more size, which is no multiple of the example's; that of the example if there is none.
        ranges: name -> Range.
    """

    def __init__(self) -> None:
        self.sizes: dict[str, tuple[int, int]] = {}
        self.thirds: dict[str, int] = {}
        self.ranges: dict[str, Range] = {}
        self._dims: dict[str, Dim] = {}

    def shape_of(self, path: str, tensor: Tensor, declared: Any) -> tuple[str | None, ...]:
        """Return the names of a tensor's dims from what is declared for it: a dict, a sequence or None.

        Raises: ArgumentError if that does not fit the tensor, or a Dim has two sizes.
        """
        shape = tuple(tensor.array.shape)
        names: list[str | None] = [None] * len(shape)
        for dim, entry in entries_of(path, declared, len(shape)):
            if entry is None or entry is Dim.STATIC:
                continue
            if type(entry) is int:
                if shape[dim] != entry:
                    raise ArgumentError(f"dynamic_shapes: {path} has size {shape[dim]} at dim {dim}, not {entry}")
                continue
            if not isinstance(entry, Dim):
                raise ArgumentTypeError(f"dynamic_shapes: {path}, dim {dim}: expected a Dim, got {entry!r:.80}")
            if entry is Dim.AUTO or entry is Dim.DYNAMIC:
                entry = Dim(f"{path}_{dim}" if path.isidentifier() else f"s{len(self.sizes)}")
            names[dim] = self._name(path, dim, entry, shape[dim])
        return tuple(names)

    def _name(self, path: str, dim: int, declared: Dim, size: int) -> str:
        name = declared.__name__
        if self._dims.setdefault(name, declared) is not declared:
            raise ArgumentError(f"dynamic_shapes: two Dims have the name {name!r}", hint="use one object for both")
        allowed = self.ranges.setdefault(name, Range(declared.min, declared.max))
        if size not in allowed:
            raise ArgumentError(f"dynamic_shapes: {path} has size {size} at dim {dim}, but {declared!r}")
        if size < 2:
            raise ArgumentError(
                f"dynamic_shapes: {path} has size {size} at dim {dim}, which broadcasts; so it cannot stand for others",
                hint=f"pass an example with a {name} of 2 or more",
            )
        if self.sizes.setdefault(name, (size, self._other(size, allowed)))[0] != size:
            raise ArgumentError(f"dynamic_shapes: {name} is {self.sizes[name][0]} elsewhere, and {size} in {path}")
        others = (n for n in (2 * size + 1, size + 1, size - 1) if n in allowed and n not in (1, self.sizes[name][1]))
        self.thirds[name] = next(others, size)
        return name

    def _other(self, size: int, allowed: Range) -> int:
        """Return another valid size. Each Dim grows by another factor or difference, if it may be that long.

        A multiple divides where the example does, and halves and quarters of it differ from those of the example.
        """
        taken = {second - first for first, second in self.sizes.values()}
        near = (size + sign * step for step in range(1, 2 * len(taken) + 3) for sign in (1, -1))
        for other in (*(factor * size for factor in range(2, len(taken) + 4)), allowed.upper or size, *near):
            if other != size and other - size not in taken and other in allowed and other > 1:
                return other
        raise ArgumentError(f"dynamic_shapes: a dim may only be {allowed} long", hint="leave it out, or widen it")


def entries_of(path: str, declared: Any, rank: int) -> Iterator[tuple[int, Any]]:
    """Yield dim and entry of what is declared for a tensor.  Raises: ArgumentError, ArgumentTypeError"""
    if declared is None:
        return
    if isinstance(declared, dict):
        for dim, entry in declared.items():
            if type(dim) is not int or not -rank <= dim < rank:
                raise ArgumentError(f"dynamic_shapes: {path} has no dim {dim!r}; it has {rank}")
            yield dim % rank, entry
    elif isinstance(declared, list | tuple):
        if len(declared) != rank:
            raise ArgumentError(f"dynamic_shapes: {path} has {rank} dims, but {len(declared)} are declared")
        yield from enumerate(declared)
    else:
        raise ArgumentTypeError(f"dynamic_shapes: {path}: expected a dict, a sequence or None, got {declared!r:.80}")


def resized(leaf: Tensor, names: tuple[str | None, ...], sizes: dict[str, int]) -> Tensor:
    """Return an argument at other sizes, by the names of its dims: its elements repeat, so that they stay valid."""
    array = leaf.array
    for dim, name in enumerate(names):
        if name is not None:
            array = array.take(array_module(array).arange(sizes[name]) % array.shape[dim], dim)
    return wrap(array.copy())
