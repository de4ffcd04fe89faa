"""Classifiers of texts and of pairs of texts, with their tokenizers: sentiments, entailment, and how well
a text answers a query (a cross-encoder, or reranker, is a classifier of pairs with one label).

Letters: B texts of a batch, N texts, L labels.

Source:  Nogueira and Cho 2019, arXiv:1901.04085 (cross-encoders); files as transformers writes them
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from tallow.errors import ArgumentError
from tallow.models.bert import BertForSequenceClassification
from tallow.models.distilbert import DistilBertForSequenceClassification
from tallow.models.headed_encoder import HeadedEncoder
from tallow.models.modernbert import ModernBertForSequenceClassification
from tallow.models.roberta import RobertaForSequenceClassification
from tallow.models.text_batches import Text, Vectors
from tallow.text.tokenizer import Batch, Tokenizer

Classifier = (
    BertForSequenceClassification
    | DistilBertForSequenceClassification
    | ModernBertForSequenceClassification
    | RobertaForSequenceClassification
)


@dataclass(frozen=True)
class Ranked:
    """A text's place in a list, and its score from 0 to 1."""

    index: int
    score: float


class TextClassifier(HeadedEncoder):
    """Labels texts or pairs of texts.

    Args:
        model: a BERT, DistilBERT, ModernBERT or RoBERTa for sequence classification.
        max_length: the most tokens of a text or pair; longer ones are truncated. None means the tokenizer's limit.

    Example:
        reranker = TextClassifier.from_pretrained("cross-encoder/ms-marco-MiniLM-L6-v2")
        reranker.rank("Where do cats sleep?", ["Cats sleep on sofas.", "The bank is closed."])
    """

    kinds = get_args(Classifier)
    lacks = "does not classify texts"
    choose = "choose a BERT, DistilBERT, ModernBERT or RoBERTa that does"

    def __init__(self, tokenizer: Tokenizer, model: Classifier, *, max_length: int | None = None) -> None:
        super().__init__(tokenizer, model, max_length=max_length)
        self._segments = isinstance(model, BertForSequenceClassification)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels, in the order of the logits."""
        return self.model.config.labels

    def logits(self, texts: Sequence[Text], *, batch_size: int = 32) -> Vectors:
        """Return the logits of texts, or of pairs of texts.

        Args:    batch_size: how many texts, of about the same length, to compute at once
        Shapes:  (N, L)
        Raises:  ArgumentError for a batch_size below 1; TokenizerError for a text that cannot be encoded; NumericError
                 when a logit is NaN or infinite
        """
        return self.compute_each(self.tokenize(texts), self.classify, most=batch_size, width=len(self.labels))

    def predict(self, texts: Sequence[Text], *, batch_size: int = 32) -> Vectors:
        """Return the probability of each label; as `logits`. With one label it is the sigmoid of its logit."""
        return probabilities(self.logits(texts, batch_size=batch_size))

    def rank(self, query: str, texts: Sequence[str], *, batch_size: int = 32) -> list[Ranked]:
        """Return the texts that answer a query, the best first.

        Raises:  ArgumentError for a classifier with several labels; as `logits`
        """
        if len(self.labels) != 1:
            raise ArgumentError(
                f"the model has {len(self.labels)} labels: it classifies texts and does not rank them",
                hint="choose a cross-encoder with one label",
            )
        scores = self.predict([(query, text) for text in texts], batch_size=batch_size)[:, 0]
        return [Ranked(int(i), float(scores[i])) for i in np.argsort(-scores, kind="stable")]

    def classify(self, batch: Batch) -> Vectors:
        """Return the logits (B, L) of one batch of tokenized texts."""
        logits_BL, _ = self.run(batch, segments=self._segments)
        return logits_BL.float().cpu().numpy()


def probabilities(logits_NL: Vectors) -> Vectors:
    """Return the sigmoid of one logit, or the softmax of several, of each row."""
    wide = logits_NL.astype(np.float64)
    if wide.shape[1] == 1:
        return (0.5 * (1 + np.tanh(0.5 * wide))).astype(np.float32)
    weights = np.exp(wide - wide.max(1, keepdims=True))
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)
