"""The fields that say which tokens a text may have, and where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tallow.errors import TallowError
from tallow.generation import DryPenalty, LogitBias, LogitsProcessor, RepetitionPenalty
from tallow.generation.rules import OfLastTokens, SuppressTokens
from tallow.serving.engine import TextEngine
from tallow.serving.http.errors import ApiError, api_error
from tallow.serving.http.fields import Fields, as_integer
from tallow.serving.http.grammars import Constrained
from tallow.serving.requests import TextRequest
from tallow.serving.text_model import TextModel

MAX_STOPS, MAX_BIASES, MAX_IDS, MAX_WORDS, MAX_WORD = 16, 1024, 1024, 256, 256
MAX_NGRAM = 64
MAX_BREAKERS, MAX_BREAKER = 32, 32
BREAKERS = ("\n", ":", '"', "*")  # as in llama.cpp
MAX_SALT = 1024  # as in vLLM
LAST = 64  # tokens for `repeat_penalty`, as in llama.cpp


@dataclass
class Draft:
    """A request that lacks a prompt: it has what the fields say about its tokens and its end.

    Args:
        served: the model.
        request: with an empty prompt.
        entries: of the model's `generation_config.json` that the fields replace.
    """

    served: TextModel
    request: TextRequest
    entries: dict[str, Any]

    def with_prompt(self, prompt: Sequence[int], max_tokens: int) -> TextRequest:
        """Return the request with a prompt, and the most tokens that may follow it."""
        rules = self.served.rules(prompt, max_tokens, self.request.stop_ids, **self.entries)
        return replace(
            self.request, tokens=prompt, max_tokens=max_tokens, processors=[*rules, *self.request.processors]
        )


def draft_of(fields: Fields, engine: TextEngine, grammar: Constrained | None) -> Draft:
    """Return a request that lacks a prompt.

    Args:    grammar: what the text must be one of
    Raises:  ApiError
    """
    served = engine.served
    config = served.model.generation_config
    least = max(fields.integer(name, 0, engine.length) or 0 for name in ("min_tokens", "min_new_tokens"))
    entries: dict[str, Any] = {"min_new_tokens": least} if least else {}
    if (size := fields.integer("no_repeat_ngram_size", 0, MAX_NGRAM)) is not None:
        entries["no_repeat_ngram_size"] = size
    if words := fields.texts("bad_words", MAX_WORDS) if fields.get("bad_words") else []:
        entries["bad_words_ids"] = (*config.bad_words_ids, *_tokens_of(words, served))
    processors = [*_changed(fields, served), *_biased(fields, served.model.vocab_size)]
    if any([fields.flag("ignore_eos"), fields.flag("ignore_eos_token")]):
        if grammar is not None:
            raise ApiError(f"ignore_eos: a text by {grammar.param} must be able to end", "ignore_eos")
        processors.append(SuppressTokens(served.stop_ids))
    if grammar is not None:
        processors.append(grammar)
    request = TextRequest(
        (),
        0,
        processors=processors,
        stop=[*stop_strings(fields), *config.stop_strings],
        stop_ids=served.stop_ids | set(fields.ids("stop_token_ids", MAX_IDS, served.model.vocab_size)),
        keep_stop=any([fields.flag("include_stop_str_in_output"), fields.flag("no_stop_trim")]),
        min_tokens=least,
        show_special=not fields.flag("skip_special_tokens", True),
        salt=_salt(fields),
    )
    return Draft(served, request, entries)


def _salt(fields: Fields) -> str:
    """Return what keeps a prompt apart from those of others: vLLM's `cache_salt`, and SGLang's `extra_key`."""
    given = {name: fields.text(name) for name in ("cache_salt", "extra_key")}
    for name, text in given.items():
        if text is not None and not 1 <= len(text) <= MAX_SALT:
            raise fields.wrong(name, f"a string of 1 to {MAX_SALT} characters")
    return repr(given) if any(given.values()) else ""


def stop_strings(fields: Fields) -> list[str]:
    """Return the field `stop`: a string or a list of them."""
    stop = fields.get("stop")
    stop = [stop] if isinstance(stop, str) else fields.items("stop", MAX_STOPS)
    if not all(isinstance(text, str) and text for text in stop):
        raise fields.wrong("stop", "strings that are not empty")
    return stop


def _changed(fields: Fields, served: TextModel) -> list[LogitsProcessor]:
    """Return the processors that make tokens more or less likely."""
    processors: list[LogitsProcessor] = []
    last = fields.integer("repeat_last_n", -1, 1 << 31)
    penalty = fields.number("repeat_penalty", 0.01, 100)
    if penalty is not None and last != 0:
        by_all = RepetitionPenalty(penalty)
        processors.append(by_all if last == -1 else OfLastTokens(by_all, LAST if last is None else last))
    processors.extend(_dry(fields, served))
    return processors


def _dry(fields: Fields, served: TextModel) -> list[LogitsProcessor]:
    """Return the penalty for repetitions, by llama.cpp's fields."""
    multiplier, base = fields.number("dry_multiplier", 0, 100), fields.number("dry_base", 1, 100)
    least, last = fields.integer("dry_allowed_length", 1, 1 << 20), fields.integer("dry_penalty_last_n", -1, 1 << 31)
    given = fields.get("dry_sequence_breakers")
    breakers = BREAKERS if given is None else fields.texts("dry_sequence_breakers", MAX_BREAKERS)
    if any(not 0 < len(each) <= MAX_BREAKER for each in breakers):
        raise fields.wrong("dry_sequence_breakers", f"strings of 1 to {MAX_BREAKER} characters")
    if not multiplier:
        return []
    return [
        DryPenalty(
            multiplier,
            1.75 if base is None else base,
            2 if least is None else least,
            -1 if last is None else last,
            served.tokens_with(tuple(breakers)),
        )
    ]


