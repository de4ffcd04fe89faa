"""The fields that completions and chat completions share: how many texts, how long, and how tokens are chosen."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tallow.errors import ArgumentError
from tallow.generation import LogitBias, LogitsProcessor, Sampler
from tallow.serving.engine import TextEngine
from tallow.serving.http.errors import TOO_LONG, ApiError
from tallow.serving.http.fields import MAX_INTEGER, Fields
from tallow.serving.http.grammars import Constrained
from tallow.serving.requests import TextRequest

MAX_CHOICES, MAX_STOPS, MAX_LOGPROBS, MAX_BIASES = 16, 16, 20, 1024
PRIORITIES = 1 << 31


@dataclass
class Texts:
    """The texts that a request asks for.

    Attributes:
        requests: `choices` for each prompt, prompt by prompt.
        choices: how many texts to generate for each prompt.
        prompt_tokens: of all prompts, each counted once.
        stream, usage: whether to send the text as it comes, and the number of tokens at its end.
    """

    requests: list[TextRequest]
    choices: int
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
    grammar: Constrained | None,
) -> Texts:
    """Return the texts that the fields describe.

    Args:
        default_tokens: the most tokens of a text if the request does not say; None for as many as fit.
        param: the field of the prompts.
        grammar: what each text must be one of.

    Raises:  ApiError
    """
    choices = fields.integer("n", 1, MAX_CHOICES) or 1
    requested = fields.integer("max_completion_tokens", 1) or fields.integer("max_tokens", 1)
    seed = fields.integer("seed", -MAX_INTEGER)
    stop = stop_strings(fields)
    priority = fields.integer("priority", -PRIORITIES, PRIORITIES) or 0
    processors = processors_of(fields, engine, grammar)
    requests = []
    for prompt in prompts:
        count = checked_count(engine, prompt, requested or default_tokens, param)
        for choice in range(choices):
            number = secrets.randbits(32) if seed is None else seed + choice
            sample = sampler(fields, engine.served.sampling, number)
            requests.append(TextRequest(prompt, count, sample, processors, stop, top_logprobs, priority))
    options = fields.inner("stream_options")
    return Texts(
        requests,
        choices,
        sum(map(len, prompts)),
        fields.flag("stream"),
        options is not None and options.flag("include_usage"),
    )


def checked_count(engine: TextEngine, prompt: Sequence[int], requested: int | None, param: str) -> int:
    """Return how many tokens may follow a prompt, of the field `param`.  Raises: ApiError"""
    try:
        return engine.max_tokens(prompt, requested)
    except ArgumentError as error:
        raise ApiError(str(error), param, code=TOO_LONG if len(prompt) > engine.length else None) from error


def sampler(fields: Fields, defaults: Mapping[str, Any], seed: int) -> Sampler:
    """Return the sampler that the fields describe.

    Args:  defaults: arguments of a Sampler for missing fields, such as the model's own settings
    """
    options = dict(defaults)
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


def processors_of(fields: Fields, engine: TextEngine, grammar: Constrained | None) -> list[LogitsProcessor]:
    """Return the processors of a request's texts, by `logit_bias` and a grammar; the texts share them."""
    processors: list[LogitsProcessor] = []
    if (bias := fields.inner("logit_bias")) is not None:
        processors.append(logit_bias(fields.get("logit_bias"), bias, engine.served.model.vocab_size))
    return processors if grammar is None else [*processors, grammar.processor(engine.served)]


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
