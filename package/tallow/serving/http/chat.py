"""`/v1/chat/completions`, and the conversation of a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.errors import TallowError
from tallow.generation.sequence import Choice
from tallow.serving.engine import TextEngine
from tallow.serving.http.completions import TextApi, require_length
from tallow.serving.http.errors import ApiError, api_error
from tallow.serving.http.fields import Fields
from tallow.serving.http.grammars import response_format
from tallow.serving.http.running import Done
from tallow.serving.http.sampling import MAX_LOGPROBS, Texts, texts_of
from tallow.serving.http.tools import MAX_TOOLS, CallDeltas, Tools, merged, tools_of
from tallow.serving.requests import STOP, Update

MAX_MESSAGES, MAX_PARTS = 4096, 256
ROLES = ("system", "developer", "user", "assistant", "tool")
TEXT_PARTS = ("text", "input_text", "output_text")


class ChatCompletion(TextApi):
    """`/v1/chat/completions`: answer a conversation."""

    prefix, kind, chunk_kind = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def parse(self, fields: Fields) -> Texts:
        fields.refuse("functions", "function_call", "audio", "prediction")
        self._tools = tools_of(fields)
        top = fields.integer("top_logprobs", 0, MAX_LOGPROBS)
        wanted = fields.flag("logprobs")
        if top is not None and not wanted:
            raise ApiError("top_logprobs needs logprobs: true", "top_logprobs")
        messages = messages_of(fields, "messages")
        form = response_format(fields.inner("response_format"))
        if self._tools is not None and (self._tools.demanded or form is None):
            form = self._tools.grammar()
        texts = texts_of(
            fields,
            self.engine,
            [chat_prompt(self.engine, messages, self._tools, "messages")],
            default_tokens=None,
            param="messages",
            top_logprobs=(top or 0) if wanted else None,
            grammar=form,
        )
        self._readers = [CallDeltas(self._tools) for _ in texts.requests]
        return texts

    def openings(self) -> list[dict[str, Any] | None]:
        return [{"delta": {"role": "assistant", "content": ""}, "logprobs": None} for _ in self.texts.requests]

    def whole(self, index: int, text: Done) -> dict[str, Any]:
        reader = self._readers[index]
        content, calls = merged([*reader.push(text.text), *reader.finish()])
        message: dict[str, Any] = {"role": "assistant", "content": content if calls else content or "", "refusal": None}
        finish = self._finish(index, text.finish)
        if calls:
            message["tool_calls"] = calls
        return {"message": message, "logprobs": self._logprobs(index, text.choices), "finish_reason": finish}

    def parts(self, index: int, update: Update) -> list[dict[str, Any]]:
        reader = self._readers[index]
        deltas = reader.push(update.text) + (reader.finish() if update.finish else [])
        if not deltas and (update.choices or update.finish):
            deltas = [{}]
        parts: list[dict[str, Any]] = [{"delta": delta, "logprobs": None} for delta in deltas]
        if parts:
            parts[0]["logprobs"] = self._logprobs(index, update.choices)
            parts[-1]["finish_reason"] = self._finish(index, update.finish)
        return parts

    def _finish(self, index: int, finish: str | None) -> str | None:
        return "tool_calls" if finish == STOP and self._readers[index].calls else finish

    def _logprobs(self, index: int, choices: Sequence[Choice]) -> dict[str, Any] | None:
        if self.texts.requests[index].top_logprobs is None:
            return None
        content = [
            self.token(choice.token, choice.logprob)
            | {"top_logprobs": [self.token(*top) for top in choice.top_logprobs]}
            for choice in choices
        ]
        return {"content": content, "refusal": None}


def messages_of(fields: Fields, field: str) -> list[dict[str, Any]]:
    """Return the messages of a list, each with one text.  Raises: ApiError"""
    return [_message(item, f"{field}[{i}]") for i, item in enumerate(fields.items(field, MAX_MESSAGES, least=1))]


def chat_prompt(engine: TextEngine, messages: Sequence[dict[str, Any]], tools: Tools | None, param: str) -> list[int]:
    """Return the tokens of a conversation.

    Args:    param: the field of the messages
    Raises:  ApiError, also for tools of which a model does not learn but may choose
    """
    require_length(engine, sum(len(str(message["content"])) for message in messages), param)
    try:
        if tools is None:
            return engine.served.encode_chat(messages, None)
        return engine.served.encode_chat(messages, tools.entries, required=not tools.demanded)
    except TallowError as error:
        raise api_error(error, param) from error


def _message(value: Any, path: str) -> dict[str, Any]:
    """Return a message whose content is one text.  Raises: ApiError"""
    if not isinstance(value, dict):
        raise ApiError(f"{path}: expected an object", path)
    fields = Fields(value, f"{path}.")
    role = fields.required_text("role")
    if role not in ROLES:
        raise fields.wrong("role", f"one of {', '.join(ROLES)}")
    content = value.get("content")
    if isinstance(content, list):
        parts = [
            Fields(part, f"{path}.content.") for part in fields.items("content", MAX_PARTS) if isinstance(part, dict)
        ]
        if len(parts) < len(content) or any(part.get("type") not in TEXT_PARTS for part in parts):
            raise fields.wrong("content", 'a string, or parts of type "text"')
        content = "".join(part.required_text("text") for part in parts)
    calls = _calls(fields) if role == "assistant" else []
    if content is None and calls:
        content = ""
    if not isinstance(content, str):
        raise fields.wrong("content", 'a string, or parts of type "text"')
    message: dict[str, Any] = {"role": "system" if role == "developer" else role, "content": content}
    message |= {name: text for name in ("name", "tool_call_id") if (text := fields.text(name)) is not None}
    return message | ({"tool_calls": calls} if calls else {})


def _calls(fields: Fields) -> list[dict[str, Any]]:
    """Return the calls of an earlier answer, with arguments as templates read them: as objects.  Raises: ApiError"""
    calls = []
    for i, item in enumerate(fields.items("tool_calls", MAX_TOOLS)):
        call = Fields(item if isinstance(item, dict) else {}, f"{fields.name(f'tool_calls[{i}]')}.")
        function = call.inner("function")
        if function is None:
            raise call.wrong("function", "an object")
        arguments = Fields.parse((function.text("arguments") or "{}").encode(errors="surrogatepass"))
        entry = {"name": function.required_text("name"), "arguments": dict(arguments.values)}
        calls.append({"type": "function", "id": call.text("id", ""), "function": entry})
    return calls
