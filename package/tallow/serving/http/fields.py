"""The fields of a JSON request, checked one by one."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from tallow.errors import CheckpointError
from tallow.io.json_object import parse_object
from tallow.serving.http.errors import ApiError

MAX_DEPTH = 64
MAX_INTEGER = 1 << 63


class Fields:
    """A JSON object, `values`. A field that is null counts as missing.

    Raises:  (all methods) ApiError for a value of another type or out of range
    """

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self.values = values
        self._path = path

    @classmethod
    def parse(cls, body: bytes) -> Fields:
        """Parse the body of a request.  Raises: ApiError if it is not a JSON object, or nests too deeply"""
        try:
            return cls(parse_object(body, "the body", MAX_DEPTH))
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
        return self.values.get(field)

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
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            limits = f"from {least} to {most}" if most < MAX_INTEGER else f"of at least {least}"
            raise self.wrong(field, f"an integer {limits}")
        return value

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

    def inner(self, field: str) -> Fields | None:
        """Return an object, or None."""
        value = self.get(field)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(field, "an object")
        return Fields(value, f"{self.name(field)}.")

    def refuse(self, *fields: str) -> None:
        """Raise ApiError for fields whose meaning is not supported, unless they have no effect."""
        for field in fields:
            value = self.get(field)
            if value is True or value not in (None, False, [], {}, "none", "auto", 1):
                raise ApiError(f"{self.name(field)} is not supported", self.name(field), code="unsupported_parameter")
