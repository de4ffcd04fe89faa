"""Write pickles of protocol 2: tensors and plain containers only, no code for a reader to run.

Python's own pickler imports every name that it writes, and PyTorch may not be installed.

Source:  https://github.com/python/cpython/blob/v3.13.0/Lib/pickletools.py, the opcodes
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tallow import devices
from tallow.core.size import Size
from tallow.core.tensor import Tensor
from tallow.dtypes import Dtype
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError
from tallow.io.pickle_budget import KeyGuard, is_key
from tallow.io.unpickler import MAX_INTEGER_BYTES

MAX_DEPTH = 100  # each level takes a few stack frames; too many kill the interpreter in WASM


class Global(tuple[str, str]):
    """A module and a name in it, written as a global."""

    __slots__ = ()


class Call(tuple[Any, ...]):
    """A Global and its arguments, written as a call."""

    __slots__ = ()


class PersistentId(tuple[Any, ...]):
    """A persistent id, written as the object it refers to."""

    __slots__ = ()


class Pickler:
    """Writer of one pickle.

    Args:
        tensor: returns the `Call` to write for a tensor.
    """

    def __init__(self, tensor: Callable[[Tensor], Call]) -> None:
        self._tensor = tensor
        self._out = bytearray(b"\x80\x02")
        self._memo: dict[int, int] = {}  # id of an object -> its memo index
        self._objects: list[Any] = []  # keeps the objects in the memo alive, so that ids stay unique
        self._names: dict[Global, int] = {}
        self._depth = 0

    def dump(self, value: Any) -> bytes:
        """Return the pickle of `value`. Repeated objects are written once; NumPy scalars become Python numbers.

        Raises:  ArgumentTypeError for anything but tensors, numbers, strings, bytes, dtypes, devices, and lists,
            tuples, dicts and sets of them; ArgumentError for integers and nesting beyond the limits
        """
        self._write(value)
        self._out += b"."
        return bytes(self._out)

    def _write(self, value: Any) -> None:
        write = WRITERS.get(type(value))
        if write is not None:
            write(self, value)
        elif id(value) in self._memo:
            self._recall(self._memo[id(value)])
        elif isinstance(value, Tensor):
            self._write(self._tensor(value))
            self._remember(value)
        elif isinstance(value, np.bool_):
            self._bool(bool(value))
        elif isinstance(value, np.integer):
            self._int(int(value))
        elif isinstance(value, np.floating | float):  # such as a learning rate of tallow.keras
            self._float(float(value))
        else:
            self._write_container(value)

    def _write_container(self, value: Any) -> None:
        write = CONTAINERS.get(type(value))
        if write is None:
            raise _unwritable(value)
        if self._depth == MAX_DEPTH:
            raise ArgumentError(f"cannot save containers nested more than {MAX_DEPTH} levels deep")
        self._depth += 1
        write(self, value)
        self._depth -= 1

    # -------------------------------------------------------------------------------------------------------- the memo

    def _remember(self, value: Any) -> None:
        """Add the object just written to the memo."""
        self._memo[id(value)] = self._put()
        self._objects.append(value)

    def _put(self) -> int:
        number = len(self._memo) + len(self._names)
        self._out += b"r" + struct.pack("<I", number)
        return number

    def _recall(self, number: int) -> None:
        self._out += b"j" + struct.pack("<I", number)

    # ---------------------------------------------------------------------------------------------------- plain values

    def _none(self, value: None) -> None:
        self._out += b"N"

    def _bool(self, value: bool) -> None:
        self._out += b"\x88" if value else b"\x89"

    def _int(self, value: int) -> None:
        if -(2**31) <= value < 2**31:
            self._out += b"J" + struct.pack("<i", value)
            return
        raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        if len(raw) > MAX_INTEGER_BYTES:
            raise ArgumentError(f"cannot save an integer of {len(raw)} bytes", hint="save it as a string")
        self._out += bytes([0x8A, len(raw)]) + raw

    def _float(self, value: float) -> None:
        self._out += b"G" + struct.pack(">d", value)

    def _str(self, value: str) -> None:
        raw = value.encode("utf-8", "surrogatepass")
        self._out += b"X" + struct.pack("<I", len(raw)) + raw

    def _bytes(self, value: bytes) -> None:
        self._write(Call((Global(("_codecs", "encode")), value.decode("latin-1"), "latin1")))

    def _bytearray(self, value: bytearray) -> None:
        self._write(Call((Global(("__builtin__", "bytearray")), value.decode("latin-1"), "latin-1")))

    def _complex(self, value: complex) -> None:
        self._write(Call((Global(("__builtin__", "complex")), value.real, value.imag)))

    def _dtype(self, value: Dtype) -> None:
        self._write(Global(("torch", value.name)))

    def _device(self, value: devices.device) -> None:
        index = () if value.index is None else (value.index,)
        self._write(Call((Global(("torch", "device")), value.type, *index)))

    def _size(self, value: Size) -> None:
        self._write(Call((Global(("torch", "Size")), tuple(value))))

    def _global(self, value: Global) -> None:
        if value in self._names:
            self._recall(self._names[value])
            return
        self._out += f"c{value[0]}\n{value[1]}\n".encode()
        self._names[value] = self._put()

    def _call(self, value: Call) -> None:
        self._write(value[0])
        self._write_items(value[1:])
        self._out += b"R"

    def _persistent_id(self, identity: PersistentId) -> None:
        self._write_items(identity)
        self._out += b"Q"

    # ------------------------------------------------------------------------------------------------------ containers

    def _write_items(self, values: Iterable[Any]) -> None:
        self._out += b"("
        for value in values:
            self._write(value)
        self._out += b"t"

    def _tuple(self, value: tuple[Any, ...]) -> None:
        self._write_items(value)
        self._remember(value)

    def _list(self, value: list[Any]) -> None:
        self._out += b"]"
        self._remember(value)
        self._out += b"("
        for item in value:
            self._write(item)
        self._out += b"e"

    def _dict(self, value: dict[Any, Any]) -> None:
        self._out += b"}"
        self._remember(value)
        self._write_pairs(value)

    def _write_pairs(self, value: dict[Any, Any]) -> None:
        self._out += b"("
        _check_keys(value)
        for key, item in value.items():
            self._write(key)
            self._write(item)
        self._out += b"u"

    def _ordered_dict(self, value: OrderedDict[Any, Any]) -> None:
        self._write(Call((Global(("collections", "OrderedDict")),)))
        self._remember(value)
        self._write_pairs(value)
        if value.__dict__:  # such as a state_dict's _metadata
            self._write(value.__dict__)
            self._out += b"b"

    def _counter(self, value: Counter[Any]) -> None:
        self._write(Call((Global(("collections", "Counter")), dict(value))))
        self._remember(value)

    def _set(self, value: set[Any]) -> None:
        _check_keys(value)
        self._write(Call((Global(("__builtin__", "set")), list(value))))
        self._remember(value)


def _check_keys(keys: Iterable[Any]) -> None:
    """Refuse keys that the reader would refuse."""
    guard = KeyGuard()
    for key in keys:
        if not is_key(key):
            raise ArgumentTypeError(
                f"cannot save a {type(key).__name__} as a key", hint="use strings, numbers or short tuples"
            )
        try:
            guard.admit(key)
        except CheckpointError as error:
            raise ArgumentError(f"cannot save {error}") from error


def _unwritable(value: Any) -> ArgumentTypeError:
    hints = {
        "ndarray": "wrap it: tl.from_numpy(array)",
        "Module": "save its state: tl.save(model.state_dict(), path)",
    }
    kinds = [base.__name__ for base in type(value).__mro__]
    return ArgumentTypeError(
        f"cannot save a {type(value).__module__}.{type(value).__qualname__}",
        hint=next((hints[kind] for kind in kinds if kind in hints), "save tensors and plain containers of them"),
    )


WRITERS: dict[type, Callable[[Pickler, Any], None]] = {
    type(None): Pickler._none,
    bool: Pickler._bool,
    int: Pickler._int,
    float: Pickler._float,
    str: Pickler._str,
    bytes: Pickler._bytes,
    bytearray: Pickler._bytearray,
    complex: Pickler._complex,
    Dtype: Pickler._dtype,
    devices.device: Pickler._device,
    Size: Pickler._size,
    Global: Pickler._global,
    Call: Pickler._call,
    PersistentId: Pickler._persistent_id,
}
CONTAINERS: dict[type, Callable[[Pickler, Any], None]] = {
    tuple: Pickler._tuple,
    list: Pickler._list,
    dict: Pickler._dict,
    OrderedDict: Pickler._ordered_dict,
    Counter: Pickler._counter,
    set: Pickler._set,
}
