"""JSON schemas of Python functions equal those of transformers."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Literal

import pytest
from transformers.utils import get_json_schema

from tallow.errors import ArgumentError
from tallow.text.chat import ChatTemplate
from tallow.text.tool_schema import tool_schema


class Unit(Enum):
    CELSIUS = "c"
    KELVIN = "k"


class Weather:
    def at(self, city: str) -> str:
        """Tell the weather.

        Args:
            city: where
        """
        return city


def plain(city: str, days: int = 3, exact: bool = False, factor: float | None = None) -> dict[str, Any]:
    """
    Tells the weather of a city,
    for some days.

    Args:
        city: The name of the city,
            as in "Où"
        days: The number of days (choices: [1, 2, 3])
        exact: Whether to be exact

        factor: Multiplies everything

    Returns:
        The weather: by day

    Raises:
        ValueError: never
    """
    return {"city": city, "days": days, "exact": exact, "factor": factor}


def nested(
    a: list[str],
    b: dict[str, list[int]],
    c: tuple[int, str],
    d: int | str,
    e: list[int] | str | None,
    f: Literal["x", "y", 3],
    g: Unit,
    h: Any,
    i: list,  # type: ignore[type-arg]
    j: int | list[int] = 3,
) -> Unit:
    """Takes everything.

    Args:
        a: one
        b: two
        c: three
        d: four
        e: five
        f: six
        g: seven
        h: eight
        i: nine
        j: ten (Choices: ["a ", "b"])
    """
    return g


def nothing() -> Callable[[], int]:
    """Does nothing."""
    return lambda: 1


@pytest.mark.parametrize("function", [plain, nested, nothing, Weather().at, Weather.at])
def test_schemas(function: Callable[..., Any]) -> None:
    assert tool_schema(function) == get_json_schema(function)


def test_templates_take_functions() -> None:
    template = ChatTemplate("{{ tools[0].function.name }} {{ tools[1].function.name }}")
    assert (
        template.render([{"role": "user", "content": ""}], tools=[plain, get_json_schema(nothing)]) == "plain nothing"
    )


def no_docstring(a: int) -> None: ...


def no_annotation(a) -> None:  # type: ignore[no-untyped-def]
    """Does nothing.

    Args:
        a: what
    """


def no_description(a: int) -> None:
    """Does nothing."""


def no_json(a: Weather) -> None:
    """Does nothing.

    Args:
        a: what
    """


def no_choices(a: str) -> None:
    """Does nothing.

    Args:
        a: what (choices: [a, b])
    """


@pytest.mark.parametrize("function", [no_docstring, no_annotation, no_description, no_json, no_choices])
def test_functions_without_a_schema(function: Callable[..., Any]) -> None:
    with pytest.raises(Exception):  # noqa: B017 - of several kinds
        get_json_schema(function)
    with pytest.raises(ArgumentError, match=function.__name__ if function is not no_choices else "choices"):
        tool_schema(function)
