"""The API of text-generation-inference: `/generate` and `/generate_stream`."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tallow.generation.sequence import Choice
from tallow.serving.engine import TextEngine
from tallow.serving.http.clients import client_of
from tallow.serving.http.completions import Cut, encoded
from tallow.serving.http.errors import ApiError
from tallow.serving.http.fields import MAX_INTEGER, Fields
from tallow.serving.http.grammars import parameter_grammar, read_grammars
from tallow.serving.http.large_json import large_json
from tallow.serving.http.rules import MAX_STOPS, draft_of
from tallow.serving.http.running import Done, Run
from tallow.serving.http.sampling import MAX_LOGPROBS, checked_count, require_scorable, sampler
from tallow.serving.http.streaming import EventStream
from tallow.serving.requests import LENGTH, Update

DEFAULT_TOKENS = 100  # as in that API
SAMPLING = ("temperature", "top_k", "top_p", "typical_p")


class Generation:
    """A request for a text.

    Args:    stream: how to answer; None if the request says so, to which a list answers as on that server's root
    Raises:  ApiError for invalid fields
    """

    def __init__(self, fields: Fields, engine: TextEngine, *, stream: bool | None) -> None:
        self.engine = engine
        self._is_list = stream is None
        self._stream = fields.flag("stream") if stream is None else stream
        self.prompt = fields.required_text("inputs")
        parameters = fields.inner("parameters") or Fields({}, "parameters.")
        tokens = encoded(engine, self.prompt, "inputs", Cut(parameters.integer("truncate", 1, MAX_INTEGER)))
        requested = parameters.integer("max_new_tokens", 1) or DEFAULT_TOKENS
        seed = parameters.integer("seed", 0)
        self.seed = secrets.randbits(32) if seed is None else seed
        is_random = parameters.flag("do_sample") or any(parameters.get(name) is not None for name in SAMPLING)
        self.is_random = is_random
        top = parameters.integer("top_n_tokens", 0, MAX_LOGPROBS)
        self.top = top or 0
        self.has_details = parameters.flag("details")
        self._has_prefill = parameters.flag("decoder_input_details")
        if self._has_prefill and self._stream:
            raise ApiError("decoder_input_details: a stream has none", "decoder_input_details")
        self.beginning = self.prompt if parameters.flag("return_full_text") else ""
        draft = draft_of(parameters, engine, parameter_grammar(parameters.inner("grammar")))
        self.request = replace(
            draft.with_prompt(tokens, checked_count(engine, tokens, requested, "inputs")),
            sample=sampler(parameters, {} if is_random else {"temperature": 0.0}, self.seed),
            top_logprobs=self.top,
            prompt_logprobs=0 if self._has_prefill else None,
        )
        if self._has_prefill:
            require_scorable(engine, tokens, "inputs")

    async def respond(self, request: Request) -> Response:
        """Generate the text.  Raises: ApiError; ClientGone"""
        await read_grammars(request, self.engine, [self.request])
        if self._stream:
            run = Run(self.engine, [self.request], client_of(request), stream=True)
            return EventStream(self._events(run), run.cancel, path=request.url.path, done=None)
        run = Run(self.engine, [self.request], client_of(request), stream=False)
        (text,) = await run.finish(request)
        if self.has_details:
            return await large_json(request, lambda: self._whole(text))
        return JSONResponse(self._whole(text))

    def _whole(self, text: Done) -> dict[str, Any] | list[dict[str, Any]]:
        answer: dict[str, Any] = {"generated_text": self.beginning + text.text}
        if self.has_details:
            tokens = [self._token(choice.token, choice.logprob) for choice in text.choices]
            answer["details"] = self._details(text) | {"prefill": self._prefill(text), "tokens": tokens}
            if self.top:
                answer["details"]["top_tokens"] = [self._tops(choice) for choice in text.choices]
        return [answer] if self._is_list else answer

    async def _events(self, run: Run) -> AsyncGenerator[dict[str, Any], None]:
        updates = run.updates()
        number = 0
        try:
            async for _, update in updates:
                for token, tops in self._tokens_of(update):
                    number += 1
                    is_last = update.finish is not None
                    (text,) = run.texts
                    yield {
                        "index": number,
                        "token": token,
                        **({"top_tokens": tops} if self.top else {}),
                        "generated_text": self.beginning + text.text if is_last else None,
                        "details": self._details(text) | {"input_length": len(self.request.tokens)}
                        if is_last
                        else None,
                    }
        finally:
            await updates.aclose()

    def _tokens_of(self, update: Update) -> Sequence[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Return the tokens of an update; its text is what they add to the whole text."""
        if update.choices:
            (choice,) = update.choices
            return [(self._token(choice.token, choice.logprob) | {"text": update.text}, self._tops(choice))]
        if update.finish is None:
            return []
        # The end: a stop token, which has no text, with the text that was held back.
        end = min(self.engine.served.stop_ids, default=0)
        return [({"id": end, "text": update.text, "logprob": 0.0, "special": not update.text}, [])]

    def _token(self, token: int, logprob: float) -> dict[str, Any]:
        text, _ = self.engine.served.token_text(token)
        return {"id": token, "text": text, "logprob": max(logprob, -9999.0), "special": False}

    def _tops(self, choice: Choice) -> list[dict[str, Any]]:
        return [self._token(*top) for top in choice.top_logprobs]

    def _prefill(self, text: Done) -> list[dict[str, Any]]:
        """Return the tokens of the prompt, of which the first has no log-probability."""
        served = self.engine.served
        return [
            {"id": token, "text": served.token_text(token)[0], "logprob": None if entry is None else entry[0].logprob}
            for token, entry in zip(self.request.tokens, text.prompt, strict=False)
        ]

    def _details(self, text: Done) -> dict[str, Any]:
        reason = "length" if text.finish == LENGTH else "stop_sequence" if text.by_string else "eos_token"
        return {
            "finish_reason": reason,
            "generated_tokens": text.tokens,
            "seed": self.seed if self.is_random else None,
        }


def describe(engine: TextEngine, version: str) -> dict[str, Any]:
    """Return what `/info` says of a model."""
    parameter = next(iter(engine.served.model.parameters()), None)
    return {
        "model_id": engine.served.name,
        "model_sha": None,
        "model_dtype": None if parameter is None else str(parameter.dtype).rpartition(".")[2],
        "model_pipeline_tag": "text-generation",
        "max_concurrent_requests": engine.line.limit + engine.slots,
        "max_best_of": 1,
        "max_stop_sequences": MAX_STOPS,
        "max_input_tokens": engine.length,
        "max_total_tokens": engine.length,
        "max_client_batch_size": 1,
        "router": "tallow",
        "version": version,
    }
