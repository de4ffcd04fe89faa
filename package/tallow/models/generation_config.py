"""The generation settings of a model folder: `generation_config.json`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import isfinite
from pathlib import Path
from typing import Any, Self

from tallow.errors import ArgumentError, CheckpointError, TallowWarning, warn
from tallow.generation.processors import LogitsProcessor, RepetitionPenalty
from tallow.generation.rules import (
    FiniteLogits,
    ForcedToken,
    GrowingEnd,
    MinLength,
    MinNewTokens,
    NoNgramOfSource,
    NoRepeatedNgram,
    SequenceBias,
    SourceRepetitionPenalty,
    SuppressAtBeginning,
    SuppressTokens,
    no_words,
)
from tallow.models.config import CONFIG, Config, Count, end_ids, read_entries, token_ids

GENERATION = "generation_config.json"

# Entries that would change texts in transformers, with the values that change nothing. They are named in a warning.
# All other entries that are no fields below change nothing: they are about speed, outputs, or are unknown there, too.
NOT_OBEYED: Mapping[str, tuple[Any, ...]] = {
    **dict.fromkeys(("guidance_scale", "num_beam_groups", "num_return_sequences"), (1,)),
    **dict.fromkeys(("diversity_penalty", "penalty_alpha"), (0,)),
    **dict.fromkeys(("constraints", "force_words_ids", "dola_layers", "max_time", "watermarking_config"), ()),
    "token_healing": (False,),
}

# Its entries that are arguments of a Sampler, and count only with do_sample.
DRAWING = ("temperature", "top_k", "top_p", "min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff")


@dataclass(frozen=True, kw_only=True)
class GenerationConfig(Config):
    """The entries of the file that decide on texts, with the defaults and the effects of transformers.

    Attributes:
        do_sample: whether to draw tokens at random or take the likeliest; None if the file does not say.
        temperature, top_k, top_p, min_p, top_h, typical_p, epsilon_cutoff, eta_cutoff, repetition_penalty: as Sampler;
            the file has 0 for a top_k of None.
        encoder_repetition_penalty, encoder_no_repeat_ngram_size: of the source; of the prompt if there is no source.
        no_repeat_ngram_size: no sequence of that many tokens occurs twice; 0 allows all.
        sequence_bias: pairs of tokens and what is added to the logit of the last of them.
        bad_words_ids: sequences of tokens that do not occur.
        min_length, max_length: the fewest and the most tokens of a text with its prompt, or with the token that a
            decoder starts with; min_new_tokens, max_new_tokens: without, which take precedence.
        forced_bos_token_id: the token after the first one.
        forced_eos_token_id: one of these is the last token that fits.
        remove_invalid_values: NaN and infinite logits become finite.
        exponential_decay_length_penalty: the arguments of GrowingEnd.
        suppress_tokens, begin_suppress_tokens: tokens that do not occur; that do not occur first.
        num_beams, length_penalty, early_stopping: as `tallow.generation.beam_search`.
        renormalize_logits: whether beam search compares probabilities again after everything else changed them.
        stop_strings: strings that end a text.
        decoder_start_token_id: the first token of an encoder-decoder model's text; without it, `bos_token_id`.
        eos_token_id: the ids that end a text.
    """

    do_sample: bool | None = None
    temperature: float = 1.0
    top_k: int | None = 50
    top_p: float = 1.0
    min_p: float = 0.0
    top_h: float | None = None
    typical_p: float = 1.0
    epsilon_cutoff: float = 0.0
    eta_cutoff: float = 0.0
    repetition_penalty: float = 1.0
    encoder_repetition_penalty: float = 1.0
    no_repeat_ngram_size: Count = 0
    encoder_no_repeat_ngram_size: Count = 0
    sequence_bias: tuple[tuple[tuple[int, ...], float], ...] = ()
    bad_words_ids: tuple[tuple[int, ...], ...] = ()
    min_length: Count = 0
    min_new_tokens: Count | None = None
    max_length: int | None = None
    max_new_tokens: int | None = None
    forced_bos_token_id: int | None = None
    forced_eos_token_id: tuple[int, ...] = ()
    remove_invalid_values: bool = False
    exponential_decay_length_penalty: tuple[int, float] | None = None
    suppress_tokens: tuple[int, ...] = ()
    begin_suppress_tokens: tuple[int, ...] = ()
    num_beams: int = 1
    length_penalty: Any = 1.0
    early_stopping: Any = False
    renormalize_logits: bool = False
    stop_strings: tuple[str, ...] = ()
    bos_token_id: int | None = None
    decoder_start_token_id: int | None = None
    eos_token_id: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("top_p", "typical_p"):
            self.require(name, "more than 0 and at most 1", lambda p: 0 < p <= 1)
        self.require("min_p", "0 to 1", lambda p: p <= 1)
        self.require("top_h", "more than 0 and at most 1", lambda h: h is None or 0 < h <= 1)
        for name in ("epsilon_cutoff", "eta_cutoff"):
            self.require(name, "less than 1", lambda p: p < 1)
        for name in ("repetition_penalty", "encoder_repetition_penalty"):
            self.require(name, "more than 0", lambda penalty: penalty > 0)
        self.require("length_penalty", "a finite number", lambda power: type(power) in (int, float) and isfinite(power))
        self.require("early_stopping", 'True, False or "never"', lambda x: type(x) is bool or x == "never")
        self.require("bad_words_ids", "lists of token ids", _are_words)
        self.require("sequence_bias", "pairs of a list of token ids and a number", _are_biases)
        self.require("stop_strings", "strings that are not empty", _are_strings)
        self.require("exponential_decay_length_penalty", "an integer and a number", _is_decay)

    @classmethod
    def from_folder(cls, folder: Path | None) -> Self:
        """Return the settings of a model folder. Without the file they are those in `config.json`, where old versions
        of transformers stored them; without both, the defaults.

        Raises:  CheckpointError when the file is not JSON, or an entry is invalid
        Warns:   TallowWarning for entries that would change texts and are not obeyed
        """
        if folder is not None:
            if (path := folder / GENERATION).exists():
                return cls.from_entries(read_entries(path), str(path))
            if (path := folder / CONFIG).exists():
                return cls.from_entries(read_entries(path), str(path))
        return cls()

    @classmethod
    def from_entries(cls, entries: Mapping[str, Any], source: str) -> Self:  # type: ignore[override]  # never strict
        names = {field.name for field in fields(cls)}
        values = {name: value for name, value in entries.items() if name in names and value is not None}
        end_ids(values)
        if values.get("top_k") == 0:
            values["top_k"] = None
        for name in ("forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens"):
            if name in values:
                values[name] = token_ids(values[name])
        if "stop_strings" in values:
            stops = values["stop_strings"]
            values["stop_strings"] = (stops,) if isinstance(stops, str) else _tuples(stops)
        for name in ("bad_words_ids", "sequence_bias", "exponential_decay_length_penalty"):
            if name in values:
                values[name] = _tuples(values[name])
        try:
            config = cls(**values)
        except ArgumentError as error:
            raise CheckpointError(f"{source}: {error}") from error
        config._warn_of(entries, source)
        return config

    def _warn_of(self, entries: Mapping[str, Any], source: str) -> None:
        found = {n: v for n, v in entries.items() if n in NOT_OBEYED and v is not None and v not in NOT_OBEYED[n]}
        if self.do_sample and self.num_beams > 1:
            found["num_beams"] = self.num_beams  # of texts that are drawn
        if found:
            listed = ", ".join(f"{name} {value!r:.40}" for name, value in found.items())
            warn(f"{source}: entries without effect: {listed}", TallowWarning)

    def warn_of_beams(self, where: str) -> None:
        """Warn if the file asks for beams.  Args: where: what does not search with beams"""
        if self.num_beams > 1 and not self.do_sample:
            warn(f"{GENERATION}: num_beams {self.num_beams} has no effect in {where}", TallowWarning)

    @property
    def sampling(self) -> dict[str, Any]:
        """Arguments of a Sampler that chooses as transformers does: the likeliest token unless do_sample is True."""
        arguments = {name: getattr(self, name) for name in (*(DRAWING if self.do_sample else ()), "repetition_penalty")}
        return arguments if self.do_sample else arguments | {"temperature": 0.0}

    @property
    def without_sampling(self) -> Self:
        """The settings that hold whatever Sampler is used: all but its arguments."""
        return replace(self, **{name: getattr(GenerationConfig(), name) for name in (*DRAWING, "repetition_penalty")})

    def most_tokens(self, prompt_length: int) -> int | None:
        """Return the most tokens that may follow a prompt; None if the file does not say.

        Raises:  ArgumentError if the prompt is as long as `max_length`
        """
        if self.max_new_tokens is not None or self.max_length is None:
            return self.max_new_tokens
        if prompt_length >= self.max_length:
            raise ArgumentError(
                f"the prompt takes {prompt_length} tokens; {GENERATION} says max_length {self.max_length}, which "
                "counts them",
                hint="pass max_tokens",
            )
        return self.max_length - prompt_length

    def rules(
        self,
        prompt: Sequence[int],
        max_tokens: int,
        stop_ids: Collection[int],
        vocab_size: int,
        source: Sequence[int] | None = None,
    ) -> list[LogitsProcessor]:
        """Return the processors that come before a Sampler without penalties, in the order of transformers.

        Args:
            max_tokens: the most tokens that may follow the prompt.
            source: what the encoder reads; None for a model without one.

        Raises:  ArgumentError for a token outside the vocabulary
        """
        self._check_tokens(vocab_size)
        bos, decay, fewest = self.forced_bos_token_id, self.exponential_decay_length_penalty, self.min_new_tokens
        end = len(prompt) + max_tokens - 1
        first = 1 if len(prompt) == 1 and bos is not None else 0
        rules: tuple[tuple[Any, Callable[[], LogitsProcessor]], ...] = (
            (self.sequence_bias, lambda: SequenceBias(dict(self.sequence_bias))),
            (
                self.encoder_repetition_penalty != 1,
                lambda: SourceRepetitionPenalty(self.encoder_repetition_penalty, source),
            ),
            (self.repetition_penalty != 1, lambda: RepetitionPenalty(self.repetition_penalty)),
            (self.no_repeat_ngram_size, lambda: NoRepeatedNgram(self.no_repeat_ngram_size)),
            (self.encoder_no_repeat_ngram_size, lambda: NoNgramOfSource(self.encoder_no_repeat_ngram_size, source)),
            (self.bad_words_ids, lambda: no_words(self.bad_words_ids, stop_ids)),
            (self.min_length and fewest is None, lambda: MinLength(self.min_length, stop_ids)),
            (fewest, lambda: MinNewTokens(fewest or 0, stop_ids)),
            (bos is not None, lambda: ForcedToken(1, token_ids(bos))),
            (self.forced_eos_token_id, lambda: ForcedToken(end, self.forced_eos_token_id)),
            (self.remove_invalid_values, FiniteLogits),
            (decay, lambda: GrowingEnd(*(decay or (0, 1.0)), stop_ids)),
            (self.suppress_tokens, lambda: SuppressTokens(self.suppress_tokens)),
            (self.begin_suppress_tokens, lambda: SuppressAtBeginning(self.begin_suppress_tokens, first)),
        )
        return [make() for is_on, make in rules if is_on]

    def _check_tokens(self, vocab_size: int) -> None:
        sequences = [*self.bad_words_ids, *(tokens for tokens, _ in self.sequence_bias), self.forced_eos_token_id]
        sequences += [] if self.forced_bos_token_id is None else [(self.forced_bos_token_id,)]
        for token in (token for tokens in sequences for token in tokens):
            if not 0 <= token < vocab_size:
                raise ArgumentError(f"{GENERATION}: token {token} is outside the vocabulary of {vocab_size}")


def _tuples(value: Any) -> Any:
    """Return lists, and those in them, as tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _are_words(value: Any) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(word, tuple) and word and all(type(token) is int for token in word) for word in value
    )


def _are_biases(value: Any) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(pair, tuple) and len(pair) == 2 and _are_words(pair[:1]) and type(pair[1]) in (int, float)
        for pair in value
    )


def _are_strings(value: Any) -> bool:
    return isinstance(value, tuple) and all(type(text) is str and text for text in value)


def _is_decay(value: Any) -> bool:
    return value is None or (
        isinstance(value, tuple) and len(value) == 2 and type(value[0]) is int and type(value[1]) in (int, float)
    )
