"""`/v1/completions`, and what it shares with `/v1/chat/completions`."""

from __future__ import annotations

import asyncio
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, TypeAlias

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tallow.errors import TallowError
from tallow.generation.sequence import Choice
from tallow.serving.engine import TextEngine
from tallow.serving.http.clients import client_of
from tallow.serving.http.errors import TOO_LONG, ApiError, api_error
from tallow.serving.http.fields import MAX_INTEGER, Fields, as_ids
from tallow.serving.http.grammars import read_grammars, text_grammar
from tallow.serving.http.large_json import large_json
from tallow.serving.http.running import Done, Run
from tallow.serving.http.sampling import MAX_LOGPROBS, Texts, choices_of, prompt_logprobs, texts_of
from tallow.serving.http.streaming import EventStream
from tallow.serving.requests import Update

DEFAULT_TOKENS = 16  # of a completion, as in OpenAI's API
MAX_PROMPTS = 64
ECHOED = 64  # tokens of a prompt, with their log-probabilities, in a part of a stream
MOST_CHARACTERS = 256  # of a token, about; the longest are runs of spaces
FINGERPRINT = "tallow"  # some clients, such as the package text-generation, refuse answers without one


Prompt: TypeAlias = Sequence[tuple[Choice, int] | None]


class TextApi(ABC):
    """A kind of request for texts: what its fields mean, and the form of its answers.

    Args:  fields: of the request
    Raises:  ApiError for invalid fields
    """

    prefix: str  # of ids
    kind: str  # of whole answers
    chunk_kind: str  # of parts of a stream
    blank: ClassVar[dict[str, Any]]  # a choice of a stream without text

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
    def parts(self, index: int, update: Update) -> Iterable[dict[str, Any]]:
        """Return the choices of a stream that an update gives."""

    @abstractmethod
    def openings(self) -> list[dict[str, Any] | None]:
        """Return for each text the first choice of its stream, before the first token, or None."""

    async def respond(self, request: Request) -> Response:
        """Generate the texts.  Raises: ApiError; ClientGone"""
        await read_grammars(request, self.engine, self.texts.requests)
        run = Run(self.engine, self.texts.requests, client_of(request), stream=self.texts.stream)
        if self.texts.stream:
            return EventStream(self._parts(run), run.cancel, path=request.url.path)
        texts = await run.finish(request)

        def answer() -> dict[str, Any]:
            choices = [
                {"index": i, "finish_reason": each.finish, **self.whole(i, each)} for i, each in enumerate(texts)
            ]
            whole = {**self.head, "object": self.kind, "choices": choices, "usage": self._usage(run)}
            return whole | self.besides(texts)

        # The texts alone are short, but each of their tokens may come with log-probabilities of many.
        has_logprobs = any(text.choices or text.prompt for text in texts)
        return await large_json(request, answer) if has_logprobs else JSONResponse(answer())

    def besides(self, texts: Sequence[Done]) -> dict[str, Any]:
        """Return what a whole answer has besides its choices."""
        return {}

    async def _parts(self, run: Run) -> AsyncGenerator[dict[str, Any], None]:
        updates = run.updates()
        usage: dict[str, Any] = {"usage": None} if self.texts.usage else {}
        head = {**self.head, "object": self.chunk_kind}
        try:
            for i, opening in enumerate(self.openings()):
                if opening is not None:
                    yield head | {"choices": [{"index": i, **opening, "finish_reason": None}]} | usage
            async for i, update in updates:
                if self.texts.each_usage:
                    usage = {"usage": self._usage(run)}
                for number, part in enumerate(self.parts(i, update)):
                    if number:
                        await asyncio.sleep(0)  # others are answered between the parts of a long prompt
                    yield head | {"choices": [{"index": i, "finish_reason": None, **part}]} | usage
            if self.texts.usage:
                yield head | {"choices": [], "usage": self._usage(run)}
        except ApiError:
            broken = [i for i, text in enumerate(run.texts) if not text.finish]
            yield head | {"choices": [{"index": i, **self.blank, "finish_reason": "error"} for i in broken]} | usage
            raise
        finally:
            await updates.aclose()

    def _usage(self, run: Run) -> dict[str, Any]:
        prompt, tokens, choices = self.texts.prompt_tokens, run.tokens, self.texts.choices
        # Of the choices of a prompt, the first that is read computes what the others find.
        usage = {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}
        if not self.engine.reports_cached:
            return usage
        cached = [min(text.cached for text in run.texts[i : i + choices]) for i in range(0, len(run.texts), choices)]
        return usage | {"prompt_tokens_details": {"cached_tokens": sum(cached)}}

    def prompt_list(self, prompt: Prompt, top: int) -> list[dict[str, Any] | None]:
        """Return vLLM's list `prompt_logprobs`: for each token of a prompt the likeliest in its place, and itself."""
        served = self.engine.served

        def entry(token: int, logprob: float, rank: int) -> dict[str, Any]:
            return {"logprob": max(logprob, -9999.0), "rank": rank, "decoded_token": served.token_text(token)[0]}

        return [
            None
            if each is None
            else {str(each[0].token): entry(each[0].token, each[0].logprob, each[1])}
            | {str(token): entry(token, p, i + 1) for i, (token, p) in enumerate(each[0].top_logprobs[:top])}
            for each in prompt
        ]

    def token(self, token: int, logprob: float) -> dict[str, Any]:
        """Return a token in the form of chat completions."""
        text, data = self.engine.served.token_text(token)
        return {"token": text, "logprob": max(logprob, -9999.0), "bytes": data}


