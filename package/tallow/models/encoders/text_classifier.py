"""Classifiers of texts and of pairs of texts, with their tokenizers: sentiments, entailment, and how well
a text answers a query (a cross-encoder, or reranker, is a classifier of pairs with one label).

Letters: B texts of a batch, N texts, L labels.

Source:  Nogueira and Cho 2019, arXiv:1901.04085 (cross-encoders); files as transformers writes them
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np

from tallow.core.creation import from_numpy
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, CheckpointError
from tallow.models.auto import model_class
from tallow.models.causal_lm import CausalLM
from tallow.models.config import CONFIG, read_entries
from tallow.models.decoders.decoder_heads import DecoderForSequenceClassification
from tallow.models.encoders.bert import BertForSequenceClassification
from tallow.models.encoders.distilbert import DistilBertForSequenceClassification
from tallow.models.encoders.headed_encoder import HeadedEncoder
from tallow.models.encoders.modernbert import ModernBertForSequenceClassification
from tallow.models.encoders.roberta import RobertaForSequenceClassification
from tallow.models.encoders.sentence_folder import PROMPTS
from tallow.models.text_batches import Text, Vectors
from tallow.models.torch_activations import activation_of
from tallow.nn.module import Module
from tallow.tape.modes import no_grad
from tallow.text.marks import Encoded
from tallow.text.tokenizer import Batch, Tokenizer

Classifier = (
    BertForSequenceClassification
    | DistilBertForSequenceClassification
    | ModernBertForSequenceClassification
    | RobertaForSequenceClassification
    | DecoderForSequenceClassification
)

OLDER_ENTRY = "sbert_ce_default_activation_function"  # of config.json, until sentence-transformers 4


@dataclass(frozen=True)
class Ranked:
    """A text's place in a list, and its score."""

    index: int
    score: float


class TextClassifier(HeadedEncoder):
    """Labels texts or pairs of texts.

    Args:
        model: a BERT, a relative of it such as an MPNet, a DistilBERT, a ModernBERT or a decoder, for sequence
            classification.
        max_length: the most tokens of a text or pair; longer ones are truncated. None means the tokenizer's limit.
        lowercase: convert texts to lower case first.
        activation: maps logits (N, L) to scores. `from_pretrained` reads it from a folder of a cross-encoder that
            names one, as sentence-transformers does. None means probabilities: the sigmoid of one logit, or the
            softmax of several.

    Attributes:
        takes_segments: the model tells the two texts of a pair apart.

    Example:
        reranker = TextClassifier.from_pretrained("cross-encoder/ms-marco-MiniLM-L6-v2")
        reranker.rank("Where do cats sleep?", ["Cats sleep on sofas.", "The bank is closed."])
    """

    kinds = get_args(Classifier)
    lacks = "does not classify texts"
    choose = "choose a model that does, such as a BERT for sequence classification, or a Qwen3-Reranker"

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: Classifier,
        *,
        max_length: int | None = None,
        lowercase: bool = False,
        activation: Module | None = None,
    ) -> None:
        super().__init__(tokenizer, model, max_length=max_length, lowercase=lowercase)
        self.activation = activation
        # As in transformers: a BERT whose tokenizer returns no segments reads both texts as the first.
        table = getattr(getattr(model, model.base_model_prefix), "embeddings", None)
        kinds = getattr(table, "token_type_embeddings", None)  # RoBERTa has a single one
        has_segments = kinds is not None and kinds.num_embeddings > 1
        self.takes_segments = has_segments and "token_type_ids" in tokenizer.model_input_names

    @classmethod
    def read_path(cls, path: Path, dtype: Any, device: Any, quant: str | None, strict: bool) -> Self:
        if cls is TextClassifier and issubclass(model_class(path), CausalLM):
            from tallow.models.encoders.token_scorer import TokenScorer

            scorer: Any = TokenScorer.read_path(path, dtype, device, quant, strict)
            return scorer
        return super().read_path(path, dtype, device, quant, strict)

    @classmethod
    def options_of(cls, folder: Path) -> dict[str, Any]:
        return {**super().options_of(folder), **cls.settings_of(folder)}

    @classmethod
    def settings_of(cls, folder: Path) -> dict[str, Any]:
        """Return the arguments that a folder's settings of scores give.  Raises: CheckpointError"""
        return {"activation": score_activation(folder)}

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
        """Return the score of each label: the `activation` of its logit, by default its probability; as `logits`."""
        logits_NL = self.logits(texts, batch_size=batch_size)
        if self.activation is None:
            return probabilities(logits_NL)
        with no_grad():
            return self.activation(from_numpy(logits_NL)).numpy()

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

    def tokenize_with(
        self, texts: Sequence[Text], prompt: str | None, *, truncate: bool = True, side: str | None = None
    ) -> list[Encoded]:
        """As `tokenize`, with special tokens, after another prompt than the default.

        Args:  prompt: a text before each text, or before the first of each pair; for a language model, the instruction
        """
        before = prompt or ""
        written = [before + text if isinstance(text, str) else (before + text[0], text[1]) for text in texts]
        return self.tokenize(written, truncate=truncate, side=side)

    def classify(self, batch: Batch) -> Vectors:
        """Return the logits (B, L) of one batch of tokenized texts."""
        logits_BL, _ = self.run(batch, segments=self.takes_segments)
        return logits_BL.float().cpu().numpy()

    def scores_of(self, input_ids: Tensor, attention_mask: Tensor, **options: Any) -> Tensor:
        """Return the logits (B, L) of tokens with padding at the end, with gradients.

        Args:    options: of the model's `forward`
        Shapes:  both (B, T)
        """
        return self.model(input_ids, attention_mask, **options)


def score_activation(folder: Path) -> Module | None:
    """Return the function of scores that the files of a cross-encoder name; None if they name none.

    Raises:  CheckpointError for another function than an activation of torch.nn
    """
    settings, config = folder / PROMPTS, folder / CONFIG
    entries = read_entries(config)
    block = entries.get("sentence_transformers")
    # From the newest form to the oldest; the first that there is.
    named = {
        f"{settings}: activation_fn": (read_entries(settings) if settings.exists() else {}).get("activation_fn"),
        f"{config}: sentence_transformers": block.get("activation_fn") if isinstance(block, dict) else None,
        f"{config}: {OLDER_ENTRY}": entries.get(OLDER_ENTRY),
    }
    for source, path in named.items():
        if path is not None:
            activation = activation_of(path, source)
            if next(activation.parameters(), None) is not None:
                raise CheckpointError(f"{source} is {path!r}, which has weights; there is no file of them")
            return activation
    return None


def probabilities(logits_NL: Vectors) -> Vectors:
    """Return the sigmoid of one logit, or the softmax of several, of each row."""
    wide = logits_NL.astype(np.float64)
    if wide.shape[1] == 1:
        return (0.5 * (1 + np.tanh(0.5 * wide))).astype(np.float32)
    weights = np.exp(wide - wide.max(1, keepdims=True))
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)
