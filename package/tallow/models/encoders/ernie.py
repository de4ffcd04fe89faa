"""ERNIE: BERT's encoder, with an embedding of the task in later versions.

Loads Hugging Face folders of `ErnieModel`, `ErnieForMaskedLM`, `ErnieForCausalLM`, `ErnieForPreTraining`,
`ErnieForNextSentencePrediction`, `ErnieForSequenceClassification`, `ErnieForTokenClassification`,
`ErnieForQuestionAnswering` and `ErnieForMultipleChoice`; the heads are BERT's.

Letters: B batch, T positions, D width.

Source:  Sun et al. 2019, arXiv:1907.12412; names as in transformers' `modeling_ernie.py`
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tallow.core.tensor import Tensor
from tallow.models.encoders.bert import BertModel, BertPretrainedModel
from tallow.models.encoders.bert_layers import BertConfig, BertEmbeddings
from tallow.nn.embedding import Embedding


@dataclass(frozen=True, kw_only=True)
class ErnieConfig(BertConfig):
    """The sizes of an ERNIE, as BertConfig.

    Attributes:
        use_task_id: add an embedding of the task, which is always the first.
        task_type_vocab_size: the number of tasks.
    """

    use_task_id: bool = False
    task_type_vocab_size: int = 3

    model_types: ClassVar[tuple[str, ...]] = ("ernie",)
    neutral: ClassVar = BertConfig.neutral | {"enable_recompute", "pool_act", "fuse"}  # of PaddlePaddle's program


class ErnieEmbeddings(BertEmbeddings):
    """BERT's embeddings, and that of the task."""

    def __init__(self, config: ErnieConfig, device: Any, dtype: Any) -> None:
        super().__init__(config, device, dtype)
        self.task_type_embeddings = (
            Embedding(config.task_type_vocab_size, config.hidden_size, device=device, dtype=dtype)
            if config.use_task_id
            else None
        )

    def sum(self, tokens_BT: Tensor, segments_BT: Tensor | None) -> Tensor:
        x_BTD = super().sum(tokens_BT, segments_BT)
        return x_BTD if self.task_type_embeddings is None else x_BTD + self.task_type_embeddings.weight[0]


class ErniePretrainedModel(BertPretrainedModel):
    """The base of ERNIE models with and without a head."""

    config_class = ErnieConfig
    base_model_prefix = "ernie"


class ErnieModel(ErniePretrainedModel, BertModel):
    """The encoder without a head.

    Args:    as BertModel
    """

    embeddings_class = ErnieEmbeddings


ErniePretrainedModel.base_class = ErnieModel
