"""The fields that completions and chat completions share: how many texts, how long, and how tokens are chosen."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tallow.errors import ArgumentError
from tallow.generation import Mirostat, Sample, Sampler
from tallow.serving.engine import TextEngine
from tallow.serving.http.errors import TOO_LONG, ApiError
from tallow.serving.http.fields import MAX_INTEGER, Fields
from tallow.serving.http.grammars import Constrained
from tallow.serving.http.rules import draft_of
from tallow.serving.requests import TextRequest

MAX_CHOICES, MAX_LOGPROBS = 16, 20
PRIORITIES = 1 << 31
MAX_LOGITS = 1 << 27
MAX_ENTRIES = 1 << 21  # log-probabilities of prompts in an answer


@dataclass
class Texts:
    """The texts that a request asks for.

    Attributes:
        requests: `choices` for each prompt, prompt by prompt.
        choices: how many texts to generate for each prompt.
        prompt_tokens: of all prompts, each counted once.
        stream, usage: whether to send the text as it comes, and the number of tokens at its end.
        each_usage: whether to send the number of tokens with each part.
    """

    requests: list[TextRequest]
    choices: int
    prompt_tokens: int
    stream: bool
    usage: bool
    each_usage: bool


def texts_of(
    fields: Fields,
    engine: TextEngine,
    prompts: Sequence[Sequence[int]],
    *,
    lengths: Sequence[str] = ("max_completion_tokens", "max_tokens"),
    choices: int = 1,
    default_tokens: int | None,
    param: str,
    top_logprobs: int | None = None,
    prompt_logprobs: int | None = None,
    grammar: Constrained | None,
) -> Texts:
    """Return the texts that the fields describe.

    Args:
        lengths: the fields of the most tokens of a text; the first that the request has counts.
        choices: how many texts to generate for each prompt.
        default_tokens: the most tokens of a text if the request does not say; None for the `max_new_tokens` of the
            model's `generation_config.json`, or else as many as fit.
        param: the field of the prompts.
        top_logprobs, prompt_logprobs: how many of the likeliest tokens to return with each token of the texts, and of
            the prompts; None for no log-probabilities.
        grammar: what each text must be one of.

    Raises:  ApiError
    """
    requested = _length(fields, lengths)
    seed = fields.integer("seed", -MAX_INTEGER)
    if seed == -1:  # any seed, as in vLLM and llama.cpp
        seed = None
    draft = draft_of(fields, engine, grammar)
    draft.request.top_logprobs, draft.request.prompt_logprobs = top_logprobs, prompt_logprobs
    draft.request.priority = _priority(fields, engine)
    if requested is None:
        requested = default_tokens or engine.served.model.generation_config.max_new_tokens
    if prompt_logprobs is not None:
        _require_listable(sum(map(len, prompts)) * choices * (1 + prompt_logprobs), param)
    requests = []
    for prompt in prompts:
        if prompt_logprobs is not None:
            require_scorable(engine, prompt, param)
        whole = draft.with_prompt(prompt, checked_count(engine, prompt, requested, param))
        for choice in range(choices):
            number = secrets.randbits(32) if seed is None else seed + choice
            requests.append(replace(whole, sample=sampler(fields, engine.served.sampling, number)))
    options = fields.inner("stream_options") or Fields({})
    return Texts(
        requests,
        choices,
        sum(map(len, prompts)),
        fields.flag("stream"),
        options.flag("include_usage"),
        options.flag("continuous_usage_stats"),
    )


def _priority(fields: Fields, engine: TextEngine) -> int:
    """Return the field `priority`.  Raises: ApiError, as vLLM, for one that would have no effect"""
    priority = fields.integer("priority", -PRIORITIES, PRIORITIES) or 0
    if priority and not engine.by_priority:
        raise ApiError("priority: clients take turns here; start the server with --priority to obey it", "priority")
    return priority


def _length(fields: Fields, names: Sequence[str]) -> int | None:
    """Return the most tokens by the first of some fields that the request has, and by llama.cpp's `n_predict`."""
    counts = [fields.integer(name, 0) for name in names]
    predicted = fields.integer("n_predict", -1)
    counts.append(None if predicted == -1 else predicted)
    return next((count for count in counts if count is not None), None)


