"""EuroBERT: Llama's layers, whose positions see those on both sides, as an encoder with heads of its own.

Loads Hugging Face folders of `EuroBertModel`, `EuroBertForMaskedLM`, `EuroBertForSequenceClassification` and
`EuroBertForTokenClassification`.

Letters: B batch, T positions, D width, V vocabulary, N labels.

Source:  Boizard et al. 2025, arXiv:2503.05500; names as in transformers' `modeling_eurobert.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.decoders.decoder import DecoderHead
from tallow.models.decoders.decoder_heads import DecoderForTokenClassification
from tallow.models.decoders.llama import LlamaConfig, LlamaModel
from tallow.models.encoders.distilbert import DistilBertProjector
from tallow.nn import functional as F
from tallow.nn.linear import Linear

POOLINGS = ("bos", "mean", "late")


@dataclass(frozen=True, kw_only=True)
class EuroBertConfig(LlamaConfig):
    """The sizes of a EuroBERT, as LlamaConfig.

    Attributes:
        classifier_pooling: a classifier of texts reads the first position, "bos", the mean of all, "mean"; or it
            labels each position and returns the mean of the logits, "late".
    """

    max_position_embeddings: int = 8192
    rms_norm_eps: float = 1e-5
    pad_token_id: int | None = 128001
    is_causal: bool = False
    classifier_dropout: float = 0.0
    classifier_pooling: str = POOLINGS[2]

    model_types: ClassVar[tuple[str, ...]] = ("eurobert",)
    neutral: ClassVar = LlamaConfig.neutral | {"mask_token", "bos_token", "eos_token", "pad_token"}
    unread: ClassVar = LlamaConfig.unread | {"classifier_dropout"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("classifier_pooling", ", ".join(map(repr, POOLINGS)), lambda pooling: pooling in POOLINGS)
        self.require("is_causal", "False", lambda causal: not causal)


class EuroBertModel(LlamaModel):
    """The encoder without a head: hidden states (B, T, D).

    Args:    as LlamaModel
    """

    config_class = EuroBertConfig


class EuroBertForMaskedLM(DecoderHead):
    """Predicts the tokens behind <mask>: logits (B, T, V).

    Args:    as LlamaModel
    """

    model_class = EuroBertModel

    def __init__(self, config: EuroBertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        self.lm_head = (
            DistilBertProjector(config.vocab_size, device, dtype, bias=config.mlp_bias)
            if config.tie_word_embeddings
            else Linear(config.hidden_size, config.vocab_size, config.mlp_bias, device, dtype)
        )
        self.reset_parameters()

    @property
    def tied_weights(self) -> Mapping[str, str]:
        return {"lm_head.weight": "model.embed_tokens.weight"} if self.config.tie_word_embeddings else {}

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return logits (B, T, V).  Args: as LlamaModel"""
        tied = (self.base_model.token_embedding.weight,) if self.config.tie_word_embeddings else ()
        return self.lm_head(self.base_model(input_ids, attention_mask), *tied)


class EuroBertForSequenceClassification(DecoderHead):
    """Labels whole texts: logits (B, N), in the order of `config.labels`.

    Args:    as LlamaModel
    """

    model_class = EuroBertModel

    def __init__(self, config: EuroBertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        self.dense = Linear(config.hidden_size, config.hidden_size, True, device, dtype)
        self.classifier = Linear(config.hidden_size, len(config.labels), True, device, dtype)
        self.reset_parameters()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return logits (B, N).  Args: as LlamaModel"""
        x_BTD = self.base_model(input_ids, attention_mask)
        pooling = self.config.classifier_pooling
        if pooling == "late":
            return _mean(self.classifier(F.gelu(self.dense(x_BTD))), attention_mask)
        x_BD = x_BTD[:, 0] if pooling == "bos" else _mean(x_BTD, attention_mask)
        return self.classifier(F.gelu(self.dense(x_BD)))


def _mean(x_BTN: Tensor, mask_BT: Tensor | None) -> Tensor:
    if mask_BT is None:
        return x_BTN.mean(1)
    weights_BT1 = mask_BT.to(x_BTN.dtype).unsqueeze(-1)
    return (x_BTN * weights_BT1).sum(1) / weights_BT1.sum(1)


class EuroBertForTokenClassification(DecoderForTokenClassification):
    """Labels every token: logits (B, T, N), in the order of `config.labels`.

    Args:    as LlamaModel
    """

    model_class = EuroBertModel
    classifier_name = "classifier"
