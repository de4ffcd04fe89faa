"""A reader of pickles that runs nothing.

A pickle is a program for a small stack machine, and Python's own machine imports and calls whatever the program names.
This one knows a closed list of names, calls only the functions that stand for them, and makes only numbers, strings,
bytes, lists, tuples, dicts and sets besides. Its other duties: time and memory are in proportion to the pickle's own
length, by the argument in `pickle_budget`; no value is hashed, compared or printed that could take exponential time for
it; and none nests so deep that freeing it could take more stack than there is.

Source:  https://github.com/python/cpython/blob/v3.13.0/Lib/pickletools.py, the opcodes of protocols 2 to 5
"""

from __future__ import annotations

import random
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tallow.errors import CheckpointError
from tallow.io.pickle_budget import Budget, Crowd
from tallow.tensor import Tensor

MAX_PROTOCOL = 5
MAX_NAME_BYTES = 1000
MAX_NESTING = 500
MAX_INTEGER_BYTES = 255  # LONG1 counts them in a byte; PyTorch reads nothing longer
HOLDERS = (list, dict, set, Tensor)  # what a function may make of values that nest; a tensor, in its attributes
MEND_NAMES = "in PyTorch, save tensors and plain containers only: torch.save(model.state_dict(), path)"

_INTEGERS = {name: struct.Struct("<" + name) for name in "BHIiQ"}
_DOUBLE = struct.Struct(">d")
_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}  # of Python 2, whose names protocol 2 keeps


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """What a pickle may call: `make`, with between `fewest` and `most` arguments, whose types it checks itself.

    Before them `make` gets the budget, out of which it pays for whatever it does with arguments of any length.
    """

    name: str
    make: Callable[..., Any]
    fewest: int
    most: int

    def __call__(self, budget: Budget, arguments: Any) -> Any:
        if type(arguments) is not tuple or not self.fewest <= len(arguments) <= self.most:
            raise CheckpointError(f"{self.name} is called with other arguments than PyTorch calls it with")
        return self.make(budget, *arguments)


