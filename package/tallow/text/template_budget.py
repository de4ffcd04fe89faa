"""What a chat template may use up: steps, and characters that it makes, in total for one rendering.

Every operation that a template can cause pays here, before it takes place or, where its cost is small whatever it is
given, with the statement that it stands in. The unit of a step is about a third of a microsecond natively; the unit of
memory is a character, which takes one to four bytes. The two limits together bound time and memory: no operation runs
for longer, or makes more, than it has paid for, up to a constant factor.

A conversation adds to both limits in proportion to its length, since its author is the caller and not the template.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import length_hint
from typing import Any

from tallow.errors import TokenizerError

STEPS = 1 << 21
STEPS_PER_CHARACTER = 4  # of the conversation
CHARACTERS = 1 << 25
CHARACTERS_PER_CHARACTER = 128
MAX_DEPTH = 100  # of values in values, and of calls in calls
VISIT = 4  # steps that a walk takes for one value
ITEM = 16  # characters that one more value costs, and one more item of a list
LONGEST_ESCAPE = 12  # characters for one, in JSON: a surrogate pair
MEND = "take the template of another model, or a shorter conversation"


class Refusal(Exception):
    """What a template raises itself, about the messages."""


class Budget:
    """Counts what one rendering of a template does, and stops it with a TokenizerError when it is too much."""

    def __init__(self) -> None:
        self.begin(0, None)

    def begin(self, size: int, data: Any) -> None:
        """Start again, for a conversation of `size` characters, with this data."""
        self._given = set(_containers(data))
        self.max_steps = STEPS + STEPS_PER_CHARACTER * size
        self.max_characters = CHARACTERS + CHARACTERS_PER_CHARACTER * size
        self.steps = 0
        self.characters = 0
        self.depth = 0

    def step(self, count: int = 1) -> bool:
        """Pay for `count` steps. Returns True, so that it can stand in a condition."""
        self.steps += count
        if self.steps > self.max_steps:
            raise TokenizerError(f"the chat template does not come to an end within {self.max_steps} steps", MEND)
        return True

    def make(self, count: int) -> None:
        """Pay for `count` characters."""
        self.reserve(count)
        self.characters += count

    def reserve(self, count: int) -> None:
        """Check that `count` characters could be paid for: more than are made in the end, maybe."""
        if self.characters + count > self.max_characters:
            raise TokenizerError(f"the chat template makes more than {self.max_characters} characters of text", MEND)

    def search(self, length: int, pattern: int) -> None:
        """Pay for looking for `pattern` characters in `length`, which may compare each with many."""
        self.step(1 + (length * max(1, min(pattern, 128)) >> 8))

    def enter(self) -> None:
        """A call begins."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TokenizerError(f"the chat template calls itself more than {MAX_DEPTH} times over", MEND)

    def leave(self) -> None:
        self.depth -= 1

    def weigh(self, value: Any, depth: int = 0) -> int:
        """Pay for a walk through all that a value holds, each part as often as it occurs.

        Returns the number of characters that show it, when none needs an escape. Values can hold one part twice at
        every level, so that comparing, hashing or printing them takes exponential time; this walk pays for that first.
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
            raise TokenizerError(f"the chat template nests values more than {MAX_DEPTH} deep", MEND)
        return ITEM + sum(self.weigh(part, depth + 1) for part in parts)

    def check_depth(self, value: Any, only_data: bool, depth: int = 0) -> None:
        """Refuse what nests too deeply for memory to be freed: in WebAssembly the stack is short, and that is fatal.

        Only what outlives a turn of a loop or a call can grow without end: attributes of namespaces, and arguments. The
        first hold nothing but data, so that no chain of namespaces, macros or iterators can be made.
        """
        if value is None or isinstance(value, str | int | float) or id(value) in self._given:
            return
        if depth == MAX_DEPTH:
            raise TokenizerError(f"the chat template nests values more than {MAX_DEPTH} deep", MEND)
        self.step(VISIT)
        if isinstance(value, list | tuple | dict):
            for part in value.values() if isinstance(value, dict) else value:
                self.check_depth(part, only_data, depth + 1)
        elif isinstance(value, Iterator) or (only_data and not hasattr(type(value), "_undefined_hint")):
            raise TokenizerError(
                f"the chat template keeps a {type(value).__name__}, which is neither text nor a list", MEND
            )

    def text(self, value: Any) -> str:
        """str(value), paid for."""
        if isinstance(value, str):
            self.step(1 + (len(value) >> 8))
            return value
        if not isinstance(value, int | float | None):
            self.reserve(LONGEST_ESCAPE * self.weigh(value))
        made = str(value)
        self.make(len(made))
        return made

    def items(self, value: Iterable[Any]) -> list[Any]:
        """list(value), paid for."""
        count = length_hint(value, 0)
        self.step(1 + (count >> 3))
        self.make((ITEM if isinstance(value, str) else 2) * count)
        return list(value)

    def join(self, separator: str, parts: list[str], growth: int = 1) -> str:
        """The parts with the separator between them, which may make them longer by the factor `growth`."""
        self.step(1 + (len(parts) >> 3))
        self.reserve(growth * (sum(map(len, parts)) + len(separator) * len(parts)))
        made = separator.join(parts)
        self.make(len(made))
        return made


def _containers(value: Any) -> Iterator[int]:
    """The ids of the lists and dicts in plain data."""
    if isinstance(value, list | dict):
        yield id(value)
        for part in value.values() if isinstance(value, dict) else value:
            yield from _containers(part)


def _parts(value: Any) -> Iterable[Any] | None:
    """What a value holds, or None if it holds nothing."""
    if isinstance(value, Mapping):
        return (part for pair in value.items() for part in pair)
    if isinstance(value, list | tuple | type({}.keys()) | type({}.values()) | type({}.items())):
        return value
    attributes = getattr(type(value), "attributes_of", None)
    return None if attributes is None else _parts(attributes(value))
