"""Read and write zip archives, the container of `.npz` and PyTorch's `.pt`. Files are not trusted.

Python's `zipfile` reads the directory, but not the entries: an uncompressed entry can then be viewed in place, and a
compressed one is limited to the size it declares. Nothing is ever unpacked to disk.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from itertools import pairwise
from types import TracebackType
from typing import BinaryIO

import numpy as np

from tallow.errors import ArgumentError, CheckpointError
from tallow.io.byte_file import ByteFile
from tallow.io.source import Bytes

MAGIC = b"PK\x03\x04"
EMPTY_MAGIC = b"PK\x05\x06"  # an archive without entries has only the end of its directory
LOCAL_HEADER_BYTES = 30
ENCRYPTED = 0x1
PADDING = 0x4246  # "FB", PyTorch's label for the padding before an entry's bytes
EXTRA_BYTES = 4  # its label and length
ZIP64_EXTRA_BYTES = 20  # added by zipfile to the header of a large entry
# Limits on what compressed data expands to. Deflate reaches 1:1032 on zeros; weights and digits hardly reach 1:10.
FREE_BYTES = 64 * 2**20
MAX_EXPANSION = 100

# Exceptions that zipfile raises on damaged directories.
_DAMAGE = (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError, OverflowError, EOFError, OSError)


def expansion_limit(size: int) -> int:
    """Return how many bytes `size` bytes of compressed data may expand to."""
    return max(FREE_BYTES, MAX_EXPANSION * size)


def is_inside(path: str) -> bool:
    """Return whether an entry's name, as a path on any system, stays inside the folder it is unpacked to."""
    return not (path.startswith("/") or path[1:3] == ":/" or "\\" in path or "\0" in path or ".." in path.split("/"))


