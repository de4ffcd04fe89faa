"""The fields that completions and chat completions share: how many texts, how long, and how tokens are chosen."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tallow.errors import ArgumentError, TallowError
from tallow.generation import LogitBias, LogitsProcessor, Sampler
from tallow.generation.constrain import Grammar, json_object, json_schema
from tallow.serving.engine import TextEngine
from tallow.serving.http.errors import ApiError, api_error
from tallow.serving.http.fields import Fields
from tallow.serving.requests import TextRequest

MAX_CHOICES, MAX_STOPS, MAX_LOGPROBS, MAX_BIASES = 16, 16, 20, 1024
SEEDS = 1 << 63


@dataclass
class Texts:
    """The texts that a request asks for.

    Attributes:
        requests: `choices` for each prompt, prompt by prompt.
        prompt_tokens: of all prompts, each counted once.
        stream, usage: whether to send the text as it comes, and the number of tokens at its end.
    """

    requests: list[TextRequest]
    prompt_tokens: int
    stream: bool
    usage: bool


def texts_of(
    fields: Fields,
    engine: TextEngine,
    prompts: Sequence[Sequence[int]],
    *,
    default_tokens: int | None,
    param: str,
    top_logprobs: int | None,
) -> Texts:
    """Return the texts that the fields describe.

    Args:
        default_tokens: the most tokens of a text if the request does not say; None for as many as fit.
        param: the field of the prompts.

    Raises:  ApiError
    """
    choices = fields.integer("n", 1, MAX_CHOICES) or 1
    requested = fields.integer("max_completion_tokens", 1, SEEDS) or fields.integer("max_tokens", 1, SEEDS)
    seed = fields.integer("seed", -SEEDS, SEEDS)
    stop = stop_strings(fields)
    make_processors = processors_of(fields, engine)
    requests = []
    for prompt in prompts:
        try:
            count = engine.max_tokens(prompt, requested or default_tokens)
        except ArgumentError as error:
            too_long = len(prompt) > engine.length
            raise ApiError(str(error), param, code="context_length_exceeded" if too_long else None) from error
        for choice in range(choices):
            number = secrets.randbits(32) if seed is None else seed + choice
            sample = sampler(fields, engine, number)
            requests.append(TextRequest(prompt, count, sample, make_processors(), stop, top_logprobs))
    options = fields.inner("stream_options")
    return Texts(
        requests,
        sum(map(len, prompts)),
        fields.flag("stream"),
        options is not None and options.flag("include_usage"),
    )


def sampler(fields: Fields, engine: TextEngine, seed: int) -> Sampler:
    """Return the sampler that the fields describe; the model's own settings are the defaults."""
    options: dict[str, Any] = dict(engine.served.sampling)
    limits: dict[str, tuple[float, float]] = {"temperature": (0, 2), "top_p": (0, 1), "min_p": (0, 1)}
    limits |= {"presence_penalty": (-2, 2), "frequency_penalty": (-2, 2), "repetition_penalty": (0.01, 100)}
    for name, (least, most) in limits.items():
        if (value := fields.number(name, least, most)) is not None:
            options[name] = value
    if (top_k := fields.integer("top_k", -1, 1 << 31)) is not None:
        options["top_k"] = top_k if top_k > 0 else None
    if options.get("top_p") == 0:  # only the likeliest token, as OpenAI's API has it
        options |= {"top_p": 1.0, "temperature": 0.0}
    return Sampler(**options, seed=seed)


def stop_strings(fields: Fields) -> list[str]:
    """Return the field `stop`: a string or a list of them."""
    stop = fields.get("stop")
    stop = [stop] if isinstance(stop, str) else fields.items("stop", MAX_STOPS)
    if not all(isinstance(text, str) and text for text in stop):
        raise fields.wrong("stop", "strings that are not empty")
    return stop


def processors_of(fields: Fields, engine: TextEngine) -> Callable[[], list[LogitsProcessor]]:
    """Return a function that makes the processors of one text, by `logit_bias` and `response_format`."""
    shared: list[LogitsProcessor] = []
    if (bias := fields.inner("logit_bias")) is not None:
        shared.append(logit_bias(fields.get("logit_bias"), bias, engine.served.model.vocab_size))
    grammar = grammar_of(fields)
    if grammar is None:
        return lambda: list(shared)
    try:
        engine.served.constraint(grammar)  # errors come before the text begins
    except TallowError as error:
        raise api_error(error, "response_format") from error
    return lambda: [*shared, engine.served.constraint(grammar)]


def logit_bias(values: dict[str, Any], fields: Fields, vocab_size: int) -> LogitBias:
    """Return the processor of the field `logit_bias`, {"token id": number from -100 to 100}."""
    biases = {}
    if len(values) > MAX_BIASES:
        raise ApiError(f"logit_bias: {len(values)} tokens; the limit is {MAX_BIASES}", "logit_bias")
    for key in values:
        if not (key.isascii() and key.isdigit() and len(key) < 10 and int(key) < vocab_size):
            raise ApiError(f"logit_bias: {key!r:.40} is not the id of a token", "logit_bias")
        biases[int(key)] = fields.number(key, -100, 100) or 0.0
    return LogitBias(biases)


def grammar_of(fields: Fields) -> Grammar | None:
    """Return the texts that `response_format` allows, or None for all."""
    form = fields.inner("response_format")
    kind = "text" if form is None else form.choice("type", ("text", "json_object", "json_schema"))
    if form is None or kind == "text":
        return None
    if kind == "json_object":
        return _json_object()
    inner = form.inner("json_schema")
    if inner is None or inner.inner("schema") is None:
        raise form.wrong("json_schema", 'an object with "name" and "schema"')
    try:
        return _json_schema(json.dumps(inner.get("schema")))
    except TallowError as error:
        raise api_error(error, inner.name("schema")) from error


@lru_cache(maxsize=1)
def _json_object() -> Grammar:
    return json_object()


@lru_cache(maxsize=32)
def _json_schema(text: str) -> Grammar:
    return json_schema(text)
