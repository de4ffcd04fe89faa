"""Filters and tests of chat templates: Jinja's, each of which pays before it does anything.

Filters that Jinja runs lazily run at once here, and give an iterator, which a template can tell as little from Jinja's
generator as it can use it twice. Left out are the filters that write HTML for pages (`urlize`, `striptags`, `xmlattr`,
...), that break lines (`wordwrap`) or print for debugging (`pprint`): chat templates do not use them, other programs
that render chat templates do not have them, and several take quadratic time.
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
from tallow.text.template_budget import ITEM, LONGEST_ESCAPE, MEND, Budget
from tallow.text.template_methods import ESCAPED, growth, is_key

if TYPE_CHECKING:
    from tallow.text.template_sandbox import Sandbox

MAX_DIGITS = 4096  # of a number in a text
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
    """What `groupby` gives: the value of the attribute, and the items that have it."""

    grouper: Any
    list: list[Any]

    def __repr__(self) -> str:
        return tuple.__repr__(self)


class Filters:
    """The filters and tests of one sandbox, which `table` and `tests` list by name."""

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
        known: dict[str, Any] = {**tests.TESTS}
        self.tests: dict[str, Callable[..., Any]] = {
            **{name: known[name] for name in _PLAIN_TESTS},
            **{name: self._comparison(operator) for name, operator in _COMPARISONS.items()},
            **{name: getattr(self, f"_is_{name}") for name in ("divisibleby", "even", "lower", "odd", "upper")},
            "filter": lambda name: isinstance(name, str) and name in self.table,
            "test": lambda name: isinstance(name, str) and name in self.tests,
        }

    # -------------------------------------------------------------------------------------------------------- strings

    def _text(self, value: Any) -> str:
        """The value as a string; what is marked as HTML stays so."""
        return self._budget.text(value)

    def _string_method(self, name: str) -> Callable[[Any], str]:
        return lambda value: self._method(value, name)

    def _method(self, value: Any, name: str, *arguments: Any) -> Any:
        """A method of the value as a string."""
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
        made = filters.do_indent(value, width, first, blank)
        self._budget.make(2 * len(made))
        return made

    def _truncate(
        self, value: str, length: int = 255, killwords: bool = False, end: str = "...", leeway: int | None = None
    ) -> str:
        self._budget.make(len(value) + ITEM + len(end))
        return filters.do_truncate(self._sandbox, value, length, killwords, end, leeway)

    def _join(self, value: Iterable[Any], d: Any = "", attribute: str | int | None = None) -> str:
        listed = self._budget.items(value)
        get = self._getter(attribute)
        parts = [str(self._text(get(part))) for part in listed]
        return self._budget.join(str(self._text(d)), parts)

    def _tojson(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: int | str | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """JSON without the escapes for HTML of Jinja's own, as transformers has it."""
        size = self._budget.weigh(value)
        wide = len(indent) if isinstance(indent, str) else max(0, indent or 0)
        around = sum(map(len, separators)) if separators else 4
        # No value nests deeper than it has parts, and none of its parts is smaller than ITEM.
        parts = size // ITEM
        self._budget.step(8 + parts * (3 if indent is None else 6))
        self._budget.reserve(LONGEST_ESCAPE * size + parts * (around + 1 + wide * (min(parts, _depth(value)) + 1)))
        made = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
        self._budget.make(2 * len(made))
        return made

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
            raise TokenizerError(f"the chat template reads a number of {len(value)} characters", MEND)
        return value

    def _round(self, value: Any, precision: int = 0, method: str = "common") -> Any:
        if abs(precision) > MAX_PRECISION:
            raise TokenizerError(f"the chat template rounds to {precision} digits", MEND)
        return filters.do_round(value, precision, method)  # type: ignore[arg-type]

    def _sum(self, value: Iterable[Any], attribute: str | int | None = None, start: Any = 0) -> Any:
        get = self._getter(attribute)
        if isinstance(start, str):
            raise TypeError("sum of strings; join joins them")
        for item in self._budget.items(value):
            start = self._sandbox.call_binop(None, "+", start, get(item))
        return start

    # ---------------------------------------------------------------------------------------------------------- lists

    def _getter(self, attribute: Any, default: Any = None, lower: bool = False) -> Callable[[Any], Any]:
        """What takes an attribute of a value, which may be the path to one, and pays for each of its steps."""
        if attribute is not None and not isinstance(attribute, str | int):
            raise TypeError(f"a {type(attribute).__name__} as the name of an attribute")
        cost = 8 + (len(attribute) >> 1 if isinstance(attribute, str) else 0)
        get = filters.make_attrgetter(self._sandbox, attribute, default=default)

        def paid(item: Any) -> Any:
            self._budget.step(cost)
            found = get(item)
            return self._method(found, "lower") if lower and isinstance(found, str) else found

        return paid

    def _keys(self, listed: list[Any], attribute: Any, case_sensitive: bool, default: Any = None) -> list[Any]:
        """What to sort the items by, paid for: all the comparisons that sorting takes."""
        self._budget.step(10)
        split = attribute.split(",") if isinstance(attribute, str) else [attribute]
        self._budget.step(4 * len(split))
        getters = [self._getter(part, default, not case_sensitive) for part in split]
        keys = [[get(item) for get in getters] for item in listed]
        size = self._budget.weigh(keys)
        self._budget.step((size >> 5) * max(1, len(keys).bit_length()))
        return keys

    def _order(self, listed: list[Any], keys: list[Any], reverse: bool = False) -> list[Any]:
        order = sorted(range(len(listed)), key=keys.__getitem__, reverse=reverse)
        return [listed[i] for i in order]

    def _sort(
        self, value: Iterable[Any], reverse: bool = False, case_sensitive: bool = False, attribute: Any = None
    ) -> list[Any]:
        listed = self._budget.items(value)
        return self._order(listed, self._keys(listed, attribute, case_sensitive), reverse)

    def _dictsort(
        self, value: Any, case_sensitive: bool = False, by: str = "key", reverse: bool = False
    ) -> list[tuple[Any, Any]]:
        if by not in ("key", "value"):
            raise TypeError("dictsort sorts by 'key' or 'value'")
        listed = self._budget.items(value.items())
        return self._order(listed, self._keys(listed, 0 if by == "key" else 1, case_sensitive), reverse)

    def _min(self, value: Iterable[Any], case_sensitive: bool = False, attribute: Any = None) -> Any:
        return self._extreme(min, value, case_sensitive, attribute)

    def _max(self, value: Iterable[Any], case_sensitive: bool = False, attribute: Any = None) -> Any:
        return self._extreme(max, value, case_sensitive, attribute)

    def _extreme(self, choose: Callable[..., int], value: Iterable[Any], case_sensitive: bool, attribute: Any) -> Any:
        listed = self._budget.items(value)
        if not listed:
            return self._sandbox.undefined("No aggregated item, sequence was empty.")
        get = self._getter(attribute, lower=not case_sensitive)
        keys = [get(item) for item in listed]
        self._budget.weigh(keys)
        return listed[choose(range(len(listed)), key=keys.__getitem__)]

    def _groupby(
        self, value: Iterable[Any], attribute: Any, default: Any = None, case_sensitive: bool = False
    ) -> list[Any]:
        self._budget.step(40)
        listed = self._budget.items(value)
        get, get_key = self._getter(attribute, default), self._getter(attribute, default, not case_sensitive)
        keys = [get_key(item) for item in listed]
        self._budget.step((self._budget.weigh(keys) >> 5) * max(1, len(keys).bit_length()))
        self._budget.make(2 * ITEM * len(listed))
        groups: list[Any] = []
        last: Any = None
        for i in sorted(range(len(listed)), key=keys.__getitem__):
            if not groups or keys[i] != last:
                groups.append(Group(get(listed[i]), []))
                last = keys[i]
            groups[-1].list.append(listed[i])
        return groups

    def _unique(self, value: Iterable[Any], case_sensitive: bool = False, attribute: Any = None) -> Iterator[Any]:
        get = self._getter(attribute, lower=not case_sensitive)
        found: dict[Any, Any] = {}
        for item in self._budget.items(value):
            key = get(item)
            self._budget.weigh(key)
            found.setdefault(_hashable(key), item)
        return iter(list(found.values()))

    def _batch(self, value: Iterable[Any], linecount: int, fill_with: Any = None) -> Iterator[list[Any]]:
        listed = self._budget.items(value)
        self._budget.make(ITEM * len(listed))
        self._budget.reserve(ITEM * max(0, linecount) if fill_with is not None else 0)
        made = list(filters.do_batch(listed, linecount, fill_with))
        self._budget.make(ITEM * len(made[-1]) if made else 0)
        return iter(made)

    def _slice(self, value: Iterable[Any], slices: int, fill_with: Any = None) -> Iterator[list[Any]]:
        listed = self._budget.items(value)
        self._budget.step(max(0, slices))
        self._budget.make(ITEM * (len(listed) + max(0, slices)))
        return iter(list(filters.sync_do_slice(listed, slices, fill_with)))

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

    # ----------------------------------------------------------------------------------------- one by one

    def _map(self, value: Iterable[Any], *arguments: Any, **options: Any) -> Iterator[Any]:
        if arguments:
            function = self._named(self.table, "filter", arguments[0])
            return iter([function(item, *arguments[1:], **options) for item in self._each(value)])
        if not options.keys() <= {"attribute", "default"} or "attribute" not in options:
            raise TypeError("map takes the name of a filter, or an attribute and a default")
        get = self._getter(options["attribute"], options.get("default"))
        return iter([get(item) for item in self._each(value)])

    def _select(self, value: Iterable[Any], *test: Any, **options: Any) -> Iterator[Any]:
        return self._chosen(value, True, None, test, options)

    def _reject(self, value: Iterable[Any], *test: Any, **options: Any) -> Iterator[Any]:
        return self._chosen(value, False, None, test, options)

    def _selectattr(self, value: Iterable[Any], name: Any, *test: Any, **options: Any) -> Iterator[Any]:
        return self._chosen(value, True, name, test, options)

    def _rejectattr(self, value: Iterable[Any], name: Any, *test: Any, **options: Any) -> Iterator[Any]:
        return self._chosen(value, False, name, test, options)

    def _chosen(
        self, value: Iterable[Any], wanted: bool, attribute: Any, test: tuple[Any, ...], options: dict[str, Any]
    ) -> Iterator[Any]:
        holds = self._named(self.tests, "test", test[0]) if test else bool
        get = self._getter(attribute)
        return iter([x for x in self._each(value) if bool(holds(get(x), *test[1:], **options)) is wanted])

    def _each(self, value: Iterable[Any]) -> Iterator[Any]:
        for item in self._budget.items(value) if value else ():
            self._budget.step(4)
            yield item

    def _named(self, table: dict[str, Callable[..., Any]], kind: str, name: Any) -> Callable[..., Any]:
        if not isinstance(name, str) or name not in table:
            raise TypeError(f"there is no {kind} of this name" + (f": {name:.50}" if isinstance(name, str) else ""))
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
    """How deep lists and dicts nest in a value whose size is paid for."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return 0
    return 1 + max(map(_depth, value), default=0)


def _hashable(key: Any) -> Any:
    """A key of a set that equals another's where the values are equal, and has a hash that is a secret.

    See `template_methods.is_key` for why numbers are not used as they are.
    """
    if isinstance(key, tuple):
        return tuple(map(_hashable, key))
    if isinstance(key, float) and math.isfinite(key) and key.is_integer():
        key = int(key)
    return ("number", repr(key)) if isinstance(key, int | float) and not is_key(key) else key