class Nesting:
    """Keeps what a pickle makes from nesting deeper than `limit`: Python frees nested values by recursion, and in WASM
    the stack is too short for that.

    To know the depth of a value when it is made, what it holds must be finished: a value that another holds already may
    not be filled, so values that hold themselves are refused.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._depths: dict[int, int] = {}  # the id of a value -> how deep it nests
        self._held: set[int] = set()  # the ids of the values that are in others
        self._alive: list[Any] = []  # so that no other value takes over an id

    def fill(self, holder: Any, items: Iterable[Any]) -> None:
        """Note that `holder` holds `items`, before it does. Raises CheckpointError if it must not."""
        own = id(holder)
        self._depths.setdefault(own, 1)
        inside = [id(item) for item in items if id(item) in self._depths]
        if own in self._held or own in inside:
            raise CheckpointError("it changes a value that another holds; values that hold themselves are not read")
        depth = max((self._depths[item] + 1 for item in inside), default=1)
        if depth > self._limit:
            raise CheckpointError(f"values nested more than {self._limit} deep")
        self._depths[own] = max(depth, self._depths[own])
        self._held.update(inside)
        self._alive.append(holder)


class Unpickler:
    """One pickle out of `data`.

    Args:
        data: bytes that hold a pickle at `position`, and maybe more after it.
        name: what is read, for error messages.
        names: what the pickle may name, "module.name" to the value that takes its place; see `Function`.
        persistent: makes what a persistent id stands for.
        state: applies a saved state to an object just made, and pays for it.
        budget: what is paid out of; another one for each pickle, where its storages do not count.
        encoding: of the strings of Python 2, which may be text or bytes; "latin-1" keeps either.

    After `load`, `position` is where the pickle ended.
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
    ) -> None:
        self.position = position
        self._encoding = encoding
        self._data = data
        self._name = name
        self._names = names
        self._persistent = persistent
        self._state = state
        self._stack: list[Any] = []
        self._marked: list[list[Any]] = []  # the stacks below each mark
        self._memo: dict[int, Any] = {}
        self._secret = random.getrandbits(60)  # where in the memo's table an index falls is nothing a file can choose
        self._nesting = Nesting(MAX_NESTING)
        self._crowds: dict[int, Crowd] = {}  # by the ids of dicts and sets, which `_nesting` keeps alive
        self._start = position
        self._budget = budget or Budget()

    def load(self) -> Any:
        """The object. Raises CheckpointError for a malformed pickle, or one that asks for more than is read here."""
        while True:
            opcode = self._integer("B")
            if opcode == STOP:
                break
            run = OPCODES.get(opcode)
            if run is None:
                raise self.error(f"instruction {bytes([opcode])!r} is not one that is read", MEND_NAMES)
            run(self)
        if len(self._stack) != 1 or self._marked:
            raise self.error("it ends with something left over, or nothing made")
        return self._stack[0]

    def error(self, message: str, mend: str | None = None) -> CheckpointError:
        return CheckpointError(f"{self._name}, byte {self.position} of the pickle: {message}", mend)

    # --------------------------------------------------------------------------------------------- what is read from

    def _bytes(self, count: int) -> memoryview:
        end = self.position + count
        if end > len(self._data):
            raise self.error(f"truncated: {count} bytes are needed", "fetch it again")
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
            raise self.error("it takes a value where there is none")
        return self._stack.pop()

    def _pop_many(self, count: int) -> list[Any]:
        return [self._pop() for _ in range(count)][::-1]

    def _pop_to_mark(self) -> list[Any]:
        if not self._marked:
            raise self.error("it goes back to a mark where there is none")
        above, self._stack = self._stack, self._marked.pop()
        return above

    def _target(self, *types: type) -> Any:
        """What to fill: the value on top of the stack, if it is exactly one of `types`."""
        target = self._stack[-1] if self._stack else None
        if type(target) not in types:
            raise self.error(f"it fills a {type(target).__name__} as if it were a {types[0].__name__}")
        return target

    def _drop(self) -> None:
        self._pop()

    def _drop_to_mark(self) -> None:
        self._pop_to_mark()

    def _mark(self) -> None:
        self._marked.append(self._stack)
        self._stack = []

    def _protocol(self) -> None:
        if (protocol := self._integer("B")) > MAX_PROTOCOL:
            raise self.error(f"protocol {protocol}; the highest there is is {MAX_PROTOCOL}")

    def _frame(self) -> None:
        self._bytes(8)  # how far a reader may read ahead

    def _fill(self, holder: Any, items: Iterable[Any]) -> None:
        self._located(self._nesting.fill, holder, items)

    def _push_container(self, value: list[Any] | tuple[Any, ...] | dict[Any, Any] | set[Any]) -> None:
        if type(value) is not tuple or value:  # there is one empty tuple only, held by many
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

    def _keys(self, holder: Any, keys: list[Any]) -> list[Any]:
        """The keys, which may all go into the dict or set."""
        crowd = self._crowds.setdefault(id(holder), Crowd())
        return self._located(self._paid_keys, crowd, keys)

    def _paid_keys(self, crowd: Crowd, keys: list[Any]) -> list[Any]:
        self._budget.read(self.position - self._start)
        admitted = [crowd.admit(key) for key in keys]
        self._budget.pay_keys(admitted)
        return admitted

    def _remember(self, index: int) -> None:
        if not self._stack:
            raise self.error("it remembers a value where there is none")
        self._memo[index ^ self._secret] = self._stack[-1]

    def _recall(self, index: int) -> None:
        if (place := index ^ self._secret) not in self._memo:
            raise self.error(f"it recalls value {index}, which it has not remembered")
        self._push(self._memo[place])

    def _long(self) -> None:
        count = self._integer("B")
        self._push(int.from_bytes(self._bytes(count), "little", signed=True))

    def _named(self, module: str, name: str) -> None:
        full = f"{_MODULES.get(module, module)}.{name}"
        if full not in self._names:
            raise self.error(
                f"it asks for {full!r}, which is refused: tensors and plain containers are read", MEND_NAMES
            )
        self._push(self._names[full])

    def _named_on_stack(self) -> None:
        module, name = self._pop_many(2)
        if type(module) is not str or type(name) is not str:
            raise self.error("a name that is no string")
        self._named(module[:MAX_NAME_BYTES], name[:MAX_NAME_BYTES])

    def _call(self) -> None:
        function, arguments = self._pop_many(2)
        if not isinstance(function, Function):
            raise self.error(f"it calls a {type(function).__name__}")
        self._budget.read(self.position - self._start)
        made = self._located(function, self._budget, arguments)
        if isinstance(made, HOLDERS):
            self._fill(made, (arguments,))
        self._push(made)

    def _persist(self) -> None:
        self._push(self._located(self._persistent, self._pop()))

    def _located(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call, and let an error say where in the pickle it came up."""
        try:
            return function(*arguments)
        except CheckpointError as error:
            raise self.error(str(error)) from error

    def _build(self) -> None:
        state = self._pop()
        if not self._stack:
            raise self.error("it sets the state of nothing")
        self._budget.read(self.position - self._start)
        if isinstance(self._stack[-1], HOLDERS):
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
    ord("c"): lambda u: u._named(u._line(), u._line()),
    0x93: U._named_on_stack,
    ord("R"): U._call,
    0x81: U._call,  # NEWOBJ calls a class, as REDUCE does
    ord("b"): U._build,
    ord("Q"): U._persist,
}
