"""Serialise nested containers to JSON, with their tensors in a separate flat dict, for training checkpoints.

null, true, 3, 0.1, "text", [...]        as they are; floats are restored bit for bit
{"name": ...}                            a dict of strings
{"$": "tensor", "name": "a.b"}           a tensor; its name is its path within the value
{"$": "float", "value": "inf"}           or "-inf" or "nan", which JSON lacks
{"$": "tuple", "items": [...]}
{"$": "dict", "items": [[3, ...], ...]}  a dict with integers among its keys, or with the key "$"
{"$": "counter", "items": [[3, 1], ...]} a collections.Counter
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import numpy as np

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError
from tallow.io.json_object import parse_object

MAX_DEPTH = 64  # of containers within containers
JSON_DEPTH = 3 * MAX_DEPTH  # an entry of a tagged dict is three brackets deeper than the dict
MAX_INT = 2**1023  # Python refuses to print and parse integers of thousands of digits
TAG = "$"


def pack(values: Mapping[str, Any]) -> tuple[str, dict[str, Tensor]]:
    """Return the JSON text and the tensors of `values`. NumPy scalars and container subclasses become plain ones.

    Raises:  ArgumentTypeError that names the path to a value that is not a tensor, a plain value, or a list, tuple or
        dict of them; ArgumentError for integers of 2¹⁰²³ or more, and for nesting beyond MAX_DEPTH
    """
    packer = _Packer()
    tree = {name: packer.pack(value, name, 1) for name, value in values.items()}
    return json.dumps(tree, allow_nan=False, separators=(",", ":")), packer.tensors


def unpack(text: bytes, name: str, tensor: Callable[[str], Tensor]) -> dict[str, Any]:
    """Restore the values given to `pack` from its text.

    Args:
        name: description of the source, for error messages.
        tensor: returns the tensor with a name, or raises CheckpointError.

    Raises:  CheckpointError for text that `pack` does not write
    """
    tree = parse_object(text, name, JSON_DEPTH)
    return {key: _unpack(value, f"{name}: {key}", tensor) for key, value in tree.items()}


class _Packer:
    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}

    def pack(self, value: Any, path: str, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ArgumentError(
                f"{path:.80}... nests more than {MAX_DEPTH} levels deep", hint="does it contain itself?"
            )
        if isinstance(value, Tensor):
            return {TAG: "tensor", "name": self._add_tensor(value, path)}
        if isinstance(value, np.generic) and not isinstance(
            value.item(), np.generic
        ):  # the item of a longdouble is one
            value = value.item()
        if isinstance(value, float):
            value = float(value)  # a learning rate of tallow.keras has methods
        if value is None or type(value) is bool:
            return value
        if type(value) in (int, float, str):
            return _pack_plain(value, path)
        if isinstance(value, Mapping):
            return self._pack_mapping(value, path, depth)
        if isinstance(value, list | tuple):
            items = [self.pack(item, f"{path}.{i}", depth + 1) for i, item in enumerate(value)]
            return items if isinstance(value, list) else {TAG: "tuple", "items": items}
        raise ArgumentTypeError(
            f"{path} is {type(value).__name__}, which a checkpoint cannot store",
            hint="pass tensors, numbers, strings, None, and lists, tuples and dicts of them",
        )

    def _pack_mapping(self, value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
        for key in value:
            if type(key) not in (int, str):
                raise ArgumentTypeError(f"{path} has the key {key!r:.80}", hint="use strings or integers as keys")
            _pack_plain(key, path)
        packed = [(key, self.pack(item, f"{path}.{key}", depth + 1)) for key, item in value.items()]
        if isinstance(value, Counter):
            return {TAG: "counter", "items": packed}
        if TAG in value or not all(isinstance(key, str) for key in value):
            return {TAG: "dict", "items": packed}
        return dict(packed)

    def _add_tensor(self, tensor: Tensor, path: str) -> str:
        while path in self.tensors:  # {"a.b": x, "a": {"b": y}}
            path += "'"
        self.tensors[path] = tensor
        return path


def _pack_plain(value: Any, path: str) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return {TAG: "float", "value": repr(value)}
    if isinstance(value, int) and abs(value) > MAX_INT:
        raise ArgumentError(f"{path} is an integer of {value.bit_length()} bits", hint="save it as a string")
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ArgumentError(f"{path:.80} contains an invalid character: {error}", hint="escape it") from error
    return value


def _unpack(value: Any, path: str, tensor: Callable[[str], Tensor]) -> Any:
    if isinstance(value, list):
        return [_unpack(item, f"{path}.{i}", tensor) for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: _unpack(item, f"{path}.{key}", tensor) for key, item in value.items()}
    match value:
        case {"$": "tensor", "name": str(name)}:
            return tensor(name)
        case {"$": "float", "value": "inf" | "-inf" | "nan" as text}:
            return float(text)
        case {"$": "tuple", "items": list(items)}:
            return tuple(_unpack(items, path, tensor))
        case {"$": "dict" | "counter" as kind, "items": list(items)} if all(_is_entry(item) for item in items):
            entries = {key: _unpack(item, f"{path}.{key}", tensor) for key, item in items}
            return entries if kind == "dict" else Counter(entries)
    raise CheckpointError(f"{path} is {value!r:.80}, which checkpoints do not contain", hint="the file is damaged")


def _is_entry(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and type(item[0]) in (int, str)
