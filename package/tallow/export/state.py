"""Attributes, buffers and random numbers: those of before a run, and those that the run has put in their place."""

from __future__ import annotations

from typing import Any

from tallow.core.tensor import Tensor
from tallow.devices import array_module
from tallow.errors import TraceError
from tallow.nn.module import Module
from tallow.random import default_generator

TABLES = ("_parameters", "_buffers", "_modules")


class State:
    """The attributes of modules, the values of their buffers, and the random numbers, as they are now."""

    def __init__(self, root: Module) -> None:
        self._root = root
        self._held = [
            (f"{path}." if path else "", module, type(module), dict(vars(module)), _tables(module))
            for path, module in root.named_modules()
        ]
        self._buffers = [(buffer, buffer.array.copy()) for buffer in root.buffers()]
        self._random = default_generator.get_state()

    def restore(self) -> None:
        """Put everything back, but in modules that have become another class, as lazy ones do."""
        for _, module, cls, attributes, tables in self._held:
            if type(module) is cls:
                _put_back(vars(module), attributes)
                for name, table in tables.items():
                    _put_back(attributes[name], table)
        for buffer, value in self._buffers:
            array = buffer.array
            if not array_module(array).array_equal(array, value, equal_nan=array.dtype.kind == "f"):
                array[...] = value
        default_generator.set_state(self._random)

    def values(self) -> dict[str, Any]:
        """Return copies of the arrays of the buffers that the modules have now."""
        return {name: buffer.array.copy() for name, buffer in self._root.named_buffers()}

    def replaced(self) -> dict[str, Tensor]:
        """Return name -> tensor of the buffers that were assigned anew.

        Raises: TraceError for parameters, and for buffers that are gone, of another shape or dtype, or of two names
        """
        found: dict[str, Tensor] = {}
        names = [id(b) for *_, tables in self._held for b in tables["_buffers"].values()]
        for path, module, cls, _, tables in self._held:
            if type(module) is not cls:
                continue
            for table in ("_parameters", "_buffers"):
                for name, old in tables[table].items():
                    new = vars(module)[table].get(name)
                    if new is old or old is None:
                        continue
                    reason = "which a graph cannot do: write to it, x.copy_(...)"
                    if table == "_parameters":
                        raise TraceError(f"export: the module assigns the parameter {path}{name} anew")
                    if new is None or new.array.shape != old.array.shape or new.dtype is not old.dtype:
                        reason = f"not as {tuple(old.array.shape)} of {old.dtype.name}"
                    elif names.count(id(old)) == 1:
                        found[path + name] = new
                        continue
                    raise TraceError(f"export: the module assigns the buffer {path}{name} anew, {reason}")
        return found

    def changed_attributes(self) -> set[str]:
        """Return the names of tensors that are ordinary attributes, and were assigned anew."""
        return {
            path + name
            for path, module, _, attributes, _ in self._held
            for name, value in attributes.items()
            if isinstance(value, Tensor) and vars(module).get(name) is not value
        }


def _tables(module: Module) -> dict[str, dict[str, Any]]:
    return {name: dict(vars(module)[name]) for name in TABLES}


def _put_back(now: dict[str, Any], before: dict[str, Any]) -> None:
    for name in [name for name in now if name not in before]:
        del now[name]
    for name, value in before.items():
        if name not in now or now[name] is not value:
            now[name] = value
