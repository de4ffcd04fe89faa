"""ALBERT: BERT's encoder whose layers share their weights, with embeddings of a width of their own.

Loads Hugging Face folders of `AlbertModel`, `AlbertForMaskedLM`, `AlbertForPreTraining`,
`AlbertForSequenceClassification`, `AlbertForTokenClassification`, `AlbertForQuestionAnswering` and
`AlbertForMultipleChoice`.

Letters: B batch, T positions, D width, E width of embeddings, V vocabulary, N labels.

Source:  Lan et al. 2019, arXiv:1909.11942; names as in transformers' `modeling_albert.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.kernels.blocks.encoder_block import EncoderBlock
from tallow.models.activations import activation_named
from tallow.models.config import Count
from tallow.models.encoders.bert import (
    BertForMaskedLM,
    BertModel,
    BertPretrainedModel,
    PreTrainingLogits,
    VocabularyLogits,
)
from tallow.models.encoders.bert_layers import BertConfig, BertSelfAttention
from tallow.models.encoders.encoder_layers import ACTIVATION, ATTENTION, EncoderLayers, encoder_block, encoder_pattern
from tallow.nn import functional as F
from tallow.nn.container import ModuleList
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm

MOST_LAYERS = 1000  # more than any model has; a file need not have weights for each


@dataclass(frozen=True, kw_only=True)
class AlbertConfig(BertConfig):
    """The sizes of an ALBERT, as BertConfig.

    Attributes:
        embedding_size: E.
        num_hidden_groups: so many successive parts of the layers have weights of their own.
        inner_group_num: the layers of a group, which each of `num_hidden_layers` applies.
        classifier_dropout_prob: the dropout probability before a classifier.
    """

    embedding_size: int = 128
    num_hidden_groups: int = 1
    inner_group_num: Count = 1
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout_prob: float = 0.1

    model_types: ClassVar[tuple[str, ...]] = ("albert",)
    layer_counts: ClassVar[tuple[str, ...]] = ("num_hidden_groups", "inner_group_num")
    # Of the original program; transformers reads none of them.
    neutral: ClassVar = frozenset(
        {"down_scale_factor", "gap_size", "layers_to_keep", "net_structure_type", "num_memory_blocks"}
    )
    unread: ClassVar = frozenset({"is_decoder", "classifier_dropout"})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("num_hidden_layers", f"at most {MOST_LAYERS}", lambda layers: layers <= MOST_LAYERS)
        layers = f"a number from 1 to {self.num_hidden_layers}"
        self.require("num_hidden_groups", layers, lambda groups: 1 <= groups <= self.num_hidden_layers)

    @property
    def embedding_width(self) -> int:
        return self.embedding_size

    @property
    def head_dropout(self) -> float:
        return self.classifier_dropout_prob


class AlbertAttention(BertSelfAttention):
    """Self-attention, its output projection, added to the input and normalised."""

    def __init__(self, config: AlbertConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.dense = Linear(config.hidden_size, config.hidden_size, device=device, dtype=dtype)
        self.LayerNorm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)
        self.output_dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        return self.LayerNorm(x_BTD + self.output_dropout(self.dense(super().forward(x_BTD, mask))))


class AlbertLayer(Module):
    """Attention, then a feed-forward part; each is added to its input, then normalised."""

    def __init__(self, config: AlbertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.full_layer_layer_norm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)
        self.attention = AlbertAttention(config, device, dtype)
        self.ffn = Linear(config.hidden_size, config.intermediate_size, device=device, dtype=dtype)
        self.ffn_output = Linear(config.intermediate_size, config.hidden_size, device=device, dtype=dtype)
        self.activation = activation_named(config.hidden_act)

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        x_BTD = self.attention(x_BTD, mask)
        return self.full_layer_layer_norm(self.ffn_output(self.activation(self.ffn(x_BTD))) + x_BTD)


class AlbertLayerGroup(Module):
    """Layers that are applied one after the other, several times."""

    def __init__(self, config: AlbertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.albert_layers = ModuleList(AlbertLayer(config, device, dtype) for _ in range(config.inner_group_num))


class AlbertTransformer(EncoderLayers):
    """The layers of an ALBERT, after a map of the embeddings to their width."""

    pattern = encoder_pattern({AlbertLayer: ACTIVATION, AlbertAttention: ATTENTION})

    def __init__(self, config: AlbertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.embedding_hidden_mapping_in = Linear(config.embedding_size, config.hidden_size, device=device, dtype=dtype)
        self.albert_layer_groups = ModuleList(
            AlbertLayerGroup(config, device, dtype) for _ in range(config.num_hidden_groups)
        )
        self.count = config.num_hidden_layers

    def in_order(self) -> list[AlbertLayer]:
        groups = [[*group.albert_layers] for group in self.albert_layer_groups]
        size = self.count / len(groups)
        return [layer for i in range(self.count) for layer in groups[int(i / size)]]

    def forward(self, x_BTD: Tensor, mask: Tensor | None, *, skip_padding: bool = False) -> Tensor:
        return super().forward(self.embedding_hidden_mapping_in(x_BTD), mask, skip_padding=skip_padding)

    def block_of(self, layer: AlbertLayer) -> EncoderBlock:
        attention = layer.attention
        return encoder_block(
            query=attention.query,
            key=attention.key,
            value=attention.value,
            output=attention.dense,
            attention_norm=attention.LayerNorm,
            up=layer.ffn,
            down=layer.ffn_output,
            output_norm=layer.full_layer_layer_norm,
            heads=attention.num_heads,
            activation=layer.activation,
        )


class AlbertPooler(Linear):
    """tanh of a linear layer of the first position, which represents the text."""

    def __init__(self, config: AlbertConfig, device: Any, dtype: Any) -> None:
        super().__init__(config.hidden_size, config.hidden_size, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return F.tanh(super().forward(x_BTD[:, 0]))


class AlbertPretrainedModel(BertPretrainedModel):
    """The base of ALBERT models with and without a head."""

    config_class = AlbertConfig
    base_model_prefix = "albert"
    heads = ("predictions.", "sop_classifier.", "classifier.", "qa_outputs.")


class AlbertModel(AlbertPretrainedModel, BertModel):
    """The encoder without a head.

    Args:    as BertModel
    """

    encoder_class = AlbertTransformer
    pooler_class = AlbertPooler


AlbertPretrainedModel.base_class = AlbertModel


class AlbertMLMHead(VocabularyLogits):
    """LayerNorm(activation(dense(x))) in the width of embeddings, then logits over the vocabulary."""

    def __init__(self, config: AlbertConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.LayerNorm = LayerNorm(config.embedding_size, config.layer_norm_eps, device=device, dtype=dtype)
        self.dense = Linear(config.hidden_size, config.embedding_size, device=device, dtype=dtype)
        self.activation = activation_named(config.hidden_act)

    def forward(self, x_BTD: Tensor, embeddings_VE: Tensor) -> Tensor:
        return self.logits(self.LayerNorm(self.activation(self.dense(x_BTD))), embeddings_VE)


class AlbertForMaskedLM(AlbertPretrainedModel, BertForMaskedLM):
    """Predicts the tokens behind [MASK]: logits (B, T, V).

    Args:    as BertModel
    """

    def add_head(self, device: Any, dtype: Any) -> None:
        self.predictions = AlbertMLMHead(self.config, device, dtype)

    def predict(self, x_BTD: Tensor, embeddings_VE: Tensor) -> Tensor:
        return self.predictions(x_BTD, embeddings_VE)


class AlbertSOPHead(Module):
    """Logits (B, N) of whether segments are in order, named as in checkpoints."""

    def __init__(self, config: AlbertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dropout = Dropout(config.classifier_dropout_prob)
        self.classifier = Linear(config.hidden_size, len(config.labels), device=device, dtype=dtype)

    def forward(self, pooled_BD: Tensor) -> Tensor:
        return self.classifier(self.dropout(pooled_BD))


class AlbertForPreTraining(AlbertPretrainedModel):
    """Predicts the tokens behind [MASK], and whether the segments are in order: logits (B, N).

    Args:    as BertModel
    """

    def __init__(self, config: AlbertConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.add_base_model(device, dtype, add_pooling_layer=True)
        self.predictions = AlbertMLMHead(config, device, dtype)
        self.sop_classifier = AlbertSOPHead(config, device, dtype)
        self.reset_parameters()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> PreTrainingLogits:
        hidden_BTD, pooled_BD = self.base_model(input_ids, attention_mask, token_type_ids)
        assert pooled_BD is not None
        predicted_BTV = self.predictions(hidden_BTD, self.base_model.embeddings.word_embeddings.weight)
        return PreTrainingLogits(predicted_BTV, self.sop_classifier(pooled_BD))
