"""Sparse vectors of texts by a masked language model (SPLADE): a weight for each token of the vocabulary,
most of them 0.

The weight of a token is the maximum over the positions of the text of log(1 + relu(logit)), or what a folder of
sentence-transformers says: the sum, or the logarithm of 1 plus that once more.

A folder of BGE-M3 has an encoder with a linear layer instead: a token weighs as much as the layer says of its vector.

Letters: B texts of a batch, N texts, T positions, V vocabulary.

Source:  Formal et al. 2021, arXiv:2109.10086, equation 2; Chen et al. 2024, arXiv:2402.03216, section 3.2
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, CheckpointError
from tallow.models import loading
from tallow.models.config import CONFIG, read_entries
from tallow.models.encoders.bert import BertForMaskedLM, BertModel
from tallow.models.encoders.distilbert import DistilBertForMaskedLM
from tallow.models.encoders.headed_encoder import HeadedEncoder
from tallow.models.encoders.modernbert import ModernBertForMaskedLM
from tallow.models.encoders.multi_vector_folder import read_linear
from tallow.models.encoders.sentence_folder import modules_of, text_config, transformer_class
from tallow.models.text_batches import Vectors, length_limit
from tallow.nn import functional as F
from tallow.nn.linear import Linear
from tallow.tape.modes import no_grad
from tallow.text.tokenizer import Batch, Tokenizer

# Kinds of modules.
POOLING = "SpladePooling"
MODELS = ("MLMTransformer", "Transformer")
# Of BGE-M3: the head, and the tokens that weigh nothing.
WEIGHTS, UNWEIGHED = "sparse_linear.pt", ("<s>", "</s>", "<pad>", "<unk>")
SETTINGS = {"pooling_strategy": ("max", "sum"), "activation_function": ("relu", "log1p_relu")}


class SparseEncoder(HeadedEncoder):
    """Maps texts to weights of tokens.

    Args:
        model: a masked language model, trained for it.
        max_length: the most tokens of a text; longer texts are truncated. None means the tokenizer's limit.
        lowercase: convert texts to lower case first.
        pooling_strategy: "max" or "sum" of the weights at all positions.
        activation_function: "relu"; or "log1p_relu", log(1 + relu(logit)) in place of relu(logit).

    Example:
        encoder = SparseEncoder.from_pretrained("naver/splade-cocondenser-ensembledistil")
        weights = encoder.encode(["A cat sleeps.", "A kitten naps."])
        weights[0] @ weights[1]
    """

    kinds = (BertForMaskedLM, DistilBertForMaskedLM, ModernBertForMaskedLM)
    lacks = "has no masked language modelling head"
    choose = "choose a SPLADE model"
    batch_tokens: ClassVar[int] = 512  # the logits of a batch take `vocab_size` numbers for each

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: Any,
        *,
        max_length: int | None = None,
        lowercase: bool = False,
        pooling_strategy: str = "max",
        activation_function: str = "relu",
    ) -> None:
        super().__init__(tokenizer, model, max_length=max_length, lowercase=lowercase)
        self.pooling_strategy = one_of("pooling_strategy", pooling_strategy)
        self.activation_function = one_of("activation_function", activation_function)

    @classmethod
    def read_path(cls, path: Path, dtype: Any, device: Any, quant: str | None, strict: bool) -> Any:
        if not (path / WEIGHTS).exists():
            return super().read_path(path, dtype, device, quant, strict)
        kind, head = transformer_class(path), read_linear(path / WEIGHTS)
        unused: dict[str, Any] = {"add_pooling_layer": False} if issubclass(kind, BertModel) else {}
        model = loading.read(kind, path, dtype, device, quant, strict, **unused)
        tokenizer = Tokenizer.from_pretrained(path)
        _, texts = text_config(path)
        limit = length_limit(texts.get("max_seq_length"), tokenizer, getattr(model, "context_length", None))
        return LexicalEncoder(tokenizer, model, head.to(devices.chosen(device)).float(), max_length=limit)

    @classmethod
    def options_of(cls, folder: Path) -> dict[str, Any]:
        options = super().options_of(folder)
        for kind, place in modules_of(folder):
            if kind == POOLING:
                path = place / CONFIG
                entries = read_entries(path)
                try:
                    options |= {name: one_of(name, entries[name]) for name in SETTINGS if name in entries}
                except ArgumentError as error:
                    raise CheckpointError(f"{path}: {error}") from error
            elif kind not in MODELS or place != folder:
                raise CheckpointError(f"{folder}: SparseEncoder does not support modules of kind {kind!r:.80}")
        return options

    def encode(self, texts: str | Sequence[str], *, batch_size: int = 8) -> Vectors:
        """Return the weights of texts.

        Args:    batch_size: how many texts, of about the same length, to compute at once
        Shapes:  (N, V) for N texts, (V,) for a single string
        Raises:  ArgumentError for a batch_size below 1; TokenizerError for a text that cannot be encoded; NumericError
                 when a weight is NaN or infinite
        """
        rows = self.tokenize([texts] if isinstance(texts, str) else texts)
        weights = self.compute_each(rows, self.weigh, most=batch_size, width=self.model.config.vocab_size)
        return weights[0] if isinstance(texts, str) else weights

    def weigh(self, batch: Batch) -> Vectors:
        """Return the weights (B, V) of one batch of tokenized texts."""
        logits_BTV, mask_BT = self.run(batch)
        with no_grad():
            return self.pool(logits_BTV.float(), mask_BT).cpu().numpy()

    def pool(self, logits_BTV: Tensor, mask_BT: Tensor) -> Tensor:
        """Return the weights (B, V) of texts by the logits of their positions."""
        weights_BTV = F.relu(logits_BTV).log1p() * mask_BT.unsqueeze(-1)
        if self.activation_function == "log1p_relu":
            weights_BTV = weights_BTV.log1p()
        return weights_BTV.max(1)[0] if self.pooling_strategy == "max" else weights_BTV.sum(1)


class LexicalEncoder(SparseEncoder):
    """Maps texts to weights of their own tokens: relu(head(vector)), of which the greatest counts for a token that a
    text has more than once. Special tokens weigh nothing. Loads folders of BGE-M3, by `SparseEncoder.from_pretrained`.

    Args:
        model: an encoder without a head.
        head: a linear layer from the vector of a token to its weight.
        max_length, lowercase: as SparseEncoder.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: Any,
        head: Linear,
        *,
        max_length: int | None = None,
        lowercase: bool = False,
    ) -> None:
        super().__init__(tokenizer, model, max_length=max_length, lowercase=lowercase)
        self.head = head
        ids = (tokenizer.token_to_id(word) for word in UNWEIGHED)
        self.skipped = [token for token in ids if token is not None]

    def weigh(self, batch: Batch) -> Vectors:
        hidden, mask_BT = self.run(batch)
        x_BTD: Any = hidden if isinstance(hidden, Tensor) else hidden.last_hidden_state
        with no_grad():
            weights_BT = (F.relu(self.head(x_BTD.float())).squeeze(-1) * mask_BT).cpu().numpy()
        found = np.zeros((len(weights_BT), self.vocab_size), np.float32)
        rows = np.arange(len(found))[:, None]
        np.maximum.at(found, (rows, np.asarray(batch.input_ids)), weights_BT)
        found[:, self.skipped] = 0
        return found


def one_of(name: str, value: Any) -> str:
    """Return the value of one of `SETTINGS`.  Raises: ArgumentError for an unknown one"""
    if value not in SETTINGS[name]:
        raise ArgumentError(f"{name}={value!r:.80}", hint=f"pass one of {', '.join(SETTINGS[name])}")
    return str(value)
