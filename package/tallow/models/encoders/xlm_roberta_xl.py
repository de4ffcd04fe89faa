"""XLM-RoBERTa-XL: RoBERTa whose parts normalize their input, not their output.

Loads Hugging Face folders of `XLMRobertaXLModel`, `XLMRobertaXLForMaskedLM`, `XLMRobertaXLForSequenceClassification`,
`XLMRobertaXLForTokenClassification`, `XLMRobertaXLForQuestionAnswering` and `XLMRobertaXLForMultipleChoice`; the heads
are RoBERTa's.

Letters: B batch, T positions, D width.

Source:  Goyal et al. 2021, arXiv:2105.00572; names as in transformers' `modeling_xlm_roberta_xl.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.encoders.bert import BertModel, BertPretrainedModel
from tallow.models.encoders.bert_layers import BertConfig, BertIntermediate, BertSelfAttention
from tallow.models.encoders.encoder_layers import EncoderLayers, encoder_pattern
from tallow.models.encoders.roberta import RobertaConfig, RobertaEmbeddings
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Identity, Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm


@dataclass(frozen=True, kw_only=True)
class XLMRobertaXLConfig(RobertaConfig):
    """The sizes of an XLM-RoBERTa-XL, as RobertaConfig."""

    max_position_embeddings: int = 514
    type_vocab_size: int = 1
    layer_norm_eps: float = 1e-5

    model_types: ClassVar[tuple[str, ...]] = ("xlm-roberta-xl",)


class XLMRobertaXLEmbeddings(RobertaEmbeddings):
    """RoBERTa's embeddings, not normalised."""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.LayerNorm = Identity()


class XLMRobertaXLOutput(Module):
    """residual + dropout(dense(x))"""

    def __init__(self, in_features: int, dropout: float, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dense = Linear(in_features, config.hidden_size, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, residual_BTD: Tensor) -> Tensor:
        return residual_BTD + self.dropout(self.dense(x))


class XLMRobertaXLAttention(Module):
    """Self-attention of normalised input, its output projection, and the residual."""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        width = config.hidden_size
        self.self = BertSelfAttention(config, device, dtype)
        self.output = XLMRobertaXLOutput(width, config.hidden_dropout_prob, config, device, dtype)
        self.self_attn_layer_norm = LayerNorm(width, config.layer_norm_eps, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        return self.output(self.self(self.self_attn_layer_norm(x_BTD), mask), x_BTD)


class XLMRobertaXLLayer(Module):
    """Attention, then a feed-forward part; each reads normalised input and is added to it."""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.attention = XLMRobertaXLAttention(config, device, dtype)
        self.intermediate = BertIntermediate(config, device, dtype)
        self.output = XLMRobertaXLOutput(config.intermediate_size, 0.0, config, device, dtype)
        self.LayerNorm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        x_BTD = self.attention(x_BTD, mask)
        return self.output(self.intermediate(self.LayerNorm(x_BTD)), x_BTD)


class XLMRobertaXLEncoder(EncoderLayers):
    """The layers, and a norm."""

    pattern = encoder_pattern({})

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__(XLMRobertaXLLayer(config, device, dtype) for _ in range(config.num_hidden_layers))
        self.LayerNorm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)

    def limit(self) -> str | None:
        return "layers normalize their input"

    def run_layers(self, x_BTD: Tensor, mask: Tensor | None) -> Tensor:
        return self.LayerNorm(super().run_layers(x_BTD, mask))


class XLMRobertaXLPretrainedModel(BertPretrainedModel):
    """The base of XLM-RoBERTa-XL models with and without a head."""

    config_class = XLMRobertaXLConfig
    base_model_prefix = "roberta"
    heads = ("lm_head.", "classifier.", "qa_outputs.")
    head_family = "Roberta"


class XLMRobertaXLModel(XLMRobertaXLPretrainedModel, BertModel):
    """The encoder without a head.

    Args:    as BertModel
    """

    embeddings_class = XLMRobertaXLEmbeddings
    encoder_class = XLMRobertaXLEncoder


XLMRobertaXLPretrainedModel.base_class = XLMRobertaXLModel
