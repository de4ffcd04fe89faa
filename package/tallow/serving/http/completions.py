"""`/v1/completions` and `/v1/chat/completions`."""

from __future__ import annotations

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tallow.errors import TallowError
from tallow.generation.sequence import Choice
from tallow.serving.engine import TextEngine
from tallow.serving.http.errors import ApiError, api_error
from tallow.serving.http.fields import Fields
from tallow.serving.http.grammars import response_format
from tallow.serving.http.running import Done, Run
from tallow.serving.http.sampling import MAX_LOGPROBS, Texts, texts_of
from tallow.serving.http.streaming import EventStream
from tallow.serving.requests import Update

DEFAULT_TOKENS = 16  # of a completion, as in OpenAI's API
MAX_PROMPTS, MAX_MESSAGES, MAX_PARTS = 64, 4096, 256
ROLES = ("system", "developer", "user", "assistant", "tool")


class TextApi(ABC):
    """A kind of request for texts: what its fields mean, and the form of its answers.

    Args:  fields: of the request
    Raises:  ApiError for invalid fields
    """

    prefix: str  # of ids
    kind: str  # of whole answers
    chunk_kind: str  # of parts of a stream

    def __init__(self, fields: Fields, engine: TextEngine) -> None:
        self.engine = engine
        self.head = {"id": f"{self.prefix}-{secrets.token_hex(12)}", "created": int(time.time())}
        self.head["model"] = engine.served.name
        self.texts = self.parse(fields)

    @abstractmethod
    def parse(self, fields: Fields) -> Texts:
        """Return the texts that the request asks for."""

    @abstractmethod
    def whole(self, index: int, text: Done) -> dict[str, Any]:
        """Return a choice of a whole answer."""

    @abstractmethod
    def part(self, index: int, update: Update) -> dict[str, Any]:
        """Return a choice of a part of a stream."""

    @abstractmethod
    def openings(self) -> list[dict[str, Any] | None]:
        """Return for each text the first choice of its stream, before the first token, or None."""

    async def respond(self, request: Request) -> Response:
        """Generate the texts.  Raises: ApiError; ClientGone"""
        run = Run(self.engine, self.texts.requests)
        if self.texts.stream:
            return EventStream(self._parts(run), run.cancel, path=request.url.path)
        texts = await run.finish(request)
        choices = [{"index": i, **self.whole(i, text), "finish_reason": text.finish} for i, text in enumerate(texts)]
        return JSONResponse({**self.head, "object": self.kind, "choices": choices, "usage": self._usage(run)})

    async def _parts(self, run: Run) -> AsyncGenerator[dict[str, Any], None]:
        updates = run.updates()
        usage: dict[str, Any] = {"usage": None} if self.texts.usage else {}
        head = {**self.head, "object": self.chunk_kind}
        try:
            for i, opening in enumerate(self.openings()):
                if opening is not None:
                    yield head | {"choices": [{"index": i, **opening, "finish_reason": None}]} | usage
            async for i, update in updates:
                if update.text or update.choices or update.finish:
                    choice = {"index": i, **self.part(i, update), "finish_reason": update.finish}
                    yield head | {"choices": [choice]} | usage
            if usage:
                yield head | {"choices": [], "usage": self._usage(run)}
        finally:
            await updates.aclose()

    def _usage(self, run: Run) -> dict[str, Any]:
        prompt, tokens = self.texts.prompt_tokens, run.tokens
        return {
            "prompt_tokens": prompt,
            "completion_tokens": tokens,
            "total_tokens": prompt + tokens,
            "prompt_tokens_details": {"cached_tokens": min(prompt, sum(text.cached for text in run.texts))},
        }

    def token(self, token: int, logprob: float) -> dict[str, Any]:
        """Return a token in the form of chat completions."""
        text, data = self.engine.served.token_text(token)
        return {"token": text, "logprob": max(logprob, -9999.0), "bytes": data}


