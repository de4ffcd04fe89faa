"""GGUF, the files of llama.cpp: metadata and tensors, plain or quantised, each made when it is asked for.

    4 bytes     "GGUF"
    uint32      version: 2 or 3
    2 uint64    how many tensors, how many metadata entries
    metadata    each a key, a uint32 that says which type, and the value. A string is a uint64 length and UTF-8; an
                array is the type of its items, a uint64 length, and the items
    tensors     each a name, a uint32 number of dims, as many uint64 lengths, the innermost first, a uint32 that says
                which format, and a uint64: where its data begin, counted from the start of all data
    data        from the next multiple of `general.alignment`, 32 if there is none; each tensor's at a multiple of it

Everything is little-endian. A model may be in several files: gguf_shards.py.

Source:  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from tallow import dtypes
from tallow.errors import CheckpointError
from tallow.io import gguf_blocks, gguf_shards
from tallow.io.elements import as_elements
from tallow.io.location import MapLocation, relocate
from tallow.io.source import Bytes, Opened, Source, open_source
from tallow.tensor import Tensor, wrap

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT_KEY = "general.alignment"
ALIGNMENT = 32
MAX_ALIGNMENT = 2**20
MAX_DIMENSIONS = 4  # ggml's
MAX_NESTING = 4  # of arrays in arrays
MAX_BYTES = int(np.iinfo(np.intp).max)

# The types of metadata values, by number: those that have a size, then string and array.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9

PLAIN = {
    "F32": dtypes.float32,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "F64": dtypes.float64,
    "I8": dtypes.int8,
    "I16": dtypes.int16,
    "I32": dtypes.int32,
    "I64": dtypes.int64,
}
# By number. The sizes of those that are not read are not known here, nor are they needed.
TYPES = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 10: "Q2_K", 11: "Q3_K"}
TYPES |= {12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 30: "BF16"}
FOREIGN = {9: "Q8_1", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S"}
FOREIGN |= {22: "IQ2_S", 23: "IQ4_XS", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4", 41: "Q1_0"}


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """What the file says of one tensor: the name of its format, its shape, where in the data it begins."""

    type: str
    shape: tuple[int, ...]
    begin: int

    @property
    def count(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        if self.type in PLAIN:
            return self.count * PLAIN[self.type].itemsize
        layout = gguf_blocks.FORMATS[self.type]
        return self.count // layout.weights * layout.record.itemsize


def load(source: Source, map_location: MapLocation = None) -> GGUF:
    """A GGUF file: a mapping from names to tensors, and `metadata`. A path is mapped; tensors are made when asked for.

    Raises:  CheckpointError when the file is truncated or malformed
    """
    return GGUF(source, map_location)


def is_gguf(path: str | PathLike[str]) -> bool:
    """Whether the file begins as GGUF does.  Raises: OSError"""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


class GGUF(Mapping[str, Tensor]):
    """The tensors of a GGUF file by name, or of all shards of a model by the path of one.

    Quantised tensors become float32 each time they are asked for; plain ones are views of the file.

    Example:
        file = tl.load("model.gguf")
        file.metadata["general.architecture"]
        weight = file["blk.0.attn_q.weight"]
    """

    def __init__(self, source: Source, map_location: MapLocation = None) -> None:
        opened = open_source(source)
        self.name = opened.name
        self._map_location = map_location
        files = _with_shards(_read(opened))
        self.metadata = files[0].metadata
        self._infos: dict[str, TensorInfo] = {}
        self._data: dict[str, Bytes] = {}  # of the file that the tensor is in
        for file in files:
            for name in file.infos.keys() & self._infos.keys():
                raise CheckpointError(
                    f"{file.name}: tensor {name!r:.200} is in another shard too", mend="fetch it again"
                )
            self._infos |= file.infos
            self._data |= dict.fromkeys(file.infos, file.data)
        if len(files) > 1 and self.metadata.get(gguf_shards.TENSORS, len(self)) != len(self):
            raise CheckpointError(
                f"{self.name}: the shards have {len(self)} tensors, not {self.metadata[gguf_shards.TENSORS]!r:.80}",
                mend="fetch them again",
            )

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)

    def __contains__(self, name: object) -> bool:
        return name in self._infos

    def __getitem__(self, name: str) -> Tensor:
        return relocate(wrap(self.get_array(name)), "cpu", self._map_location)

    def __repr__(self) -> str:
        return f"GGUF({self.name!r}, {len(self)} tensors, {len(self.metadata)} metadata entries)"

    def info(self, name: str) -> TensorInfo:
        """Format, shape and place of a tensor, without touching its data."""
        return self._infos[name]

    def get_blocks(self, name: str) -> Bytes:
        """The bytes of a tensor as they are in the file, for kernels that compute with quantised weights."""
        info = self._infos[name]
        if info.type in FOREIGN.values():
            raise CheckpointError(
                f"{self.name}: tensor {name!r:.200} is in format {info.type}, which is not read",
                mend=f"quantise it to one of {', '.join(gguf_blocks.FORMATS)}",
            )
        return self._data[name][info.begin : info.begin + info.bytes]

    def get_array(self, name: str) -> np.ndarray[Any, Any]:
        """The array of a tensor: quantised formats in float32, BF16 in uint16, the others as they are."""
        raw, info = self.get_blocks(name), self._infos[name]
        if info.type in PLAIN:
            return as_elements(raw, PLAIN[info.type], self.name).reshape(info.shape)
        return gguf_blocks.dequantize(info.type, raw).reshape(info.shape)


class _File(NamedTuple):
    """One file, whole or a shard."""

    name: str
    metadata: dict[str, Any]
    infos: dict[str, TensorInfo]
    data: Bytes


def _with_shards(given: _File) -> list[_File]:
    """All files of the model that a file belongs to, in order."""
    names = gguf_shards.shards_of(given.name, given.metadata)
    files = [given if name == given.name else _read(open_source(name)) for name in names]
    if len(files) > 1:
        for number, file in enumerate(files):
            gguf_shards.check(file.name, file.metadata, number, len(files))
    return files


def _read(opened: Opened) -> _File:
    reader = _Reader(opened)
    tensors, entries = reader.header()
    metadata = reader.entries(entries)
    alignment = metadata.get(ALIGNMENT_KEY, ALIGNMENT)
    if type(alignment) is not int or not 0 < alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        raise CheckpointError(f"{opened.name}: {ALIGNMENT_KEY} is no power of two: {alignment!r:.80}")
    infos = reader.infos(tensors, alignment)
    data = opened.data[reader.position + -reader.position % alignment :]
    for name, info in infos.items():
        if info.type not in FOREIGN.values() and info.begin + info.bytes > len(data):
            raise CheckpointError(
                f"{opened.name}: truncated: tensor {name!r:.200} ends at byte {info.begin + info.bytes} of the data, "
                f"the file at {len(data)}",
                mend="fetch it again",
            )
    return _File(opened.name, metadata, infos, data)


class _Reader:
    """Goes through the part of a file that comes before the data."""

    def __init__(self, opened: Opened) -> None:
        self._data, self._name = opened
        self._view = self._data.data
        self.position = 0

    def header(self) -> tuple[int, int]:
        """Check the start of the file; how many tensors and how many metadata entries it has."""
        magic = bytes(self._take(4))
        if magic != MAGIC:
            raise self._error(f"is not a GGUF file: it starts with {magic!r}")
        version = self._scalar("I")
        if version not in VERSIONS:
            swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
            what = "big-endian" if swapped in VERSIONS else f"of version {version}"
            raise self._error(f"is {what}; versions {VERSIONS} in little-endian are read")
        return self._scalar("Q"), self._scalar("Q")

    def entries(self, count: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(count):  # a count beyond the file's end fails there
            key = self._string()
            if key in found:
                raise self._error(f"has metadata {key!r:.200} twice")
            found[key] = self._value(self._scalar("I"), 0)
        return found

    def infos(self, count: int, alignment: int) -> dict[str, TensorInfo]:
        found: dict[str, TensorInfo] = {}
        for _ in range(count):
            name = self._string()
            if name in found:
                raise self._error(f"has tensor {name!r:.200} twice")
            found[name] = self._info(name, alignment)
        return found

    def _info(self, name: str, alignment: int) -> TensorInfo:
        what = f"has tensor {name!r:.200}"
        if (dims := self._scalar("I")) > MAX_DIMENSIONS:
            raise self._error(f"{what} of {dims} dims; there are at most {MAX_DIMENSIONS}")
        shape = tuple(self._scalar("Q") for _ in range(dims))[::-1]
        kind = self._scalar("I")
        begin = self._scalar("Q")
        if kind not in TYPES and kind not in FOREIGN:
            raise self._error(f"{what} in format number {kind}, which is unknown")
        if begin % alignment:
            raise self._error(f"{what} at byte {begin}, which is not a multiple of {alignment}")
        if 8 * prod(max(n, 1) for n in shape) > MAX_BYTES:  # no element is wider than 8 bytes
            raise self._error(f"{what} of shape {shape}, which no memory can hold")
        type_name = TYPES.get(kind) or FOREIGN[kind]
        block = gguf_blocks.FORMATS.get(type_name)
        if block and (not shape or shape[-1] % block.weights):
            raise self._error(f"{what} of shape {shape}, whose rows are no whole blocks of {block.weights} weights")
        return TensorInfo(type_name, shape, begin)

    def _value(self, kind: int, nesting: int) -> Any:
        if kind in SCALARS:
            return self._scalar(SCALARS[kind])
        if kind == STRING:
            return self._string()
        if kind != ARRAY or nesting == MAX_NESTING:
            raise self._error(f"has metadata of an unknown type, {kind}, or nested too deep")
        item_kind, count = self._scalar("I"), self._scalar("Q")
        if item_kind in SCALARS:
            return self._numbers(SCALARS[item_kind], count)
        items = []
        for _ in range(count):
            items.append(self._value(item_kind, nesting + 1))
        return items

    def _numbers(self, code: str, count: int) -> list[Any]:
        """The items of an array, as Python's numbers. Of the narrow types equal items are one object: each alone would
        take 28 bytes."""
        raw = self._take(count * struct.calcsize(code))
        if code not in "bBhH":
            return np.frombuffer(raw, "<" + code).tolist()
        patterns = raw.cast("H" if code in "hH" else "B")  # of the bits, whatever the sign
        shared = np.arange(256**patterns.itemsize, dtype=patterns.format).view(code).tolist()
        return [shared[pattern] for pattern in patterns]

    def _string(self) -> str:
        try:
            return str(self._take(self._scalar("Q")), "utf-8")
        except UnicodeDecodeError as error:
            raise self._error(f"has a string that is not UTF-8: {error.reason}") from None

    def _scalar(self, code: str) -> Any:
        return struct.unpack("<" + code, self._take(struct.calcsize("<" + code)))[0]

    def _take(self, count: int) -> memoryview:
        end = self.position + count
        if end > len(self._view):
            raise self._error(f"is truncated: it needs {count} bytes from byte {self.position} on")
        chunk = self._view[self.position : end]
        self.position = end
        return chunk

    def _error(self, message: str) -> CheckpointError:
        return CheckpointError(f"{self._name}, before byte {self.position}: {message}", mend="fetch it again")
