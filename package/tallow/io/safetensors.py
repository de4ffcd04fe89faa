"""Read and write safetensors files: named arrays, read without copying.

    8 bytes     little-endian uint64 n, at most 100,000,000
    n bytes     UTF-8 JSON, first byte '{', padded with spaces: {"name": {"dtype": "F32", "shape": [2, 3],
                "data_offsets": [begin, end]}, ...}, and optionally "__metadata__": {str: str}
    the rest    the arrays, little-endian, row-major; offsets count from here; no gaps, no overlaps, no trailing bytes

tallow uses its own reader on every platform. The `safetensors` package is not in every Pyodide release, copies each
array into NumPy, and lacks bfloat16 there. Tests compare this reader and writer with it, including what they refuse.

Source:  https://github.com/huggingface/safetensors/blob/v0.5.3/README.md#format
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from types import TracebackType
from typing import Any

import numpy as np

from tallow import dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError
from tallow.io.atomic import atomic_write
from tallow.io.elements import as_elements
from tallow.io.json_object import parse_object
from tallow.io.source import Bytes, Path, Source, open_source, shown

MAX_HEADER_BYTES = 100_000_000
MAX_DEPTH = 3  # {"name": {"shape": [...]}}
MAX_DIMENSIONS = 64  # as in NumPy

DTYPES = {
    "C64": dtypes.complex64,
    "F64": dtypes.float64,
    "F32": dtypes.float32,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "I64": dtypes.int64,
    "I32": dtypes.int32,
    "I16": dtypes.int16,
    "I8": dtypes.int8,
    "U64": dtypes.uint64,
    "U32": dtypes.uint32,
    "U16": dtypes.uint16,
    "U8": dtypes.uint8,
    "BOOL": dtypes.bool,
    "F8_E4M3": dtypes.float8_e4m3fn,
    "F8_E5M2": dtypes.float8_e5m2,
    "F8_E8M0": dtypes.float8_e8m0fnu,
    "F8_E4M3FNUZ": dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": dtypes.float8_e5m2fnuz,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

# Valid in files, but not supported by tallow. The 4- and 6-bit dtypes are packed across bytes.
BITS = {"F6_E2M3": 6, "F6_E3M2": 6, "F4": 4}
BITS |= {name: 8 * dtype.itemsize for name, dtype in DTYPES.items()}


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """The header entry of a tensor: the format's dtype name, the shape, the byte range within the data."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def load(source: Source) -> dict[str, Tensor]:
    """Load every tensor of a file or buffer by name. Aligned tensors are views; a path is memory-mapped.

    Raises:  CheckpointError if the file is truncated or malformed, or contains an unsupported dtype
    """
    with safe_open(source) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict


