"""The data that a chat template sees: plain copies of messages, in the form that transformers gives them.

Source:  transformers 5.23, `apply_chat_template` and `render_jinja_template`
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tallow.errors import ArgumentError, ArgumentTypeError

# The names under which messages hold the model's reasoning; templates read the first one, and some the second.
REASONING = ("reasoning_content", "thinking", "reasoning")
# Marks the end of a text to continue. The space at its end shows whether the template removed spaces there.
MARK = "THE_TEXT_CONTINUES_HERE "


def plain(value: Any) -> Any:
    """Return what `json` can write for NumPy's scalars, dataclasses and Pydantic's models; for `json.dumps(default=)`.

    Raises:  TypeError for other objects
    """
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.generic):
        return value.item()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if callable(dump := getattr(value, "model_dump", None)):
        return dump()
    raise TypeError(f"a {type(value).__name__} is no plain data")


def as_messages(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Return messages as dicts without the keys whose value is None, which clients send for what is missing.

    Reasoning is in `reasoning_content` and `thinking`, whatever its name was.

    Raises:  ArgumentError without messages; ArgumentTypeError for one that is no mapping
    """
    if not messages:
        raise ArgumentError("a conversation without messages", hint="pass one or more")
    return [_message(i, message) for i, message in enumerate(messages)]


def _message(place: int, message: Any) -> dict[str, Any]:
    try:
        entries = message if isinstance(message, Mapping) else plain(message)
    except TypeError:
        entries = None
    if not isinstance(entries, Mapping):
        raise ArgumentTypeError(f'message {place} is {message!r:.200}; a message is {{"role": ..., "content": ...}}')
    known = {key: value for key, value in entries.items() if value is not None}
    reasoning = next((known[name] for name in REASONING if name in known), None)
    return known if reasoning is None else {"thinking": reasoning, **known, "reasoning_content": reasoning}


def mark_end(messages: list[dict[str, Any]], field: str, source: str) -> str:
    """Append MARK to the text of the last message that is to be continued, in place, and return the text.

    Args:
        field: the key of the text: "content", whose last part of type text counts, or one of REASONING.
        source: of the template.

    Raises:  ArgumentError for a message without that text, and for a template that does not read it
    """
    last = messages[-1]
    text = last.get(field)
    if text is None:
        raise ArgumentError(f"continue_final_message: the last message has no {field!r}", hint="add it")
    fields = [name for name in REASONING if last.get(name) == text] if field in REASONING else [field]
    if not any(name in source for name in fields):
        raise ArgumentError(f"continue_final_message: the chat template does not read {field!r}")
    if isinstance(text, list):
        part = next((part for part in reversed(text) if isinstance(part, dict) and "text" in part), None)
        if part is None:
            raise ArgumentError("continue_final_message: the last message has no text", hint="add a part of type text")
        holder, fields, text = part, ["text"], part["text"]
    else:
        holder = last
    if not isinstance(text, str):
        raise ArgumentError(f"continue_final_message: {field!r} is a {type(text).__name__}", hint="pass a text")
    for name in fields:
        holder[name] = text + MARK
    return text


def cut_at_mark(rendered: str, text: str) -> str:
    """Return a rendered conversation up to the end of the text that is to be continued.

    Raises:  ArgumentError if the template leaves the text out
    """
    mark = MARK.strip()
    if mark not in rendered or text.strip() not in rendered:
        raise ArgumentError("continue_final_message: the chat template changes the last message or leaves it out")
    before, _, after = rendered.rpartition(mark)
    return before if after.startswith(" ") else before.rstrip()
