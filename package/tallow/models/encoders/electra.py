"""ELECTRA: BERT's encoder with embeddings of a width of their own, trained to tell replaced tokens from others.

Loads Hugging Face folders of `ElectraModel`, `ElectraForPreTraining` (the discriminator), `ElectraForMaskedLM` (the
generator), `ElectraForSequenceClassification`, `ElectraForTokenClassification` and `ElectraForQuestionAnswering`.

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
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm


@dataclass(frozen=True, kw_only=True)
class ElectraConfig(BertConfig):
    """The sizes of an ELECTRA, as BertConfig.

    Attributes:
        embedding_size: E; a layer maps embeddings to D if it differs.
    """

    hidden_size: int = 256
    num_hidden_layers: int = 12
    num_attention_heads: int = 4
    intermediate_size: int = 1024
    embedding_size: int = 128

    model_types: ClassVar[tuple[str, ...]] = ("electra",)
    # Of the summary of a text for choices among texts, which is not computed.
    neutral: ClassVar = BertConfig.neutral | {f"summary_{name}" for name in ("type", "use_proj", "activation")}
    neutral |= {"summary_last_dropout"}

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


class ElectraClassificationHead(RobertaClassificationHead):
    """RoBERTa's head, with GELU."""

    activation = staticmethod(F.gelu)


class ElectraForSequenceClassification(ElectraPretrainedModel, RobertaForSequenceClassification):
    """Labels whole texts: logits (B, N), in the order of `config.labels`.

    Args:    as BertModel
    """

    head_class = ElectraClassificationHead
