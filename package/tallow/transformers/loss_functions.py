"""The losses of kinds of models under the signatures of transformers: `model.loss_function` of a program's own class.

Letters: B batch, T positions, V vocabulary, N labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn import functional as F
from tallow.transformers import losses, losses_objects


def of_next_tokens(
    logits: Tensor,
    labels: Tensor | None,
    vocab_size: int,
    num_items_in_batch: Any = None,
    ignore_index: int = losses.IGNORED,
    shift_labels: Tensor | None = None,
) -> Tensor:
    """Return the loss of the token after each position.

    Args:
        logits: (B, T, V).
        labels: (B, T), the tokens themselves.
        vocab_size: V.
        num_items_in_batch: divides the sum in place of the number of labels.
        ignore_index: a label that does not count.
        shift_labels: (B, T), the token after each position, in place of `labels`.

    Raises:  ArgumentError without labels
    """
    if shift_labels is None:
        if labels is None:
            raise ArgumentError("loss_function: neither labels nor shift_labels", hint="pass the tokens")
        shift_labels = F.pad(labels, (0, 1), value=ignore_index)[..., 1:]
    return of_tokens(logits, shift_labels, vocab_size, num_items_in_batch, ignore_index)


def of_tokens(
    logits: Tensor, labels: Tensor, vocab_size: int, num_items_in_batch: Any = None, ignore_index: int = losses.IGNORED
) -> Tensor:
    """Return the loss of the token at each position.  Args: as `of_next_tokens`"""
    counted = labels.masked_fill(labels == ignore_index, losses.IGNORED)
    return losses.cross_entropy(logits.reshape(-1, vocab_size), counted, num_items_in_batch)


def of_texts(labels: Tensor, pooled_logits: Tensor, config: Any) -> Tensor:
    """Return the loss of whole texts, images or sounds; see `losses.of_texts`.  Shapes: logits (B, N)"""
    return losses.of_texts(pooled_logits, labels, config)


def of_labelled_tokens(logits: Tensor, labels: Tensor, config: Any) -> Tensor:
    """Return the loss of labels of tokens.  Shapes: logits (B, T, N), labels (B, T)"""
    return losses.cross_entropy(logits.reshape(-1, config.num_labels), labels)


def of_answers(start_logits: Tensor, end_logits: Tensor, start_positions: Tensor, end_positions: Tensor) -> Tensor:
    """Return the loss of where answers start and end.  Shapes: logits (B, T), positions (B,)"""
    return losses.of_spans(start_logits, end_logits, start_positions, end_positions)


# A part of the names of classes -> their loss; the first that fits.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ForCausalLM": of_next_tokens,
    "ForConditionalGeneration": of_next_tokens,
    "ForMaskedLM": of_tokens,
    "ForQuestionAnswering": of_answers,
    "ForSequenceClassification": of_texts,
    "ForImageClassification": of_texts,
    "ForAudioClassification": of_texts,
    "ForTokenClassification": of_labelled_tokens,
    "ForObjectDetection": losses_objects.of_detection,
    "ForSegmentation": losses_objects.of_segmentation,
}


def loss_of(name: str) -> Callable[..., Any]:
    """Return the loss of a class by its name; of others that of language models, as in transformers."""
    return next((function for part, function in FUNCTIONS.items() if part in name), of_next_tokens)
