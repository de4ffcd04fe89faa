"""Decoder heads that label texts, label tokens, or find answers; each architecture derives its own classes.

Letters: B batch, T positions, D width, N labels.

Source:  names as in transformers' `modeling_layers.py`
"""

from __future__ import annotations

from typing import Any, ClassVar

from tallow.core.creation import arange
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.models.decoders.decoder import DecoderHead
from tallow.models.pretrained import SpanLogits
from tallow.nn.dropout import Dropout
from tallow.nn.linear import Linear


class DecoderForSequenceClassification(DecoderHead):
    """Labels whole texts by their last token, which has seen the whole text: logits (B, N), in the order of
    `config.labels`.

    Args:    as DecoderModel
    """

    def __init__(self, config: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        width = self.base_model.token_embedding.embedding_dim
        self.score = Linear(width, len(config.labels), False, device, dtype)
        self.reset_parameters()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return logits (B, N). The last token of a text is the last that is not `config.pad_token_id`.

        Args:    as DecoderModel
        Raises:  ArgumentError for several texts when the config has no pad_token_id; and as DecoderModel
        """
        last_B = last_tokens(input_ids, self.config.pad_token_id)
        hidden_BTD = self.base_model(input_ids, attention_mask)
        return self.score(hidden_BTD[arange(last_B.shape[0], device=last_B.device), last_B])


def last_tokens(tokens_BT: Tensor, pad_token_id: int | None) -> Tensor:
    """Return the index of each text's last token that is not padding, (B,); 0 if there is none."""
    batch, length = tokens_BT.shape
    positions_T = arange(length, device=tokens_BT.device)
    if pad_token_id is not None:
        return (positions_T * tokens_BT.ne(pad_token_id)).argmax(-1)
    if batch > 1:
        raise ArgumentError(
            f"{batch} texts, but the config has no pad_token_id to find their ends",
            hint="set pad_token_id in the config, or pass one text at a time",
        )
    return positions_T[-1:]


class DecoderForTokenClassification(DecoderHead):
    """Labels every token: logits (B, T, N), in the order of `config.labels`. A token sees only those before it.

    Args:    as DecoderModel

    Attributes:
        classifier_name: the name of the last layer in checkpoints
    """

    classifier_name: ClassVar[str] = "score"

    def __init__(self, config: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        width = self.base_model.token_embedding.embedding_dim
        self.dropout = Dropout(config.classifier_dropout)
        self.add_module(self.classifier_name, Linear(width, len(config.labels), True, device, dtype))
        self.reset_parameters()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return logits (B, T, N).  Args: as DecoderModel"""
        classify = getattr(self, self.classifier_name)
        return classify(self.dropout(self.base_model(input_ids, attention_mask)))


class DecoderForQuestionAnswering(DecoderHead):
    """Finds where an answer starts and ends: logits (B, T) for each.

    Args:    as DecoderModel
    """

    def __init__(self, config: Any, device: Any = None, dtype: Any = None) -> None:
        super().__init__(config, device, dtype)
        self.qa_outputs = Linear(self.base_model.token_embedding.embedding_dim, 2, True, device, dtype)
        self.reset_parameters()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> SpanLogits:
        """Return logits (B, T) of the start and the end.  Args: as DecoderModel"""
        return SpanLogits(*self.qa_outputs(self.base_model(input_ids, attention_mask)).unbind(-1))
