"""Limit the steps and the characters of one rendering of a chat template, because Jinja limits neither.

A template comes with a model's files, so it may be hostile or wrong, and a server renders one for each request.
Every operation of a template pays before it runs; operations whose cost is small for all arguments pay with their
statement. A step is about a third of a microsecond natively; the unit of memory is a character, of one to four bytes.
The two limits bound time and memory: no operation runs longer or creates more than it has paid for, up to a constant
factor.

Both limits grow with the length of the conversation, which comes from the caller, not from the template.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import length_hint
from typing import Any

from tallow.errors import TokenizerError

STEPS = 1 << 21
STEPS_PER_CHARACTER = 4  # per character of the conversation
CHARACTERS = 1 << 25
CHARACTERS_PER_CHARACTER = 128
MAX_DEPTH = 100  # of nested values, and of nested calls
VISIT = 4  # steps to visit one value
ITEM = 16  # cost in characters of a value or of a list item
LONGEST_ESCAPE = 12  # characters in JSON for one character: a surrogate pair
HINT = "use the template of another model, or a shorter conversation"


class Refusal(Exception):
    """An error that a template raises itself, about the messages."""


class Budget:
    """Count the work of one rendering; raise TokenizerError if it exceeds the limits."""

    def __init__(self) -> None:
        self.begin(0, None)

    def begin(self, size: int, data: Any) -> None:
        """Reset the counters for a conversation of `size` characters with this data."""
        self._input_ids = set(_containers(data))
        self.max_steps = STEPS + STEPS_PER_CHARACTER * size
        self.max_characters = CHARACTERS + CHARACTERS_PER_CHARACTER * size
        self.steps = 0
        self.characters = 0
        self.depth = 0

    def step(self, count: int = 1) -> bool:
        """Pay for `count` steps. Return True, for use in a condition."""
        self.steps += count
        if self.steps > self.max_steps:
            raise TokenizerError(f"the chat template does not finish within {self.max_steps} steps", HINT)
        return True

    def make(self, count: int) -> None:
        """Pay for `count` characters."""
        self.reserve(count)
        self.characters += count

    def reserve(self, count: int) -> None:
        """Check that `count` characters, an upper bound, could be paid for."""
        if self.characters + count > self.max_characters:
            raise TokenizerError(f"the chat template makes more than {self.max_characters} characters of text", HINT)

    def search(self, length: int, pattern: int) -> None:
        """Pay for a search of `pattern` characters in `length`, which may compare each with many."""
        self.step(1 + (length * max(1, min(pattern, 128)) >> 8))

    def enter(self) -> None:
        """Record the start of a call."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TokenizerError(f"the chat template nests calls more than {MAX_DEPTH} levels deep", HINT)

    def leave(self) -> None:
        """Record the end of a call."""
        self.depth -= 1

    def weigh(self, value: Any, depth: int = 0) -> int:
        """Pay for a walk through all parts of a value, each as often as it occurs.

        Return the number of characters to print it, if none needs an escape. A value can contain the same part twice at
        every level, so that comparing, hashing or printing it takes exponential time; this walk pays for that first.
        """
        if isinstance(value, str):
            self.step(VISIT + (len(value) >> 8))
            return ITEM + len(value)
        self.step(VISIT)
        if isinstance(value, int):
            return ITEM + value.bit_length() // 3
        parts = _parts(value)
        if parts is None:
            return 2 * ITEM
        if depth == MAX_DEPTH:
            raise TokenizerError(f"the chat template nests values more than {MAX_DEPTH} levels deep", HINT)
        return ITEM + sum(self.weigh(part, depth + 1) for part in parts)

    def check_depth(self, value: Any, only_data: bool, depth: int = 0) -> None:
        """Refuse values nested too deeply to free: in WebAssembly the stack is small, and overflow is fatal.

        Only values that outlive a loop iteration or a call can grow without limit: attributes of namespaces, and
        arguments. The former may be only data, so that no chain of namespaces, macros or iterators can be built.
        """
        if value is None or isinstance(value, str | int | float) or id(value) in self._input_ids:
            return
        if depth == MAX_DEPTH:
            raise TokenizerError(f"the chat template nests values more than {MAX_DEPTH} levels deep", HINT)
        self.step(VISIT)
        if isinstance(value, list | tuple | dict):
            for part in value.values() if isinstance(value, dict) else value:
                self.check_depth(part, only_data, depth + 1)
        elif isinstance(value, Iterator) or (only_data and not hasattr(type(value), "_undefined_hint")):
            raise TokenizerError(
                f"the chat template stores a {type(value).__name__}, which is neither text nor a list", HINT
            )

    def text(self, value: Any) -> str:
        """Return str(value), after paying for it."""
        if isinstance(value, str):
            self.step(1 + (len(value) >> 8))
            return value
        if not isinstance(value, int | float | None):
            self.reserve(LONGEST_ESCAPE * self.weigh(value))
        result = str(value)
        self.make(len(result))
        return result

    def items(self, value: Iterable[Any]) -> list[Any]:
        """Return list(value), after paying for it."""
        count = length_hint(value, 0)
        self.step(1 + (count >> 3))
        self.make((ITEM if isinstance(value, str) else 2) * count)
        return list(value)

    def join(self, separator: str, parts: list[str], growth: int = 1) -> str:
        """Join the parts, after paying for it; escaping may make them longer by the factor `growth`."""
        self.step(1 + (len(parts) >> 3))
        self.reserve(growth * (sum(map(len, parts)) + len(separator) * len(parts)))
        result = separator.join(parts)
        self.make(len(result))
        return result


def _containers(value: Any) -> Iterator[int]:
    """Yield the ids of the lists and dicts in plain data."""
    if isinstance(value, list | dict):
        yield id(value)
        for part in value.values() if isinstance(value, dict) else value:
            yield from _containers(part)


def _parts(value: Any) -> Iterable[Any] | None:
    """Return the parts of a value, or None if it is not a container."""
    if isinstance(value, Mapping):
        return (part for pair in value.items() for part in pair)
    if isinstance(value, list | tuple | type({}.keys()) | type({}.values()) | type({}.items())):
        return value
    attributes = getattr(type(value), "attributes_of", None)
    return None if attributes is None else _parts(attributes(value))