class Completion(TextApi):
    """`/v1/completions`: continue texts."""

    prefix, kind, chunk_kind = "cmpl", "text_completion", "text_completion"

    def parse(self, fields: Fields) -> Texts:
        fields.refuse("suffix", "best_of")
        top = fields.integer("logprobs", 0, MAX_LOGPROBS)
        prompts = self._prompts(fields)
        texts = texts_of(
            fields,
            self.engine,
            prompts,
            default_tokens=DEFAULT_TOKENS,
            param="prompt",
            top_logprobs=top,
            grammar=response_format(fields.inner("response_format")),
        )
        self._offsets = [0] * len(texts.requests)
        choices = len(texts.requests) // len(prompts)
        self._echoes = [""] * len(texts.requests)
        if fields.flag("echo"):
            if not all(isinstance(prompt, str) for prompt in self._given):
                raise ApiError("echo is supported for prompts that are strings", "echo")
            self._echoes = [prompt for prompt in self._given for _ in range(choices)]
        return texts

    def _prompts(self, fields: Fields) -> list[list[int]]:
        """Return the tokens of the prompts: a string, a list of strings, ids, or a list of lists of ids."""
        value = fields.get("prompt")
        if (isinstance(value, list) and value and all(type(item) is int for item in value)) or isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_PROMPTS:
            raise fields.wrong("prompt", f"a string, the ids of tokens, or a list of 1 to {MAX_PROMPTS} of them")
        self._given = value
        prompts = []
        for item in value:
            if isinstance(item, str):
                prompts.append(encoded(self.engine, item, "prompt"))
            elif isinstance(item, list) and item and all(type(token) is int for token in item):
                prompts.append(item)
            else:
                raise fields.wrong("prompt", "strings, or lists of ids")
        return prompts

    def openings(self) -> list[dict[str, Any] | None]:
        return [{"text": echo, "logprobs": None} if echo else None for echo in self._echoes]

    def whole(self, index: int, text: Done) -> dict[str, Any]:
        return {"text": self._echoes[index] + text.text, "logprobs": self._logprobs(index, text.choices)}

    def part(self, index: int, update: Update) -> dict[str, Any]:
        return {"text": update.text, "logprobs": self._logprobs(index, update.choices)}

    def _logprobs(self, index: int, choices: Sequence[Choice]) -> dict[str, Any] | None:
        if self.texts.requests[index].top_logprobs is None:
            return None
        listed: dict[str, list[Any]] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
        for choice in choices:
            entry = self.token(choice.token, choice.logprob)
            tops = [self.token(token, logprob) for token, logprob in choice.top_logprobs]
            listed["tokens"].append(entry["token"])
            listed["token_logprobs"].append(entry["logprob"])
            listed["top_logprobs"].append({top["token"]: top["logprob"] for top in tops})
            listed["text_offset"].append(self._offsets[index])
            self._offsets[index] += len(entry["token"])
        return listed


class ChatCompletion(TextApi):
    """`/v1/chat/completions`: answer a conversation."""

    prefix, kind, chunk_kind = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def parse(self, fields: Fields) -> Texts:
        fields.refuse("tools", "tool_choice", "functions", "function_call", "audio", "modalities", "prediction")
        top = fields.integer("top_logprobs", 0, MAX_LOGPROBS)
        wanted = fields.flag("logprobs")
        if top is not None and not wanted:
            raise ApiError("top_logprobs needs logprobs: true", "top_logprobs")
        messages = [_message(item, i) for i, item in enumerate(fields.items("messages", MAX_MESSAGES, least=1))]
        try:
            prompt = self.engine.served.encode_chat(messages, None)
        except TallowError as error:
            raise api_error(error, "messages") from error
        top = (top or 0) if wanted else None
        return texts_of(
            fields,
            self.engine,
            [prompt],
            default_tokens=None,
            param="messages",
            top_logprobs=top,
            grammar=response_format(fields.inner("response_format")),
        )

    def openings(self) -> list[dict[str, Any] | None]:
        return [{"delta": {"role": "assistant", "content": ""}, "logprobs": None} for _ in self.texts.requests]

    def whole(self, index: int, text: Done) -> dict[str, Any]:
        message = {"role": "assistant", "content": text.text, "refusal": None}
        return {"message": message, "logprobs": self._logprobs(index, text.choices)}

    def part(self, index: int, update: Update) -> dict[str, Any]:
        delta = {"content": update.text} if update.text else {}
        return {"delta": delta, "logprobs": self._logprobs(index, update.choices)}

    def _logprobs(self, index: int, choices: Sequence[Choice]) -> dict[str, Any] | None:
        if self.texts.requests[index].top_logprobs is None:
            return None
        content = [
            self.token(choice.token, choice.logprob)
            | {"top_logprobs": [self.token(*top) for top in choice.top_logprobs]}
            for choice in choices
        ]
        return {"content": content, "refusal": None}


def encoded(engine: TextEngine, text: str, param: str) -> list[int]:
    """Return the tokens of a prompt.  Raises: ApiError"""
    try:
        return engine.served.encode(text)
    except TallowError as error:
        raise api_error(error, param) from error


def _message(value: Any, index: int) -> dict[str, Any]:
    """Return a message whose content is one text.  Raises: ApiError"""
    path = f"messages[{index}]"
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
        if len(parts) < len(content) or any(part.get("type") != "text" for part in parts):
            raise fields.wrong("content", 'a string, or parts of type "text"')
        content = "".join(part.required_text("text") for part in parts)
    elif not isinstance(content, str):
        raise fields.wrong("content", 'a string, or parts of type "text"')
    return {"role": "system" if role == "developer" else role, "content": content}
