"""Read pickles without running code.

A pickle is a program for a small stack machine; Python's own machine imports and calls whatever the program names. This
one knows a closed list of names, calls only their implementations, and otherwise builds only numbers, strings, bytes,
lists, tuples, dicts and sets. It also bounds resources: time and memory are proportional to the pickle's length (see
`pickle_budget`); no value is hashed, compared or printed if that could take exponential time; and no value nests so
deeply that freeing it could overflow the stack. Objects that a program permits by itself are exempt, see
`safe_globals`.

Source:  https://github.com/python/cpython/blob/v3.13.0/Lib/pickletools.py, the opcodes of protocols 2 to 5
"""

from __future__ import annotations

import random
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import CheckpointError
from tallow.io.pickle_budget import Budget, KeyGuard

MAX_PROTOCOL = 5
MAX_NAME_BYTES = 1000
MAX_NESTING = 500
MAX_INTEGER_BYTES = 255  # the length in LONG1 is one byte; PyTorch reads no longer ones
NESTING_TYPES = (list, dict, set, Tensor)  # results of functions that may contain others; tensors in attributes
NAMES_HINT = "in PyTorch, save tensors and plain containers only: torch.save(model.state_dict(), path)"

_INTEGERS = {name: struct.Struct("<" + name) for name in "BHIiQ"}
_DOUBLE = struct.Struct(">d")
_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}  # names in Python 2, which protocol 2 uses


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function that a pickle may call: `make`, with `min_arguments` to `max_arguments` arguments, which it checks.

    The first argument of `make` is the budget, from which it pays for work on arguments of any length.
    """

    name: str
    make: Callable[..., Any]
    min_arguments: int
    max_arguments: int

    def __call__(self, budget: Budget, arguments: Any) -> Any:
        if type(arguments) is not tuple or not self.min_arguments <= len(arguments) <= self.max_arguments:
            raise CheckpointError(f"{self.name} is called with unexpected arguments")
        return self.make(budget, *arguments)


class Nesting:
    """Limit on the nesting depth of values: Python frees nested values by recursion, for which the stack in WASM is too
    small.

    The depth of a value is computed when it is filled. A value that is already inside another must not be filled again,
    so values that contain themselves are refused.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._depths: dict[int, int] = {}  # id of a value -> its depth
        self._contained: set[int] = set()  # ids of values inside others
        self._alive: list[Any] = []  # keeps values alive, so that ids stay unique

    def fill(self, container: Any, items: Iterable[Any]) -> None:
        """Record that `items` are about to be added to `container`.  Raises: CheckpointError if that is not allowed"""
        own = id(container)
        self._depths.setdefault(own, 1)
        inside = [id(item) for item in items if id(item) in self._depths]
        if own in self._contained or own in inside:
            raise CheckpointError("it changes a value inside another; values that contain themselves are not supported")
        depth = max((self._depths[item] + 1 for item in inside), default=1)
        if depth > self._limit:
            raise CheckpointError(f"values nested more than {self._limit} levels deep")
        self._depths[own] = max(depth, self._depths[own])
        self._contained.update(inside)
        self._alive.append(container)


