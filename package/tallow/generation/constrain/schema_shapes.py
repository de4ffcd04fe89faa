"""Checks of a JSON schema before it is converted: its size, and that each keyword has a value of its form."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

from tallow.errors import GrammarError

MAX_VALUES = 100_000  # of a schema, or as much text
_LETTERS_PER_VALUE = 64
_MAX_BITS = 10_000  # of an integer: Python writes no more than 4,300 digits
_PART_LETTERS, _PLACE_LETTERS = 40, 200  # that errors show
_SEE = "see https://json-schema.org"


class Place(NamedTuple):
    """A place in a schema: a JSON Pointer, whose middle is left out where it is long, and its depth."""

    text: str
    depth: int

    @classmethod
    def of(cls, text: str) -> Place:
        """Return a place of depth 0."""
        return cls(_shortened(text), 0)

    def then(self, *parts: str) -> Place:
        """Return a place below this one."""
        names = "".join(f"/{part[:_PART_LETTERS]}" for part in parts)
        return Place(_shortened(self.text + names), self.depth + len(parts))

    def __str__(self) -> str:
        return self.text


PART = Place("a schema", 0)  # that is compared with another, or combined


def _shortened(text: str) -> str:
    half = _PLACE_LETTERS // 2
    return text if len(text) <= _PLACE_LETTERS else f"{text[:half]}...{text[-half:]}"


def checked_size(schema: Any, most_depth: int) -> int:
    """Return the number of values in a schema.

    Raises:  GrammarError for one that is too deep or too large, and for what is no JSON
    """
    pending, size = [(schema, 0)], 0
    while pending:
        value, depth = pending.pop()
        if depth > most_depth:
            raise too_deep()
        if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
            raise GrammarError("a name in the schema is no string", hint=_SEE)
        if isinstance(value, int) and value.bit_length() > _MAX_BITS:
            raise GrammarError("a number of the schema has thousands of digits", hint="use a smaller one")
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        texts = [*value, value] if isinstance(value, dict) else [value]
        size += 1 + sum(len(text) for text in texts if isinstance(text, str)) // _LETTERS_PER_VALUE
        require_few(size + len(pending) + len(parts))
        pending += ((part, depth + 1) for part in parts)
    return size


def require_few(values: int) -> None:
    """Raise GrammarError for a schema of more than MAX_VALUES."""
    if values > MAX_VALUES:
        raise GrammarError(f"the schema holds more than {MAX_VALUES:,} values", hint="divide it, or leave parts out")


def too_deep() -> GrammarError:
    """Return the error for a schema that is nested too deeply."""
    return GrammarError("the schema is nested too deeply", hint="divide it with $defs and $ref")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -inf < value < inf


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


_FORMS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "an object": (lambda value: isinstance(value, dict), "properties patternProperties"),
    "a list": (lambda value: isinstance(value, list), "enum allOf anyOf oneOf prefixItems"),
    "a list of strings": (_is_texts, "required"),
    "a count": (_is_count, "minLength maxLength minItems maxItems minProperties maxProperties"),
    "a number": (_is_number, "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"),
    "a string": (lambda value: isinstance(value, str), "pattern"),
    "a type, or a list of types": (lambda value: isinstance(value, str) or _is_texts(value), "type"),
}
_OPTIONAL = ("a count", "a number", "a string")  # null says nothing
_FORM_OF = {key: (fits, form) for form, (fits, keys) in _FORMS.items() for key in keys.split()}


def checked(schema: Any, place: Place) -> dict[str, Any]:
    """Return a schema that is an object, whose keywords have values of their forms.  Raises: GrammarError"""
    if not isinstance(schema, dict):
        raise GrammarError(f"{place}: expected an object, got {schema!r:.40}", hint=_SEE)
    for key, value in schema.items():
        fits, form = _FORM_OF.get(key, (None, ""))
        if fits is not None and not fits(value) and not (value is None and form in _OPTIONAL):
            raise GrammarError(f"{place}/{key}: expected {form}, got {value!r:.40}", hint=_SEE)
    return schema
