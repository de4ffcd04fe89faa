"""Refuse damaged heaps of strings in an HDF5 file, on which libhdf5 loops for ever, before libhdf5 reads them.

Natively, a process reads the file that can be ended (`hdf5_process`). A browser has no processes.

Source: HDF5 File Format Specification 3.0, section III.E, "Global Heap"
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tallow.errors import CheckpointError
from tallow.io.source import Bytes

SIGNATURE = b"GCOL\x01"  # and the version
HEAD = struct.Struct("<4sB3xQ")  # signature, version, size of the whole collection
OBJECT = struct.Struct("<HH4xQ")  # number, references, size; the number 0 is the free space, whose size has this head
ALIGNMENT = 8
PART = 1 << 20

SUPERBLOCK = b"\x89HDF\r\n\x1a\n"
VERSION_AT = 8
SIZES_AT = {0: 13, 1: 13, 2: 9, 3: 9}  # of addresses and of lengths, by the version
USUAL_SIZES = b"\x08\x08"


def require_heaps(data: Bytes, name: str) -> None:
    """Raise CheckpointError if a collection of strings in a file has a free space or an object of an impossible size,
    or if the lengths in the file do not have eight bytes, as they have in each file of Keras.
    """
    superblock = data[:16].tobytes()
    if superblock.startswith(SUPERBLOCK):
        at = SIZES_AT.get(superblock[VERSION_AT], 0)
        if superblock[at : at + 2] != USUAL_SIZES:
            raise _damaged(name, "its lengths do not have 8 bytes")
    for start in _places(data):
        _, _, size = HEAD.unpack(data[start : start + HEAD.size].tobytes())
        if HEAD.size <= size <= len(data) - start:  # libhdf5 refuses others; most are no heap, but numbers of an array
            _require_objects(data[start : start + size], name)


def _places(data: Bytes) -> Iterator[int]:
    """Yield where a collection may begin."""
    for start in range(0, len(data) - HEAD.size + 1, PART):
        part = data[start : start + PART + len(SIGNATURE) - 1].tobytes()
        at = part.find(SIGNATURE)
        while at >= 0:
            if start + at + HEAD.size <= len(data):
                yield start + at
            at = part.find(SIGNATURE, at + 1)


def _require_objects(collection: Bytes, name: str) -> None:
    at = HEAD.size
    while at + OBJECT.size <= len(collection):
        number, _, size = OBJECT.unpack(collection[at : at + OBJECT.size].tobytes())
        taken = size if number == 0 else OBJECT.size + -(-size // ALIGNMENT) * ALIGNMENT
        if taken < OBJECT.size or taken > len(collection) - at:
            raise _damaged(name, f"object {number} of a heap has {size} bytes")
        at += taken


def _damaged(name: str, why: str) -> CheckpointError:
    return CheckpointError(f"{name} is damaged: {why}", hint="download or save it again")
