"""BART and T5 with heads that label texts, label tokens, or find answers, in place of writing.

Letters: B texts, T positions of the decoder, S positions of a source, D width, N labels.

Source:  names as in transformers' `modeling_bart.py` and `modeling_t5.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tallow import devices
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.causal_lm import CacheShape
from tallow.models.pretrained import SpanLogits
from tallow.models.seq2seq.bart import BartConfig, BartPretrainedModel
from tallow.models.seq2seq.cross_layers import CrossKeys
from tallow.models.seq2seq.model import Seq2SeqConfig, Sources
from tallow.models.seq2seq.t5 import T5Config, T5EncoderModel, T5PairModel, T5PretrainedModel
from tallow.nn.attention import key_mask
from tallow.nn.cache import KVCache
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear
from tallow.nn.module import Module


class ClassificationHead(Module):
    """Two layers from the vector of a text (B, D) to logits (B, N)."""

    def __init__(self, config: Seq2SeqConfig, width: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dense = Linear(width, width, device=device, dtype=dtype)
        self.dropout = Dropout(config.classifier_dropout)
        self.out_proj = Linear(width, len(config.labels), device=device, dtype=dtype)

    def forward(self, text_BD: Tensor) -> Tensor:
        return self.out_proj(self.dropout(self.dense(self.dropout(text_BD)).tanh()))


def vectors_at_ends(hidden_BTD: Tensor, tokens_BT: Tensor, end: Any) -> Tensor:
    """Return the hidden state (B, D) of each text at its last end-of-sequence token.

    Args:    end: the id of that token, or a sequence that begins with it
    Raises:  ArgumentError for texts without one, and with different numbers of them
    """
    ids = np.asarray(devices.to_host(tokens_BT.array))
    is_end = ids == np.ravel(end)[0]
    counts = is_end.sum(1)
    if not counts.all() or (counts != counts[0]).any():
        raise ArgumentError(
            f"texts with {', '.join(map(str, counts[:10]))} end-of-sequence tokens",
            hint="end each text with one, as the model's tokenizer does",
        )
    last = ids.shape[1] - 1 - is_end[:, ::-1].argmax(1)
    return hidden_BTD[np.arange(len(ids)).tolist(), last.tolist()]


class PairHead:
    """The base of heads over an encoder and a decoder, which reads the source again, after the start token."""

    config: Any

    def read(self, input_ids: Tensor, attention_mask: Tensor | None, decoder_input_ids: Tensor | None) -> Tensor:
        """Return the hidden states (B, T, D) of texts of the decoder; None means the sources, shifted to the right."""
        if decoder_input_ids is None:
            decoder_input_ids = self.config.shifted(input_ids)
        model: Any = self
        sources = Sources(
            model.cross_keys(model.encode(input_ids, attention_mask)),
            None if attention_mask is None else key_mask(attention_mask),
        )
        return model.decode(decoder_input_ids, sources)


class PairForSequenceClassification(PairHead):
    """Labels whole texts: logits (B, N), in the order of `config.labels`."""

    classification_head: ClassificationHead

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, decoder_input_ids: Tensor | None = None
    ) -> Tensor:
        """Return logits (B, N).

        Shapes:  sources (B, S), texts of the decoder (B, S)
        Raises:  ArgumentError for texts that do not end with the same number of end-of-sequence tokens
        """
        return self.head(self.read(input_ids, attention_mask, decoder_input_ids), input_ids)

    def head(self, hidden_BTD: Tensor, input_ids: Tensor) -> Tensor:
        """Return logits (B, N) of hidden states."""
        return self.classification_head(vectors_at_ends(hidden_BTD, input_ids, self.config.eos_token_id))


class PairForQuestionAnswering(PairHead):
    """Finds where an answer starts and ends: logits (B, T) for each."""

    qa_outputs: Linear

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, decoder_input_ids: Tensor | None = None
    ) -> SpanLogits:
        """Return logits (B, T) of the start and the end.

        Shapes:  sources (B, S), texts of the decoder (B, T)
        """
        return self.head(self.read(input_ids, attention_mask, decoder_input_ids), input_ids)

    def head(self, hidden_BTD: Tensor, _: Tensor) -> SpanLogits:
        """Return logits (B, T) of hidden states."""
        return SpanLogits(*self.qa_outputs(hidden_BTD).unbind(-1))


class BartHead(BartPretrainedModel):
    """The base of BART with a head that does not write."""

    def is_superfluous(self, name: str) -> bool:
        return super().is_superfluous(name) or name == "final_logits_bias" or name.startswith("lm_head.")


class BartForSequenceClassification(PairForSequenceClassification, BartHead):
    """Labels whole texts: logits (B, N), in the order of `config.labels`.  Args: as BartPretrainedModel"""

    def __init__(self, config: BartConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        self.classification_head = ClassificationHead(config, config.d_model, device, dtype)
        self.reset_parameters()


class BartForQuestionAnswering(PairForQuestionAnswering, BartHead):
    """Finds where an answer starts and ends: logits (B, T) for each.  Args: as BartPretrainedModel"""

    def __init__(self, config: BartConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        self.qa_outputs = Linear(config.d_model, 2, device=device, dtype=dtype)
        self.reset_parameters()


class T5ForSequenceClassification(PairForSequenceClassification, T5PretrainedModel):
    """Labels whole texts: logits (B, N), in the order of `config.labels`.  Args: as T5PretrainedModel"""

    def __init__(self, config: T5Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.transformer = T5PairModel(config, device, dtype)
        self.classification_head = ClassificationHead(config, config.d_model, device, dtype)
        self.reset_parameters()

    def encode(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """As `T5Module.encode`"""
        return self.transformer.encode(input_ids, attention_mask)

    def cross_keys(self, encoded_ASD: Tensor) -> list[CrossKeys]:
        """As `Seq2SeqLM.cross_keys`"""
        return self.transformer.cross_keys(encoded_ASD)

    def decode(self, tokens_BT: Tensor, sources: Sources, cache: KVCache | None = None) -> Tensor:
        """As `T5PairModel.decode`"""
        return self.transformer.decode(tokens_BT, sources, cache)

    @property
    def cache_shape(self) -> CacheShape:
        """The sizes of the decoder's cache."""
        return self.transformer.cache_shape

    @property
    def context_length(self) -> int:
        """Positions are relative, so texts have any length."""
        return self.transformer.context_length

    @property
    def tied_weights(self) -> Mapping[str, str]:
        return _inside(self.base_model_prefix, self.transformer.tied_weights)

    def is_superfluous(self, name: str) -> bool:
        return super().is_superfluous(name) or name.startswith("lm_head.")