class Unpickler:
    """Reader of one pickle in `data`.

    Args:
        data: bytes that contain a pickle at `position`, possibly with more after it.
        name: description of the source, for error messages.
        names: names that the pickle may use, "module.name", and their values; see `Function`.
        persistent: returns the object of a persistent id.
        state: applies a saved state to a new object, and pays for it.
        budget: the budget to pay from; by default a new one without storages.
        encoding: encoding of Python 2 strings, which may be text or bytes; "latin-1" preserves both.
        permitted: classes and functions that the program permits, by name.

    After `load`, `position` is the end of the pickle.
    """

    def __init__(
        self,
        data: memoryview,
        name: str,
        names: Mapping[str, Any],
        persistent: Callable[[Any], Any],
        state: Callable[[Budget, Any, Any], None],
        position: int = 0,
        encoding: str = "UTF-8",
        budget: Budget | None = None,
        permitted: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.position = position
        self._encoding = encoding
        self._data = data
        self._name = name
        self._names = {**permitted, **names}
        self._permitted = [value for name, value in permitted.items() if name not in names]
        self._persistent = persistent
        self._state = state
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []  # the stack below each mark
        self._memo: dict[int, Any] = {}
        self._secret = random.getrandbits(60)  # a file cannot choose hash collisions in the memo
        self._nesting = Nesting(MAX_NESTING)
        self._guards: dict[int, KeyGuard] = {}  # by id of dicts and sets, which `_nesting` keeps alive
        self._start = position
        self._budget = budget or Budget()

    def load(self) -> Any:
        """Return the object.  Raises: CheckpointError for a malformed pickle, or one that uses unsupported features"""
        while True:
            opcode = self._integer("B")
            if opcode == STOP:
                break
            run = OPCODES.get(opcode)
            if run is None:
                raise self.error(f"instruction 0x{opcode:02x} is not supported", NAMES_HINT)
            run(self)
        if len(self._stack) != 1 or self._marks:
            raise self.error("it does not end with exactly one value")
        return self._stack[0]

    def error(self, message: str, hint: str | None = None) -> CheckpointError:
        """Return an error that names the position in the pickle."""
        return CheckpointError(f"{self._name}, byte {self.position} of the pickle: {message}", hint)

    # ------------------------------------------------------------------------------------------------------ input

    def _bytes(self, count: int) -> memoryview:
        end = self.position + count
        if end > len(self._data):
            raise self.error(f"truncated: {count} bytes are needed", "download it again")
        chunk = self._data[self.position : end]
        self.position = end
        return chunk

    def _integer(self, kind: str) -> int:
        layout = _INTEGERS[kind]
        return layout.unpack(self._bytes(layout.size))[0]

    def _text(self, count: int, encoding: str = "UTF-8") -> str:
        try:
            return str(self._bytes(count), encoding, "surrogatepass")
        except UnicodeDecodeError as error:
            raise self.error(f"a string is not {encoding}: {error.reason}") from None

    def _line(self) -> str:
        line = bytes(self._data[self.position : self.position + MAX_NAME_BYTES]).partition(b"\n")
        if not line[1]:
            raise self.error(f"a name without an end within {MAX_NAME_BYTES} bytes")
        return self._text(len(line[0]) + 1)[:-1]

    # -------------------------------------------------------------------------------------------------- the machine

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        if not self._stack:
            raise self.error("it takes a value from an empty stack")
        return self._stack.pop()

    def _pop_many(self, count: int) -> list[Any]:
        return [self._pop() for _ in range(count)][::-1]

    def _pop_to_mark(self) -> list[Any]:
        if not self._marks:
            raise self.error("it returns to a mark that does not exist")
        above, self._stack = self._stack, self._marks.pop()
        return above

    def _target(self, *types: type) -> Any:
        """Return the value on top of the stack, which must be exactly one of `types`."""
        target = self._stack[-1] if self._stack else None
        if type(target) not in types:
            raise self.error(f"it fills a {type(target).__name__} as if it were a {types[0].__name__}")
        return target

    def _drop(self) -> None:
        self._pop()

    def _drop_to_mark(self) -> None:
        self._pop_to_mark()

    def _mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def _protocol(self) -> None:
        if (protocol := self._integer("B")) > MAX_PROTOCOL:
            raise self.error(f"protocol {protocol}; the highest is {MAX_PROTOCOL}")

    def _frame(self) -> None:
        self._bytes(8)  # the length to read ahead, which is not needed

    def _fill(self, container: Any, items: Iterable[Any]) -> None:
        self._located(self._nesting.fill, container, items)

    def _push_container(self, value: list[Any] | tuple[Any, ...] | dict[Any, Any] | set[Any]) -> None:
        if type(value) is not tuple or value:  # the empty tuple is a singleton, contained in many values
            self._fill(value, value)
        self._push(value)

    def _append_all(self, values: list[Any]) -> None:
        target = self._target(list)
        self._fill(target, values)
        target.extend(values)

    def _add_all(self, values: list[Any]) -> None:
        target = self._target(set)
        target.update(self._keys(target, values))

    def _set_all(self, pairs: list[Any]) -> None:
        target = self._target(dict, OrderedDict, Counter)
        if len(pairs) % 2:
            raise self.error("a key without a value")
        self._fill(target, pairs)
        for key, value in zip(self._keys(target, pairs[::2]), pairs[1::2], strict=True):
            target[key] = value

    def _keys(self, container: Any, keys: list[Any]) -> list[Any]:
        """Return the keys after checking that the dict or set may get them."""
        guard = self._guards.setdefault(id(container), KeyGuard())
        return self._located(self._paid_keys, guard, keys)

    def _paid_keys(self, guard: KeyGuard, keys: list[Any]) -> list[Any]:
        self._budget.read(self.position - self._start)
        admitted = [guard.admit(key) for key in keys]
        self._budget.pay_keys(admitted)
        return admitted

    def _remember(self, index: int) -> None:
        if not self._stack:
            raise self.error("it stores a value from an empty stack")
        self._memo[index ^ self._secret] = self._stack[-1]

    def _recall(self, index: int) -> None:
        if (key := index ^ self._secret) not in self._memo:
            raise self.error(f"it loads value {index}, which it has not stored")
        self._push(self._memo[key])

    def _long(self) -> None:
        count = self._integer("B")
        self._push(int.from_bytes(self._bytes(count), "little", signed=True))

    def _push_name(self, module: str, name: str) -> None:
        full = f"{_MODULES.get(module, module)}.{name}"
        if full not in self._names:
            raise self.error(
                f"it names {full!r}, which is refused: only tensors and plain containers are supported", NAMES_HINT
            )
        self._push(self._names[full])

    def _push_name_from_stack(self) -> None:
        module, name = self._pop_many(2)
        if type(module) is not str or type(name) is not str:
            raise self.error("a name that is not a string")
        self._push_name(module[:MAX_NAME_BYTES], name[:MAX_NAME_BYTES])

    def _call(self) -> None:
        function, arguments = self._pop_many(2)
        if self._is_permitted(function) and type(arguments) is tuple:
            self._push(function(*arguments))
        else:
            self._call_known(function, arguments)

    def _new(self) -> None:
        kind, arguments = self._pop_many(2)
        if self._is_permitted(kind) and isinstance(kind, type) and type(arguments) is tuple:
            self._push(kind.__new__(kind, *arguments))
        else:
            self._call_known(kind, arguments)

    def _is_permitted(self, value: Any) -> bool:
        return any(value is permitted for permitted in self._permitted)

    def _call_known(self, function: Any, arguments: Any) -> None:
        if not isinstance(function, Function):
            raise self.error(f"it calls a {type(function).__name__}")
        self._budget.read(self.position - self._start)
        result = self._located(function, self._budget, arguments)
        if isinstance(result, NESTING_TYPES):
            self._fill(result, (arguments,))
        self._push(result)

    def _persist(self) -> None:
        self._push(self._located(self._persistent, self._pop()))

    def _located(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function; its errors name the position in the pickle."""
        try:
            return function(*arguments)
        except CheckpointError as error:
            raise self.error(str(error)) from error

    def _build(self) -> None:
        state = self._pop()
        if not self._stack:
            raise self.error("it sets a state with an empty stack")
        self._budget.read(self.position - self._start)
        if isinstance(self._stack[-1], NESTING_TYPES):
            self._fill(self._stack[-1], (state,))
        self._located(self._state, self._budget, self._stack[-1], state)


STOP = ord(".")
U = Unpickler
OPCODES: dict[int, Callable[[Unpickler], None]] = {
    0x80: U._protocol,
    0x95: U._frame,
    ord("("): U._mark,
    ord("0"): U._drop,
    ord("1"): U._drop_to_mark,
    ord("N"): lambda u: u._push(None),
    0x88: lambda u: u._push(True),
    0x89: lambda u: u._push(False),
    ord("K"): lambda u: u._push(u._integer("B")),
    ord("M"): lambda u: u._push(u._integer("H")),
    ord("J"): lambda u: u._push(u._integer("i")),
    0x8A: U._long,
    ord("G"): lambda u: u._push(_DOUBLE.unpack(u._bytes(8))[0]),
    0x8C: lambda u: u._push(u._text(u._integer("B"))),  # SHORT_BINUNICODE
    ord("X"): lambda u: u._push(u._text(u._integer("I"))),
    0x8D: lambda u: u._push(u._text(u._integer("Q"))),
    ord("U"): lambda u: u._push(u._text(u._integer("B"), u._encoding)),  # SHORT_BINSTRING, of Python 2
    ord("T"): lambda u: u._push(u._text(u._integer("I"), u._encoding)),
    ord("C"): lambda u: u._push(bytes(u._bytes(u._integer("B")))),
    ord("B"): lambda u: u._push(bytes(u._bytes(u._integer("I")))),
    0x8E: lambda u: u._push(bytes(u._bytes(u._integer("Q")))),
    0x96: lambda u: u._push(bytearray(u._bytes(u._integer("Q")))),
    ord(")"): lambda u: u._push(()),
    0x85: lambda u: u._push_container(tuple(u._pop_many(1))),
    0x86: lambda u: u._push_container(tuple(u._pop_many(2))),
    0x87: lambda u: u._push_container(tuple(u._pop_many(3))),
    ord("t"): lambda u: u._push_container(tuple(u._pop_to_mark())),
    ord("]"): lambda u: u._push_container([]),
    ord("l"): lambda u: u._push_container(u._pop_to_mark()),
    ord("a"): lambda u: u._append_all(u._pop_many(1)),
    ord("e"): lambda u: u._append_all(u._pop_to_mark()),
    ord("}"): lambda u: u._push_container({}),
    ord("s"): lambda u: u._set_all(u._pop_many(2)),
    ord("u"): lambda u: u._set_all(u._pop_to_mark()),
    0x8F: lambda u: u._push_container(set()),
    0x90: lambda u: u._add_all(u._pop_to_mark()),
    ord("q"): lambda u: u._remember(u._integer("B")),
    ord("r"): lambda u: u._remember(u._integer("I")),
    0x94: lambda u: u._remember(len(u._memo)),  # MEMOIZE
    ord("h"): lambda u: u._recall(u._integer("B")),
    ord("j"): lambda u: u._recall(u._integer("I")),
    ord("c"): lambda u: u._push_name(u._line(), u._line()),
    0x93: U._push_name_from_stack,
    ord("R"): U._call,
    0x81: U._new,
    ord("b"): U._build,
    ord("Q"): U._persist,
}
