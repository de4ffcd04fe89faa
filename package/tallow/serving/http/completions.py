"""`/v1/completions`, and what it shares with `/v1/chat/completions`."""

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
from tallow.serving.http.errors import TOO_LONG, ApiError, api_error
from tallow.serving.http.fields import Fields
from tallow.serving.http.grammars import response_format
from tallow.serving.http.running import Done, Run
from tallow.serving.http.sampling import MAX_LOGPROBS, Texts, texts_of
from tallow.serving.http.streaming import EventStream
from tallow.serving.requests import Update

DEFAULT_TOKENS = 16  # of a completion, as in OpenAI's API
MAX_PROMPTS = 64
MOST_CHARACTERS = 256  # of a token, about; the longest are runs of spaces
FINGERPRINT = "tallow"  # some clients, such as the package text-generation, refuse answers without one


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
        self.head: dict[str, Any] = {"id": f"{self.prefix}-{secrets.token_hex(12)}", "created": int(time.time())}
        self.head |= {"model": engine.served.name, "system_fingerprint": FINGERPRINT}
        self.texts = self.parse(fields)

    @abstractmethod
    def parse(self, fields: Fields) -> Texts:
        """Return the texts that the request asks for."""

    @abstractmethod
    def whole(self, index: int, text: Done) -> dict[str, Any]:
        """Return a choice of a whole answer."""

    @abstractmethod
    def parts(self, index: int, update: Update) -> list[dict[str, Any]]:
        """Return the choices of a stream that an update gives."""

    @abstractmethod
    def openings(self) -> list[dict[str, Any] | None]:
        """Return for each text the first choice of its stream, before the first token, or None."""

    async def respond(self, request: Request) -> Response:
        """Generate the texts.  Raises: ApiError; ClientGone"""
        run = Run(self.engine, self.texts.requests, stream=self.texts.stream)
        if self.texts.stream:
            return EventStream(self._parts(run), run.cancel, path=request.url.path)
        texts = await run.finish(request)
        choices = [{"index": i, "finish_reason": text.finish, **self.whole(i, text)} for i, text in enumerate(texts)]
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
                for part in self.parts(i, update):
                    yield head | {"choices": [{"index": i, "finish_reason": None, **part}]} | usage
            if usage:
                yield head | {"choices": [], "usage": self._usage(run)}
        finally:
            await updates.aclose()

    def _usage(self, run: Run) -> dict[str, Any]:
        prompt, tokens, choices = self.texts.prompt_tokens, run.tokens, self.texts.choices
        # Of the choices of a prompt, the first that is read computes what the others find.
        cached = [min(text.cached for text in run.texts[i : i + choices]) for i in range(0, len(run.texts), choices)]
        return {
            "prompt_tokens": prompt,
            "completion_tokens": tokens,
            "total_tokens": prompt + tokens,
            "prompt_tokens_details": {"cached_tokens": sum(cached)},
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
        self._echoes = [""] * len(texts.requests)
        if fields.flag("echo"):
            if not all(isinstance(prompt, str) for prompt in self._given):
                raise ApiError("echo is supported for prompts that are strings", "echo")
            self._echoes = [prompt for prompt in self._given for _ in range(texts.choices)]
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

    def parts(self, index: int, update: Update) -> list[dict[str, Any]]:
        if not (update.text or update.choices or update.finish):
            return []
        logprobs = self._logprobs(index, update.choices)
        return [{"text": update.text, "logprobs": logprobs, "finish_reason": update.finish}]

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


def require_length(engine: TextEngine, characters: int, param: str) -> None:
    """Raise ApiError for a prompt that has too many tokens for certain: to tokenize it would take seconds."""
    if characters > MOST_CHARACTERS * engine.length:
        raise ApiError(f"{param}: {characters} characters; the limit is {engine.length} tokens", param, code=TOO_LONG)


def encoded(engine: TextEngine, text: str, param: str) -> list[int]:
    """Return the tokens of a prompt.  Raises: ApiError"""
    require_length(engine, len(text), param)
    try:
        return engine.served.encode(text)
    except TallowError as error:
        raise api_error(error, param) from error
