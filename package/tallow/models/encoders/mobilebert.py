"""MobileBERT: narrow layers between bottlenecks, with several feed-forward parts each.

Loads Hugging Face folders of `MobileBertModel`, `MobileBertForMaskedLM`, `MobileBertForPreTraining`,
`MobileBertForNextSentencePrediction`, `MobileBertForSequenceClassification`, `MobileBertForTokenClassification`,
`MobileBertForQuestionAnswering` and `MobileBertForMultipleChoice`; the heads are BERT's.

Letters: B batch, T positions, D width, W width within a layer, E width of embeddings, V vocabulary.

Source:  Sun et al. 2020, arXiv:2004.02984; names as in transformers' `modeling_mobilebert.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.apply import apply
from tallow.core.creation import ones, zeros
from tallow.core.tensor import Tensor
from tallow.models.activations import activation_named
from tallow.models.encoders.bert import (
    BertModel,
    BertPredictionTransform,
    BertPretrainedModel,
    VocabularyLogits,
)
from tallow.models.encoders.bert_layers import BertConfig, BertEmbeddings
from tallow.models.encoders.encoder_layers import EncoderLayers, encoder_pattern
from tallow.nn import functional as F
from tallow.nn.attention import merge_heads, split_heads
from tallow.nn.container import ModuleList
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.parameter import Parameter
from tallow.ops.joining import cat

NORMS = ("no_norm", "layer_norm")
EPS = 1e-5  # of norms that read no config, as in transformers


@dataclass(frozen=True, kw_only=True)
class MobileBertConfig(BertConfig):
    """The sizes of a MobileBERT, as BertConfig.

    Attributes:
        embedding_size: E.
        trigram_input: a position reads the embeddings of both neighbours, too.
        use_bottleneck: layers have the width `intra_bottleneck_size`, between maps from and to `hidden_size`.
        use_bottleneck_attention: attention reads the narrow input only.
        key_query_shared_bottleneck: queries and keys read a narrow input of their own.
        num_feedforward_networks: the feed-forward parts of a layer.
        normalization_type: "no_norm", an affine map; or "layer_norm".
        classifier_activation: the pooler has a layer; False means that it returns the first position.
    """

    hidden_act: str = "relu"
    hidden_dropout_prob: float = 0.0
    embedding_size: int = 128
    trigram_input: bool = True
    use_bottleneck: bool = True
    intra_bottleneck_size: int = 128
    use_bottleneck_attention: bool = False
    key_query_shared_bottleneck: bool = True
    num_feedforward_networks: int = 4
    normalization_type: str = NORMS[0]
    classifier_activation: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("mobilebert",)
    layer_counts: ClassVar[tuple[str, ...]] = ("num_hidden_layers", "num_feedforward_networks")
    unread: ClassVar = frozenset({"is_decoder"})
    neutral: ClassVar = frozenset({"true_hidden_size"})  # follows from the others

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_heads("inner_width", "num_attention_heads")
        reads = self.use_bottleneck_attention or self.inner_width == self.hidden_size
        self.require("key_query_shared_bottleneck", "True, or else use_bottleneck_attention", lambda on: on or reads)
        self.require("embedding_size", f"at most {self.hidden_size}", lambda size: size <= self.hidden_size)
        self.require("normalization_type", " or ".join(map(repr, NORMS)), lambda norm: norm in NORMS)

    @property
    def embedding_width(self) -> int:
        return self.embedding_size

    @property
    def inner_width(self) -> int:
        """W."""
        return self.intra_bottleneck_size if self.use_bottleneck else self.hidden_size


class NoNorm(Module):
    """x ⊙ weight + bias"""

    def __init__(self, width: int, device: Any, dtype: Any) -> None:
        super().__init__()
        self.bias = Parameter(zeros(width, device=device, dtype=dtype))
        self.weight = Parameter(ones(width, device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight + self.bias


def _norm(config: MobileBertConfig, width: int, device: Any, dtype: Any, eps: float | None = None) -> Module:
    if config.normalization_type == NORMS[0]:
        return NoNorm(width, device, dtype)
    return LayerNorm(width, config.layer_norm_eps if eps is None else eps, device=device, dtype=dtype)


class MobileBertEmbeddings(BertEmbeddings):
    """The embeddings of each token and its neighbours, mapped to D, plus those of position and segment."""

    def __init__(self, config: MobileBertConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        width, factory = config.hidden_size, {"device": device, "dtype": dtype}
        self.position_embeddings = Embedding(config.max_position_embeddings, width, **factory)
        self.token_type_embeddings = Embedding(config.type_vocab_size, width, **factory)
        self.LayerNorm = _norm(config, width, device, dtype, EPS)
        self.trigram = config.trigram_input
        self.maps = config.trigram_input or config.embedding_size != width
        self.embedding_transformation = Linear((3 if self.trigram else 1) * config.embedding_size, width, **factory)

    def words(self, tokens_BT: Tensor) -> Tensor:
        x_BTE = super().words(tokens_BT)
        if self.trigram:
            after, before = F.pad(x_BTE[:, 1:], (0, 0, 0, 1)), F.pad(x_BTE[:, :-1], (0, 0, 1, 0))
            x_BTE = apply(cat, [after, x_BTE, before], -1)
        return self.embedding_transformation(x_BTE) if self.maps else x_BTE


class MobileBertSelfAttention(Module):
    """Multi-head attention whose queries, keys and values read inputs of their own."""

    def __init__(self, config: MobileBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        inner = config.inner_width
        wide = inner if config.use_bottleneck_attention else config.hidden_size
        self.num_heads = config.num_attention_heads
        self.query = Linear(inner, inner, device=device, dtype=dtype)
        self.key = Linear(inner, inner, device=device, dtype=dtype)
        self.value = Linear(wide, inner, device=device, dtype=dtype)
        self.dropout_p = config.attention_probs_dropout_prob

    def forward(self, inputs: tuple[Tensor, Tensor, Tensor], mask: Tensor | None) -> Tensor:
        q_BHTK, k_BHTK, v_BHTK = (
            split_heads(project(x), self.num_heads)
            for project, x in zip((self.query, self.key, self.value), inputs, strict=True)
        )
        dropout = self.dropout_p if self.training else 0.0
        return merge_heads(F.scaled_dot_product_attention(q_BHTK, k_BHTK, v_BHTK, mask, dropout))


class Residual(Module):
    """norm(dropout(dense(x)) + residual)"""

    def __init__(
        self,
        config: MobileBertConfig,
        wide: int,
        out: int,
        dropout: float,
        device: Any,
        dtype: Any,
        eps: float | None = None,
    ) -> None:
        super().__init__()
        self.dense = Linear(wide, out, device=device, dtype=dtype)
        self.LayerNorm = _norm(config, out, device, dtype, eps)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.LayerNorm(self.dropout(self.dense(x)) + residual)


class MobileBertAttention(Module):
    """Attention, its output projection, and the residual."""

    def __init__(self, config: MobileBertConfig, dropout: float, device: Any, dtype: Any) -> None:
        super().__init__()
        self.self = MobileBertSelfAttention(config, device, dtype)
        self.output = Residual(config, config.inner_width, config.inner_width, dropout, device, dtype)

    def forward(self, inputs: tuple[Tensor, Tensor, Tensor], residual: Tensor, mask: Tensor | None) -> Tensor:
        return self.output(self.self(inputs, mask), residual)


class MobileBertIntermediate(Module):
    """activation(dense(x))"""

    def __init__(self, config: MobileBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dense = Linear(config.inner_width, config.intermediate_size, device=device, dtype=dtype)
        self.activation = activation_named(config.hidden_act)

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.dense(x))


class FFNLayer(Module):
    """A feed-forward part, added to its input."""

    def __init__(self, config: MobileBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.intermediate = MobileBertIntermediate(config, device, dtype)
        self.output = Residual(config, config.intermediate_size, config.inner_width, 0.0, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.intermediate(x), x)


class BottleneckLayer(Module):
    """norm(dense(x))"""

    def __init__(self, config: MobileBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.intra_bottleneck_size, device=device, dtype=dtype)
        self.LayerNorm = _norm(config, config.intra_bottleneck_size, device, dtype)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.LayerNorm(self.dense(x_BTD))


class Bottleneck(Module):
    """Maps a layer's input to what attention reads, and to the residual (B, T, W)."""

    def __init__(self, config: MobileBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.input = BottleneckLayer(config, device, dtype)
        self.attention = BottleneckLayer(config, device, dtype) if config.key_query_shared_bottleneck else None
        self.narrow = config.use_bottleneck_attention

    def forward(self, x_BTD: Tensor) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
        residual = self.input(x_BTD)
        if self.narrow:
            return (residual, residual, residual), residual
        shared = x_BTD if self.attention is None else self.attention(x_BTD)
        return (shared, shared, x_BTD), residual


class MobileBertOutput(Residual):
    """The last feed-forward part's output, added to its input, mapped to D and added to the layer's input."""

    def __init__(self, config: MobileBertConfig, dropout: float, device: Any, dtype: Any) -> None:
        super().__init__(config, config.intermediate_size, config.inner_width, dropout, device, dtype, EPS)
        self.bottleneck = (
            Residual(config, config.inner_width, config.hidden_size, config.hidden_dropout_prob, device, dtype)
            if config.use_bottleneck
            else None
        )


class MobileBertLayer(Module):
    """Attention and feed-forward parts, in the narrow width."""

    def __init__(self, config: MobileBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        dropout = 0.0 if config.use_bottleneck else config.hidden_dropout_prob
        self.attention = MobileBertAttention(config, dropout, device, dtype)
        self.intermediate = MobileBertIntermediate(config, device, dtype)
        self.output = MobileBertOutput(config, dropout, device, dtype)
        self.bottleneck = Bottleneck(config, device, dtype) if config.use_bottleneck else None
        self.ffn = ModuleList(FFNLayer(config, device, dtype) for _ in range(config.num_feedforward_networks - 1))

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        inputs, residual = ((x_BTD,) * 3, x_BTD) if self.bottleneck is None else self.bottleneck(x_BTD)
        x = self.attention(inputs, residual, mask)
        for part in self.ffn:
            x = part(x)
        y = self.output(self.intermediate(x), x)
        return y if self.output.bottleneck is None else self.output.bottleneck(y, x_BTD)


class MobileBertEncoder(EncoderLayers):
    """The layers of a MobileBERT."""

    pattern = encoder_pattern({})

    def __init__(self, config: MobileBertConfig, device: Any, dtype: Any) -> None:
        super().__init__(MobileBertLayer(config, device, dtype) for _ in range(config.num_hidden_layers))

    def limit(self) -> str | None:
        return "layers have bottlenecks"


class MobileBertPooler(Module):
    """The first position, or tanh(dense(x)) of it."""

    def __init__(self, config: MobileBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width = config.hidden_size
        self.dense = Linear(width, width, device=device, dtype=dtype) if config.classifier_activation else None

    def forward(self, x_BTD: Tensor) -> Tensor:
        first_BD = x_BTD[:, 0]
        return first_BD if self.dense is None else F.tanh(self.dense(first_BD))


class MobileBertPretrainedModel(BertPretrainedModel):
    """The base of MobileBERT models with and without a head."""

    config_class = MobileBertConfig
    base_model_prefix = "mobilebert"


class MobileBertModel(MobileBertPretrainedModel, BertModel):
    """The encoder without a head.

    Args:    as BertModel
    """

    embeddings_class = MobileBertEmbeddings
    encoder_class = MobileBertEncoder
    pooler_class = MobileBertPooler

    def __init__(
        self, config: MobileBertConfig, device: Any = None, dtype: Any = None, *, add_pooling_layer: bool = True
    ) -> None:
        has_weights = config.classifier_activation  # a pooler without them is in every checkpoint
        super().__init__(config, device, dtype, add_pooling_layer=add_pooling_layer or not has_weights)


MobileBertPretrainedModel.base_class = MobileBertModel


class MobileBertLMPredictionHead(VocabularyLogits):
    """A transform, then the product with the word embeddings and with D - E further columns, held transposed."""

    def __init__(self, config: MobileBertConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        width = config.hidden_size
        self.transform = BertPredictionTransform(config, width, device, dtype)
        self.dense = Linear(config.vocab_size, width - config.embedding_size, False, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor, embeddings_VE: Tensor) -> Tensor:
        table, bias = (embeddings_VE, self.bias) if self.decoder is None else (self.decoder.weight, self.decoder.bias)
        return F.linear(self.transform(x_BTD), apply(cat, [table, self.dense.weight.T], -1), bias)


class MobileBertMaskedLMHead(Module):
    """The head of the language model, named as in checkpoints."""

    def __init__(self, config: MobileBertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.predictions = MobileBertLMPredictionHead(config, device, dtype)


MobileBertPretrainedModel.lm_head_class = MobileBertMaskedLMHead
