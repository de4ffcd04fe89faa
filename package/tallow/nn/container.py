"""Containers of modules: Sequential, ModuleList and ModuleDict."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Any

from tallow.errors import ArgumentTypeError, DimensionError
from tallow.nn.module import Module
from tallow.ops.dims import as_int


class _Numbered(Module):
    """Base of containers whose children are named "0", "1", ... and accessed by index."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __contains__(self, module: object) -> bool:
        return any(child is module for child in self._modules.values())

    def _key(self, index: int) -> str:
        length, index = len(self._modules), as_int(index, type(self).__name__)
        if not -length <= index < length:
            raise DimensionError(f"index {index} is out of range of {type(self).__name__} of length {length}")
        return next(islice(self._modules, index % length, None))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._part(list(self._modules.items())[index])
        return self._modules[self._key(index)]

    def _part(self, children: list[tuple[str, Any]]) -> Any:
        """Return a container of the same kind with some of the children."""
        raise NotImplementedError

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: int | slice) -> None:
        removed = [self._key(i) for i in (range(len(self))[index] if isinstance(index, slice) else [index])]
        kept = [child for key, child in self._modules.items() if key not in removed]
        self._modules = {str(i): child for i, child in enumerate(kept)}

    def pop(self, index: int | slice) -> Any:
        """Remove a module, or those of a slice, renumber the modules after it, and return it."""
        removed = self[index]
        del self[index]
        return removed

    def append(self, module: Module) -> Any:
        """Add a module at the end and return the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add modules at the end and return the container."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Insert a module before `index`, renumber the modules after it, and return the container."""
        children = list(self)
        children.insert(index, module)
        self._modules.clear()
        return self.extend(children)


class Sequential(_Numbered):
    """Call modules in order, each with the result of the previous one.

    Args:    as torch.nn.Sequential: modules, or one ordered dict of modules
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            self.extend(modules)

    def _part(self, children: list[tuple[str, Any]]) -> Sequential:
        return type(self)(OrderedDict(children))  # they keep their names, and so do the entries of state_dict

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            return NotImplemented
        return Sequential(*self, *other)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]  # none is None
        return input


class ModuleList(_Numbered):
    """A list of modules, registered as children. It has no forward.

    Args:    as torch.nn.ModuleList
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(() if modules is None else modules)

    def _part(self, children: list[tuple[str, Any]]) -> ModuleList:
        return type(self)(child for _, child in children)

    def _children_to_show(self) -> list[tuple[str, str]]:
        """Collapse runs of equal children, as PyTorch does: `(0-11): 12 x Layer(...)`."""
        lines, start = [], 0
        for text, run in groupby(super()._children_to_show(), key=lambda child: child[1]):
            count = len(list(run))
            single = (str(start), text)
            lines.append(single if count == 1 else (f"{start}-{start + count - 1}", f"{count} x {text}"))
            start += count
        return lines

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Module]) -> ModuleList:
        self.extend(other)
        return self


class ModuleDict(Module):
    """A dict of modules, registered as children. It has no forward.

    Args:    as torch.nn.ModuleDict
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def keys(self) -> Iterable[str]:
        """Return a view of the names."""
        return self._modules.keys()

    def values(self) -> Iterable[Any]:
        """Return a view of the modules."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return a view of the (name, module) pairs."""
        return self._modules.items()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add or replace modules from a mapping or from (name, module) pairs."""
        if not isinstance(modules, Mapping | Iterable):
            raise ArgumentTypeError(f"ModuleDict.update takes a mapping or pairs, not {type(modules).__name__}")
        for key, module in OrderedDict(modules).items():
            self[key] = module

    def pop(self, key: str) -> Any:
        """Remove a module and return it."""
        return self._modules.pop(key)

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()
