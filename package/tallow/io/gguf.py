"""Read GGUF, the format of llama.cpp: metadata and tensors, plain or quantised, created on access.

gguf_layout.py describes the format, gguf_write.py writes it. A model may be split into several files: see
gguf_shards.py.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import prod
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from tallow.core.tensor import Tensor, wrap
from tallow.errors import CheckpointError
from tallow.io import gguf_shards
from tallow.io.elements import as_elements
from tallow.io.gguf_layout import (
    ALIGNMENT,
    ALIGNMENT_KEY,
    ARRAY,
    FOREIGN,
    MAGIC,
    MAX_ALIGNMENT,
    MAX_BYTES,
    MAX_DIMENSIONS,
    MAX_NESTING,
    PLAIN,
    SCALARS,
    STRING,
    TYPES,
    UNSIZED,
    VERSIONS,
    TensorInfo,
)
from tallow.io.gguf_write import save
from tallow.io.location import MapLocation, relocate
from tallow.io.regular import regular
from tallow.io.source import Bytes, Opened, Source, open_source, shown
from tallow.kernels.quantized import gguf_blocks
from tallow.kernels.quantized.block_matrix import BlockMatrix

__all__ = ["GGUF", "TensorInfo", "is_gguf", "load", "save"]

_SIZE = struct.Struct("<Q")  # of a string
_STRINGS_BYTES = 1 << 16  # of strings decoded together


def load(source: Source, map_location: MapLocation = None) -> GGUF:
    """Open a GGUF file: a mapping from names to tensors, with `metadata`. Tensors are created on access.

    Raises:  CheckpointError if the file is truncated or malformed
    """
    return GGUF(source, map_location)


def is_gguf(path: str | PathLike[str]) -> bool:
    """Return whether the file starts with GGUF's magic bytes.  Raises: OSError"""
    with open(path, "rb", opener=regular) as file:
        return file.read(len(MAGIC)) == MAGIC


