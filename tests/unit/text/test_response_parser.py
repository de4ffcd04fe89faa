"""Answers and response templates that are malformed, or would take endless time, raise errors of tallow."""

from __future__ import annotations

from typing import Any

import pytest

from tallow.errors import ArgumentError
from tallow.text.response_parser import parse_response

DEEP = 100_000  # brackets, more than any parser nests


def parsed(answer: str, tools: Any = None, **field: Any) -> Any:
    return parse_response(answer, {"start_anchor": "A:", "fields": {"x": field}}, prefix="", tools=tools)


@pytest.mark.parametrize("answer", ["\x010\x02", pytest.param("[" * DEEP, marks=pytest.mark.native)])
def test_answers_that_are_no_json(answer: str) -> None:
    with pytest.raises(ArgumentError, match="no JSON"):
        parsed(answer, content="json")
    assert parsed(answer, content="json", content_args={"allow_non_json": True}) == {"x": answer}


@pytest.mark.native
def test_an_argument_that_is_nested_too_deeply_stays_a_text() -> None:
    tool = {"name": "f", "parameters": {"properties": {"a": {"type": "array"}}}}
    form = {"function": {"name": "f", "arguments": {"a": "{content}"}}}
    text = "[" * DEEP
    assert parsed(text, [tool], transform=form) == {"x": {"function": {"name": "f", "arguments": {"a": text}}}}


def test_fields_of_no_characters_have_an_end() -> None:
    with pytest.raises(ArgumentError, match="without end"):
        parsed("ab", open_pattern="(?=b)", close_pattern="(?=b)", repeats=True)
    assert parsed("ab", open_pattern="(?=b)", close="b", repeats=True) == {"x": [""]}


@pytest.mark.parametrize(
    "field",
    [
        {"content": ["text"]},
        {"content_args": [1]},
        {"content": "kv-lines", "content_args": {"value_parser": {"name": "none"}}},
        {"content": "kv-lines", "content_args": {"value_parser": "text"}},
        {"content": "json", "content_args": {"string_delims": 5}},
        {"content": "xml-inline", "content_args": {"tag_pattern": "(?P<key>a)(?P<value>b)?", "value_parser": {}}},
    ],
)
def test_malformed_fields(field: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="field 'x'"):
        parsed("a:b", **field)
