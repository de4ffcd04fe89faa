"""Write GGUF, version 3: metadata, and tensors in any plain or quantised format; gguf_layout.py describes the format.

Tensors are converted and written in parts of some rows, so a file may be larger than the memory.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any, BinaryIO

import numpy as np

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.io.atomic import atomic_write
from tallow.io.gguf_layout import ALIGNMENT, ARRAY, MAGIC, MAX_DIMENSIONS, PLAIN, SCALARS, STRING, TYPES
from tallow.io.gguf_weights import Target, weights_of
from tallow.io.source import Path
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.gguf_blocks import FORMATS

VERSION = 3
NUMBERS = {name: number for number, name in TYPES.items()}
PLAIN_NAMES = {dtype: name for name, dtype in PLAIN.items()}
KINDS = {code: kind for kind, code in SCALARS.items()}  # struct's code -> type of a metadata value
# Ranges of integers in metadata, in the order of preference: single numbers, and items of arrays, as in gguf-py.
SINGLE = ("I", "i", "Q", "q")
ITEMS = ("i", "q", "Q")


def save(
    tensors: Mapping[str, Tensor | BlockMatrix],
    path: Path,
    metadata: Mapping[str, Any] | None = None,
    types: Mapping[str, str] | None = None,
) -> None:
    """Save tensors and metadata to `path`, which is replaced atomically at the end, or unchanged after an error.

    Args:
        tensors: by name. A matrix of blocks is written as it is.
        metadata: strings, numbers, booleans, and lists of them. NumPy scalars and arrays keep their dtype; other
            integers become uint32 where they fit, items of lists int32; floats become float32.
        types: formats of tensors by name, such as "F16", "Q8_0" or "Q4_K". Others keep their dtype.

    Raises:  ArgumentTypeError for a value that GGUF cannot store; ArgumentError for an unknown format, a shape that
             does not fit it, or weights to convert that are infinite or NaN

    Example:
        gguf.save({"output.weight": weight}, "model.gguf", {"general.architecture": "llama"}, {"output.weight": "Q8_0"})
    """
    targets = targets_of(tensors, types)
    with atomic_write(path) as file:
        write(targets, metadata or {}, file)


def targets_of(
    tensors: Mapping[str, Tensor | BlockMatrix], types: Mapping[str, str] | None = None
) -> dict[str, Target]:
    """Return tensors as `write` takes them. Args and Raises: as `save`"""
    types = types or {}
    if unused := types.keys() - tensors.keys():
        raise ArgumentError(f"types has {min(unused)!r:.200}, which is not the name of a tensor")
    return {name: _target(name, tensor, types.get(name)) for name, tensor in tensors.items()}


def write(targets: Mapping[str, Target], metadata: Mapping[str, Any], file: BinaryIO) -> None:
    """Write a file, one tensor after another. Raises as `save` does."""
    header = [MAGIC, struct.pack("<IQQ", VERSION, len(targets), len(metadata))]
    for key, value in metadata.items():
        header += [_string(key), _value(key, value)]
    ends = accumulate((target.bytes + -target.bytes % ALIGNMENT for target in targets.values()), initial=0)
    for begin, (name, target) in zip(ends, targets.items(), strict=False):  # the last end begins nothing
        check(name, target.format, target.shape)
        dims = struct.pack(f"<I{len(target.shape)}Q", len(target.shape), *target.shape[::-1])
        header += [_string(name), dims, struct.pack("<IQ", NUMBERS[target.format], begin)]
    start = b"".join(header)
    file.write(start + bytes(-len(start) % ALIGNMENT))
    for name, target in targets.items():
        for part in target.get().data(name, target):
            file.write(part.data)
        file.write(bytes(-target.bytes % ALIGNMENT))


def check(name: str, format: str, shape: tuple[int, ...]) -> None:
    """Raise ArgumentError for an unknown format, or one that cannot store the shape."""
    if format not in NUMBERS:
        raise ArgumentError(f"tensor {name!r:.200}: unknown format {format!r}", hint=f"use one of {', '.join(NUMBERS)}")
    if len(shape) > MAX_DIMENSIONS:
        raise ArgumentError(f"tensor {name!r:.200} has {len(shape)} dims; GGUF stores at most {MAX_DIMENSIONS}")
    if format in FORMATS and (not shape or shape[-1] % FORMATS[format].weights):
        raise ArgumentError(
            f"tensor {name!r:.200} of shape {shape}: rows are not multiples of {FORMATS[format].weights} weights, as "
            f"{format} needs",
            hint="store it as F16",
        )


def _target(name: str, value: Any, format: str | None) -> Target:
    if not isinstance(value, Tensor | BlockMatrix):
        raise ArgumentTypeError(
            f"{name!r:.200} is {type(value).__name__}, not a Tensor", hint="wrap it: tl.from_numpy(array)"
        )
    weights = weights_of(value)
    own = weights.format
    if own is not None and format not in (None, own):
        raise ArgumentError(f"tensor {name!r:.200} is in {own} already, not {format}")
    chosen = format or own or PLAIN_NAMES.get(weights.floats().dtype)
    if chosen is None:
        dtype = weights.floats().dtype.name
        raise ArgumentTypeError(f"tensor {name!r:.200} is {dtype}, which GGUF lacks", hint="convert it")
    return Target(chosen, weights.shape, lambda: weights)


def _string(text: str) -> bytes:
    raw = text.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def _value(key: str, value: Any) -> bytes:
    """Return the type and the value of a metadata entry."""
    if isinstance(value, np.ndarray):
        return _array(key, value.tolist(), value.dtype.char if value.ndim == 1 else "")
    if isinstance(value, list | tuple):
        return _array(key, value, None)
    if isinstance(value, str):
        return struct.pack("<I", STRING) + _string(value)
    code = value.dtype.char if isinstance(value, np.generic) else _code(key, [value], SINGLE)
    return struct.pack("<I", _kind(key, code)) + struct.pack("<" + _packed(code), value)


def _array(key: str, items: Sequence[Any], code: str | None) -> bytes:
    if code is None and all(isinstance(item, str) for item in items):
        header = struct.pack("<IIQ", ARRAY, STRING, len(items))
        return header + b"".join(map(_string, items))
    code = _code(key, items, ITEMS) if code is None else code
    header = struct.pack("<IIQ", ARRAY, _kind(key, code), len(items))
    return header + struct.pack(f"<{len(items)}{_packed(code)}", *items)


def _kind(key: str, code: str) -> int:
    if _packed(code) not in KINDS:
        raise ArgumentTypeError(f"metadata {key!r:.200}: GGUF stores no such values", hint="use strings or numbers")
    return KINDS[_packed(code)]


def _packed(code: str) -> str:
    """Return struct's code for NumPy's: `l` has 8 bytes there on most platforms, and 4 here."""
    if code in ("l", "L"):
        return {4: "i", 8: "q"}[np.dtype(code).itemsize] if code == "l" else {4: "I", 8: "Q"}[np.dtype(code).itemsize]
    return code


def _code(key: str, items: Sequence[Any], integers: Sequence[str]) -> str:
    """Return struct's code for Python numbers of one type."""
    kinds = {*map(type, items)}
    if kinds == {bool}:
        return "?"
    if kinds == {float} or kinds == {int, float}:
        return "f"
    if kinds == {int}:
        for code in integers:
            limits = np.iinfo(code)
            if limits.min <= min(items) and max(items) <= limits.max:
                return code
    raise ArgumentTypeError(
        f"metadata {key!r:.200} is {items!r:.100}: GGUF stores strings, numbers and booleans, and lists of one kind"
    )


def size_of(targets: Mapping[str, Target]) -> int:
    """Return the number of bytes of all tensors."""
    return sum(target.bytes for target in targets.values())


def bits_per_weight(targets: Mapping[str, Target]) -> float:
    """Return the mean number of bits of an element."""
    return 8 * size_of(targets) / max(sum(prod(target.shape) for target in targets.values()), 1)
