"""Read and write NumPy files: one array in `.npy`, named arrays in `.npz`. Object arrays (pickles) are refused.

    .npy    the bytes "\\x93NUMPY"; version, two bytes: 1, 2 or 3, and 0; the header's length, a little-endian uint16,
            or uint32 from version 2 on; the header, a Python dict padded with spaces and a newline,
            {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }; the elements
    .npz    a zip archive of .npy files, possibly compressed

Headers are matched by a regular expression: evaluating one could exhaust the stack. Big-endian arrays are converted.

Source:  https://numpy.org/doc/2.2/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from math import prod
from typing import Any, BinaryIO

import numpy as np

from tallow import dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentTypeError, CheckpointError
from tallow.io.elements import as_elements
from tallow.io.source import Bytes, Source, open_source, shown
from tallow.io.zip_archive import ZipArchive, ZipWriter

MAGIC = b"\x93NUMPY"
SUFFIX = ".npy"
MAX_HEADER_BYTES = 10_000  # as in NumPy
MAX_DIMENSIONS = 64  # as in NumPy
ALIGNMENT = 64  # of entries, in bytes; NumPy pads headers so that elements keep it
MAX_BYTES = int(np.iinfo(np.intp).max)
# By kind and size. uint16 in a file is not bfloat16.
DTYPES = {f"{d.storage.kind}{d.itemsize}": d for d in (*dtypes.ALL, dtypes.uint64) if d is not dtypes.bfloat16} | {
    "u2": dtypes.uint16
}

_FIELD = re.compile(
    r"""\s*['"](?P<key>descr|fortran_order|shape)['"]\s*:\s*"""
    r"""(?:['"](?P<descr>[<>|=]?[a-zA-Z]\d{1,4})['"]|(?P<order>True|False)|\((?P<shape>[\dL, ]*)\))\s*(?:,\s*|(?=\}))"""
)


def load(source: Source) -> dict[str, Tensor]:
    """Load the arrays of an `.npz` file by name. Uncompressed arrays are views of the file.

    Raises:  CheckpointError if the archive or an array is truncated, malformed, or of an unsupported dtype
    """
    data, name = open_source(source)
    return load_archive(ZipArchive(data, name))


def load_archive(archive: ZipArchive) -> dict[str, Tensor]:
    """Load the arrays of an open `.npz` archive; see `load`."""
    foreign = [entry for entry in archive.names() if not entry.endswith(SUFFIX)]
    if foreign:
        raise CheckpointError(f"{archive.name} is not an .npz file: it has an entry {foreign[0]!r:.200}")
    return {
        entry.removesuffix(SUFFIX): wrap(_parse(archive.read(entry), f"{archive.name}: {entry:.200}"))
        for entry in archive.names()
    }


def load_array(source: Source) -> Tensor:
    """Load the array of an `.npy` file; a path is memory-mapped.

    Raises:  CheckpointError if it is truncated or malformed, or of an unsupported dtype
    """
    return wrap(_parse(*open_source(source)))


def save(tensors: Mapping[str, Tensor], file: BinaryIO) -> None:
    """Write named tensors as an uncompressed `.npz` file.

    Raises:  ArgumentTypeError for a value that is not a Tensor, or is bfloat16, which NumPy lacks
    """
    arrays = {name: _storable(tensor, repr(name)) for name, tensor in tensors.items()}
    with ZipWriter(file, ALIGNMENT) as archive:
        for name, array in arrays.items():
            archive.add(name + SUFFIX, _header(array), array.data.cast("B") if array.size else b"")


def save_array(tensor: Tensor, file: BinaryIO) -> None:
    """Write one tensor as an `.npy` file. Raises ArgumentTypeError as `save` does."""
    array = _storable(tensor, "the value")
    file.write(_header(array))
    file.write(array.data)


