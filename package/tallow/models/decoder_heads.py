"""Heads over decoders that label texts and tokens and find answers; each architecture has classes of its own of them.

Letters: B batch, T positions, D width, N labels.

Source:  names as in transformers' `modeling_layers.py`
"""

from __future__ import annotations

from typing import Any, ClassVar

from tallow.creation import arange
from tallow.errors import ArgumentError
from tallow.models.decoder import DecoderHead
from tallow.models.pretrained import SpanLogits
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear
from tallow.tensor import Tensor


class DecoderForSequenceClassification(DecoderHead):
    """Labels whole texts by their last tokens, which have read all: logits (B, N), in the order of `config.labels`.

    Args:    as DecoderModel
    """

    def __init__(self, config: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        width = self.base_model.token_embedding.embedding_dim
        self.score = Linear(width, len(config.labels), False, device, dtype)
        self.reset_parameters()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """
        Args:    as DecoderModel's; the last token of a text is the last that is not `config.pad_token_id`
        Raises:  ArgumentError for several texts where the config has no pad_token_id; and as DecoderModel's
        """
        last_B = last_tokens(input_ids, self.config.pad_token_id)
        hidden_BTD = self.base_model(input_ids, attention_mask)
        return self.score(hidden_BTD[arange(len(last_B), device=last_B.device), last_B])


def last_tokens(tokens_BT: Tensor, pad_token_id: int | None) -> Tensor:
    """The place of each text's last token that is no padding, (B,); 0 where there is none."""
    batch, length = tokens_BT.shape
    places_T = arange(length, device=tokens_BT.device)
    if pad_token_id is not None:
        return (places_T * tokens_BT.ne(pad_token_id)).argmax(-1)
    if batch > 1:
        raise ArgumentError(
            f"{batch} texts, and no pad_token_id in the config that would tell where each ends",
            mend="set pad_token_id in the config, or pass one text at a time",
        )
    return places_T[-1:]


class DecoderForTokenClassification(DecoderHead):
    """Labels every token: logits (B, T, N), in the order of `config.labels`. A token has read those before it only.

    Args:    as DecoderModel

    Attributes:
        classifier_name: of the last layer, in checkpoints
    """

    classifier_name: ClassVar[str] = "score"

    def __init__(self, config: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        width = self.base_model.token_embedding.embedding_dim
        self.dropout = Dropout(config.classifier_dropout)
        self.add_module(self.classifier_name, Linear(width, len(config.labels), True, device, dtype))
        self.reset_parameters()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """
        Args:    as DecoderModel's
        """
        classify = getattr(self, self.classifier_name)
        return classify(self.dropout(self.base_model(input_ids, attention_mask)))


class DecoderForQuestionAnswering(DecoderHead):
    """Finds where an answer starts and ends: logits (B, T) of either.

    Args:    as DecoderModel
    """

    def __init__(self, config: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        self.qa_outputs = Linear(self.base_model.token_embedding.embedding_dim, 2, True, device, dtype)
        self.reset_parameters()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> SpanLogits:
        """
        Args:    as DecoderModel's
        """
        return SpanLogits(*self.qa_outputs(self.base_model(input_ids, attention_mask)).unbind(-1))
