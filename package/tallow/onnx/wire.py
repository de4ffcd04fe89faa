"""Read and write the wire format of Protocol Buffers by the annotated fields of dataclasses.

A message is a list of fields, and a field is a key, `number << 3 | type`, and a value: a varint (type 0), 8 bytes (1),
a length and that many bytes (2), or 4 bytes (5).

    @dataclass(slots=True)
    class Pair(Message):
        key: str = text(1)
        values: Sequence[int] = integers(2)
        raw: bytes | memoryview | None = data(3, None)

A field of bytes is a view of the source, so that tensors are not copied. Fields that a class lacks are skipped. All
defaults are immutable: an empty message of a file takes a few machine words.

Source:  https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, field, fields
from typing import IO, Any, ClassVar, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from tallow.errors import CheckpointError

MAX_DEPTH = 100  # of nested messages, as in Google's readers
HINT = "download it again; or it is another kind of file"
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_WIRE_TYPES = {"integer": _VARINT, "float": _FOUR, "text": _BYTES, "bytes": _BYTES, "message": _BYTES}
_WORD = 1 << 64

Buffer = bytes | memoryview
M = TypeVar("M", bound="Message")


@dataclass(frozen=True)
class Field:
    """One field of a message class.

    Attributes:
        kind: integer, float, text, bytes, message; or array, numbers that stay packed in a NumPy array.
        repeated: whether the attribute is a sequence.
        dtype: of arrays.
        of: names the class of messages.
    """

    number: int
    kind: str
    name: str = ""
    repeated: bool = False
    dtype: str = ""
    of: Callable[[], type[Message]] | None = None
    default: Any = None


class Message:
    """Base class of messages: dataclasses whose fields are made by `integer`, `text`, `message` and so on."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]


def _declared(number: int, kind: str, default: Any, **more: Any) -> Any:
    return field(default=default, metadata={"field": Field(number, kind, default=default, **more)})


def integer(number: int, default: int | None = 0) -> Any:
    """Declare a signed integer of 64 bits. One that equals the default is not written."""
    return _declared(number, "integer", default)


def real(number: int, default: float | None = None) -> Any:
    """Declare a float32."""
    return _declared(number, "float", default)


def text(number: int, default: str | None = "") -> Any:
    """Declare a string of UTF-8."""
    return _declared(number, "text", default)


def data(number: int, default: bytes | None = None) -> Any:
    """Declare bytes, read as a view of the source."""
    return _declared(number, "bytes", default)


def message(number: int, of: Callable[[], type[Message]]) -> Any:
    """Declare a message; `of` returns its class. It is None if it is absent."""
    return _declared(number, "message", None, of=of)


def integers(number: int) -> Any:
    """Declare repeated integers."""
    return _declared(number, "integer", (), repeated=True)


def reals(number: int) -> Any:
    """Declare repeated float32 numbers."""
    return _declared(number, "float", (), repeated=True)


def texts(number: int) -> Any:
    """Declare repeated strings."""
    return _declared(number, "text", (), repeated=True)


def datas(number: int) -> Any:
    """Declare repeated bytes."""
    return _declared(number, "bytes", (), repeated=True)


def messages(number: int, of: Callable[[], type[Message]]) -> Any:
    """Declare repeated messages."""
    return _declared(number, "message", (), repeated=True, of=of)


def array(number: int, dtype: str) -> Any:
    """Declare repeated numbers that are read as one array: floats of a fixed width, or integers as varints."""
    return _declared(number, "array", None, dtype=dtype)


_TABLES: dict[type[Message], dict[int, Field]] = {}


def table(cls: type[Message]) -> dict[int, Field]:
    """Return number -> field of a class of messages."""
    if cls in _TABLES:
        return _TABLES[cls]
    found = _TABLES[cls] = {}
    for each in fields(cls):
        made: Field = each.metadata["field"]
        assert each.default is not MISSING
        named = Field(made.number, made.kind, each.name, made.repeated, made.dtype, made.of, made.default)
        found[made.number] = named
    return found


# ------------------------------------------------------------------------------------------------------------- reading


