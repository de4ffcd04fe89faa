"""The groups of Keras' weight files: one per layer, named by attributes and positions rather than layer names.

    layers/dense/vars/0                     the layers of a Sequential or functional model, by class and number
    layers/lstm/cell/vars/2                 an attribute of a layer
    head/vars/0  layers/dense_1/vars/0      attributes of a subclass of Model, in their order; `layers` is one of them

Source:  keras/src/saving/saving_lib.py of Keras 3.15, `_walk_saveable`
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tallow.keras.layers.operator import Operator
from tallow.keras.layers.tracking import LayerList
from tallow.keras.naming import snake_case
from tallow.nn import Module


class Part(NamedTuple):
    """The weights of one layer, without its sublayers."""

    path: str
    name: str
    weights: list[Any]


def parts(model: Any) -> Iterator[Part]:
    """Yield the weights of a model and of all nested layers, each once."""
    return _walk(model, "", set())


def _walk(module: Module, path: str, seen: set[int]) -> Iterator[Part]:
    if id(module) in seen:
        return
    seen.add(id(module))
    yield Part(_join(path, getattr(module, "saved_under", "")), getattr(module, "name", ""), _own_weights(module))
    graph = getattr(module, "_graph", None)
    if graph is not None:
        yield from _walk_items(module.layers, _join(path, "layers"), seen)
    names = list(module._modules)
    if graph is None and hasattr(module, "fit"):
        names.append("layers")
    for name in sorted(names, key=lambda name: f"~{name}" if name.startswith("_") else name):
        child = module._modules[name] if name in module._modules else getattr(module, name)
        if isinstance(child, LayerList):
            child = child.items
        if isinstance(child, list):
            yield from _walk_items(child, _join(path, name), seen)
        elif isinstance(child, Module):
            yield from _walk(child, _join(path, name), seen)


def _walk_items(items: Iterable[Any], path: str, seen: set[int]) -> Iterator[Part]:
    """Yield the layers in a list, and in nested lists."""
    counts: Counter[str] = Counter()

    def numbered(name: str) -> str:
        counts[name] += 1
        return _join(path, name if counts[name] == 1 else f"{name}_{counts[name] - 1}")

    for item in items.values() if isinstance(items, dict) else items:
        if isinstance(item, Operator):
            continue  # not a layer in Keras
        if isinstance(item, Module) and not isinstance(item, LayerList):
            yield from _walk(item, numbered(_kind(item)), seen)
        elif isinstance(item, list | tuple | dict | LayerList):
            yield from _walk_items(item, numbered("container"), seen)


def _kind(module: Module) -> str:
    """Return the class name that Keras uses in files."""
    entry = module.file_entry() if hasattr(module, "calls_at_start") else None
    return snake_case(type(module).__name__ if entry is None else str(entry["class_name"]))


def _own_weights(module: Module) -> list[Any]:
    """Return the module's own weights, trainable ones first."""
    weights: list[Any] = [*module._parameters.values()]
    weights += [value for key, value in module._buffers.items() if key not in module._non_persistent_buffers_set]
    return [weight for weight in weights if weight is not None]


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path and name else path or name