class Completion(TextApi):
    """`/v1/completions`: continue texts."""

    prefix, kind, chunk_kind = "cmpl", "text_completion", "text_completion"
    blank: ClassVar[dict[str, Any]] = {"text": "", "logprobs": None}

    def parse(self, fields: Fields) -> Texts:
        top = fields.integer("logprobs", 0, MAX_LOGPROBS)
        echo = fields.flag("echo")
        prompts = self._prompts(fields)
        self._listed = prompt_logprobs(fields)
        wanted = [each for each in (self._listed, top if echo else None) if each is not None]
        texts = texts_of(
            fields,
            self.engine,
            prompts,
            choices=choices_of(fields),
            default_tokens=DEFAULT_TOKENS,
            param="prompt",
            top_logprobs=top,
            prompt_logprobs=max(wanted, default=None),
            grammar=text_grammar(fields),
        )
        pieces = [self.engine.served.prompt_pieces(prompt) if echo else [] for prompt in prompts]
        self._pieces = [each for each in pieces for _ in range(texts.choices)]
        echoes = [text or "".join(each) if echo else "" for text, each in zip(self._given, pieces, strict=True)]
        self._echoes = [each for each in echoes for _ in range(texts.choices)]
        self._offsets = [len(each) for each in self._echoes]
        self._has_logprobs = top is not None
        return texts

    def _prompts(self, fields: Fields) -> list[list[int]]:
        """Return the tokens of the prompts: a string, a list of strings, ids, or a list of lists of ids."""
        value = fields.get("prompt")
        if isinstance(value, str) or as_ids(value):
            value = [value]
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_PROMPTS:
            raise fields.wrong("prompt", f"a string, the ids of tokens, or a list of 1 to {MAX_PROMPTS} of them")
        cut = Cut.of(fields, self.engine)
        special = fields.flag("add_special_tokens", True)
        prompts = []
        for item in value:
            if isinstance(item, str):
                prompts.append(encoded(self.engine, item, "prompt", cut, special=special))
            elif ids := as_ids(item):
                prompts.append(cut.tokens(ids))
            else:
                raise fields.wrong("prompt", "strings, or lists of ids")
        self._given = [item if isinstance(item, str) and cut == WHOLE else None for item in value]
        return prompts

    def openings(self) -> list[dict[str, Any] | None]:
        if self._has_logprobs:
            return [None for _ in self._echoes]
        return [{"text": echo, "logprobs": None} if echo else None for echo in self._echoes]

    def whole(self, index: int, text: Done) -> dict[str, Any]:
        listed = self._prompt_logprobs(index, text.prompt)
        for name, values in self._logprobs(index, text).items():
            listed[name] += values
        choice: dict[str, Any] = {"text": self._echoes[index] + text.text}
        choice["logprobs"] = listed if self._has_logprobs else None
        if self._listed is not None:
            choice["prompt_logprobs"] = self.prompt_list(text.prompt, self._listed)
        return choice

    def parts(self, index: int, update: Update) -> Iterator[dict[str, Any]]:
        if update.prompt and self._pieces[index]:
            for start in range(0, len(update.prompt), ECHOED):
                echoed = self._prompt_logprobs(index, update.prompt, start, start + ECHOED)
                yield {"text": "" if start else self._echoes[index], "logprobs": echoed}
        if update.text or update.choices or update.finish:
            logprobs = self._logprobs(index, update) if self._has_logprobs else None
            yield {"text": update.text, "logprobs": logprobs, "finish_reason": update.finish}

    def _logprobs(self, index: int, new: Done | Update) -> dict[str, list[Any]]:
        """Return the lists of new tokens. As in OpenAI's API, a token that ends the text is one of them: programs that
        score an echo leave out the last entry.
        """
        listed = _lists()
        for choice in new.choices if new.stop is None else [*new.choices, new.stop]:
            text = self._append(listed, choice)
            listed["text_offset"].append(self._offsets[index])
            self._offsets[index] += len(text)
        return listed

    def _prompt_logprobs(
        self, index: int, prompt: Prompt, start: int = 0, stop: int | None = None
    ) -> dict[str, list[Any]]:
        """Return the lists of some of the prompt's tokens if it is echoed; the first has no log-probability."""
        listed = _lists()
        tokens, pieces = self.texts.requests[index].tokens, self._pieces[index]
        for token, entry in zip(tokens[start:stop], prompt[start:stop], strict=False) if pieces else ():
            if entry is None:
                listed["tokens"].append(self.token(token, 0)["token"])
                listed["token_logprobs"].append(None)
                listed["top_logprobs"].append(None)
            else:
                self._append(listed, entry[0])
        offsets = list(accumulate(map(len, pieces), initial=0))
        listed["text_offset"] = offsets[start : start + len(listed["tokens"])]
        return listed

    def _append(self, listed: dict[str, list[Any]], choice: Choice) -> str:
        """Append a token to the lists; return its text."""
        top = self.texts.requests[0].top_logprobs or 0
        likeliest = [self.token(*each) for each in choice.top_logprobs[:top]]
        token = self.token(choice.token, choice.logprob)
        listed["tokens"].append(token["token"])
        listed["token_logprobs"].append(token["logprob"])
        # As in OpenAI's API, the token itself is one of them. Of those with one text, such as bytes, the likeliest is.
        by_text = {each["token"]: each["logprob"] for each in reversed(likeliest)}
        listed["top_logprobs"].append(by_text | {token["token"]: token["logprob"]} if top else by_text)
        return str(token["token"])


