"""The methods of strings, lists and dicts that a chat template may call, and their costs, as Jinja allows almost all.

One call can allocate as much as it likes: `int.to_bytes` takes the number of bytes, `str.center` the width. Methods
that are not listed here are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import EscapeFormatter, Markup

from tallow.errors import TokenizerError
from tallow.text.template_budget import HINT, ITEM, LONGEST_ESCAPE, Budget

ESCAPED = 6  # maximum HTML characters for one character, as in "&quot;"
LONGEST_NUMBER = 400  # maximum characters of a number formatted without a width: 1e308 with six decimals
MAX_WIDTH = 1000  # of a width given as an argument
_NUMBERS = re.compile(r"\d+")

Cost = Callable[[Budget, Any, tuple[Any, ...]], object]
"""Pay for a call of a method, given its object and arguments; keyword arguments come last."""


class Method:
    """A method bound to a value, which pays for its calls."""

    __slots__ = ("_budget", "_cost", "_name", "_value")

    def __init__(self, budget: Budget, value: Any, name: str, cost: Cost) -> None:
        self._budget, self._value, self._name, self._cost = budget, value, name, cost

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self._budget.step(4)
        self._cost(self._budget, self._value, (*arguments, *options.values()))
        result = getattr(self._value, self._name)(*arguments, **options)
        charge(self._budget, result)
        return result


def charge(budget: Budget, result: Any) -> None:
    """Pay for a new string or list of strings, whose memory was reserved."""
    if isinstance(result, str):
        budget.make(len(result))
    elif isinstance(result, list | tuple):
        budget.make(ITEM * len(result) + sum(len(part) for part in result if isinstance(part, str)))


def growth(*texts: Any) -> int:
    """Return the factor by which joined strings may grow: Markup escapes plain strings."""
    return ESCAPED if any(isinstance(text, Markup) for text in texts) else 1


def is_key(value: Any) -> bool:
    """Return whether a dict may have this key.

    String hashes depend on a secret. Number hashes do not: large numbers can be chosen to collide, which makes every
    lookup walk through all of them.
    """
    return value is None or isinstance(value, str) or (isinstance(value, int) and abs(value) <= MAX_WIDTH)


# ------------------------------------------------------------------------------------------------------------ strings


def _int_argument(arguments: tuple[Any, ...], index: int, default: int) -> int:
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
    budget.reserve(growth(text) * max(len(text), _int_argument(arguments, 0, 0)))


def _expand(budget: Budget, text: str, arguments: tuple[Any, ...]) -> None:
    budget.step(len(text) >> 6)
    budget.reserve(len(text) + text.count("\t") * max(0, _int_argument(arguments, 0, 8)))


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
    if len(arguments) > 2 and _int_argument(arguments, 2, -1) >= 0:
        count = min(count, _int_argument(arguments, 2, -1))
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
        strings = self._budget.items(parts)
        for part in strings:
            if not isinstance(part, str):
                raise TypeError(f"join takes a list of strings, but it contains a {type(part).__name__}")
        return self._budget.join(self._separator, strings, growth(self._separator, *strings))


# --------------------------------------------------------------------------------------------------------- formatting


def check_percent(budget: Budget, text: str, values: Any) -> None:
    """Pay for `text % values`, with any widths, before it runs."""
    arguments = values if isinstance(values, tuple) else (values,)
    parts = list(arguments)
    for value in arguments:
        if isinstance(value, Mapping):
            parts.extend(value.values())
    if "*" in text and any(isinstance(value, int) and abs(value) > MAX_WIDTH for value in parts):
        raise TokenizerError(f"the chat template pads a text to a width above {MAX_WIDTH}", HINT)
    conversions = text.count("%")
    budget.step(4 + (len(text) >> 3) + (12 * (1 + conversions) if isinstance(text, Markup) else 0))
    size = LONGEST_ESCAPE * budget.weigh(values) + LONGEST_NUMBER
    budget.reserve(growth(text) * (len(text) + conversions * size + _widths(text)))


def _widths(text: str) -> int:
    """Return the sum of all numbers in a format, an upper bound of its widths and precisions."""
    return sum(int(number) if len(number) < 19 else 10**18 for number in _NUMBERS.findall(text))


class Field:
    """Mixin for a formatter that pays for the fields of `str.format`."""

    budget: Budget

    def format_field(self, value: Any, format_spec: str) -> Any:
        """Format a field within the budget."""
        size = LONGEST_ESCAPE * self.budget.weigh(value) + LONGEST_NUMBER
        self.budget.reserve(ESCAPED * (size + _widths(format_spec)))
        result = super().format_field(value, format_spec)  # type: ignore[misc]
        self.budget.make(len(result))
        return result

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """Apply !r, !s or !a to a field within the budget."""
        self.budget.reserve(LONGEST_ESCAPE * self.budget.weigh(value))
        return super().convert_field(value, conversion)  # type: ignore[misc]


class EscapedField(Field, EscapeFormatter):
    """`Field` for Markup strings."""


# -------------------------------------------------------------------------------------------------- lists and mappings


def _look(budget: Budget, value: Any, arguments: tuple[Any, ...]) -> None:
    budget.weigh(value)
    budget.weigh(arguments)


def _get(budget: Budget, value: Any, arguments: tuple[Any, ...]) -> None:
    if arguments and not is_plain(arguments[0]):
        raise TypeError(f"a {type(arguments[0]).__name__} as a key")


def is_plain(value: Any) -> bool:
    """Return whether hashing and comparing `value` takes constant time."""
    return value is None or isinstance(value, str | int | float)


def _view(budget: Budget, value: Any, arguments: tuple[Any, ...]) -> None:
    """Pay nothing: a view of a dict takes neither time nor memory."""


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
