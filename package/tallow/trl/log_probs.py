"""The log-probabilities that a language model gives to the tokens of a text.

Letters: B batch, T positions, V vocabulary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tallow.core.tensor import Tensor
from tallow.nn import functional as F
from tallow.tape.modes import no_grad

IGNORED = -100  # a label that does not count


class TokenScores(NamedTuple):
    """The scores that a model gives to the tokens after the first one; 0 where a label is ignored.

    Attributes:
        log_probs: (B, T - 1), of the tokens, with a gradient.
        entropy: (B, T - 1), in nats, of the distributions over the vocabulary.
        is_top1: (B, T - 1), 1 where the token is the likeliest.
        mean_logits: (B, T - 1), the mean over the vocabulary.
        mask: (B, T - 1), 1 where the label counts.
    """

    log_probs: Tensor
    entropy: Tensor
    is_top1: Tensor
    mean_logits: Tensor
    mask: Tensor

    def mean(self, values: Tensor) -> float:
        """Return the mean of values (B, T - 1) over labels that count; 0 if there are none."""
        count = self.mask.sum().item()
        return (values * self.mask).sum().item() / count if count else 0.0


def token_scores(logits_BTV: Tensor, labels_BT: Tensor) -> TokenScores:
    """Return the scores of labels, each under the logits of the position before."""
    logits, labels = logits_BTV[:, :-1].float(), labels_BT[:, 1:]
    mask = labels.ne(IGNORED)
    targets = labels.masked_fill(~mask, 0)
    counted = mask.to(logits.dtype)
    log_probs = -F.cross_entropy(logits.transpose(1, 2), targets, reduction="none") * counted
    with no_grad():
        whole = F.log_softmax(logits, dim=-1)
        entropy = -(whole.exp() * whole).sum(dim=-1) * counted
        is_top1 = logits.argmax(dim=-1).eq(targets).to(logits.dtype) * counted
    return TokenScores(log_probs, entropy, is_top1, logits.detach().mean(dim=-1), counted)


def padded(rows: list[list[int]], value: int, multiple: int | None = None) -> Any:
    """Return rows as lists of the same length, filled on the right.  Args: multiple: of which the length is one"""
    length = max(map(len, rows))
    if multiple:
        length = -(-length // multiple) * multiple
    return [row + [value] * (length - len(row)) for row in rows]
