"""Tools that a model of the chat page can call: a calculator and a clock."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypedDict

from answers import Answer, Message
from calculator import calculate

from tallow.errors import ArgumentError, TallowError
from tallow.generation.tools import Call, CallReader, Piece, Text

MOST_STEPS = 8  # of an answer


class Called(TypedDict):
    """A call and its result. `arguments` is JSON; `failed` says whether the result is an error."""

    name: str
    arguments: str
    result: str
    failed: bool


class Step(TypedDict):
    """A part of an answer: a text, and the calls after it, whose results the next part knows."""

    content: str
    calls: list[Called]


def tell_time() -> str:
    now = datetime.datetime.now().astimezone()
    return f"{now:%A}, {now.isoformat(sep=' ', timespec='seconds')}"


def _entry(name: str, description: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """Return a function as chat templates take it; all its arguments are required."""
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


ENTRIES = [
    _entry(
        "calculator",
        "Compute an arithmetic expression, as Python does.",
        expression={
            "type": "string",
            "description": "for example 23*7.5 or sqrt(2)",
            "pattern": r"^[0-9a-z .,()+*/%-]+$",
        },
    ),
    _entry("clock", "Return the current date, weekday and time on the user's device."),
]
SCHEMAS: dict[str, Any] = {entry["function"]["name"]: entry["function"]["parameters"] for entry in ENTRIES}
FUNCTIONS: dict[str, Callable[..., str]] = {"calculator": calculate, "clock": tell_time}


def run(call: Call) -> Called:
    """Run a call. An error is a result, too: the model reads it and can try again."""
    try:
        result, failed = FUNCTIONS[call.name](**json.loads(call.arguments)), False
    except (TallowError, TypeError) as error:  # the latter for other arguments than the function has
        result, failed = f"error: {error}", True
    return {"name": call.name, "arguments": call.arguments, "result": result, "failed": failed}


def told(messages: Iterable[Message]) -> list[Message]:
    """Return a conversation with the calls and results in its "steps" as messages."""
    return [turn for message in messages for turn in [*_turns(message.get("steps", ())), message]]


def _turns(steps: Iterable[Step]) -> Iterator[Message]:
    """Yield the messages of steps as chat templates take them: one call each, because some refuse several."""
    for step in steps:
        content = step["content"]
        for called in step["calls"]:
            function = {"name": called["name"], "arguments": json.loads(called["arguments"])}
            yield {"role": "assistant", "content": content, "tool_calls": [{"type": "function", "function": function}]}
            yield {"role": "tool", "name": called["name"], "content": called["result"]}
            content = ""


def answer(messages: Iterable[Message], write: Callable[[list[Message]], Iterator[Answer]]) -> Iterator[Answer]:
    """Write an answer in steps: while a text ends with calls, run them, and go on with their results.

    The counts are those of the last text; with them are the "steps" before it. Pieces of text outside of calls follow
    each other over all steps.

    Args:    write: writes the text that follows some messages
    Raises:  ArgumentError for more than MOST_STEPS
    """
    conversation = told(messages)
    steps: list[Step] = []
    for _ in range(MOST_STEPS):
        reader, found = CallReader(SCHEMAS), list[Piece]()
        counts: dict[str, Any] = {}
        for text, counts in write(conversation):
            pieces = reader.push(text)
            found += pieces
            yield _text(pieces), counts | {"steps": steps}
        last = reader.finish()
        found += last
        calls = [piece for piece in found if isinstance(piece, Call)]
        if calls:
            step: Step = {"content": _text(found), "calls": [run(call) for call in calls]}
            steps.append(step)
            conversation += _turns([step])
        yield _text(last), counts | {"steps": steps}
        if not calls:
            return
    raise ArgumentError(
        f"the model called tools {MOST_STEPS} times in a row", hint="ask for less at once, or switch the tools off"
    )


def _text(pieces: Iterable[Piece]) -> str:
    """Return the text outside of calls."""
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))
