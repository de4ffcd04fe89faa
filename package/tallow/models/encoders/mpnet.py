"""MPNet: BERT's encoder with RoBERTa's positions and a bias of attention by the distance of two positions.

Loads Hugging Face folders of `MPNetModel`, `MPNetForMaskedLM`, `MPNetForSequenceClassification`,
`MPNetForTokenClassification`, `MPNetForQuestionAnswering` and `MPNetForMultipleChoice`; the heads are RoBERTa's.

Letters: B batch, T positions, D width, H heads, K head width.

Source:  Song et al. 2020, arXiv:2004.09297; names as in transformers' `modeling_mpnet.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.fused.eligibility import Kind
from tallow.models.config import Count
from tallow.models.encoders.bert import BertModel, BertPretrainedModel
from tallow.models.encoders.bert_layers import BertConfig, BertIntermediate, BertResidual
from tallow.models.encoders.encoder_layers import ACTIVATION, ATTENTION, EncoderLayers, encoder_pattern
from tallow.models.encoders.roberta import RobertaEmbeddings
from tallow.nn import functional as F
from tallow.nn.attention import merge_heads, split_heads
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm
from tallow.nn.relative_positions import bucket_bias

PADDING = 1  # the id of padding, which no config changes
BUCKETS, LONGEST = 32, 128  # of distances; transformers computes these whatever the table's size


@dataclass(frozen=True, kw_only=True)
class MPNetConfig(BertConfig):
    """The sizes of an MPNet, as BertConfig.

    Attributes:
        max_position_embeddings: the longest text's length plus 2, the position of its first token.
        relative_attention_num_buckets: the rows of the table of biases, of which 32 are read.
    """

    pad_token_id: int = PADDING
    type_vocab_size: Count = 0
    relative_attention_num_buckets: int = BUCKETS

    model_types: ClassVar[tuple[str, ...]] = ("mpnet",)
    unread: ClassVar = frozenset({"pad_token_id", "is_decoder", "type_vocab_size", "classifier_dropout"})

    @classmethod
    def prepare(cls, entries: dict[str, Any]) -> None:
        super().prepare(entries)
        entries.pop("pad_token_id", None)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("relative_attention_num_buckets", f"{BUCKETS} or more", lambda count: count >= BUCKETS)


class MPNetSelfAttention(Module):
    """Multi-head self-attention."""

    def __init__(self, config: MPNetConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.num_heads = config.num_attention_heads
        for name in "qkvo":
            self.add_module(name, Linear(config.hidden_size, config.hidden_size, device=device, dtype=dtype))
        self.dropout_p = config.attention_probs_dropout_prob

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        q_BHTK, k_BHTK, v_BHTK = (split_heads(project(x_BTD), self.num_heads) for project in (self.q, self.k, self.v))
        dropout = self.dropout_p if self.training else 0.0
        return self.o(merge_heads(F.scaled_dot_product_attention(q_BHTK, k_BHTK, v_BHTK, mask, dropout)))


class MPNetAttention(Module):
    """Self-attention, added to its input and normalised."""

    def __init__(self, config: MPNetConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.attn = MPNetSelfAttention(config, device, dtype)
        self.LayerNorm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        return self.LayerNorm(self.dropout(self.attn(x_BTD, mask)) + x_BTD)


class MPNetLayer(Module):
    """Attention, then a feed-forward part; each is added to its input, then normalised."""

    def __init__(self, config: MPNetConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.attention = MPNetAttention(config, device, dtype)
        self.intermediate = BertIntermediate(config, device, dtype)
        self.output = BertResidual(config.intermediate_size, config, device, dtype)

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        x_BTD = self.attention(x_BTD, mask)
        return self.output(self.intermediate(x_BTD), x_BTD)


class MPNetEncoder(EncoderLayers):
    """The layers of an MPNet, and the bias of attention in all of them."""

    pattern = encoder_pattern(
        {
            **dict.fromkeys((MPNetLayer, MPNetAttention, BertResidual), Kind()),
            MPNetSelfAttention: ATTENTION,
            BertIntermediate: ACTIVATION,
        }
    )

    def __init__(self, config: MPNetConfig, device: Any, dtype: Any) -> None:
        super().__init__(MPNetLayer(config, device, dtype) for _ in range(config.num_hidden_layers))
        self.relative_attention_bias = Embedding(
            config.relative_attention_num_buckets, config.num_attention_heads, device=device, dtype=dtype
        )

    def limit(self) -> str | None:
        return "attention has a bias"

    def bias(self, length: int) -> Tensor:
        return bucket_bias(
            self.relative_attention_bias, length, length, bidirectional=True, longest=LONGEST, count=BUCKETS
        )


class MPNetPretrainedModel(BertPretrainedModel):
    """The base of MPNet models with and without a head."""

    config_class = MPNetConfig
    base_model_prefix = "mpnet"
    heads = ("lm_head.", "classifier.", "qa_outputs.")
    head_family = "Roberta"


class MPNetModel(MPNetPretrainedModel, BertModel):
    """The encoder without a head.

    Args:    as BertModel
    """

    embeddings_class = RobertaEmbeddings
    encoder_class = MPNetEncoder


MPNetPretrainedModel.base_class = MPNetModel