def save(tensors: Mapping[str, Tensor], path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Save `tensors` to `path`, which is replaced atomically at the end, or unchanged after an error.

    Raises:  ArgumentTypeError for a value that is not a Tensor; ArgumentError for the reserved name "__metadata__"
    """
    with atomic_write(path) as file:
        file.writelines(encode(tensors, metadata))


def encode(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> list[bytes | memoryview]:
    """Return the parts of a safetensors file, without copying the tensors' memory."""
    header, arrays = _layout(tensors, metadata)
    return [len(header).to_bytes(8, "little") + header, *(array.data for array in arrays)]


class safe_open:
    """A reader of a file's header, and of its tensors one at a time.

    Attributes:
        data_start: position in the file that the tensors' offsets count from.

    Example:
        with safe_open("model.safetensors") as file:
            weight = file.get_tensor("model.norm.weight")
    """

    def __init__(self, source: Source) -> None:
        data, self.name = open_source(source)
        self._infos, self._metadata, self.data_start = _parse(data, self.name)
        self._data = data[self.data_start :]

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._data = self._data[:0]  # returned tensors keep the mapping alive

    def keys(self) -> list[str]:
        """Return the names in the order of their data."""
        return list(self._infos)

    def __contains__(self, name: object) -> bool:
        return name in self._infos

    def metadata(self) -> dict[str, str]:
        """Return the file's metadata."""
        return dict(self._metadata)

    def info(self, name: str) -> TensorInfo:
        """Return the dtype, shape and byte range of a tensor without reading its data."""
        if name not in self._infos:
            raise CheckpointError(f"{self.name} has no tensor {name!r}", hint="list the names with keys()")
        return self._infos[name]

    def get_tensor(self, name: str) -> Tensor:
        """Return a tensor; raises as `get_array` does."""
        return wrap(self.get_array(name))

    def get_array(self, name: str) -> np.ndarray[Any, Any]:
        """Return the array of a tensor: a view of the source, or a copy if unaligned. BF16 is returned as uint16.

        U16 and the kinds of F8 are returned with NumPy dtypes of one named field, see `tallow.dtypes`.

        Raises:  CheckpointError for an unknown name, an unsupported dtype, or a boolean that is not 0 or 1
        """
        info = self.info(name)
        if info.dtype not in DTYPES:
            raise CheckpointError(
                f"{self.name}: tensor {name!r} has dtype {info.dtype}, which tallow lacks",
                hint=f"convert it to one of {', '.join(DTYPES)}",
            )
        raw = self._data[info.begin : info.end]
        if len(raw) != info.end - info.begin:
            raise CheckpointError(f"{self.name} is closed", hint="read tensors inside the with block")
        where = f"{self.name}: tensor {name!r}"
        elements = as_elements(raw, DTYPES[info.dtype], where)
        try:
            return elements.reshape(info.shape)
        except ValueError as error:  # an empty tensor may claim any length, or more dimensions than NumPy has
            raise CheckpointError(f"{where} has shape {info.shape}: {error}") from error


def _parse(data: Bytes, name: str) -> tuple[dict[str, TensorInfo], dict[str, str], int]:
    """Check a file and return its tensor infos, its metadata, and the position of the data."""
    if len(data) < 8:
        raise CheckpointError(f"{name}: {len(data)} bytes are too few for a safetensors file", hint="download it again")
    length = int.from_bytes(data[:8].tobytes(), "little")
    if length > MAX_HEADER_BYTES:
        raise CheckpointError(
            f"{name}: header of {length} bytes, but the format's limit is {MAX_HEADER_BYTES}",
            hint="this is not a safetensors file, or its first bytes are damaged",
        )
    if 8 + length > len(data):
        raise CheckpointError(
            f"{name}: truncated: the header ends at byte {8 + length}, but the file has {len(data)} bytes",
            hint="download it again",
        )
    header = data[8 : 8 + length].tobytes()
    if header[:1].isspace():  # the format forbids the leading spaces that JSON allows
        raise CheckpointError(
            f"{name}: the header is not a JSON object: it starts with {shown(header[:1])}", hint="download it again"
        )
    entries = parse_object(header, f"{name}: the header", MAX_DEPTH)
    metadata = _metadata(entries.pop("__metadata__", None), name)
    infos = {key: _info(key, value, name) for key, value in entries.items()}
    infos = dict(sorted(infos.items(), key=lambda item: (item[1].begin, item[1].end)))
    _check_layout(infos, len(data) - 8 - length, name)
    return infos, metadata, 8 + length


def _metadata(value: Any, name: str) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise CheckpointError(f"{name}: __metadata__ is not an object of strings")
    return value


def _info(key: str, value: Any, name: str) -> TensorInfo:
    where = f"{name}: tensor {key!r}"
    if not isinstance(value, dict) or not {"dtype", "shape", "data_offsets"} <= value.keys():
        raise CheckpointError(f"{where} is not an object with dtype, shape and data_offsets")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in BITS:
        raise CheckpointError(f"{where} has dtype {dtype!r:.80}; the format has {', '.join(BITS)}")
    if not _counts(shape) or len(shape) > MAX_DIMENSIONS:
        raise CheckpointError(f"{where} has shape {shape!r:.80}; expected a list of at most {MAX_DIMENSIONS} lengths")
    if not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise CheckpointError(f"{where} has data_offsets {offsets!r:.80}; expected [begin, end] with begin <= end")
    begin, end = offsets
    if prod(shape) * BITS[dtype] != 8 * (end - begin):
        needed = prod(shape) * BITS[dtype] / 8
        raise CheckpointError(f"{where}: {dtype}{shape} takes {needed:g} bytes; its data_offsets span {end - begin}")
    return TensorInfo(dtype, tuple(shape), begin, end)


def _counts(value: Any) -> bool:
    """Return whether `value` is a list of unsigned 64-bit integers; JSON's true is an int in Python."""
    if not isinstance(value, list) or not {*map(type, value)} <= {int}:
        return False
    return not value or (min(value) >= 0 and max(value) < 2**64)


def _check_layout(infos: Mapping[str, TensorInfo], data_bytes: int, name: str) -> None:
    """Check that `infos`, ordered by offset, cover the data exactly."""
    edges = [("the data", 0, 0), *((key, info.begin, info.end) for key, info in infos.items())]
    for (before, _, end), (key, begin, _) in pairwise(edges):
        if begin != end:
            fault = "overlaps" if begin < end else "leaves a gap after"
            raise CheckpointError(
                f"{name}: tensor {key!r} starts at byte {begin} and {fault} {before!r}, which ends at {end}"
            )
    if edges[-1][2] != data_bytes:
        fault = "truncated" if edges[-1][2] > data_bytes else "oversized"
        raise CheckpointError(
            f"{name}: {fault}: the tensors end at byte {edges[-1][2]} of the data, which has {data_bytes} bytes",
            hint="download it again",
        )


def _layout(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None
) -> tuple[bytes, list[np.ndarray[Any, Any]]]:
    """Return the header and the arrays in file order: by item size, descending, for alignment; then by name."""
    header: dict[str, Any] = {}
    if metadata:
        if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
            raise ArgumentTypeError("safetensors metadata maps strings to strings", hint="json.dumps other values")
        header["__metadata__"] = dict(metadata)
    arrays, end = [], 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (-_itemsize(*item), item[0])):
        if name == "__metadata__":
            raise ArgumentError(
                "a tensor cannot be named '__metadata__'", hint="rename it; the format reserves the name"
            )
        if tensor.dtype not in NAMES:
            raise ArgumentTypeError(f"{name}: the format has no {tensor.dtype.name}", hint="convert it first")
        array = np.ascontiguousarray(tensor.detach().cpu().array)
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
        arrays.append(array)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER_BYTES:
        raise ArgumentError(f"the header takes {len(text)} bytes, but the format's limit is {MAX_HEADER_BYTES}")
    return text, arrays


def _itemsize(name: str, tensor: Tensor) -> int:
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(
            f"{name!r} is {type(tensor).__name__}, not a Tensor", hint="wrap it: tl.from_numpy(array)"
        )
    return tensor.dtype.itemsize