class Reader:
    """Reads messages from a buffer.

    Args:    name: name of the file, for error messages
    """

    def __init__(self, source: memoryview, name: str) -> None:
        self.source, self.name = source, name

    def read(self, cls: type[M]) -> M:
        """Return the message that fills the buffer.  Raises: CheckpointError for malformed and truncated ones"""
        return self._message(cls, 0, len(self.source), 0)

    def _message(self, cls: type[M], at: int, end: int, depth: int) -> M:
        if depth > MAX_DEPTH:
            self._refuse(f"messages are nested more than {MAX_DEPTH} deep at byte {at}")
        result, known = cls(), table(cls)
        parts: dict[Field, list[Any]] = {}
        for number, kind, value, stop in self._fields(at, end):
            if (known_field := known.get(number)) is None:
                continue
            read = self._value(known_field, kind, value, stop, depth)
            if known_field.repeated or known_field.kind == "array":
                found = parts.setdefault(known_field, [])
                found.extend(read) if isinstance(read, _Several) else found.append(read)
            else:
                if known_field.kind == "message" and getattr(result, known_field.name) is not None:
                    self._refuse(f"{cls.__name__}.{known_field.name} is there twice, at byte {value}")
                setattr(result, known_field.name, read)
        for known_field, found in parts.items():
            whole = _joined(found, known_field.dtype) if known_field.kind == "array" else found
            setattr(result, known_field.name, whole)
        return result

    def _value(self, known: Field, kind: int, value: int, stop: int, depth: int) -> Any:
        """Return what a field holds: `value` is its varint or where its bytes begin, and they end at `stop`."""
        if known.kind == "array":
            return self._array(known, kind, value, stop)
        if kind == _BYTES and known.repeated and known.kind in ("integer", "float"):
            return _Several(self._packed(known, value, stop))
        if kind != _WIRE_TYPES[known.kind]:
            self._refuse(f"the field {known.name!r} has the wire type {kind}")
        if known.kind == "integer":
            return value - _WORD if value >> 63 else value
        if known.kind == "float":
            return struct.unpack_from("<f", self.source, value)[0]
        if known.kind == "message":
            assert known.of is not None
            return self._message(known.of(), value, stop, depth + 1)
        view = self.source[value:stop]
        if known.kind == "bytes":
            return view
        try:
            return str(view, "utf-8")
        except UnicodeDecodeError:
            self._refuse(f"the field {known.name!r} at byte {value} is not UTF-8")

    def _packed(self, known: Field, at: int, end: int) -> list[Any]:
        dtype = "<i8" if known.kind == "integer" else "<f4"
        found: list[Any] = self._array(Field(known.number, "array", known.name, dtype=dtype), _BYTES, at, end).tolist()
        return found

    def _array(self, known: Field, kind: int, value: int, stop: int) -> npt.NDArray[Any]:
        dtype = np.dtype(known.dtype)
        if dtype.kind != "f":
            if kind == _VARINT:
                return np.array([value], np.uint64).view(np.int64).astype(dtype)
            if kind == _BYTES:
                return self._varints(value, stop).astype(dtype)
        elif kind in (_FOUR, _EIGHT, _BYTES) and (stop - value) % dtype.itemsize == 0:
            return np.frombuffer(self.source[value:stop], dtype)
        self._refuse(f"the numbers of {known.name!r} at byte {value} have the wire type {kind} or an odd length")

    def _varints(self, at: int, end: int) -> npt.NDArray[np.int64]:
        """Return packed varints as int64."""
        octets = np.frombuffer(self.source[at:end], np.uint8)
        last = np.flatnonzero(octets < 128)
        if octets.size and (not last.size or last[-1] != octets.size - 1):
            self._refuse(f"packed integers without an end at byte {end}")
        first = np.concatenate([[0], last[:-1] + 1]) if last.size else last
        lengths = last - first + 1
        longest = int(lengths.max(initial=0))
        if longest > 10:
            self._refuse(f"an integer of more than ten bytes after byte {at}")
        values = np.zeros(last.size, np.uint64)
        for i in range(longest):
            there = np.flatnonzero(lengths > i)
            values[there] |= (octets[first[there] + i].astype(np.uint64) & np.uint64(127)) << np.uint64(7 * i)
        return values.view(np.int64)

    def _fields(self, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield number, wire type, and either a varint or where the bytes of the value begin and end."""
        source = self.source
        while at < end:
            # Most keys and lengths take one byte: a call for each would double the time.
            key, at = (source[at], at + 1) if source[at] < 128 else self._varint(at, end)
            kind = key & 7
            if kind == _VARINT:
                value, at = self._varint(at, end)
                yield key >> 3, kind, value, at
                continue
            if kind == _BYTES:
                length, at = (source[at], at + 1) if at < end and source[at] < 128 else self._varint(at, end)
            elif kind in (_FOUR, _EIGHT):
                length = 4 if kind == _FOUR else 8
            else:
                self._refuse(f"a field of the wire type {kind} at byte {at}")
            if length > end - at:
                self._refuse(f"a field of {length} bytes at byte {at}, but {end - at} are left")
            yield key >> 3, kind, at, at + length
            at += length

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        """Return the unsigned integer at `at`, seven bits a byte, and where it ends."""
        value = 0
        for i in range(at, min(end, at + 10)):
            octet = self.source[i]
            value |= (octet & 127) << 7 * (i - at)
            if octet < 128:
                return value % _WORD, i + 1
        self._refuse(f"an integer without an end at byte {at}")

    def _refuse(self, found: str) -> NoReturn:
        raise CheckpointError(f"{self.name} is no ONNX file, or it is truncated: {found}", hint=HINT)


class _Several(list[Any]):
    """Values of one packed field."""


def _joined(parts: list[npt.NDArray[Any]], dtype: str) -> npt.NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts).astype(dtype, copy=False)


# ------------------------------------------------------------------------------------------------------------- writing


def encode(value: Message) -> bytes:
    """Return a message as bytes."""
    return b"".join(_parts(value)[0])


def write(value: Message, file: IO[bytes]) -> None:
    """Write a message to a binary file. Tensors are not copied."""
    file.writelines(_parts(value)[0])


def _parts(value: Message) -> tuple[list[Buffer], int]:
    """Return the buffers that make up a message, and their length in all."""
    parts: list[Buffer] = []
    for known in sorted(table(type(value)).values(), key=lambda each: each.number):
        held = getattr(value, known.name)
        if known.kind == "array":
            if held is not None and len(held):
                _add(parts, known.number, [_packed_array(np.asarray(held, known.dtype))])
        elif not known.repeated:
            if held is not None and held != known.default:
                _add_value(parts, known, held)
        elif known.kind in ("integer", "float") and len(held):
            dtype = np.int64 if known.kind == "integer" else np.float32
            _add(parts, known.number, [_packed_array(np.asarray(held, dtype))])
        else:
            for each in held:
                _add_value(parts, known, each)
    return parts, sum(map(len, parts))


def _add_value(parts: list[Buffer], known: Field, held: Any) -> None:
    if known.kind == "integer":
        parts.append(_encoded(known.number << 3 | _VARINT) + _encoded(int(held) % _WORD))
    elif known.kind == "float":
        parts.append(_encoded(known.number << 3 | _FOUR) + struct.pack("<f", held))
    elif known.kind == "message":
        _add(parts, known.number, *_parts(held))
    else:
        view = memoryview(held.encode() if isinstance(held, str) else held)
        _add(parts, known.number, [view.cast("B") if view.nbytes else b""])


def _add(parts: list[Buffer], number: int, held: list[Buffer], length: int | None = None) -> None:
    """Add a field with a length."""
    length = sum(map(len, held)) if length is None else length
    parts.append(_encoded(number << 3 | _BYTES) + _encoded(length))
    parts.extend(held)


def _packed_array(values: npt.NDArray[Any]) -> Buffer:
    if values.dtype.kind == "f":
        return np.ascontiguousarray(values).tobytes()
    return b"".join(_encoded(value % _WORD) for value in values.tolist())


def _encoded(value: int) -> bytes:
    """Return an unsigned integer as a varint."""
    octets = bytearray()
    while value > 127:
        octets.append(value & 127 | 128)
        value >>= 7
    octets.append(value)
    return bytes(octets)