class GGUF(Mapping[str, Tensor]):
    """The tensors of a GGUF file by name, or of all shards of a model, given the path of one shard.

    Quantised tensors are converted to float32 on each access; plain ones are views of the file.

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
        self._data: dict[str, Bytes] = {}  # data of the file that contains the tensor
        for file in files:
            for name in file.infos.keys() & self._infos.keys():
                raise CheckpointError(
                    f"{file.name}: tensor {name!r:.200} is in another shard too", hint="download it again"
                )
            self._infos |= file.infos
            self._data |= dict.fromkeys(file.infos, file.data)
        if len(files) > 1 and self.metadata.get(gguf_shards.TENSORS, len(self)) != len(self):
            raise CheckpointError(
                f"{self.name}: the shards have {len(self)} tensors, not {self.metadata[gguf_shards.TENSORS]!r:.80}",
                hint="download them again",
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
        """Return the format, shape and offset of a tensor without reading its data."""
        return self._infos[name]

    def get_blocks(self, name: str) -> Bytes:
        """Return the bytes of a tensor in the file, for kernels that compute with quantised weights."""
        info = self._infos[name]
        if info.type in UNSIZED:
            raise CheckpointError(
                f"{self.name}: tensor {name!r:.200} is in format {info.type}, which tallow does not read",
                hint=f"quantise it to one of {', '.join(gguf_blocks.FORMATS)}",
            )
        return self._data[name][info.begin : info.begin + info.bytes]

    def matrix(self, name: str) -> BlockMatrix | None:
        """Return a quantised tensor of two or more dims as a matrix of the blocks in the file, with all rows one below
        another; None for any other tensor."""
        info = self._infos[name]
        if info.type not in gguf_blocks.FORMATS or len(info.shape) < 2:
            return None
        layout = gguf_blocks.FORMATS[info.type]
        row_bytes = info.shape[-1] // layout.weights * layout.record.itemsize
        return BlockMatrix(self.get_blocks(name).reshape(prod(info.shape[:-1]), row_bytes), info.type)

    def get_array(self, name: str) -> np.ndarray[Any, Any]:
        """Return the array of a tensor: float32 for quantised formats, uint16 for BF16, else the stored dtype."""
        raw, info = self.get_blocks(name), self._infos[name]
        if info.type in PLAIN:
            return as_elements(raw, PLAIN[info.type], self.name).reshape(info.shape)
        return gguf_blocks.dequantize(info.type, raw).reshape(info.shape)


class _File(NamedTuple):
    """The parts of one file: a whole model or a shard."""

    name: str
    metadata: dict[str, Any]
    infos: dict[str, TensorInfo]
    data: Bytes


def _with_shards(file: _File) -> list[_File]:
    """Return all files of the model that `file` belongs to, in order."""
    names = gguf_shards.shards_of(file.name, file.metadata)
    files = [file if name == file.name else _read(open_source(name)) for name in names]
    if len(files) > 1:
        for number, shard in enumerate(files):
            gguf_shards.check(shard.name, shard.metadata, number, len(files))
    return files


def _read(opened: Opened) -> _File:
    reader = _Reader(opened)
    tensors, entries = reader.header()
    metadata = reader.entries(entries)
    alignment = metadata.get(ALIGNMENT_KEY, ALIGNMENT)
    if type(alignment) is not int or not 0 < alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        raise CheckpointError(f"{opened.name}: {ALIGNMENT_KEY} is not a power of two: {alignment!r:.80}")
    infos = reader.infos(tensors, alignment)
    data = opened.data[reader.position + -reader.position % alignment :]
    for name, info in infos.items():
        if info.type not in UNSIZED and info.begin + info.bytes > len(data):
            raise CheckpointError(
                f"{opened.name}: truncated: tensor {name!r:.200} ends at byte {info.begin + info.bytes} of the data, "
                f"but the data has {len(data)} bytes",
                hint="download it again",
            )
    _check_overlaps(opened.name, infos)
    return _File(opened.name, metadata, infos, data)


def _check_overlaps(name: str, infos: Mapping[str, TensorInfo]) -> None:
    """Raise CheckpointError if the data of two tensors overlap: then one offset is wrong, and a few bytes would be read
    as any number of tensors."""
    placed = [(info.begin, info.begin + info.bytes, key) for key, info in infos.items() if info.type not in UNSIZED]
    placed.sort()
    for (_, end, first), (begin, _, second) in pairwise(placed):
        if begin < end:
            raise CheckpointError(
                f"{name}: tensor {second!r:.200} begins at byte {begin} of the data, before the end of tensor "
                f"{first!r:.200} at byte {end}",
                hint="download it again",
            )


class _Reader:
    """Parser for the part of a file before the data."""

    def __init__(self, opened: Opened) -> None:
        self._data, self._name = opened
        self._view = self._data.data
        self.position = 0

    def header(self) -> tuple[int, int]:
        """Check the start of the file and return the numbers of tensors and of metadata entries."""
        magic = bytes(self._take(4))
        if magic != MAGIC:
            raise self._error(f"is not a GGUF file: it starts with {shown(magic)}")
        version = self._scalar("I")
        if version not in VERSIONS:
            swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
            what = "big-endian" if swapped in VERSIONS else f"of version {version}"
            raise self._error(f"is {what}; expected little-endian, version 2 or 3")
        return self._scalar("Q"), self._scalar("Q")

    def entries(self, count: int) -> dict[str, Any]:
        """Parse the metadata."""
        entries: dict[str, Any] = {}
        for _ in range(count):  # a count that is too large fails at the file's end
            key = self._string()
            if key in entries:
                raise self._error(f"has metadata {key!r:.200} twice")
            entries[key] = self._value(self._scalar("I"), 0)
        return entries

    def infos(self, count: int, alignment: int) -> dict[str, TensorInfo]:
        """Parse the headers of the tensors."""
        infos: dict[str, TensorInfo] = {}
        for _ in range(count):
            name = self._string()
            if name in infos:
                raise self._error(f"has tensor {name!r:.200} twice")
            infos[name] = self._info(name, alignment)
        return infos

    def _info(self, name: str, alignment: int) -> TensorInfo:
        what = f"has tensor {name!r:.200}"
        if (dims := self._scalar("I")) > MAX_DIMENSIONS:
            raise self._error(f"{what} of {dims} dims; the maximum is {MAX_DIMENSIONS}")
        shape = tuple(self._scalar("Q") for _ in range(dims))[::-1]
        kind = self._scalar("I")
        begin = self._scalar("Q")
        if kind not in TYPES and kind not in FOREIGN:
            raise self._error(f"{what} in format number {kind}, which is unknown")
        if begin % alignment:
            raise self._error(f"{what} at byte {begin}, which is not a multiple of {alignment}")
        if 8 * prod(max(n, 1) for n in shape) > MAX_BYTES:  # no element is wider than 8 bytes
            raise self._error(f"{what} of shape {shape}, which exceeds all memory")
        type_name = TYPES.get(kind) or FOREIGN[kind]
        block = gguf_blocks.FORMATS.get(type_name)
        if block and (not shape or shape[-1] % block.weights):
            raise self._error(f"{what} of shape {shape}, whose rows are not multiples of {block.weights} weights")
        return TensorInfo(type_name, shape, begin)

    def _value(self, kind: int, nesting: int) -> Any:
        if kind in SCALARS:
            return self._scalar(SCALARS[kind])
        if kind == STRING:
            return self._string()
        if kind != ARRAY or nesting == MAX_NESTING:
            raise self._error(f"has metadata of unknown type {kind}, or nested too deeply")
        item_kind, count = self._scalar("I"), self._scalar("Q")
        if item_kind in SCALARS:
            return self._numbers(SCALARS[item_kind], count)
        if item_kind == STRING:
            return self._strings(count)
        items = []
        for _ in range(count):
            items.append(self._value(item_kind, nesting + 1))
        return items

    def _numbers(self, code: str, count: int) -> list[Any]:
        """Return the items of an array as Python numbers. Equal items of narrow types share one object, since an object
        takes 28 bytes."""
        raw = self._take(count * struct.calcsize(code))
        if code not in "bBhH":
            return np.frombuffer(raw, "<" + code).tolist()
        patterns = raw.cast("H" if code in "hH" else "B")  # the bits as unsigned integers
        shared = np.arange(256**patterns.itemsize, dtype=patterns.format).view(code).tolist()
        return [shared[pattern] for pattern in patterns]

    def _strings(self, count: int) -> list[str]:
        """Return the items of an array. Vocabularies have 100,000: a loop without calls takes a third of the time."""
        items: list[str] = []
        while len(items) < count and (several := self._several_strings(count - len(items))):
            items += several
        view, end, position = self._view, len(self._view), self.position
        try:
            for _ in range(count - len(items)):
                start = position + _SIZE.size
                stop = start + _SIZE.unpack_from(view, position)[0]
                if stop > end:
                    break
                items.append(str(view[start:stop], "utf-8"))
                position = stop
        except (struct.error, UnicodeDecodeError):
            pass
        self.position = position
        if len(items) < count:
            self._string()  # raises the error of this item
        return items

    def _several_strings(self, limit: int) -> list[str]:
        """Return the next strings, decoded together in less than half of the time; an empty list if they cannot be.

        The upper six bytes of a string's size are zero. If no other bytes are, nothing else separates the strings.
        """
        block = np.array(self._view[self.position : self.position + _STRINGS_BYTES], np.uint8)
        nonzero = np.flatnonzero(block)
        starts = nonzero[1:][np.diff(nonzero) > 6][:limit]
        sizes = block[starts - 8] + 256 * block[starts - 7].astype(np.intp)
        stops = starts + sizes
        is_next = starts - _SIZE.size == np.concatenate([[0], stops[:-1]])
        count = int(np.argmin(np.append(is_next & (stops <= len(block)), False)))
        if count == 0:
            return []
        starts, stop = starts[:count], int(stops[count - 1])
        block[starts - 8] = block[starts - 7] = 0
        if np.count_nonzero(block[:stop]) != sizes[:count].sum():
            return []
        try:
            text = block[_SIZE.size : stop].tobytes().decode()
        except UnicodeDecodeError:
            return []
        self.position += stop
        return text.split("\0" * _SIZE.size)

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
            raise self._error(f"is truncated: {count} more bytes are needed")
        chunk = self._view[self.position : end]
        self.position = end
        return chunk

    def _error(self, message: str) -> CheckpointError:
        return CheckpointError(f"{self._name} {message} (read up to byte {self.position})", hint="download it again")
