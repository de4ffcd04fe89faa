"""ELECTRA: BERT's encoder with embeddings of a width of their own, trained to tell replaced tokens from others.

Loads Hugging Face folders of `ElectraModel`, `ElectraForPreTraining` (the discriminator), `ElectraForMaskedLM` (the
generator), `ElectraForCausalLM`, `ElectraForSequenceClassification`, `ElectraForTokenClassification`,
`ElectraForQuestionAnswering` and `ElectraForMultipleChoice`.

Letters: B batch, T positions, D width, E width of embeddings, V vocabulary, N labels.

Source:  Clark et al. 2020, arXiv:2003.10555; names as in transformers' `modeling_electra.py`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.activations import activation_named
from tallow.models.encoders.bert import BertForMaskedLM, BertModel, BertPretrainedModel, without_pooler
from tallow.models.encoders.bert_layers import BertConfig
from tallow.models.encoders.distilbert import DistilBertProjector
from tallow.models.encoders.roberta import RobertaClassificationHead, RobertaForSequenceClassification
from tallow.nn import functional as F
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm


@dataclass(frozen=True, kw_only=True)
class ElectraConfig(BertConfig):
    """The sizes of an ELECTRA, as BertConfig.

    Attributes:
        embedding_size: E; a layer maps embeddings to D if it differs.
        summary_type: the position that stands for a text when one of several is chosen; "first" is supported.
        summary_use_proj: a layer maps that position to D.
        summary_activation: after it; None for none.
        summary_last_dropout: the dropout probability after both.
    """

    hidden_size: int = 256
    num_hidden_layers: int = 12
    num_attention_heads: int = 4
    intermediate_size: int = 1024
    embedding_size: int = 128
    summary_type: str = "first"
    summary_use_proj: bool = True
    summary_activation: str | None = "gelu"
    summary_last_dropout: float = 0.1

    model_types: ClassVar[tuple[str, ...]] = ("electra",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("summary_type", "'first'", lambda place: place == "first")

    @property
    def embedding_width(self) -> int:
        return self.embedding_size


class ElectraPretrainedModel(BertPretrainedModel):
    """The base of ELECTRA models with and without a head."""

    config_class: ClassVar[type[BertConfig]] = ElectraConfig
    base_model_prefix = "electra"
    heads: ClassVar[tuple[str, ...]] = (
        "discriminator_predictions.",
        "generator_predictions.",
        "generator_lm_head.",
        "sequence_summary.",
        "classifier.",
        "qa_outputs.",
    )


class ElectraModel(ElectraPretrainedModel, BertModel):
    """The encoder without a head, and without a pooler.

    Args:    as BertModel
    """

    def __init__(
        self, config: ElectraConfig, device: Any = None, dtype: Any = None, *, add_pooling_layer: bool = False
    ) -> None:
        super().__init__(config, device, dtype, add_pooling_layer=without_pooler("ELECTRA", add_pooling_layer))
        self.embeddings_project = (
            None
            if config.embedding_size == config.hidden_size
            else Linear(config.embedding_size, config.hidden_size, device=device, dtype=dtype)
        )
        self.reset_parameters()

    def embed(self, input_ids: Tensor, token_type_ids: Tensor | None) -> Tensor:
        x_BTE = super().embed(input_ids, token_type_ids)
        return x_BTE if self.embeddings_project is None else self.embeddings_project(x_BTE)


ElectraPretrainedModel.base_class = ElectraModel


class ElectraDiscriminatorPredictions(Module):
    """dense_prediction(activation(dense(x)))"""

    def __init__(self, config: ElectraConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size, device=device, dtype=dtype)
        self.activation = activation_named(config.hidden_act)
        self.dense_prediction = Linear(config.hidden_size, 1, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.dense_prediction(self.activation(self.dense(x_BTD))).squeeze(-1)


class ElectraForPreTraining(ElectraPretrainedModel):
    """The discriminator: logits (B, T) of whether a token was replaced.

    Args:    as BertModel
    """

    def __init__(self, config: ElectraConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.add_base_model(device, dtype)
        self.discriminator_predictions = ElectraDiscriminatorPredictions(config, device, dtype)
        self.reset_parameters()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        return self.discriminator_predictions(
            self.base_model(input_ids, attention_mask, token_type_ids).last_hidden_state
        )


class ElectraGeneratorPredictions(Module):
    """LayerNorm(gelu(dense(x))), in the width of embeddings."""

    def __init__(self, config: ElectraConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.LayerNorm = LayerNorm(config.embedding_size, config.layer_norm_eps, device=device, dtype=dtype)
        self.dense = Linear(config.hidden_size, config.embedding_size, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.LayerNorm(F.gelu(self.dense(x_BTD)))


class ElectraForMaskedLM(ElectraPretrainedModel, BertForMaskedLM):
    """The generator: predicts the tokens behind [MASK], logits (B, T, V).

    Args:    as BertModel
    """

    def add_head(self, device: Any, dtype: Any) -> None:
        config = self.config
        self.generator_predictions = ElectraGeneratorPredictions(config, device, dtype)
        self.generator_lm_head = (
            DistilBertProjector(config.vocab_size, device, dtype)
            if config.tie_word_embeddings
            else Linear(config.embedding_size, config.vocab_size, device=device, dtype=dtype)
        )

    @property
    def tied_weights(self) -> Mapping[str, str]:
        tied = self.config.tie_word_embeddings
        return {"generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"} if tied else {}

    def predict(self, x_BTD: Tensor, embeddings_VE: Tensor) -> Tensor:
        tied = (embeddings_VE,) if self.config.tie_word_embeddings else ()
        return self.generator_lm_head(self.generator_predictions(x_BTD), *tied)


class ElectraForCausalLM(ElectraForMaskedLM):
    """Predicts the token after each position: logits (B, T, V); as BertLMHeadModel.

    Args:    as BertModel
    """


class ElectraSequenceSummary(Module):
    """The vector (B, D) of a text: its first position, after a layer."""

    def __init__(self, config: ElectraConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width = config.hidden_size
        self.summary = Linear(width, width, device=device, dtype=dtype) if config.summary_use_proj else None
        self.activation = activation_named(config.summary_activation) if config.summary_activation else None
        self.last_dropout = Dropout(config.summary_last_dropout)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BD = x_BTD[:, 0]
        for step in (self.summary, self.activation):
            x_BD = x_BD if step is None else step(x_BD)
        return self.last_dropout(x_BD)


class ElectraForMultipleChoice(ElectraPretrainedModel):
    """Scores texts, of which one is to be chosen: logits (B, 1) of texts (B, T).

    Args:    as BertModel
    """

    def __init__(self, config: ElectraConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.add_base_model(device, dtype)
        self.sequence_summary = ElectraSequenceSummary(config, device, dtype)
        self.classifier = Linear(config.hidden_size, 1, device=device, dtype=dtype)
        self.reset_parameters()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        hidden_BTD = self.base_model(input_ids, attention_mask, token_type_ids).last_hidden_state
        return self.classifier(self.sequence_summary(hidden_BTD))


class ElectraClassificationHead(RobertaClassificationHead):
    """RoBERTa's head, with GELU."""

    activation = staticmethod(F.gelu)


class ElectraForSequenceClassification(ElectraPretrainedModel, RobertaForSequenceClassification):
    """Labels whole texts: logits (B, N), in the order of `config.labels`.

    Args:    as BertModel
    """

    head_class = ElectraClassificationHead
