"""Perplexity on the test stories, compared with a trigram model trained on the same stories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import tallow as tl
from tallow.models.decoders.llama import Llama
from tallow.nn import functional as F

from .corpus import Corpus
from .trigram import Trigram

BATCH = 32
IGNORED = -100


@dataclass(frozen=True)
class Score:
    """The total negative log-likelihood of texts in nats, and their lengths.

    Perplexities are per token and per word, split at spaces. The mark that ends a story counts as a token.
    """

    nats: float
    tokens: int
    words: int
    characters: int

    @property
    def per_token(self) -> float:
        return math.exp(self.nats / self.tokens)

    @property
    def per_word(self) -> float:
        return math.exp(self.nats / self.words)

    @property
    def bits_per_character(self) -> float:
        return self.nats / math.log(2) / self.characters

    def row(self, name: str) -> str:
        """Return a row of the table of `table`."""
        return f"| {name} | {self.per_token:.3f} | {self.per_word:.3f} | {self.bits_per_character:.4f} |"


def model_score(model: Llama, corpus: Corpus, stories: Sequence[str]) -> Score:
    """Score each story separately, after BOS."""
    texts = corpus.encode(stories)
    total = sum(nats(model, texts[start : start + BATCH]) for start in range(0, len(texts), BATCH))
    return _score(total, texts, stories)


def trigram_score(corpus: Corpus, stories: Sequence[str]) -> Score:
    """Score the same tokens with a trigram model of the training stories."""
    trigram = Trigram(corpus.encode(corpus.training), corpus.tokenizer.get_vocab_size())
    texts = corpus.encode(stories)
    return _score(-sum(trigram.log_probabilities(text).sum() for text in texts), texts, stories)


def table(model: Score, trigram: Score) -> str:
    """Return both scores as a Markdown table."""
    head = "| | perplexity per token | per word | bits per character |\n| --- | --- | --- | --- |"
    return "\n".join((head, model.row("this model"), trigram.row("trigram, Kneser-Ney")))


def nats(model: Llama, texts: Sequence[Sequence[int]]) -> float:
    """Return the total negative log-likelihood of texts, of all tokens but the first."""
    longest = max(map(len, texts))
    rows_BT = np.full((len(texts), longest), IGNORED)
    for row, text in zip(rows_BT, texts, strict=True):
        row[: len(text)] = text
    device = model.head_weight.device
    inputs_BT = tl.from_numpy(np.maximum(rows_BT[:, :-1], 0)).to(device)
    targets_BT = tl.from_numpy(rows_BT[:, 1:].copy()).to(device)
    with tl.no_grad():
        logits_NV = model(inputs_BT).flatten(0, 1)
        return F.cross_entropy(logits_NV, targets_BT.flatten(), ignore_index=IGNORED, reduction="sum").item()


def _score(nats: float, texts: Sequence[Sequence[int]], stories: Sequence[str]) -> Score:
    return Score(
        nats=float(nats),
        tokens=sum(len(text) - 1 for text in texts),
        words=sum(len(story.split()) for story in stories),
        characters=sum(map(len, stories)),
    )
