"""The log-probabilities that a language model gives to the tokens of a text.

Letters: B batch, T positions, V vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

from tallow.core.tensor import Tensor
from tallow.nn import functional as F

IGNORED = -100  # a label that does not count


class TokenScores(NamedTuple):
    """The scores that a model gives to the tokens after the first one; 0 where a label is ignored.

    Attributes:
        logits: (B, T - 1, V), of the position before each token, with a gradient.
        targets: (B, T - 1), the labels, with any token for those that are ignored.
        mask: (B, T - 1), 1 where the label counts.
        log_probs: (B, T - 1), of the tokens, with a gradient.
    """

    logits: Tensor
    targets: Tensor
    mask: Tensor
    log_probs: Tensor

    def entropy(self) -> Tensor:
        """Return the entropy (B, T - 1) of the distributions over the vocabulary, in nats, with a gradient."""
        whole = F.log_softmax(self.logits, dim=-1)
        return -(whole.exp() * whole).sum(dim=-1) * self.mask

    def is_top1(self) -> Tensor:
        """Return 1 where the token is the likeliest, (B, T - 1)."""
        return self.logits.argmax(dim=-1).eq(self.targets).to(self.mask.dtype) * self.mask

    def mean(self, values: Tensor) -> float:
        """Return the mean of values (B, T - 1) over labels that count; 0 if there are none."""
        count = self.mask.sum().item()
        return (values * self.mask).sum().item() / count if count else 0.0


def token_scores(logits_BTV: Tensor, labels_BT: Tensor) -> TokenScores:
    """Return the scores of labels, each under the logits of the position before."""
    logits, labels = logits_BTV[:, :-1].float(), labels_BT[:, 1:]
    counts = labels.ne(IGNORED)
    targets, mask = labels.masked_fill(~counts, 0), counts.to(logits.dtype)
    log_probs = -F.cross_entropy(logits.transpose(1, 2), targets, reduction="none") * mask
    return TokenScores(logits, targets, mask, log_probs)