class T5ForTokenClassification(T5PretrainedModel):
    """Labels every token: logits (B, S, N), in the order of `config.labels`.  Args: as T5PretrainedModel"""

    def __init__(self, config: T5Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.transformer = T5EncoderModel(config, device, dtype)
        self.dropout = Dropout(config.classifier_dropout)
        self.classifier = Linear(config.d_model, len(config.labels), device=device, dtype=dtype)
        self.reset_parameters()

    def encode(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """As `T5Module.encode`"""
        return self.transformer.encode(input_ids, attention_mask)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return logits (B, S, N).  Args: as `encode`"""
        return self.head(self.encode(input_ids, attention_mask))

    def head(self, hidden_BSD: Tensor) -> Tensor:
        """Return logits (B, S, N) of hidden states."""
        return self.classifier(self.dropout(hidden_BSD))

    @property
    def tied_weights(self) -> Mapping[str, str]:
        return _inside(self.base_model_prefix, self.transformer.tied_weights)

    def is_superfluous(self, name: str) -> bool:
        return self.transformer.is_superfluous(name.removeprefix(f"{self.base_model_prefix}."))


class T5ForQuestionAnswering(PairForQuestionAnswering, T5PairModel):
    """Finds where an answer starts and ends: logits (B, T) for each.  Args: as T5PretrainedModel"""

    def __init__(self, config: T5Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        self.qa_outputs = Linear(config.d_model, 2, device=device, dtype=dtype)
        self.reset_parameters()

    def is_superfluous(self, name: str) -> bool:
        return super().is_superfluous(name) or name.startswith("lm_head.")


def _inside(prefix: str, ties: Mapping[str, str]) -> dict[str, str]:
    return {f"{prefix}.{tied}": f"{prefix}.{name}" for tied, name in ties.items()}
