"""RoBERTa, XLM-RoBERTa and CamemBERT: BERT's encoder with positions counted from the padding token's id, and its heads.

Loads Hugging Face folders of `RobertaModel`, `RobertaForMaskedLM`, `RobertaForCausalLM`,
`RobertaForSequenceClassification`, `RobertaForTokenClassification`, `RobertaForQuestionAnswering`, and the same of
`XLMRoberta` and `Camembert`.

Letters: B batch, T positions, D width, V vocabulary, N labels.

Source:  Liu et al. 2019, arXiv:1907.11692; Conneau et al. 2019, arXiv:1911.02116; names as in transformers'
         `modeling_roberta.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.encoders.bert import (
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForTokenClassification,
    BertModel,
    BertPretrainedModel,
    VocabularyLogits,
)
from tallow.models.encoders.bert_layers import BertConfig, BertEmbeddings
from tallow.models.pretrained import check_length
from tallow.nn import functional as F
from tallow.nn.dropout import Dropout
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.normalization import LayerNorm


@dataclass(frozen=True, kw_only=True)
class RobertaConfig(BertConfig):
    """The sizes of a RoBERTa, as BertConfig.

    Attributes:
        max_position_embeddings: the longest text's length plus `pad_token_id` + 1, the position of its first token.
    """

    pad_token_id: int = 1

    model_types: ClassVar[tuple[str, ...]] = ("roberta", "xlm-roberta", "camembert")


class RobertaEmbeddings(BertEmbeddings):
    """BERT's embeddings with other positions: `pad_token_id` + 1 for the first token, `pad_token_id` for padding."""

    def __init__(self, config: BertConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.padding_idx = config.pad_token_id
        self.context_length = config.max_position_embeddings - config.pad_token_id - 1
        self.position_embeddings = Embedding(
            config.max_position_embeddings, config.hidden_size, config.pad_token_id, device=device, dtype=dtype
        )

    def positions(self, tokens_BT: Tensor) -> Tensor:
        check_length(tokens_BT.shape[1], self.context_length)
        is_text_BT = tokens_BT.ne(self.padding_idx).long()
        return is_text_BT.cumsum(1) * is_text_BT + self.padding_idx


class RobertaPretrainedModel(BertPretrainedModel):
    """The base of RoBERTa models with and without a head."""

    config_class: ClassVar[type[BertConfig]] = RobertaConfig
    base_model_prefix = "roberta"
    heads: ClassVar[tuple[str, ...]] = ("lm_head.", "classifier.", "qa_outputs.")
    head_family = "Roberta"


class RobertaModel(RobertaPretrainedModel, BertModel):
    """The encoder without a head.

    Args:    as BertModel
    """

    embeddings_class = RobertaEmbeddings


RobertaPretrainedModel.base_class = RobertaModel


class RobertaLMHead(VocabularyLogits):
    """layer_norm(gelu(dense(x))), then logits over the vocabulary."""

    def __init__(self, config: RobertaConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.dense = Linear(config.hidden_size, config.hidden_size, device=device, dtype=dtype)
        self.layer_norm = LayerNorm(config.hidden_size, config.layer_norm_eps, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor, embeddings_VD: Tensor) -> Tensor:
        return self.logits(self.layer_norm(F.gelu(self.dense(x_BTD))), embeddings_VD)


class RobertaForMaskedLM(RobertaPretrainedModel, BertForMaskedLM):
    """Predicts the tokens behind <mask>: logits (B, T, V).

    Args:    as BertModel
    """

    def add_head(self, device: Any, dtype: Any) -> None:
        self.lm_head = RobertaLMHead(self.config, device, dtype)

    def predict(self, x_BTD: Tensor, embeddings_VE: Tensor) -> Tensor:
        return self.lm_head(x_BTD, embeddings_VE)


class RobertaForCausalLM(RobertaForMaskedLM):
    """Predicts the token after each position: logits (B, T, V); as BertLMHeadModel.

    Args:    as BertModel
    """


class RobertaClassificationHead(Module):
    """Logits of the labels from the first position, which represents the text."""

    activation = staticmethod(F.tanh)

    def __init__(self, config: RobertaConfig, device: Any, dtype: Any) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.hidden_size, device=device, dtype=dtype)
        self.dropout = Dropout(config.head_dropout)
        self.out_proj = Linear(config.hidden_size, len(config.labels), device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BD = self.activation(self.dense(self.dropout(x_BTD[:, 0])))
        return self.out_proj(self.dropout(x_BD))


class RobertaForSequenceClassification(RobertaPretrainedModel):
    """Labels whole texts: logits (B, N), in the order of `config.labels`.

    Args:    as BertModel
    """

    head_class: ClassVar[type[RobertaClassificationHead]] = RobertaClassificationHead

    def __init__(self, config: RobertaConfig, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config)
        self.add_base_model(device, dtype)
        self.classifier = self.head_class(config, device, dtype)
        self.reset_parameters()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        return self.classifier(self.base_model(input_ids, attention_mask, token_type_ids).last_hidden_state)


class RobertaForTokenClassification(RobertaPretrainedModel, BertForTokenClassification):
    """Labels every token: logits (B, T, N), in the order of `config.labels`.

    Args:    as BertModel
    """


class RobertaForQuestionAnswering(RobertaPretrainedModel, BertForQuestionAnswering):
    """Finds where an answer starts and ends: logits (B, T) for each.

    Args:    as BertModel
    """