def _storable(tensor: Tensor, what: str) -> np.ndarray[Any, Any]:
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(
            f"{what} is {type(tensor).__name__}, not a Tensor", hint="wrap it: tl.from_numpy(array)"
        )
    if tensor.dtype is dtypes.bfloat16 or (tensor.dtype in dtypes.PACKED and tensor.dtype is not dtypes.uint16):
        raise ArgumentTypeError(f"{what} is {tensor.dtype.name}, which NumPy lacks", hint="save tensor.float()")
    array = np.ascontiguousarray(tensor.detach().cpu().array).view(dtypes.plain_storage(tensor.dtype))
    return array.reshape(tensor.shape)  # ascontiguousarray makes scalars 1-D


def _header(array: np.ndarray[Any, Any]) -> bytes:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    return header.getvalue()


def _parse(data: Bytes, name: str) -> np.ndarray[Any, Any]:
    text, raw = _split(data, name)
    descr, fortran, shape = _fields(text, name)
    dtype, swapped = _dtype(descr, name)
    storage = dtypes.plain_storage(dtype)
    count = prod(shape)
    if len(shape) > MAX_DIMENSIONS or prod(max(n, 1) for n in shape) * storage.itemsize > MAX_BYTES:
        raise CheckpointError(f"{name}: an array that exceeds all memory")
    if count * storage.itemsize != len(raw):
        raise CheckpointError(f"{name}: {len(raw)} bytes for {count} elements of {storage}", hint="download it again")
    if swapped:
        part = storage.itemsize // (2 if storage.kind == "c" else 1)
        raw = raw.reshape(-1, part)[:, ::-1].ravel()
    return as_elements(raw, dtype, name).reshape(shape, order="F" if fortran else "C")


def _split(data: Bytes, name: str) -> tuple[str, Bytes]:
    """Return the header's text and the elements' bytes."""
    start = data[:12].tobytes()
    if start[:6] != MAGIC or len(start) < 12:
        raise CheckpointError(f"{name} is not an .npy file: it starts with {shown(start)}", hint="download it again")
    if start[6] not in (1, 2, 3):
        raise CheckpointError(f"{name}: version {start[6]} of the .npy format; expected 1 to 3")
    header_start = 10 if start[6] == 1 else 12
    length = int.from_bytes(start[8:header_start], "little")
    header_end = header_start + length
    if length > MAX_HEADER_BYTES or header_end > len(data):
        raise CheckpointError(f"{name}: a header of {length} bytes in a file of {len(data)}", hint="download it again")
    return data[header_start:header_end].tobytes().decode("latin-1"), data[header_end:]


def _fields(text: str, name: str) -> tuple[str, bool, tuple[int, ...]]:
    matches: dict[str, re.Match[str]] = {}
    body = text.strip()
    position = 1
    while match := _FIELD.match(body, position):
        matches[match["key"]] = match
        position = match.end()
    if not body.startswith("{") or body[position:] != "}" or len(matches) != 3:
        raise CheckpointError(
            f"{name}: its header does not describe an array of numbers: {body!r:.200}",
            hint="records and Python objects are not supported; save plain arrays",
        )
    descr, order, shape = matches["descr"]["descr"], matches["fortran_order"]["order"], matches["shape"]["shape"]
    lengths = [] if shape is None else [length.strip().removesuffix("L") for length in shape.split(",")]
    if lengths and not lengths[-1]:
        lengths.pop()
    if descr is None or order is None or shape is None or not all(re.fullmatch(r"\d{1,19}", n) for n in lengths):
        raise CheckpointError(f"{name}: its header is damaged: {body!r:.200}", hint="download it again")
    return descr, order == "True", tuple(map(int, lengths))


def _dtype(descr: str, name: str) -> tuple[dtypes.dtype, bool]:
    """Return the dtype of a header's `descr`, and whether the elements are big-endian."""
    code = descr.lstrip("<>|=")
    if code not in DTYPES:
        raise CheckpointError(
            f"{name}: NumPy dtype {descr!r}, which tallow lacks",
            hint=f"convert it to one of {', '.join(DTYPES)}",
        )
    return DTYPES[code], descr.startswith(">") and DTYPES[code].itemsize > 1