def _biased(fields: Fields, vocab_size: int) -> list[LogitsProcessor]:
    """Return the processors of `logit_bias` and `allowed_token_ids`."""
    processors: list[LogitsProcessor] = []
    if (biases := _biases(fields, vocab_size)) is not None:
        processors.append(LogitBias(biases))
    if allowed := fields.ids("allowed_token_ids", MAX_IDS, vocab_size):
        others: Any = np.setdiff1d(np.arange(vocab_size), allowed)
        processors.append(SuppressTokens(others))
    return processors


def _tokens_of(words: list[str], served: TextModel) -> set[tuple[int, ...]]:
    """Return the tokens of words, at the beginning of a text and after a space.  Raises: ApiError"""
    if longest := max(words, key=len)[MAX_WORD:]:
        raise ApiError(
            f"bad_words: a word has {MAX_WORD + len(longest)} characters; the limit is {MAX_WORD}", "bad_words"
        )
    try:
        ids = [served.encode(space + word.lstrip(), special=False) for word in words for space in ("", " ")]
    except TallowError as error:
        raise api_error(error, "bad_words") from error
    return {tuple(each) for each in ids if each}


def _biases(fields: Fields, vocab_size: int) -> dict[int, float] | None:
    """Return the field `logit_bias`: {"token id": number from -100 to 100}, or llama.cpp's [[token id, number], ...],
    in which false rules a token out.  Raises: ApiError
    """
    value = fields.get("logit_bias")
    if isinstance(value, list):
        pairs = [pair for pair in value if isinstance(pair, list) and len(pair) == 2]
        if len(pairs) < len(value):
            raise fields.wrong("logit_bias", "an object, or a list of pairs of a token's id and a number")
        entries = Fields(
            {str(as_integer(token)): -100 if bias is False else bias for token, bias in pairs}, "logit_bias."
        )
    elif value is None:
        return None
    else:
        entries = fields.inner("logit_bias") or Fields({})
    if len(entries.values) > MAX_BIASES:
        raise ApiError(f"logit_bias: {len(entries.values)} tokens; the limit is {MAX_BIASES}", "logit_bias")
    biases = {}
    for key in entries.values:
        if not (key.isascii() and key.isdigit() and len(key) < 10 and int(key) < vocab_size):
            raise ApiError(f"logit_bias: {key!r:.40} is not the id of a token", "logit_bias")
        biases[int(key)] = entries.number(key, -100, 100) or 0.0
    return biases
