"""Logits processors under transformers' names: rules about tokens. Those that shape a distribution are in `warpers`.

A processor takes the ids so far (B, T) and scores (B, V), and returns new scores. Those of this package change each row
by itself, and `generate` hands them arrays; the values are computed by `tallow.generation.rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt

from tallow import devices, dtypes
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError, ShapeError
from tallow.generation.processors import Logits, RepetitionPenalty, require, require_count
from tallow.generation.processors import LogitsProcessor as Rule
from tallow.generation.rules import (
    FiniteLogits,
    ForcedToken,
    GrowingEnd,
    MinLength,
    NoNgramOfSource,
    NoRepeatedNgram,
    Renormalized,
    SequenceBias,
    SourceRepetitionPenalty,
    SuppressAtBeginning,
    SuppressTokens,
    no_words,
)
from tallow.lazy_names import names_of
from tallow.transformers.generation import HOMES

Rows = Sequence[Sequence[int]]


class LogitsProcessor:
    """The base of processors; a subclass of one's own computes Tensors."""

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return new scores.

        Shapes:  ids (B, T), scores (B, V) -> (B, V)
        """
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")


class LogitsProcessorList(list[Any]):
    """Processors that are applied in order."""

    def __call__(self, input_ids: Tensor, scores: Tensor, **kwargs: Any) -> Tensor:
        """Return the scores after all processors.

        Args:    kwargs: further arguments of the processors that have any
        Raises:  ArgumentError if one of those is missing
        """
        for processor in self:
            further = list(signature(processor.__call__).parameters)[2:]
            if missing := [name for name in further if name not in kwargs]:
                raise ArgumentError(f"{type(processor).__name__} takes {', '.join(missing)}", hint="pass them by name")
            scores = processor(input_ids, scores, **(kwargs if further else {}))
        return scores


class RowProcessor(LogitsProcessor):
    """The base of processors that change each row by itself."""

    def change(self, scores_V: Logits, tokens: Sequence[int], row: int, rows: int) -> Logits:
        """Return the new scores of a row, one of `rows`."""
        raise NotImplementedError

    def change_all(self, texts: Rows, scores_BV: Logits) -> Logits:
        """Return the new scores of all rows."""
        count = len(texts)
        return np.stack([self.change(scores_BV[row], text, row, count) for row, text in enumerate(texts)])

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        scores_BV = devices.to_host(dtypes.widen(scores.detach().array))
        if scores_BV.ndim != 2 or len(scores_BV) != input_ids.shape[0]:
            raise ShapeError(f"scores {tuple(scores.shape)} for ids {tuple(input_ids.shape)}; expected (B, V), (B, T)")
        changed_BV = self.change_all(input_ids.tolist(), scores_BV)
        return wrap(devices.move(dtypes.cast(changed_BV, scores.dtype), scores.device))


class RuleProcessor(RowProcessor):
    """A processor that is a rule of `tallow.generation`."""

    rule: Rule

    def change(self, scores_V: Logits, tokens: Sequence[int], row: int, rows: int) -> Logits:
        return self.rule(scores_V, tokens)


def process(processors: Iterable[Any], texts: Rows, scores_BV: Logits) -> Logits:
    """Return scores after processors in order: those of this package get arrays, others Tensors."""
    ids = None
    for processor in processors:
        if isinstance(processor, RowProcessor):
            scores_BV = processor.change_all(texts, scores_BV)
            continue
        ids = wrap(np.array([list(text) for text in texts], np.int64)) if ids is None else ids
        scores_BV = devices.to_host(dtypes.widen(processor(ids, wrap(scores_BV.copy())).detach().array))
    return scores_BV


def ids_of(tokens: Any, name: str = "eos_token_id") -> list[int]:
    """Return the ids of an integer, a list or a Tensor.  Raises: ArgumentError for others and negative ones"""
    ids = np.atleast_1d(np.asarray(tokens.tolist() if hasattr(tokens, "tolist") else tokens))
    require(ids.dtype.kind in "iu" and bool((ids >= 0).all()), name, tokens, "ids of tokens, 0 or more")
    return [int(token) for token in ids]


class MinLengthLogitsProcessor(RuleProcessor):
    """Rules out the end until a text, with its prompt, has `min_length` tokens."""

    def __init__(self, min_length: int, eos_token_id: Any, device: Any = "cpu") -> None:
        require_count("min_length", min_length, 0)
        self.min_length = min_length
        self.eos_token_id = ids_of(eos_token_id)
        self.rule = MinLength(min_length, self.eos_token_id)


class MinNewTokensLengthLogitsProcessor(RuleProcessor):
    """Rules out the end until `min_new_tokens` tokens follow the prompt, which has `prompt_length_to_skip`."""

    def __init__(self, prompt_length_to_skip: int, min_new_tokens: int, eos_token_id: Any, device: Any = "cpu") -> None:
        require_count("prompt_length_to_skip", prompt_length_to_skip, 0)
        require_count("min_new_tokens", min_new_tokens, 0)
        self.prompt_length_to_skip = prompt_length_to_skip
        self.min_new_tokens = min_new_tokens
        self.eos_token_id = ids_of(eos_token_id)
        self.rule = MinLength(prompt_length_to_skip + min_new_tokens, self.eos_token_id)


class RepetitionPenaltyLogitsProcessor(RowProcessor):
    """Makes tokens less likely that the text has; see `tallow.generation.RepetitionPenalty`.

    Args:    prompt_ignore_length: how many tokens at the beginning do not count, in all texts or for each prompt
    """

    def __init__(self, penalty: float, prompt_ignore_length: Any = None) -> None:
        self.penalty = penalty
        self.prompt_ignore_length = prompt_ignore_length
        self._rule = RepetitionPenalty(penalty)
        ignored = prompt_ignore_length
        self._ignored = ignored.tolist() if hasattr(ignored, "tolist") else ignored
        if isinstance(self._ignored, int):
            require_count("prompt_ignore_length", self._ignored, 0)

    def change(self, scores_V: Logits, tokens: Sequence[int], row: int, rows: int) -> Logits:
        first = self._ignored
        if isinstance(first, list):
            first = first[row * len(first) // rows]  # the rows of a prompt are adjacent
        seen = tokens[first:] if first else tokens
        return self._rule(scores_V, [token for token in seen if token < len(scores_V)])


class _OfSources(RowProcessor):
    """The base of processors that have a rule for each source; the rows of a source are adjacent."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules

    def change(self, scores_V: Logits, tokens: Sequence[int], row: int, rows: int) -> Logits:
        return self._rules[row * len(self._rules) // rows](scores_V, tokens)


class EncoderRepetitionPenaltyLogitsProcessor(_OfSources):
    """Makes the tokens of the source likelier, or those of the prompt."""

    def __init__(self, penalty: float, encoder_input_ids: Tensor) -> None:
        super().__init__([SourceRepetitionPenalty(penalty, source) for source in encoder_input_ids.tolist()])
        self.penalty = 1 / penalty
        self.encoder_input_ids = encoder_input_ids


class EncoderNoRepeatNGramLogitsProcessor(_OfSources):
    """Rules out sequences of `encoder_ngram_size` tokens that the source has, or the prompt."""

    def __init__(self, encoder_ngram_size: int, encoder_input_ids: Tensor) -> None:
        sources = encoder_input_ids[None] if encoder_input_ids.ndim == 1 else encoder_input_ids
        super().__init__([NoNgramOfSource(encoder_ngram_size, source) for source in sources.tolist()])
        self.ngram_size = encoder_ngram_size
        self.batch_size = sources.shape[0]


class NoRepeatNGramLogitsProcessor(RuleProcessor):
    """Rules out sequences of `ngram_size` tokens that the text already has."""

    def __init__(self, ngram_size: int) -> None:
        self.rule = NoRepeatedNgram(ngram_size)
        self.ngram_size = ngram_size


class SequenceBiasLogitsProcessor(RuleProcessor):
    """Adds a number to the score of the last token of each sequence, where the text ends with the others.

    Args:    sequence_bias: numbers by tuples of ids, or pairs of a list of ids and a number
    Raises:  ArgumentError for no sequences, others than these, and at a call for ids outside the vocabulary
    """

    def __init__(self, sequence_bias: Any) -> None:
        is_list = isinstance(sequence_bias, list) and all(len(pair) == 2 for pair in sequence_bias)
        if not sequence_bias or not (isinstance(sequence_bias, dict) or is_list):
            hint = "pass {(5, 6): -2.0} or [[[5, 6], -2.0]]"
            raise ArgumentError(f"sequence_bias={sequence_bias!r:.80}", hint=hint)
        biases = sequence_bias.items() if isinstance(sequence_bias, dict) else sequence_bias
        self.sequence_bias = {tuple(tokens): bias for tokens, bias in biases}
        self.rule = SequenceBias(self.sequence_bias)
        self._largest = max(token for tokens in self.sequence_bias for token in tokens)

    def change(self, scores_V: Logits, tokens: Sequence[int], row: int, rows: int) -> Logits:
        if self._largest >= len(scores_V):
            raise ArgumentError(f"token {self._largest} is outside the vocabulary of {len(scores_V)}")
        return self.rule(scores_V, tokens)


class NoBadWordsLogitsProcessor(RuleProcessor):
    """Rules out sequences of tokens; the end alone stays possible."""

    def __init__(self, bad_words_ids: list[list[int]], eos_token_id: Any = None) -> None:
        if not isinstance(bad_words_ids, list) or not bad_words_ids:
            raise ArgumentError(f"bad_words_ids={bad_words_ids!r:.80}", hint="pass a list of lists of ids")
        if not all(isinstance(word, list) for word in bad_words_ids):
            raise ArgumentError(f"bad_words_ids={bad_words_ids!r:.80}", hint="pass a list of lists of ids")
        self.bad_word_ids = bad_words_ids
        self.rule = no_words(bad_words_ids, () if eos_token_id is None else ids_of(eos_token_id))


class PrefixConstrainedLogitsProcessor(RowProcessor):
    """Allows only the tokens that a function of the batch index and the ids so far (T,) returns.

    Raises:  ArgumentError, at a call, where the function allows none
    """

    def __init__(self, prefix_allowed_tokens_fn: Callable[[int, Tensor], Iterable[int]], num_beams: int) -> None:
        self._prefix_allowed_tokens_fn = prefix_allowed_tokens_fn
        self._num_beams = num_beams

    def change_all(self, texts: Rows, scores_BV: Logits) -> Logits:
        masks_BV = np.full_like(scores_BV, -np.inf)
        for row, text in enumerate(texts):
            batch = row // self._num_beams
            allowed = list(self._prefix_allowed_tokens_fn(batch, wrap(np.array(list(text), np.int64))))
            if not allowed:
                raise ArgumentError(
                    f"prefix_allowed_tokens_fn allows no token in text {batch}", hint="let it return at least one"
                )
            masks_BV[row, allowed] = 0
        changed_BV = scores_BV + masks_BV
        # Where other processors rule out everything that is allowed, in all beams, the function prevails.
        is_open = (changed_BV.max(-1) > -np.inf).reshape(-1, self._num_beams).any(-1)
        return np.where(is_open.repeat(self._num_beams)[:, None], changed_BV, masks_BV)


class ForcedBOSTokenLogitsProcessor(RuleProcessor):
    """Leaves only `bos_token_id` as the second token."""

    def __init__(self, bos_token_id: int) -> None:
        self.bos_token_id = bos_token_id
        self.rule = ForcedToken(1, ids_of(bos_token_id, "bos_token_id"))


class ForcedEOSTokenLogitsProcessor(RuleProcessor):
    """Leaves only the end as the last token of `max_length`."""

    def __init__(self, max_length: int, eos_token_id: Any, device: Any = "cpu") -> None:
        self.max_length = max_length
        self.eos_token_id = ids_of(eos_token_id)
        self.rule = ForcedToken(max_length - 1, self.eos_token_id)


class InfNanRemoveLogitsProcessor(RuleProcessor):
    """Replaces NaN by 0 and infinite scores by the largest finite ones."""

    rule = FiniteLogits()


class ExponentialDecayLengthPenalty(RuleProcessor):
    """Makes the end likelier with each token.

    Args:
        exponential_decay_length_penalty: after how many tokens, and the factor for each further one.
        input_ids_seq_length: the tokens of the prompt, which do not count.
    """

    def __init__(
        self, exponential_decay_length_penalty: tuple[int, float], eos_token_id: Any, input_ids_seq_length: int
    ) -> None:
        start, self.regulation_factor = exponential_decay_length_penalty
        self.regulation_start = start + input_ids_seq_length
        self.eos_token_id = ids_of(eos_token_id)
        self.rule = GrowingEnd(self.regulation_start, self.regulation_factor, self.eos_token_id)

    def change(self, scores_V: Logits, tokens: Sequence[int], row: int, rows: int) -> Logits:
        return self.rule(scores_V, list(tokens))  # as a list all tokens count, those of the prompt in the start


class LogitNormalization(RuleProcessor):
    """Makes scores log-probabilities."""

    rule = Renormalized()


class SuppressTokensAtBeginLogitsProcessor(RowProcessor):
    """Rules out tokens for one place: after `begin_index` tokens."""

    def __init__(self, begin_suppress_tokens: Iterable[int], begin_index: int, device: Any = "cpu") -> None:
        self.begin_suppress_tokens = ids_of(list(begin_suppress_tokens), "begin_suppress_tokens")
        self.set_begin_index(begin_index)

    def set_begin_index(self, begin_index: int) -> None:
        """Set the place."""
        self.begin_index = begin_index
        self._rule = SuppressAtBeginning(self.begin_suppress_tokens, begin_index)

    def change(self, scores_V: Logits, tokens: Sequence[int], row: int, rows: int) -> Logits:
        return self._rule(scores_V, list(tokens))  # as a list all tokens count, also those of the prompt


class SuppressTokensLogitsProcessor(RuleProcessor):
    """Rules out tokens everywhere."""

    def __init__(self, suppress_tokens: Iterable[int], device: Any = "cpu") -> None:
        self.suppress_tokens = ids_of(list(suppress_tokens), "suppress_tokens")
        self.rule = SuppressTokens(self.suppress_tokens)


class AlternatingCodebooksLogitsProcessor(RowProcessor):
    """Allows the tokens of two codebooks in turn, of which the first has the tokens from `semantic_vocab_size` on."""

    def __init__(self, input_start_len: int, semantic_vocab_size: int, codebook_size: int) -> None:
        require_count("input_start_len", input_start_len, 0)
        self.input_start_len = input_start_len
        self.semantic_vocab_size = semantic_vocab_size
        self.codebook_size = codebook_size

    def change(self, scores_V: Logits, tokens: Sequence[int], row: int, rows: int) -> Logits:
        first, second = self.semantic_vocab_size, self.semantic_vocab_size + self.codebook_size
        allowed = slice(first, second) if (len(tokens) - self.input_start_len) % 2 == 0 else slice(second, None)
        changed_V: npt.NDArray[Any] = np.full_like(scores_V, -np.inf)
        changed_V[allowed] = scores_V[allowed]
        return changed_V


# Processors that depend on the place of a row in the batch.
OF_BATCHES = (_OfSources, PrefixConstrainedLogitsProcessor)


# In transformers they are in this module, too.
__getattr__, __dir__ = names_of(
    __name__,
    {
        name: f"tallow.transformers.generation.{home}:{name}"
        for home in ("guidance", "warpers")
        for name in HOMES[home].split()
    },
)