class ZipArchive:
    """The entries of an archive by name.

    Args:
        data: the whole archive; uncompressed entries are views of it.
        name: description of the source, for error messages.

    Raises:  CheckpointError for a damaged or encrypted archive, for entries that overlap, share a name, or have a name
        that leads out of a folder, and for compressed entries that expand too much
    """

    def __init__(self, data: Bytes, name: str) -> None:
        self._data = data
        self.name = name
        try:
            with zipfile.ZipFile(ByteFile(data)) as opened:
                entries = opened.infolist()
        except _DAMAGE as error:
            raise CheckpointError(f"{name}: the zip archive is damaged: {error}", hint="download it again") from error
        self._places: dict[str, tuple[zipfile.ZipInfo, int]] = {}
        for entry in entries:
            self._check(entry)
            self._places[entry.filename] = (entry, self._start(entry))
        self._check_layout()

    def names(self) -> list[str]:
        """Return the names of the entries."""
        return list(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def size(self, name: str) -> int:
        """Return the uncompressed size of an entry in bytes."""
        return self._entry(name)[0].file_size

    def read(self, name: str) -> Bytes:
        """Return the bytes of an entry: a view of the archive if uncompressed, else a new array."""
        entry, start = self._entry(name)
        raw = self._data[start : start + entry.compress_size]
        return raw if entry.compress_type == zipfile.ZIP_STORED else self._inflate(raw, entry)

    def _entry(self, name: str) -> tuple[zipfile.ZipInfo, int]:
        if name not in self._places:
            raise CheckpointError(f"{self.name} has no entry {name!r:.200}", hint="download it again")
        return self._places[name]

    def _check(self, entry: zipfile.ZipInfo) -> None:
        where = f"{self.name}: entry {entry.filename!r:.200}"
        if entry.filename in self._places:
            raise CheckpointError(f"{where} appears twice")
        if not is_inside(entry.orig_filename):
            raise CheckpointError(f"{where} has a name that leads out of the archive")
        if entry.flag_bits & ENCRYPTED:
            raise CheckpointError(f"{where} is encrypted", hint="repack the archive without a password")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise CheckpointError(f"{where} is compressed with method {entry.compress_type}; only deflate is supported")
        if entry.compress_type == zipfile.ZIP_STORED and entry.file_size != entry.compress_size:
            raise CheckpointError(
                f"{where} is uncompressed, but has two sizes: {entry.file_size}, {entry.compress_size}"
            )

    def _start(self, entry: zipfile.ZipInfo) -> int:
        """Return the start of an entry's bytes, after its local header, whose length is in the header itself."""
        begin = entry.header_offset
        header = self._data[begin : begin + LOCAL_HEADER_BYTES].tobytes() if begin >= 0 else b""
        if len(header) < LOCAL_HEADER_BYTES or header[:4] != MAGIC:
            raise CheckpointError(f"{self.name}: entry {entry.filename!r:.200} has no header at byte {begin}")
        name_bytes, extra_bytes = struct.unpack("<HH", header[26:30])
        return begin + LOCAL_HEADER_BYTES + name_bytes + extra_bytes

    def _check_layout(self) -> None:
        extents = sorted((entry.header_offset, start + entry.compress_size) for entry, start in self._places.values())
        if any(end > begin for (_, end), (begin, _) in pairwise(extents)):
            raise CheckpointError(f"{self.name}: entries overlap", hint="download it again")
        if extents and extents[-1][1] > len(self._data):
            raise CheckpointError(
                f"{self.name}: truncated: the entries end at byte {extents[-1][1]}, the file at {len(self._data)}",
                hint="download it again",
            )
        deflated = (e.file_size for e, _ in self._places.values() if e.compress_type != zipfile.ZIP_STORED)
        expanded, limit = sum(deflated), expansion_limit(len(self._data))
        if expanded > limit:
            raise CheckpointError(
                f"{self.name}: {len(self._data)} bytes would expand to {expanded}, more than the limit of {limit}",
                hint="if you trust the archive, repack it without compression",
            )

    def _inflate(self, raw: Bytes, entry: zipfile.ZipInfo) -> Bytes:
        where = f"{self.name}: entry {entry.filename!r:.200}"
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)  # an entry has no zlib header
        try:
            # At least 1: 0 means no limit.
            expanded = inflater.decompress(raw.data, max(entry.file_size, 1))
        except zlib.error as error:
            raise CheckpointError(f"{where} is damaged: {error}", hint="download it again") from error
        if len(expanded) != entry.file_size or zlib.crc32(expanded) != entry.CRC:
            raise CheckpointError(f"{where} does not match its directory", hint="download it again")
        return np.frombuffer(bytearray(expanded), dtype=np.uint8)  # a bytearray, so that tensors are writable


class ZipWriter:
    """Writer of an archive of uncompressed entries, each aligned so that a reader can view it in place.

    Args:
        file: a seekable binary file.
        alignment: alignment of the entries' bytes, from the start of the file.
    """

    def __init__(self, file: BinaryIO, alignment: int) -> None:
        self._file = file
        self._alignment = alignment
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)

    def __enter__(self) -> ZipWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._zip.close()

    def add(self, name: str, *content: bytes | memoryview) -> None:
        """Write an entry, given in parts.  Raises: ArgumentError for a name that this module would not read"""
        if not is_inside(name):
            raise ArgumentError(
                f"cannot name an entry of a zip archive {name!r:.200}",
                hint="use a relative path without .. and backslashes",
            )
        entry = zipfile.ZipInfo(name)  # dated 1980, for reproducible files
        entry.file_size = sum(memoryview(part).nbytes for part in content)
        header = LOCAL_HEADER_BYTES + len(name.encode()) + EXTRA_BYTES
        if entry.file_size > zipfile.ZIP64_LIMIT:
            header += ZIP64_EXTRA_BYTES
        padding = -(self._file.tell() + header) % self._alignment
        entry.extra = struct.pack("<HH", PADDING, padding) + bytes(padding)
        with self._zip.open(entry, "w", force_zip64=entry.file_size > zipfile.ZIP64_LIMIT) as destination:
            for part in content:
                destination.write(part)
