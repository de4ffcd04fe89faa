"""The methods that a chat template may call, of strings, lists and dicts, and what each pays before it runs.

The list is closed: what is not here is refused, such as `int.to_bytes`, which makes as many bytes as it is told to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import EscapeFormatter, Markup

from tallow.errors import TokenizerError
from tallow.text.template_budget import ITEM, LONGEST_ESCAPE, MEND, Budget

ESCAPED = 6  # characters of HTML for one, as "&quot;" or less
LONGEST_NUMBER = 400  # characters that a format without a width makes of a number: 1e308 with six decimals
MAX_WIDTH = 1000  # that comes as an argument
_NUMBERS = re.compile(r"\d+")

Cost = Callable[[Budget, Any, tuple[Any, ...]], object]
"""Pays for one call of a method: of what, with which arguments; options come last, in the method's order."""


class Method:
    """A method of one value."""

    __slots__ = ("_budget", "_cost", "_name", "_value")

    def __init__(self, budget: Budget, value: Any, name: str, cost: Cost) -> None:
        self._budget, self._value, self._name, self._cost = budget, value, name, cost

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self._budget.step(4)
        self._cost(self._budget, self._value, (*arguments, *options.values()))
        made = getattr(self._value, self._name)(*arguments, **options)
        charge(self._budget, made)
        return made


def charge(budget: Budget, made: Any) -> None:
    """Pay for a string, or a list of strings, just made within what was reserved for it."""
    if isinstance(made, str):
        budget.make(len(made))
    elif isinstance(made, list | tuple):
        budget.make(ITEM * len(made) + sum(len(part) for part in made if isinstance(part, str)))


def growth(*texts: Any) -> int:
    """How much longer strings may get when they join: those that are marked as HTML escape the others."""
    return ESCAPED if any(isinstance(text, Markup) for text in texts) else 1


def is_key(value: Any) -> bool:
    """Whether a dict may have this key.

    Strings hash with a secret. Numbers do not: a list of large ones can be made that all fall into one place of a
    table, which makes every use of it walk through all of them.
    """
    return value is None or isinstance(value, str) or (isinstance(value, int) and abs(value) <= MAX_WIDTH)


# ------------------------------------------------------------------------------------------------------------ strings


def _whole(arguments: tuple[Any, ...], index: int, default: int) -> int:
    value = arguments[index] if index < len(arguments) else default
    return value if isinstance(value, int) else 0


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str) else 0


def _scan(budget: Budget, text: str, arguments: tuple[Any, ...]) -> None:
    budget.step(len(text) >> 6)


def _case(budget: Budget, text: str, arguments: tuple[Any, ...]) -> None:
    budget.step(len(text) >> 4)
    budget.reserve(3 * len(text))


def _find(budget: Budget, text: str, arguments: tuple[Any, ...]) -> None:
    budget.search(len(text), _length(arguments[0] if arguments else ""))


def _affix(budget: Budget, text: str, arguments: tuple[Any, ...]) -> None:
    budget.weigh(arguments[:1])
    budget.reserve(len(text))


def _strip(budget: Budget, text: str, arguments: tuple[Any, ...]) -> None:
    budget.step(len(text) * max(1, _length(arguments[0]) if arguments else 1) >> 6)
    budget.reserve(len(text))


def _pad(budget: Budget, text: str, arguments: tuple[Any, ...]) -> None:
    budget.reserve(growth(text) * max(len(text), _whole(arguments, 0, 0)))


def _expand(budget: Budget, text: str, arguments: tuple[Any, ...]) -> None:
    budget.step(len(text) >> 6)
    budget.reserve(len(text) + text.count("\t") * max(0, _whole(arguments, 0, 8)))


def _split(budget: Budget, text: str, arguments: tuple[Any, ...]) -> None:
    separator = arguments[0] if arguments else None
    if isinstance(separator, str) and separator:
        budget.search(len(text), len(separator))
        count = text.count(separator)
    else:
        budget.step(len(text) >> 6)
        count = len(text)
    most = arguments[1] if len(arguments) > 1 else -1
    if isinstance(most, int) and most >= 0:
        count = min(count, most)
    budget.step(count >> 4)
    budget.reserve(len(text) + ITEM * (count + 1))


def _split_lines(budget: Budget, text: str, arguments: tuple[Any, ...]) -> None:
    budget.step(len(text) >> 5)
    budget.reserve((ITEM + 1) * (len(text) + 1))


def _partition(budget: Budget, text: str, arguments: tuple[Any, ...]) -> None:
    _find(budget, text, arguments)
    budget.reserve(len(text) + 3 * ITEM)


