"""Filters and tests of chat templates: those of Jinja, which compute and allocate without a limit, with payment first.

Filters that are lazy in Jinja run at once here and return an iterator, which a template cannot tell from Jinja's
generator. Omitted are filters that write HTML (`urlize`, `striptags`, `xmlattr`, ...), that wrap lines (`wordwrap`) or
print for debugging (`pprint`): chat templates do not use them, other programs that render chat templates do not support
them, and several take quadratic time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import filters, tests
from jinja2.runtime import Undefined
from markupsafe import Markup, escape

from tallow.errors import TokenizerError
from tallow.text.template_budget import HINT, ITEM, LONGEST_ESCAPE, Budget
from tallow.text.template_methods import ESCAPED, growth, is_key

if TYPE_CHECKING:
    from tallow.text.template_sandbox import Sandbox

MAX_DIGITS = 4096  # of a number in text
MAX_PRECISION = 64
_PLAIN_TESTS = (
    *("boolean", "callable", "defined", "escaped", "false", "float", "integer", "iterable", "mapping", "none"),
    *("number", "sameas", "sequence", "string", "true", "undefined"),
)
_COMPARISONS = {
    **dict.fromkeys(("==", "eq", "equalto"), "eq"),
    **dict.fromkeys(("!=", "ne"), "ne"),
    **dict.fromkeys((">", "gt", "greaterthan"), "gt"),
    **dict.fromkeys((">=", "ge"), "gteq"),
    **dict.fromkeys(("<", "lt", "lessthan"), "lt"),
    **dict.fromkeys(("<=", "le"), "lteq"),
    "in": "in",
}


class Group(NamedTuple):
    """A result of `groupby`: the value of the attribute, and the items with it."""

    grouper: Any
    list: list[Any]

    def __repr__(self) -> str:
        return tuple.__repr__(self)


class Filters:
    """The filters and tests of one sandbox, in `table` and `tests` by name."""

    def __init__(self, sandbox: Sandbox, budget: Budget) -> None:
        self._sandbox, self._budget = sandbox, budget
        own: dict[str, Callable[..., Any]] = {name: getattr(self, f"_{name}") for name in _OWN}
        aliases: dict[str, Callable[..., Any]] = {
            "count": len,
            "length": len,
            "d": filters.do_default,
            "default": filters.do_default,
        }
        strings = {name: self._string_method(name) for name in ("capitalize", "lower", "upper")}
        self.table: dict[str, Callable[..., Any]] = {**own, **aliases, **strings, "e": self._escape}
        jinja_tests: dict[str, Any] = {**tests.TESTS}
        self.tests: dict[str, Callable[..., Any]] = {
            **{name: jinja_tests[name] for name in _PLAIN_TESTS},
            **{name: self._comparison(operator) for name, operator in _COMPARISONS.items()},
            **{name: getattr(self, f"_is_{name}") for name in ("divisibleby", "even", "lower", "odd", "upper")},
            "filter": lambda name: isinstance(name, str) and name in self.table,
            "test": lambda name: isinstance(name, str) and name in self.tests,
        }

    # -------------------------------------------------------------------------------------------------------- strings

    def _text(self, value: Any) -> str:
        """Return the value as a string; Markup stays Markup."""
        return self._budget.text(value)

    def _string_method(self, name: str) -> Callable[[Any], str]:
        return lambda value: self._method(value, name)

    def _method(self, value: Any, name: str, *arguments: Any) -> Any:
        """Call a method of the value as a string."""
        return self._sandbox.method(self._text(value), name)(*arguments)

    def _center(self, value: Any, width: int = 80) -> str:
        return self._method(value, "center", width)

    def _trim(self, value: Any, chars: str | None = None) -> str:
        return self._method(value, "strip", *(() if chars is None else (chars,)))

    def _replace(self, value: Any, old: Any, new: Any, count: int | None = None) -> str:
        text, old, new = (str(self._text(part)) for part in (value, old, new))
        return self._sandbox.method(text, "replace")(old, new, -1 if count is None else count)

    def _title(self, value: Any) -> str:
        text = self._text(value)
        self._budget.step(len(text) >> 2)
        self._budget.make(ITEM * len(text))
        return filters.do_title(text)

    def _wordcount(self, value: Any) -> int:
        text = self._text(value)
        self._budget.step(len(text) >> 3)
        self._budget.make(ITEM * len(text) // 2)
        return filters.do_wordcount(text)

    def _string(self, value: Any) -> str:
        return self._text(value)

    def _safe(self, value: Any) -> Markup:
        return Markup(self._text(value))

    def _escape(self, value: Any) -> Markup:
        text = self._text(value)
        self._budget.make(ESCAPED * len(text))
        return escape(text)

    def _format(self, value: Any, *arguments: Any, **options: Any) -> str:
        if arguments and options:
            raise TypeError("format takes arguments or options, not both")
        return self._sandbox.percent(self._text(value), options or arguments)

    def _indent(self, value: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
        lines = len(self._sandbox.method(value, "splitlines")())
        wide = len(width) if isinstance(width, str) else int(width)
        self._budget.reserve(growth(value, width) * 2 * (len(value) + (lines + 1) * max(1, wide)))
        result = filters.do_indent(value, width, first, blank)
        self._budget.make(2 * len(result))
        return result

    def _truncate(
        self, value: str, length: int = 255, killwords: bool = False, end: str = "...", leeway: int | None = None
    ) -> str:
        self._budget.make(len(value) + ITEM + len(end))
        return filters.do_truncate(self._sandbox, value, length, killwords, end, leeway)

    def _join(self, value: Iterable[Any], d: Any = "", attribute: str | int | None = None) -> str:
        items = self._budget.items(value)
        get = self._getter(attribute)
        parts = [str(self._text(get(part))) for part in items]
        return self._budget.join(str(self._text(d)), parts)

    def _tojson(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: int | str | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """Return JSON without Jinja's HTML escapes, as in transformers."""
        size = self._budget.weigh(value)
        wide = len(indent) if isinstance(indent, str) else max(0, indent or 0)
        around = sum(map(len, separators)) if separators else 4
        # The depth of a value is at most the number of its parts, each of which weighs at least ITEM.
        parts = size // ITEM
        self._budget.step(8 + parts * (3 if indent is None else 6))
        self._budget.reserve(LONGEST_ESCAPE * size + parts * (around + 1 + wide * (min(parts, _depth(value)) + 1)))
        result = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
        self._budget.make(2 * len(result))
        return result

    # -------------------------------------------------------------------------------------------------------- numbers

    def _abs(self, value: Any) -> Any:
        return abs(value)

    def _int(self, value: Any, default: Any = 0, base: int = 10) -> Any:
        return filters.do_int(self._digits(value), default, base)

    def _float(self, value: Any, default: Any = 0.0) -> Any:
        return filters.do_float(self._digits(value), default)

    def _digits(self, value: Any) -> Any:
        self._budget.step(4)
        if isinstance(value, str) and len(value) > MAX_DIGITS:
            raise TokenizerError(f"the chat template reads a number of {len(value)} characters", HINT)
        return value

    def _round(self, value: Any, precision: int = 0, method: str = "common") -> Any:
        if abs(precision) > MAX_PRECISION:
            raise TokenizerError(f"the chat template rounds to {precision} digits", HINT)
        return filters.do_round(value, precision, method)  # type: ignore[arg-type]

    def _sum(self, value: Iterable[Any], attribute: str | int | None = None, start: Any = 0) -> Any:
        get = self._getter(attribute)
        if isinstance(start, str):
            raise TypeError("sum of strings; use join")
        for item in self._budget.items(value):
            start = self._sandbox.call_binop(None, "+", start, get(item))
        return start

    # ---------------------------------------------------------------------------------------------------------- lists

    def _getter(self, attribute: Any, default: Any = None, lower: bool = False) -> Callable[[Any], Any]:
        """Return a function that gets an attribute, possibly a dotted path, and pays for each step."""
        if attribute is not None and not isinstance(attribute, str | int):
            raise TypeError(f"a {type(attribute).__name__} as the name of an attribute")
        cost = 8 + (len(attribute) >> 1 if isinstance(attribute, str) else 0)
        get = filters.make_attrgetter(self._sandbox, attribute, default=default)

        def get_paid(item: Any) -> Any:
            self._budget.step(cost)
            result = get(item)
            return self._method(result, "lower") if lower and isinstance(result, str) else result

        return get_paid

    def _keys(self, items: list[Any], attribute: Any, case_sensitive: bool, default: Any = None) -> list[Any]:
        """Return the sort keys of the items, after paying for all comparisons of sorting."""
        self._budget.step(10)
        split = attribute.split(",") if isinstance(attribute, str) else [attribute]
        self._budget.step(4 * len(split))
        getters = [self._getter(part, default, not case_sensitive) for part in split]
        keys = [[get(item) for get in getters] for item in items]
        size = self._budget.weigh(keys)
        self._budget.step((size >> 5) * max(1, len(keys).bit_length()))
        return keys

    def _order(self, items: list[Any], keys: list[Any], reverse: bool = False) -> list[Any]:
        order = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
        return [items[i] for i in order]

    def _sort(
        self, value: Iterable[Any], reverse: bool = False, case_sensitive: bool = False, attribute: Any = None
    ) -> list[Any]:
        items = self._budget.items(value)
        return self._order(items, self._keys(items, attribute, case_sensitive), reverse)

    def _dictsort(
        self, value: Any, case_sensitive: bool = False, by: str = "key", reverse: bool = False
    ) -> list[tuple[Any, Any]]:
        if by not in ("key", "value"):
            raise TypeError("dictsort sorts by 'key' or 'value'")
        items = self._budget.items(value.items())
        return self._order(items, self._keys(items, 0 if by == "key" else 1, case_sensitive), reverse)

    def _min(self, value: Iterable[Any], case_sensitive: bool = False, attribute: Any = None) -> Any:
        return self._extreme(min, value, case_sensitive, attribute)

    def _max(self, value: Iterable[Any], case_sensitive: bool = False, attribute: Any = None) -> Any:
        return self._extreme(max, value, case_sensitive, attribute)

    def _extreme(self, choose: Callable[..., int], value: Iterable[Any], case_sensitive: bool, attribute: Any) -> Any:
        items = self._budget.items(value)
        if not items:
            return self._sandbox.undefined("No aggregated item, sequence was empty.")
        get = self._getter(attribute, lower=not case_sensitive)
        keys = [get(item) for item in items]
        self._budget.weigh(keys)
        return items[choose(range(len(items)), key=keys.__getitem__)]

    def _groupby(
        self, value: Iterable[Any], attribute: Any, default: Any = None, case_sensitive: bool = False
    ) -> list[Any]:
        self._budget.step(40)
        items = self._budget.items(value)
        get, get_key = self._getter(attribute, default), self._getter(attribute, default, not case_sensitive)
        keys = [get_key(item) for item in items]
        self._budget.step((self._budget.weigh(keys) >> 5) * max(1, len(keys).bit_length()))
        self._budget.make(2 * ITEM * len(items))
        groups: list[Any] = []
        last: Any = None
        for i in sorted(range(len(items)), key=keys.__getitem__):
            if not groups or keys[i] != last:
                groups.append(Group(get(items[i]), []))
                last = keys[i]
            groups[-1].list.append(items[i])
        return groups

    def _unique(self, value: Iterable[Any], case_sensitive: bool = False, attribute: Any = None) -> Iterator[Any]:
        get = self._getter(attribute, lower=not case_sensitive)
        unique: dict[Any, Any] = {}
        for item in self._budget.items(value):
            key = get(item)
            self._budget.weigh(key)
            unique.setdefault(_hashable(key), item)
        return iter(list(unique.values()))

    def _batch(self, value: Iterable[Any], linecount: int, fill_with: Any = None) -> Iterator[list[Any]]:
        items = self._budget.items(value)
        self._budget.make(ITEM * len(items))
        self._budget.reserve(ITEM * max(0, linecount) if fill_with is not None else 0)
        batches = list(filters.do_batch(items, linecount, fill_with))
        self._budget.make(ITEM * len(batches[-1]) if batches else 0)
        return iter(batches)

    def _slice(self, value: Iterable[Any], slices: int, fill_with: Any = None) -> Iterator[list[Any]]:
        items = self._budget.items(value)
        self._budget.step(max(0, slices))
        self._budget.make(ITEM * (len(items) + max(0, slices)))
        return iter(list(filters.sync_do_slice(items, slices, fill_with)))

    def _list(self, value: Iterable[Any]) -> list[Any]:
        return self._budget.items(value)

    def _items(self, value: Any) -> Iterator[Any]:
        return iter(self._budget.items(filters.do_items(value) if isinstance(value, Undefined) else value.items()))

    def _first(self, value: Iterable[Any]) -> Any:
        return filters.sync_do_first(self._sandbox, value)

    def _last(self, value: Any) -> Any:
        return filters.do_last(self._sandbox, value)

    def _reverse(self, value: Any) -> Any:
        if isinstance(value, str):
            self._budget.make(len(value))
            return value[::-1]
        return iter(self._budget.items(value)[::-1])

    def _attr(self, value: Any, name: str) -> Any:
        return self._sandbox.attribute(value, name)

    # ------------------------------------------------------------------------------------------------------ per item

    def _map(self, value: Iterable[Any], *arguments: Any, **options: Any) -> Iterator[Any]:
        if arguments:
            function = self._lookup(self.table, "filter", arguments[0])
            return iter([function(item, *arguments[1:], **options) for item in self._each(value)])
        if not options.keys() <= {"attribute", "default"} or "attribute" not in options:
            raise TypeError("map takes the name of a filter, or an attribute and a default")
        get = self._getter(options["attribute"], options.get("default"))
        return iter([get(item) for item in self._each(value)])

    def _select(self, value: Iterable[Any], *test: Any, **options: Any) -> Iterator[Any]:
        return self._filter(value, True, None, test, options)

    def _reject(self, value: Iterable[Any], *test: Any, **options: Any) -> Iterator[Any]:
        return self._filter(value, False, None, test, options)

    def _selectattr(self, value: Iterable[Any], name: Any, *test: Any, **options: Any) -> Iterator[Any]:
        return self._filter(value, True, name, test, options)

    def _rejectattr(self, value: Iterable[Any], name: Any, *test: Any, **options: Any) -> Iterator[Any]:
        return self._filter(value, False, name, test, options)

    def _filter(
        self, value: Iterable[Any], keep: bool, attribute: Any, test: tuple[Any, ...], options: dict[str, Any]
    ) -> Iterator[Any]:
        matches = self._lookup(self.tests, "test", test[0]) if test else bool
        get = self._getter(attribute)
        return iter([x for x in self._each(value) if bool(matches(get(x), *test[1:], **options)) is keep])

    def _each(self, value: Iterable[Any]) -> Iterator[Any]:
        for item in self._budget.items(value) if value else ():
            self._budget.step(4)
            yield item

    def _lookup(self, table: dict[str, Callable[..., Any]], kind: str, name: Any) -> Callable[..., Any]:
        if not isinstance(name, str) or name not in table:
            raise TypeError(f"unknown {kind}" + (f": {name:.50}" if isinstance(name, str) else ""))
        return table[name]

    # ---------------------------------------------------------------------------------------------------------- tests

    def _comparison(self, operator: str) -> Callable[[Any, Any], bool]:
        return lambda value, other: self._sandbox.compare(operator, value, other)

    def _remainder(self, value: Any, divisor: Any) -> Any:
        return self._sandbox.call_binop(None, "%", value, divisor)

    def _is_odd(self, value: Any) -> bool:
        return self._remainder(value, 2) == 1

    def _is_even(self, value: Any) -> bool:
        return self._remainder(value, 2) == 0

    def _is_divisibleby(self, value: Any, num: Any) -> bool:
        return self._remainder(value, num) == 0

    def _is_lower(self, value: Any) -> bool:
        return self._method(value, "islower")

    def _is_upper(self, value: Any) -> bool:
        return self._method(value, "isupper")


_OWN = (
    *("abs", "attr", "batch", "center", "dictsort", "escape", "first", "float", "format", "groupby", "indent", "int"),
    *("items", "join", "last", "list", "map", "max", "min", "reject", "rejectattr", "replace", "reverse", "round"),
    *("safe", "select", "selectattr", "slice", "sort", "string", "sum", "title", "tojson", "trim", "truncate"),
    *("unique", "wordcount"),
)


def _depth(value: Any) -> int:
    """Return the depth of nested lists and dicts in a value whose size is paid for."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return 0
    return 1 + max(map(_depth, value), default=0)


def _hashable(key: Any) -> Any:
    """Return a key that is equal for equal values, and whose hash a template cannot choose.

    See `template_methods.is_key` for why numbers are converted.
    """
    if isinstance(key, tuple):
        return tuple(map(_hashable, key))
    if isinstance(key, float) and math.isfinite(key) and key.is_integer():
        key = int(key)
    return ("number", repr(key)) if isinstance(key, int | float) and not is_key(key) else key
