"""The fields of a JSON request, checked one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from tallow.errors import CheckpointError
from tallow.io.json_object import parse_object
from tallow.serving.http.errors import ApiError

MAX_DEPTH = 64
MAX_COST = 1 << 20  # values; 131,072 lists, objects and names. Python answers nobody else for some 0.1 s meanwhile
MAX_INTEGER = 1 << 63


class Fields:
    """A JSON object, `values`. A field that is null counts as missing.

    It remembers which fields were asked for: the others have no effect.

    Raises:  (all methods) ApiError for a value of another type or out of range
    """

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self.values = values
        self._path = path
        self._asked: set[str] = set()
        self._objects: dict[str, Fields] = {}

    @classmethod
    def parse(cls, body: bytes) -> Fields:
        """Parse the body of a request.  Raises: ApiError if it is not a JSON object, or nests too deeply"""
        try:
            return cls(parse_object(body, "the body", MAX_DEPTH, max_cost=MAX_COST))
        except CheckpointError as error:
            raise ApiError(str(error).partition("\n")[0], code="invalid_json") from error

    def name(self, field: str) -> str:
        """Return the name of a field in errors, with the names of the objects around it."""
        return f"{self._path}{field}"

    def wrong(self, field: str, expected: str) -> ApiError:
        """Return the error for a field."""
        return ApiError(
            f"{self.name(field)}: expected {expected}, got {self.values.get(field)!r:.80}", self.name(field)
        )

    def get(self, field: str) -> Any:
        """Return the value of a field, or None."""
        self._asked.add(field)
        return self.values.get(field)

    @property
    def asked(self) -> set[str]:
        """The names of the fields that somebody asked for, also in the objects within."""
        within = set().union(*(inner.asked for inner in self._objects.values()))
        return within | {self.name(field) for field in self._asked}

    def unread(self) -> Iterator[tuple[str, Any]]:
        """Yield the names and values of fields that nobody asked for, also in the objects that were asked for."""
        for field, value in self.values.items():
            if field not in self._asked and value is not None:
                yield self.name(field), value
        for inner in self._objects.values():
            yield from inner.unread()

    def text(self, field: str, default: str | None = None) -> str | None:
        """Return a string."""
        value = self.get(field)
        if value is not None and not isinstance(value, str):
            raise self.wrong(field, "a string")
        return default if value is None else value

    def required_text(self, field: str) -> str:
        """Return a string that must be there."""
        value = self.text(field)
        if value is None:
            raise self.wrong(field, "a string")
        return value

    def choice(self, field: str, choices: tuple[str, ...]) -> str:
        """Return one of some strings, by default the first."""
        value = self.text(field, choices[0])
        if value not in choices:
            raise self.wrong(field, f"one of {', '.join(choices)}")
        return value

    def flag(self, field: str, default: bool = False) -> bool:
        """Return a boolean."""
        value = self.get(field)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(field, "true or false")
        return default if value is None else value

    def number(self, field: str, least: float, most: float) -> float | None:
        """Return a number, or None."""
        value = self.get(field)
        if value is None:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not isfinite(value) or not least <= value <= most:
            raise self.wrong(field, f"a number from {least:g} to {most:g}")
        return float(value)

    def integer(self, field: str, least: int, most: int = MAX_INTEGER) -> int | None:
        """Return an integer, or None."""
        value = self.get(field)
        if value is None:
            return None
        number = as_integer(value)
        if number is None or not least <= number <= most:
            limits = f"from {least} to {most}" if most < MAX_INTEGER else f"of at least {least}"
            raise self.wrong(field, f"an integer {limits}")
        return number

    def items(self, field: str, most: int, *, least: int = 0) -> list[Any]:
        """Return a list; an empty one if the field is missing."""
        value = [] if (found := self.get(field)) is None else found
        if not isinstance(value, list):
            raise self.wrong(field, "a list")
        if not least <= len(value) <= most:
            code = "too_many_items" if len(value) > most else None
            message = f"{self.name(field)}: {len(value)} items; expected {least} to {most}"
            raise ApiError(message, self.name(field), code=code)
        return value

    def texts(self, field: str, most: int) -> list[str]:
        """Return a list of texts that are not empty; a single one may stand without the list."""
        value = self.get(field)
        texts = [value] if isinstance(value, str) else self.items(field, most, least=1)
        if not all(isinstance(text, str) and text for text in texts):
            raise self.wrong(field, "a string that is not empty, or a list of them")
        return texts

    def ids(self, field: str, most: int, vocab_size: int) -> list[int]:
        """Return a list of ids of tokens; an empty one if the field is missing."""
        ids = as_ids(self.items(field, most))
        if ids is None or not all(0 <= token < vocab_size for token in ids):
            raise self.wrong(field, f"ids of tokens, from 0 to {vocab_size - 1}")
        return ids

    def inner(self, field: str) -> Fields | None:
        """Return an object, or None."""
        value = self.get(field)
        if value is None:
            return None
        return self._object(field, value)

    def objects(self, field: str, most: int, *, least: int = 0) -> list[Fields]:
        """Return a list of objects; an empty one if the field is missing."""
        items = self.items(field, most, least=least)
        return [self._object(f"{field}[{i}]", item) for i, item in enumerate(items)]

    def _object(self, field: str, value: Any) -> Fields:
        if not isinstance(value, dict):
            raise ApiError(f"{self.name(field)}: expected an object, got {value!r:.80}", self.name(field))
        return self._objects.setdefault(field, Fields(value, f"{self.name(field)}."))


def as_integer(value: Any) -> int | None:
    """Return a number of JSON that is an integer, also if it is written as 5.0; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def as_ids(value: Any) -> list[int] | None:
    """Return a list of integers; None for anything else."""
    if not isinstance(value, list):
        return None
    ids = [number for item in value if (number := as_integer(item)) is not None]
    return ids if len(ids) == len(value) else None