def _lists() -> dict[str, list[Any]]:
    return {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}


def require_length(engine: TextEngine, characters: int, param: str) -> None:
    """Raise ApiError for a prompt that has too many tokens for certain: to tokenize it would take seconds."""
    if characters > MOST_CHARACTERS * engine.length:
        raise ApiError(f"{param}: {characters} characters; the limit is {engine.length} tokens", param, code=TOO_LONG)


@dataclass(frozen=True)
class Cut:
    """The part of a prompt that the model reads.

    Args:
        most: the tokens; None for all.
        keeps_end: cut the beginning off, not the end.
    """

    most: int | None = None
    keeps_end: bool = True

    @classmethod
    def of(cls, fields: Fields, engine: TextEngine) -> Cut:
        """Read `truncate_prompt_tokens`, where -1 means as many as fit, and `truncation_side`."""
        most = fields.integer("truncate_prompt_tokens", -1, MAX_INTEGER)
        if most == 0:
            raise fields.wrong("truncate_prompt_tokens", "1 or more, or -1 for as many as fit")
        side = fields.choice("truncation_side", ("left", "right"))
        return cls(engine.length if most == -1 else most, side == "left")

    def text(self, text: str, engine: TextEngine) -> str:
        """Return a part of a text that has all tokens which are kept: to tokenize a long one would take seconds."""
        most = MOST_CHARACTERS * engine.length
        return text if self.most is None else text[-most:] if self.keeps_end else text[:most]

    def tokens(self, tokens: list[int]) -> list[int]:
        """Return the tokens that are kept."""
        return tokens if self.most is None else tokens[-self.most :] if self.keeps_end else tokens[: self.most]


WHOLE = Cut()


def encoded(engine: TextEngine, text: str, param: str, cut: Cut, *, special: bool = True) -> list[int]:
    """Return the tokens of a prompt.  Raises: ApiError"""
    text = cut.text(text, engine)
    require_length(engine, len(text), param)
    try:
        return cut.tokens(engine.served.encode(text, special=special))
    except TallowError as error:
        raise api_error(error, param) from error
