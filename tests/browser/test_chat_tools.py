"""The tools of wasm_examples/chat without a browser: the calculator, and answers with calls."""

from __future__ import annotations

import importlib
import json
import math
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest
from support.paths import ROOT
from support.tool_caller import ANSWER, CALL, save_tool_caller

from tallow.errors import ArgumentError
from tallow.generation.tools import Call
from tallow.models.auto import AutoModel

MESSAGES = [{"role": "user", "content": "What is 7*6?"}]
CALLED = {**CALL, "result": "42", "failed": False}


@pytest.fixture(scope="module", autouse=True)
def page_modules() -> Iterator[None]:
    """Make the modules of the page importable."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "wasm_examples/chat"))
        yield


def calculate(expression: str) -> str:
    return importlib.import_module("calculator").calculate(expression)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7*6", "42"),
        ("0.1 + 0.2", "0.3"),
        ("-7 // 2 % 5", "1"),
        ("2**-1", "0.5"),
        ("2**900", str(2**900)),
        (" (1+2)*3 ", "9"),
        ("sqrt(2) + pi", format(math.sqrt(2) + math.pi, ".15g")),
        ("max(1, round(2.567, 2))", "2.57"),
    ],
)
def test_arithmetic(expression: str, value: str) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("1/0", "division by zero"),
        ("9**9**9**9", "300 digits"),
        ("10**299*100", "300 digits"),
        ("9.0**999", "out of range"),
        ("(-8)**0.5", "no real number"),
        ("sqrt(-1)", "sqrt(-1)"),
        ("2 +", "not arithmetic"),
        ("__import__('os')", "not arithmetic"),
        ("(1).real", "not arithmetic"),
        ("'a'*9", "not arithmetic"),
        ("True+1", "True"),
        ("[1][0]", "not arithmetic"),
        ("min()", "min"),
        ("max(1, key=2)", "not arithmetic"),
        ("1 < 2", "not arithmetic"),
        ("1<<9", "not arithmetic"),
        ("1" * 201, "201 characters"),
        ("\x00", "null bytes"),
        ("", "not arithmetic"),
    ],
)
def test_what_is_no_arithmetic(expression: str, words: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(words)):
        calculate(expression)


@pytest.mark.parametrize("expression", ["-" * 199 + "1", "(" * 99 + "1" + ")" * 99, "2**" * 66 + "1", "9" * 200])
def test_the_longest_expressions_end(expression: str) -> None:
    with suppress(ArgumentError):
        calculate(expression)


def test_a_failing_tool_has_an_error_as_its_result() -> None:
    tools = importlib.import_module("tools")
    told = tools.run(Call("clock", "{}"))["result"]
    weekday, _, moment = told.partition(", ")
    assert abs(datetime.fromisoformat(moment).timestamp() - time.time()) < 60
    assert datetime.fromisoformat(moment).strftime("%A") == weekday
    for call in (Call("calculator", '{"expression": "1/0"}'), Call("clock", '{"zone": 1}'), Call("calculator", "{}")):
        called = tools.run(call)
        assert called["failed"]
        assert called["result"].startswith("error: ")
    assert "division by zero" in tools.run(Call("calculator", '{"expression": "1/0"}'))["result"]


# ---- answers


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("caller")
    save_tool_caller(folder)
    return importlib.import_module("chats").Chat(AutoModel.from_pretrained(folder))


def answer(chat: Any, messages: list[dict[str, Any]], **options: Any) -> tuple[str, list[Any]]:
    """Return the text of an answer, and its steps."""
    settings = {"temperature": 0, "top_p": 1, "seed": 1, "max_tokens": 200, **options}
    pieces = list(chat.answer(messages, importlib.import_module("answers").Settings(**settings)))
    return "".join(text for text, _ in pieces), pieces[-1][1].get("steps", [])


def test_a_model_calls_a_tool_and_answers(chat: Any) -> None:
    assert chat.traits()["tools"]
    steps = [{"content": "", "calls": [CALLED]}]
    assert answer(chat, MESSAGES, tools=True) == (ANSWER, steps)
    assert answer(chat, MESSAGES) == (ANSWER, [])
    text, none = answer(chat, MESSAGES, tools=True, schema='{"const": 3}')
    assert (text, none) == ("3", []), "an answer in JSON has no calls"


def test_earlier_calls_are_told_again(chat: Any) -> None:
    steps = [{"content": "Hm.", "calls": [CALLED, CALLED]}]
    told = importlib.import_module("tools").told([*MESSAGES, {"role": "assistant", "content": "Ok.", "steps": steps}])
    assert [message["role"] for message in told] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert [message["content"] for message in told] == ["What is 7*6?", "Hm.", "42", "", "42", "Ok."]
    assert told[1]["tool_calls"][0]["function"] == {"name": "calculator", "arguments": json.loads(CALL["arguments"])}
    assert "42" in chat._format(told, importlib.import_module("answers").Settings(0, 1, 1, 1), None)


def test_text_and_calls_of_several_steps() -> None:
    tools = importlib.import_module("tools")
    texts = iter(
        [
            'Let me see.\n<tool_call>{"name": "calculator", "arguments": {"expression": "1/0"}}</tool_call>',
            '{"name": "calculator", "parameters": {"expression": "7*6"}}',
            "It is 42.",
        ]
    )
    read: list[list[Any]] = []

    def write(messages: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        read.append(list(messages))
        yield from ((character, {}) for character in next(texts))

    pieces = list(tools.answer(MESSAGES, write))
    steps = pieces[-1][1]["steps"]
    assert "".join(text for text, _ in pieces) == "Let me see.\nIt is 42."
    assert [step["content"] for step in steps] == ["Let me see.\n", ""]
    assert [call["failed"] for step in steps for call in step["calls"]] == [True, False]
    assert "division by zero" in read[1][-1]["content"], "the model reads the error"
    assert read[2][-1]["content"] == "42"


def test_calls_without_end_are_refused() -> None:
    tools = importlib.import_module("tools")
    call = '<tool_call>{"name": "clock", "arguments": {}}</tool_call>'
    with pytest.raises(ArgumentError, match="8 times in a row"):
        list(tools.answer(MESSAGES, lambda _: iter([(call, {})])))
