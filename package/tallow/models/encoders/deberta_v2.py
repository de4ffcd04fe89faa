"""DeBERTa v2 and v3: an encoder whose attention reads content and distance apart ("disentangled").

Loads Hugging Face folders of `DebertaV2Model`, `DebertaV2ForMaskedLM`, `DebertaV2ForSequenceClassification`,
`DebertaV2ForTokenClassification`, `DebertaV2ForQuestionAnswering` and `DebertaV2ForMultipleChoice`.

Letters: B batch, T positions, D width, H heads, K head width, P distances, E width of embeddings, V vocabulary.

Source:  He et al. 2020, arXiv:2006.03654; He et al. 2021, arXiv:2111.09543; names as in transformers'
         `modeling_deberta_v2.py`
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tallow import devices, dtypes
from tallow.core.creation import arange, from_numpy, zeros
from tallow.core.public_api import PUBLIC
from tallow.core.tensor import Tensor, wrap
from tallow.errors import ArgumentError
from tallow.models.activations import activation_named
from tallow.models.config import Count
from tallow.models.encoders.bert import (
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    BertPredictionTransform,
    BertPretrainedModel,
    without_pooler,
)
from tallow.models.encoders.bert_layers import BertConfig, BertEmbeddings, BertIntermediate, BertResidual
from tallow.models.encoders.encoder_layers import ATTENTION, EncoderLayers, encoder_pattern
from tallow.nn import functional as F
from tallow.nn.attention import merge_heads, split_heads
from tallow.nn.convolution import Conv1d
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.parameter import Parameter
from tallow.nn.relative_positions import log_buckets
from tallow.tape.modes import is_exporting

where = PUBLIC["tl"]["where"]
TO_POSITION, TO_CONTENT = "c2p", "p2c"  # attention from content to distances, and from distances to content
NORM = "layer_norm"


@dataclass(frozen=True, kw_only=True)
class DebertaV2Config(BertConfig):
    """The sizes of a DeBERTa v2 or v3, as BertConfig.

    Attributes:
        embedding_size: E; None means `hidden_size`.
        relative_attention: attention reads distances, in the terms that `pos_att_type` names: "c2p" and "p2c".
        max_relative_positions: the furthest distance with embeddings of its own; below 1 it is
            `max_position_embeddings`.
        position_buckets: so many embeddings of distances on each side, see `nn.relative_positions.log_buckets`; below
            1 each distance has one.
        share_att_key: distances are projected as tokens are.
        norm_rel_ebd: "layer_norm" normalizes the embeddings of distances; "none" does not.
        position_biased_input: add embeddings of positions to those of tokens.
        conv_kernel_size: the width of a convolution beside the first layer; 0 means none.
        legacy: the language model's head has its own output matrix, as BERT's; v3 has none.
        cls_dropout: the dropout probability before a classifier of texts; None means hidden_dropout_prob.
    """

    type_vocab_size: Count = 0
    layer_norm_eps: float = 1e-7
    embedding_size: int | None = None
    attention_head_size: int | None = None
    relative_attention: bool = False
    max_relative_positions: int | None = None
    position_buckets: int | None = None
    pos_att_type: tuple[str, ...] = ()
    share_att_key: bool = False
    norm_rel_ebd: str = "none"
    position_biased_input: bool = True
    conv_kernel_size: Count = 0
    conv_groups: int = 1
    conv_act: str = "tanh"
    pooler_dropout: float = 0.0
    pooler_hidden_act: str = "gelu"
    pooler_hidden_size: int | None = None
    cls_dropout: float | None = None
    legacy: bool = True

    model_types: ClassVar[tuple[str, ...]] = ("deberta-v2",)
    unread: ClassVar = frozenset({"is_decoder", "classifier_dropout"})
    neutral: ClassVar = frozenset({"summary_type", "padding_idx"})

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("conv_act", "pooler_hidden_act"):
            activation_named(getattr(self, name))
        kinds = {TO_POSITION, TO_CONTENT}
        self.require("pos_att_type", "some of 'c2p' and 'p2c'", lambda terms: {*terms} <= kinds)
        self.require("norm_rel_ebd", f"{NORM!r} or 'none'", lambda norm: norm in (NORM, "none"))
        head = self.hidden_size // self.num_attention_heads
        self.require("attention_head_size", f"{head} or None", lambda size: size in (head, None))
        width = self.hidden_size
        self.require("pooler_hidden_size", f"{width} or None", lambda size: size in (width, None))
        self.require("conv_kernel_size", "an odd number, or 0", lambda size: size == 0 or size % 2)
        self.require("conv_groups", f"a divisor of {width}", lambda groups: width % groups == 0)
        furthest = self.furthest
        self.require(
            "position_buckets", f"2 to {2 * furthest - 3}", lambda count: count is None or 1 < count < 2 * furthest - 2
        )

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        terms = entries.get("pos_att_type")
        if isinstance(terms, str):
            terms = [term.strip() for term in terms.lower().split("|")]
        if isinstance(terms, list):
            entries["pos_att_type"] = tuple(term for term in terms if term)
        if isinstance(norm := entries.get("norm_rel_ebd"), str):
            entries["norm_rel_ebd"] = norm.strip().lower()
        for name in ("max_relative_positions", "position_buckets"):
            if type(count := entries.get(name)) is int and count < 1:
                entries[name] = None

    @property
    def adds_positions(self) -> bool:
        return self.position_biased_input

    @property
    def embedding_width(self) -> int:
        return self.embedding_size or self.hidden_size

    @property
    def furthest(self) -> int:
        """The furthest distance with embeddings of its own."""
        return self.max_relative_positions or self.max_position_embeddings

    @property
    def span(self) -> int:
        """The number of distances on each side, P / 2."""
        return self.position_buckets or self.furthest

    @property
    def head_dropout(self) -> float:
        return self.hidden_dropout_prob


class Distances(NamedTuple):
    """The embeddings of distances (P, D), and the row of each query and key (T, T)."""

    table_PD: Tensor
    row_TT: Tensor


class DebertaV2Embeddings(BertEmbeddings):
    """BERT's embeddings, mapped to the width of the layers and normalised there."""

    def __init__(self, config: DebertaV2Config, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        width = config.hidden_size
        self.embed_proj = (
            None
            if config.embedding_width == width
            else Linear(config.embedding_width, width, False, device=device, dtype=dtype)
        )
        self.LayerNorm = LayerNorm(width, config.layer_norm_eps, device=device, dtype=dtype)

    def sum(self, tokens_BT: Tensor, segments_BT: Tensor | None) -> Tensor:
        x_BTE = super().sum(tokens_BT, segments_BT)
        return x_BTE if self.embed_proj is None else self.embed_proj(x_BTE)


class DisentangledSelfAttention(Module):
    """Multi-head self-attention whose scores add products of content with distances."""

    def __init__(self, config: DebertaV2Config, device: Any, dtype: Any) -> None:
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.terms = config.pos_att_type
        self.dropout_p = config.attention_probs_dropout_prob
        names = ["query_proj", "key_proj", "value_proj"]
        if config.relative_attention and not config.share_att_key:
            names += ["pos_key_proj"] if TO_POSITION in self.terms else []
            names += ["pos_query_proj"] if TO_CONTENT in self.terms else []
        for name in names:
            self.add_module(name, Linear(config.hidden_size, config.hidden_size, device=device, dtype=dtype))
        self.shares = config.share_att_key
        self.scale = 1 / math.sqrt(config.hidden_size // config.num_attention_heads * (1 + len(self.terms)))

    def forward(self, x_BTD: Tensor, mask: Tensor | None, distances: Distances | None) -> Tensor:
        """Attend.  Args: mask: what is added to the scores; distances: None without relative attention"""
        q_BHTK, k_BHTK, v_BHTK = (
            split_heads(project(x_BTD), self.num_heads) for project in (self.query_proj, self.key_proj, self.value_proj)
        )
        if distances is not None and self.terms:
            bias_BHTT = self.bias(q_BHTK, k_BHTK, distances)
            mask = bias_BHTT if mask is None else mask + bias_BHTT
        dropout = self.dropout_p if self.training else 0.0
        return merge_heads(F.scaled_dot_product_attention(q_BHTK, k_BHTK, v_BHTK, mask, dropout, scale=self.scale))

    def bias(self, q_BHTK: Tensor, k_BHTK: Tensor, distances: Distances) -> Tensor:
        """Return what distances add to the scores, (B, H, T, T)."""
        total: Any = 0
        places_T = arange(q_BHTK.shape[2], device=q_BHTK.device)
        key, query = ("key_proj", "query_proj") if self.shares else ("pos_key_proj", "pos_query_proj")
        if TO_POSITION in self.terms:
            scores_BHTP = q_BHTK @ self._heads(key, distances).mT
            total = scores_BHTP[:, :, places_T[:, None], distances.row_TT]
        if TO_CONTENT in self.terms:
            scores_BHTP = k_BHTK @ self._heads(query, distances).mT
            total = total + scores_BHTP[:, :, places_T, distances.row_TT]
        return total * self.scale

    def _heads(self, name: str, distances: Distances) -> Tensor:
        """Return the embeddings of distances for each head, (1, H, P, K)."""
        return split_heads(getattr(self, name)(distances.table_PD)[None], self.num_heads)


class DebertaV2Attention(Module):
    """Self-attention, its output projection, and the residual."""

    def __init__(self, config: DebertaV2Config, device: Any, dtype: Any) -> None:
        super().__init__()
        self.self = DisentangledSelfAttention(config, device, dtype)
        self.output = BertResidual(config.hidden_size, config, device, dtype)

    def forward(self, x_BTD: Tensor, mask: Tensor | None, distances: Distances | None) -> Tensor:
        return self.output(self.self(x_BTD, mask, distances), x_BTD)


class DebertaV2Layer(Module):
    """Attention, then a feed-forward part; each is added to its input, then normalised."""

    def __init__(self, config: DebertaV2Config, device: Any, dtype: Any) -> None:
        super().__init__()
        self.attention = DebertaV2Attention(config, device, dtype)
        self.intermediate = BertIntermediate(config, device, dtype)
        self.output = BertResidual(config.intermediate_size, config, device, dtype)

    def forward(self, x_BTD: Tensor, mask: Tensor | None, distances: Distances | None) -> Tensor:
        x_BTD = self.attention(x_BTD, mask, distances)
        return self.output(self.intermediate(x_BTD), x_BTD)


class ConvLayer(Module):
    """LayerNorm(layer's output + activation(convolution of the embeddings)), with zeros at padding."""

    def __init__(self, config: DebertaV2Config, device: Any, dtype: Any) -> None:
        super().__init__()
        width, kernel = config.hidden_size, config.conv_kernel_size
        self.conv = Conv1d(
            width, width, kernel, padding=kernel // 2, groups=config.conv_groups, device=device, dtype=dtype
        )
        self.LayerNorm = LayerNorm(width, config.layer_norm_eps, device=device, dtype=dtype)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.activation = activation_named(config.conv_act)

    def forward(self, x_BTD: Tensor, output_BTD: Tensor, seen_BT1: Tensor | None) -> Tensor:
        y_BTD = self.conv(x_BTD.mT).mT
        if seen_BT1 is not None:
            y_BTD = y_BTD.masked_fill(~seen_BT1, 0.0)
        normed_BTD = self.LayerNorm(output_BTD + self.activation(self.dropout(y_BTD)))
        return normed_BTD if seen_BT1 is None else normed_BTD * seen_BT1


class DebertaV2Encoder(EncoderLayers):
    """The layers of a DeBERTa, and the embeddings of distances for all of them."""

    pattern = encoder_pattern({DisentangledSelfAttention: ATTENTION})

    def __init__(self, config: DebertaV2Config, device: Any, dtype: Any) -> None:
        super().__init__(DebertaV2Layer(config, device, dtype) for _ in range(config.num_hidden_layers))
        self.config = config
        width, norm = config.hidden_size, config.norm_rel_ebd == NORM
        self.rel_embeddings = (
            Embedding(2 * config.span, width, device=device, dtype=dtype) if config.relative_attention else None
        )
        self.LayerNorm = LayerNorm(width, config.layer_norm_eps, device=device, dtype=dtype) if norm else None
        self.conv = ConvLayer(config, device, dtype) if config.conv_kernel_size else None
        self.dropout = Dropout(config.hidden_dropout_prob)

    def limit(self) -> str | None:
        return "attention reads distances"

    def run_layers(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        distances = self.distances(x_BTD.shape[1])
        seen_BT1, pairs = None, None
        if mask is not None:
            seen_BT1 = mask.squeeze(1).mT
            x_BTD = x_BTD * seen_BT1
            # The least number, not -inf: padding attends to all positions alike, as in transformers.
            pairs = where(mask & mask.mT, 0.0, dtypes.finfo(x_BTD.dtype).min).to(x_BTD.dtype)
        y_BTD = x_BTD
        for i, layer in enumerate(self.layer):
            y_BTD = layer(y_BTD, pairs, distances)
            if i == 0 and self.conv is not None:
                y_BTD = self.conv(x_BTD, y_BTD, seen_BT1)
        return y_BTD

    def distances(self, length: int) -> Distances | None:
        """Return the embeddings of distances, and the row of each query and key of a text."""
        if self.rel_embeddings is None:
            return None
        table_PD, span = self.rel_embeddings.weight, self.config.span
        if self.LayerNorm is not None:
            table_PD = self.LayerNorm(table_PD)
        return Distances(self.dropout(table_PD), self._rows(length, span, table_PD.device))

    def _rows(self, length: int, span: int, device: Any) -> Tensor:
        """Return the row (T, T) of the distance from each key to each query."""
        if is_exporting():  # a graph has to know no length; all distances beyond are in one bucket
            far = max(self.config.furthest, span)
            places_T = arange(length, device=device)
            apart_TT = (places_T[:, None] - places_T).clamp(-far, far) + far
            return from_numpy(self._row_of(np.arange(-far, far + 1), span)).to(device)[apart_TT]
        rows = self._row_of(np.arange(1 - length, length), span)
        places = np.arange(length)
        return wrap(devices.move(rows[places[:, None] - places + length - 1], device))

    def _row_of(self, apart: Any, span: int) -> Any:
        if self.config.position_buckets:
            apart = log_buckets(apart, count=self.config.position_buckets, longest=self.config.furthest)
        return np.clip(apart + span, 0, 2 * span - 1)


class DebertaV2PretrainedModel(BertPretrainedModel):
    """The base of DeBERTa models with and without a head."""

    config_class = DebertaV2Config
    base_model_prefix = "deberta"
    # The head of v3 that tells replaced tokens from others, as ELECTRA's, and what older files hold for it.
    heads = ("cls.", "lm_predictions.", "mask_predictions.", "classifier.", "qa_outputs.", "pooler.")

    def is_superfluous(self, name: str) -> bool:
        return super().is_superfluous(name) or name.endswith("embeddings.position_embeddings.weight")


class DebertaV2Model(DebertaV2PretrainedModel, BertModel):
    """The encoder without a head, and without a pooler.

    Args:    as BertModel
    """

    embeddings_class = DebertaV2Embeddings
    encoder_class = DebertaV2Encoder

    def __init__(
        self, config: DebertaV2Config, device: Any = None, dtype: Any = None, *, add_pooling_layer: bool = False
    ) -> None:
        super().__init__(config, device, dtype, add_pooling_layer=without_pooler("DeBERTa", add_pooling_layer))

    @classmethod
    def parts_of(cls, state: Any) -> dict[str, bool]:
        return dict.fromkeys(super().parts_of(state), False)  # a pooler in a checkpoint is the classifier's


DebertaV2PretrainedModel.base_class = DebertaV2Model


class DebertaV2LMPredictionHead(BertPredictionTransform):
    """The head of v3: a transform, then the product with the word embeddings and a bias."""

    def __init__(self, config: DebertaV2Config, device: Any, dtype: Any) -> None:
        super().__init__(config, config.hidden_size, device, dtype)
        self.bias = Parameter(zeros(config.vocab_size, device=device, dtype=dtype))


class DebertaV2OnlyMLMHead(Module):
    """The head of v3, named as in checkpoints."""

    def __init__(self, config: DebertaV2Config, device: Any, dtype: Any) -> None:
        super().__init__()
        self.lm_head = DebertaV2LMPredictionHead(config, device, dtype)


class DebertaV2ForMaskedLM(DebertaV2PretrainedModel, BertForMaskedLM):
    """Predicts the tokens behind [MASK]: logits (B, T, V).

    Args:    as BertModel
    """

    def add_head(self, device: Any, dtype: Any) -> None:
        if self.config.legacy:
            super().add_head(device, dtype)
        elif self.config.embedding_width != self.config.hidden_size:
            raise ArgumentError("the language model's head of v3 has no embedding_size", hint="set legacy")
        else:
            self.lm_predictions = DebertaV2OnlyMLMHead(self.config, device, dtype)

    def predict(self, x_BTD: Tensor, embeddings_VE: Tensor) -> Tensor:
        if self.config.legacy:
            return super().predict(x_BTD, embeddings_VE)
        head = self.lm_predictions.lm_head
        return F.linear(head(x_BTD), embeddings_VE, head.bias)


class ContextPooler(Module):
    """activation(dense(x)) of the first position, which represents the text."""

    def __init__(self, config: DebertaV2Config, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size, device=device, dtype=dtype)
        self.dropout = Dropout(config.pooler_dropout)
        self.activation = activation_named(config.pooler_hidden_act)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.activation(self.dense(self.dropout(x_BTD[:, 0])))


class DebertaV2ForSequenceClassification(DebertaV2PretrainedModel, BertForSequenceClassification):
    """Labels whole texts: logits (B, N), in the order of `config.labels`.

    Args:    as BertModel
    """

    pools_itself = False

    def __init__(self, config: DebertaV2Config, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        self.pooler = ContextPooler(config, device, dtype)
        self.dropout = Dropout(config.hidden_dropout_prob if config.cls_dropout is None else config.cls_dropout)
        self.reset_parameters()

    def pooled(self, input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor | None) -> Tensor:
        return self.pooler(self.base_model(input_ids, attention_mask, token_type_ids).last_hidden_state)
