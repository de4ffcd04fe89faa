"""Watermarks: texts whose tokens follow a key more often than chance, which nobody without the key can tell.

The random numbers are PyTorch's, so that texts marked here are found by transformers' detectors, and the other way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tallow.generation.processors import Logits, require, require_count, require_number
from tallow.utils.torch_numbers import TorchNumbers

Ids = npt.NDArray[np.int64]

FIXED_SIZE = 1_000_003  # of the table of "selfhash"
CANDIDATES = 40  # tokens that "selfhash" tries
MULTIPLIER = np.int64(6364136223846793005)  # Knuth's linear congruential generator


@dataclass(frozen=True)
class GreenList:
    """Adds a number to the scores of "green" tokens, which a key and the tokens before choose.

    Args:
        vocab_size: the number of token ids.
        ratio: of green tokens.
        bias: what is added.
        key: of the watermark.
        scheme: "lefthash": green tokens depend on the last token; "selfhash": on the new token as well.
        width: the tokens before that "selfhash" depends on; texts with fewer are not marked.

    Source:  Kirchenbauer et al. 2023, arXiv:2306.04634, algorithms 2 and 3
    """

    vocab_size: int
    ratio: float = 0.25
    bias: float = 2.0
    key: int = 15485863
    scheme: str = "lefthash"
    width: int = 1

    def __post_init__(self) -> None:
        require(self.scheme in ("lefthash", "selfhash"), "seeding_scheme", self.scheme, '"lefthash" or "selfhash"')
        require_number("greenlist_ratio", self.ratio, "a number between 0 and 1", lambda r: 0 < r < 1)
        require_count("context_width", self.width, 1)
        table = TorchNumbers(self.key).randperm(FIXED_SIZE) if self.scheme == "selfhash" else []
        object.__setattr__(self, "_table", np.array(table, np.int64))

    def __call__(self, logits_V: Logits, tokens: Sequence[int]) -> Logits:
        if len(tokens) < self.width:
            return logits_V
        marked_V = logits_V.copy()
        if self.scheme == "lefthash":
            green = self.green(tokens)
        else:
            likeliest = np.argsort(-logits_V, kind="stable")[:CANDIDATES].tolist()
            green = np.array([token for token in likeliest if token in self.green([*tokens, token])], np.int64)
        marked_V[green] += logits_V.dtype.type(self.bias)
        return marked_V

    def green(self, tokens: Sequence[int]) -> Ids:
        """Return the green tokens after some tokens; the new one is the last of those for "selfhash"."""
        seed = self._seed(tokens[-self.width :])
        numbers = TorchNumbers(seed % (2**64 - 1))
        return np.array(numbers.randperm(self.vocab_size, int(self.vocab_size * self.ratio)), np.int64)

    def _seed(self, context: Sequence[int]) -> int:
        if self.scheme == "lefthash":
            return self.key * context[-1]
        table: Ids = self._table  # type: ignore[attr-defined]
        factors = table[np.array(context) % FIXED_SIZE] + 1
        last = table[context[-1] % FIXED_SIZE] + 1
        with np.errstate(over="ignore"):
            return int((np.int64(self.key) * factors * last).min())


class Tournament:
    """Changes scores by the outcome of a tournament of tokens in as many rounds as there are keys.

    Args:
        ngram: how many tokens a round depends on, the new one included.
        keys: of the rounds.
        table_size, table_seed: of the table of random bits.
        history: how many contexts to remember; a context that occurs again is not marked.
        skips_first: do not mark the first tokens, whose context is not complete.

    Source:  Dathathri et al. 2024, Nature 634, 818-823 (SynthID-Text)
    """

    def __init__(
        self,
        ngram: int,
        keys: Sequence[int],
        table_size: int = 2**16,
        table_seed: int = 0,
        history: int = 1024,
        skips_first: bool = False,
    ) -> None:
        require_count("ngram_len", ngram, 1)
        require(0 < table_size <= 2**24, "sampling_table_size", table_size, "1 to 2**24")
        self.ngram = ngram
        self._keys = np.array(keys, np.int64)
        self._bits = TorchNumbers(table_seed).integers(2, (table_size,))
        self._history = history
        self._skips = ngram if skips_first else 0

    def bits(self, tokens: Ids, context_hash: Ids) -> Ids:
        """Return the bits of each round, (..., rounds), for tokens (...) after contexts with these hashes."""
        hashes = _hashed(context_hash, tokens)[..., None]
        keyed = _hashed(np.broadcast_to(hashes, (*tokens.shape, len(self._keys))), self._keys)
        return self._bits[keyed % len(self._bits)]

    def context_hash(self, context: Sequence[int]) -> np.int64:
        """Return the hash of the tokens before."""
        value = np.array(1, np.int64)
        for token in context:
            value = _hashed(value, np.int64(token))
        return np.int64(value)

    def mark(self, scores_V: Logits, state: TournamentState, tokens: Sequence[int]) -> Logits:
        """Return the scores after the tournament; `state` is that of the text."""
        state.advance(tokens, self.ngram - 1)
        if state.calls < self._skips:
            return scores_V
        hashed = self.context_hash(state.context)
        is_known = bool((state.hashes == hashed).any())
        state.remember(hashed, self._history)
        if is_known:
            return scores_V
        bits_VR = self.bits(np.arange(len(scores_V), dtype=np.int64), np.broadcast_to(hashed, scores_V.shape))
        weights_V = np.exp(scores_V - scores_V.max())
        weights_V /= weights_V.sum()
        for bits_V in bits_VR.T:
            weights_V = weights_V * (1 + bits_V - (bits_V * weights_V).sum()).astype(scores_V.dtype)
        with np.errstate(divide="ignore", invalid="ignore"):
            marked_V = np.log(weights_V)
        return np.where(np.isfinite(marked_V), marked_V, np.finfo(scores_V.dtype).min).astype(scores_V.dtype)


class TournamentState:
    """The knowledge of a Tournament about a text: the last tokens that were generated, and the contexts so far."""

    def __init__(self, history: int) -> None:
        self.context: list[int] = []
        self.hashes = np.zeros(history, np.int64)
        self.calls = 0

    def advance(self, tokens: Sequence[int], width: int) -> None:
        """Take the tokens so far at the next call; those of the prompt do not count."""
        if self.calls == 0:
            self.context = [0] * width
        elif width:
            self.context = [*self.context, tokens[-1]][-width:]
        self.calls += 1

    def remember(self, hashed: np.int64, history: int) -> None:
        """Take the hash of a context."""
        self.hashes = np.concatenate([[hashed], self.hashes])[:history]


def _hashed(value: Ids, data: Ids | np.int64) -> Ids:
    with np.errstate(over="ignore"):
        return (value + data) * MULTIPLIER + np.int64(1)
