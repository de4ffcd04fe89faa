"""Convert the tensors of ONNX files to tensors of tallow and back.

Numbers lie in one of three places: `raw_data`, little-endian; a field of numbers by dtype; or a range of another file
in the same folder. Integers of two and four bits become int8 and uint8, one element each; float4 becomes float32;
strings become NumPy arrays of dtype object.

Source:  https://github.com/onnx/onnx, the file `onnx/onnx.proto`, message TensorProto; `docs/ExternalData.md`
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.errors import CheckpointError, UnsupportedError
from tallow.io.elements import as_elements
from tallow.io.source import Bytes, open_source
from tallow.onnx.protobuf import EXTERNAL, StringStringEntryProto, TensorProto
from tallow.onnx.protobuf import DataType as DataType

MAX_DIMENSIONS = 64  # as in NumPy
MOST_ELEMENTS = 1 << 59  # NumPy makes no array whose dims, without those of 0, come to 2^63 bytes; complex128 has 16
DTYPES = {
    DataType.FLOAT: dtypes.float32,
    DataType.UINT8: dtypes.uint8,
    DataType.INT8: dtypes.int8,
    DataType.UINT16: dtypes.uint16,
    DataType.INT16: dtypes.int16,
    DataType.INT32: dtypes.int32,
    DataType.INT64: dtypes.int64,
    DataType.BOOL: dtypes.bool,
    DataType.FLOAT16: dtypes.float16,
    DataType.DOUBLE: dtypes.float64,
    DataType.UINT32: dtypes.uint32,
    DataType.UINT64: dtypes.uint64,
    DataType.COMPLEX64: dtypes.complex64,
    DataType.COMPLEX128: dtypes.complex128,
    DataType.BFLOAT16: dtypes.bfloat16,
    DataType.FLOAT8E4M3FN: dtypes.float8_e4m3fn,
    DataType.FLOAT8E4M3FNUZ: dtypes.float8_e4m3fnuz,
    DataType.FLOAT8E5M2: dtypes.float8_e5m2,
    DataType.FLOAT8E5M2FNUZ: dtypes.float8_e5m2fnuz,
    DataType.FLOAT8E8M0: dtypes.float8_e8m0fnu,
}
DATA_TYPES = {known: number for number, known in DTYPES.items()}
# dtypes narrower than a byte: bits, and the dtype of the tensor that holds the values
NARROW = {
    DataType.UINT4: (4, dtypes.uint8),
    DataType.INT4: (4, dtypes.int8),
    DataType.FLOAT4E2M1: (4, dtypes.float32),
    DataType.UINT2: (2, dtypes.uint8),
    DataType.INT2: (2, dtypes.int8),
}
SIGNED = (DataType.INT4, DataType.INT2)
FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)  # by bit pattern

Strings = npt.NDArray[np.object_]


@dataclass
class ExternalFiles:
    """The files beside a model that hold its tensors. Each is mapped once.

    Args:
        folder: that of the model; None for a model in memory, which has no files.
        behind: the folder of the file that the model is a link to, as in the cache of the Hub; links to other files of
            that folder are followed.
    """

    folder: Path | None
    behind: Path | None = None
    _open: dict[str, Bytes] = field(default_factory=dict)

    def read(self, name: str, place: dict[str, str]) -> Bytes:
        """Return the bytes of a tensor.

        Args:
            name: of the tensor, for error messages.
            place: its `location`, `offset` and `length`.

        Raises:  CheckpointError for a file outside the folder, a link, and a range beyond the end
        """
        location = place.get("location", "")
        content = self._open.get(location)
        if content is None:
            content = self._open[location] = open_source(self._path(name, location)).data
        try:
            offset = int(place.get("offset") or 0)
            length = int(place["length"]) if place.get("length") else len(content) - offset
        except ValueError as error:
            raise CheckpointError(f"tensor {name!r:.80}: its place in {location!r:.80} is no number") from error
        if offset < 0 or length < 0 or offset + length > len(content):
            raise CheckpointError(
                f"tensor {name!r:.80} is at bytes {offset} to {offset + length} of {location!r:.80}, which has "
                f"{len(content)}",
                hint="download the file again; it may be truncated",
            )
        return content[offset : offset + length]

    def _path(self, name: str, location: str) -> str:
        if self.folder is None:
            raise CheckpointError(
                f"tensor {name!r:.80} is in the file {location!r:.80}, but the model was not read from a path",
                hint="pass the path of the model; its files are looked for in the same folder",
            )
        parts = location.replace("\\", "/").split("/")
        is_outside = not location or "\0" in location or location[0] in "/\\" or ":" in parts[0] or ".." in parts
        path = self.folder
        for part in () if is_outside else parts:
            path = path / part
            is_outside = is_outside or (os.path.islink(path) and Path(os.path.realpath(path)).parent != self.behind)
        if is_outside:
            raise CheckpointError(
                f"tensor {name!r:.80} is in the file {location!r:.80}, which is a link or outside the model's folder",
                hint="put the file into the folder of the model",
            )
        if not path.is_file():
            raise CheckpointError(
                f"tensor {name!r:.80} is in the file {location!r:.80}, which is missing",
                hint="download it into the folder of the model",
            )
        return str(path)


def tensor_of(proto: TensorProto, files: ExternalFiles) -> Tensor | Strings:
    """Return a tensor of a file; it is a view of the bytes where they are aligned. Strings are an array of `str`.

    Raises:  CheckpointError if the numbers do not fit the dims; UnsupportedError for an unknown dtype
    """
    name = proto.name
    shape = shape_of(proto)
    if proto.segment is not None:
        raise UnsupportedError(f"tensor {name!r:.80} is one segment of a tensor", hint="save the model with ONNX 1.9")
    if proto.data_type == DataType.STRING:
        return _strings(proto, shape)
    raw = _raw_bytes(proto, files)
    try:
        kind = DataType(proto.data_type)
    except ValueError:
        kind = DataType.UNDEFINED
    if kind in NARROW:
        return wrap(_narrow(proto, kind, raw, shape))
    if kind not in DTYPES:
        raise UnsupportedError(f"tensor {name!r:.80} has the data type {proto.data_type}, which is not known")
    dtype = DTYPES[kind]
    if raw is None:
        elements = _numbers(proto, dtype)
    else:
        if len(raw) != prod(shape) * dtype.itemsize:
            _refuse_length(proto, f"{len(raw)} bytes")
        elements = as_elements(raw, dtype, f"tensor {name!r:.80}")
    if elements.size != prod(shape):
        _refuse_length(proto, f"{elements.size} numbers")
    array = elements.reshape(shape)
    return wrap(array if array.flags.writeable else array.copy())  # training writes to weights


def shape_of(proto: TensorProto) -> tuple[int, ...]:
    """Return the dims of a tensor.  Raises: CheckpointError for dims that no array has"""
    shape = tuple(proto.dims)
    is_countable = len(shape) <= MAX_DIMENSIONS and prod(max(dim, 1) for dim in shape) < MOST_ELEMENTS
    if not is_countable or any(dim < 0 for dim in shape):
        raise CheckpointError(f"tensor {proto.name!r:.80} has the dims {shape!s:.80}")
    return shape


def _refuse_length(proto: TensorProto, found: str) -> None:
    raise CheckpointError(
        f"tensor {proto.name!r:.80} has the dims {tuple(proto.dims)!s:.80}, but {found}",
        hint="download the file again",
    )


def _raw_bytes(proto: TensorProto, files: ExternalFiles) -> Bytes | None:
    """Return the bytes of a tensor, or None if its numbers are in a field by dtype."""
    if proto.data_location == EXTERNAL:
        return files.read(proto.name, {entry.key: entry.value for entry in proto.external_data})
    return None if proto.raw_data is None else np.frombuffer(proto.raw_data, np.uint8)


def _strings(proto: TensorProto, shape: tuple[int, ...]) -> Strings:
    if len(proto.string_data) != prod(shape):
        _refuse_length(proto, f"{len(proto.string_data)} strings")
    strings = np.empty(len(proto.string_data), object)
    strings[:] = [str(each, "utf-8", "surrogateescape") for each in proto.string_data]
    return strings.reshape(shape)


def _numbers(proto: TensorProto, dtype: dtypes.dtype) -> npt.NDArray[Any]:
    """Return the elements in the field that belongs to a dtype."""
    if dtype.is_complex:
        parts = proto.float_data if dtype is dtypes.complex64 else proto.double_data
        if parts is None or len(parts) % 2:
            return np.zeros(0, dtype.storage)
        return parts.view(dtype.storage)
    if dtype is dtypes.float32:
        found = proto.float_data
    elif dtype is dtypes.float64:
        found = proto.double_data
    elif dtype is dtypes.int64:
        found = proto.int64_data
    elif dtype in (dtypes.uint32, dtypes.uint64):
        found = proto.uint64_data
    else:
        found = proto.int32_data  # floats narrower than 32 bits by their bit patterns
    if found is None:
        return np.zeros(0, dtype.storage)
    if dtype in (dtypes.float32, dtypes.float64):
        return found
    plain = np.dtype(f"u{dtype.itemsize}") if dtype.is_floating_point else dtypes.plain_storage(dtype)
    return found.astype(plain).view(dtype.storage)


def _narrow(proto: TensorProto, kind: DataType, raw: Bytes | None, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return elements narrower than a byte, one each; the first lies in the lowest bits."""
    bits, dtype = NARROW[kind]
    if raw is None:
        raw = (proto.int32_data if proto.int32_data is not None else np.zeros(0, np.int32)).astype(np.uint8)
    count = prod(shape)
    if len(raw) != -(-count * bits // 8):
        _refuse_length(proto, f"{len(raw)} bytes")
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    values = ((raw[:, None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(-1)[:count].reshape(shape)
    if kind == DataType.FLOAT4E2M1:
        return FLOAT4[values]
    if kind in SIGNED:
        unused = np.uint8(8 - bits)
        return (values << unused).view(np.int8) >> unused.view(np.int8)
    return values.astype(dtype.storage)


def tensor_proto(value: Tensor, name: str) -> TensorProto:
    """Return a tensor as a message that holds its bytes.

    Raises:  UnsupportedError for a dtype that ONNX lacks
    """
    if value.dtype not in DATA_TYPES:
        raise UnsupportedError(f"tensor {name!r:.80}: ONNX has no dtype {value.dtype}", hint="convert it to float32")
    array = np.ascontiguousarray(value.detach().cpu().array)
    content = array.reshape(-1).view(np.uint8).data if array.size else b""
    return TensorProto(dims=tuple(value.shape), data_type=DATA_TYPES[value.dtype], name=name, raw_data=content)


def external_place(location: str, offset: int, length: int) -> list[StringStringEntryProto]:
    """Return `TensorProto.external_data` for a range of a file."""
    place = {"location": location, "offset": offset, "length": length}
    return [StringStringEntryProto(key, str(value)) for key, value in place.items()]