def _replace(budget: Budget, text: str, arguments: tuple[Any, ...]) -> None:
    old, new = (*arguments[:2], "", "")[:2]
    budget.search(len(text), _length(old))
    count = text.count(old) if isinstance(old, str) else 0
    if len(arguments) > 2 and _whole(arguments, 2, -1) >= 0:
        count = min(count, _whole(arguments, 2, -1))
    budget.reserve(growth(text, old, new) * (len(text) + count * _length(new)))


STRING_METHODS: dict[str, Cost] = {
    **dict.fromkeys(("capitalize", "casefold", "lower", "swapcase", "title", "upper"), _case),
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), _pad),
    **dict.fromkeys(("count", "find", "index", "rfind", "rindex"), _find),
    **dict.fromkeys(("endswith", "removeprefix", "removesuffix", "startswith"), _affix),
    **dict.fromkeys(("lstrip", "rstrip", "strip"), _strip),
    **dict.fromkeys(("rsplit", "split"), _split),
    **dict.fromkeys(("partition", "rpartition"), _partition),
    **dict.fromkeys((name for name in dir(str) if name.startswith("is")), _scan),
    "expandtabs": _expand,
    "replace": _replace,
    "splitlines": _split_lines,
}


class Join:
    """The method `join` of a string."""

    def __init__(self, budget: Budget, separator: str) -> None:
        self._budget, self._separator = budget, separator

    def __call__(self, parts: Any, /) -> str:
        listed = self._budget.items(parts)
        for part in listed:
            if not isinstance(part, str):
                raise TypeError(f"a list of strings is to be joined, and it holds a {type(part).__name__}")
        return self._budget.join(self._separator, listed, growth(self._separator, *listed))


# --------------------------------------------------------------------------------------------------------- formatting


def check_percent(budget: Budget, text: str, values: Any) -> None:
    """Pay for `text % values`, whatever its widths are, before it takes place."""
    arguments = values if isinstance(values, tuple) else (values,)
    parts = list(arguments)
    for value in arguments:
        if isinstance(value, Mapping):
            parts.extend(value.values())
    if "*" in text and any(isinstance(value, int) and abs(value) > MAX_WIDTH for value in parts):
        raise TokenizerError("the chat template pads a text to a width of its own choice", MEND)
    conversions = text.count("%")
    budget.step(4 + (len(text) >> 3) + (12 * (1 + conversions) if isinstance(text, Markup) else 0))
    size = LONGEST_ESCAPE * budget.weigh(values) + LONGEST_NUMBER
    budget.reserve(growth(text) * (len(text) + conversions * size + _widths(text)))


def _widths(text: str) -> int:
    """The sum of all numbers in a format, which is more than all its widths and precisions."""
    return sum(int(number) if len(number) < 19 else 10**18 for number in _NUMBERS.findall(text))


class Field:
    """Pays for the fields of `str.format`, as a part of one of Python's formatters."""

    budget: Budget

    def format_field(self, value: Any, format_spec: str) -> Any:
        size = LONGEST_ESCAPE * self.budget.weigh(value) + LONGEST_NUMBER
        self.budget.reserve(ESCAPED * (size + _widths(format_spec)))
        made = super().format_field(value, format_spec)  # type: ignore[misc]
        self.budget.make(len(made))
        return made

    def convert_field(self, value: Any, conversion: Any) -> Any:
        self.budget.reserve(LONGEST_ESCAPE * self.budget.weigh(value))
        return super().convert_field(value, conversion)  # type: ignore[misc]


class EscapedField(Field, EscapeFormatter):
    """The same for strings that are marked as HTML."""


# -------------------------------------------------------------------------------------------------- lists and mappings


def _look(budget: Budget, value: Any, arguments: tuple[Any, ...]) -> None:
    budget.weigh(value)
    budget.weigh(arguments)


def _get(budget: Budget, value: Any, arguments: tuple[Any, ...]) -> None:
    if arguments and not is_plain(arguments[0]):
        raise TypeError(f"a {type(arguments[0]).__name__} as a key")


def is_plain(value: Any) -> bool:
    """Whether a value is hashed and compared at once."""
    return value is None or isinstance(value, str | int | float)


def _view(budget: Budget, value: Any, arguments: tuple[Any, ...]) -> None:
    """A view of a dict takes neither time nor memory."""


def _copy(budget: Budget, value: Any, arguments: tuple[Any, ...]) -> None:
    budget.step(len(value) >> 3)
    budget.make(ITEM * len(value))


METHODS: dict[type, dict[str, Cost]] = {
    str: STRING_METHODS,
    Markup: STRING_METHODS,
    list: {"copy": _copy, "count": _look, "index": _look},
    tuple: {"count": _look, "index": _look},
    dict: {"copy": _copy, "get": _get, "items": _view, "keys": _view, "values": _view},
    float: {"is_integer": _view},
}