def prompt_logprobs(fields: Fields) -> int | None:
    """Return how many of the likeliest tokens to return with each token of the prompt, vLLM's field.

    Raises:  ApiError
    """
    top = fields.integer("prompt_logprobs", 0, MAX_LOGPROBS)
    if top is not None and fields.flag("stream"):
        raise ApiError(
            "prompt_logprobs: a stream has none; leave out stream, or use echo and logprobs", "prompt_logprobs"
        )
    return top


def require_scorable(engine: TextEngine, prompt: Sequence[int], param: str) -> None:
    """Raise ApiError for a prompt whose logits take too much memory, of a model that reads it as a whole."""
    model = engine.served.model
    if model.prefill_chunk is None and len(prompt) * model.vocab_size > MAX_LOGITS:
        most = MAX_LOGITS // model.vocab_size
        raise ApiError(f"{param}: {len(prompt)} tokens; log-probabilities of a prompt are limited to {most}", param)


def _require_listable(entries: int, param: str) -> None:
    """Raise ApiError for prompts whose log-probabilities are too many: an entry takes about 500 bytes in an answer."""
    if entries > MAX_ENTRIES:
        raise ApiError(f"{param}: {entries} log-probabilities of prompts; the limit is {MAX_ENTRIES}", param)


def choices_of(fields: Fields) -> int:
    """Return how many texts to generate for each prompt."""
    return fields.integer("n", 1, MAX_CHOICES) or 1


def checked_count(engine: TextEngine, prompt: Sequence[int], requested: int | None, param: str) -> int:
    """Return how many tokens may follow a prompt, of the field `param`.  Raises: ApiError"""
    try:
        return engine.max_tokens(prompt, requested)
    except ArgumentError as error:
        raise ApiError(str(error), param, code=TOO_LONG if len(prompt) > engine.length else None) from error


def sampler(fields: Fields, defaults: Mapping[str, Any], seed: int) -> Sample:
    """Return the sampler that the fields describe.

    Args:  defaults: arguments of a Sampler for missing fields, such as the model's own settings
    """
    options = dict(defaults)
    limits: dict[str, tuple[float, float]] = {"temperature": (0, 2), "top_p": (0, 1), "min_p": (0, 1)}
    limits |= {"typical_p": (1e-6, 1), "epsilon_cutoff": (0, 0.999), "eta_cutoff": (0, 0.999)}
    limits |= {"xtc_probability": (0, 1), "xtc_threshold": (0, 1)}
    limits |= {"presence_penalty": (-2, 2), "frequency_penalty": (-2, 2), "repetition_penalty": (0.01, 100)}
    for name, (least, most) in limits.items():
        if (value := fields.number(name, least, most)) is not None:
            options[name] = value
    if (top_k := fields.integer("top_k", -1, 1 << 31)) is not None:
        options["top_k"] = top_k if top_k > 0 else None
    if (sigmas := fields.number("top_n_sigma", -1, 1000)) is not None:
        options["top_n_sigma"] = sigmas if sigmas > 0 else None
    if options.get("top_p") == 0:  # only the likeliest token, as OpenAI's API has it
        options |= {"top_p": 1.0, "temperature": 0.0}
    made = Sampler(**options, seed=seed)
    tau, eta = fields.number("mirostat_tau", 0, 100), fields.number("mirostat_eta", 0, 1)
    version = fields.integer("mirostat", 0, 2)
    if version == 1:
        raise ApiError("mirostat: 1 is not supported; pass 2, or 0 for none", "mirostat")
    if not version:
        return made
    return Mirostat(made, 5.0 if tau is None else tau, 0.1 if eta is None else eta)
