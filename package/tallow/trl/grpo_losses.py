"""The losses of GRPO: functions of the log-probabilities of tokens, of what they were, and of advantages.

Letters: B batch, T tokens of answers. Ratios have shape (B, T), or (B, 1) for whole answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from tallow.core.tensor import Tensor


class Step(NamedTuple):
    """The values that the losses read.

    Attributes:
        log_probs: (B, T), of the tokens of answers, with a gradient.
        ratio: of the model's probabilities to those when the answers were written.
        advantages: (B, 1).
        low, high: how far a ratio may be below and above 1; for "cispo" `high` is its greatest value.
        most: the greatest ratio where it is not clipped; None means no limit.
        temperatures: of "sapo", for advantages above 0 and for the others.
    """

    log_probs: Tensor
    ratio: Tensor
    advantages: Tensor
    low: float
    high: float
    most: float | None
    temperatures: tuple[float, float]


TokenLoss: TypeAlias = Callable[[Step], Tensor]


def clipped(s: Step) -> Tensor:
    """Return the loss of tokens by clipped ratios.  Source: PPO, arXiv:1707.06347, eq. 7; `most`: arXiv:2505.07291"""
    ratio = s.ratio if s.most is None else s.ratio.clamp(max=s.most)
    return -(ratio * s.advantages).minimum(s.ratio.clamp(1 - s.low, 1 + s.high) * s.advantages)


def cispo(s: Step) -> Tensor:
    """Return the loss of tokens, weighed by clipped ratios without a gradient.  Source: arXiv:2506.13585, eq. 4"""
    return -s.ratio.clamp(max=s.high).detach() * s.advantages * s.log_probs


def sapo(s: Step) -> Tensor:
    """Return the loss of tokens by ratios through a smooth gate.  Source: arXiv:2511.20347"""
    positive, other = s.temperatures
    is_positive = s.advantages.gt(0).to(s.ratio.dtype)
    temperature = is_positive * positive + (1 - is_positive) * other
    return -(temperature * (s.ratio - 1)).sigmoid() * 4 / temperature * s.advantages


TOKEN_LOSSES: dict[str, TokenLoss] = {
    **dict.fromkeys(("grpo", "bnpo", "dr_grpo", "dapo", "luspo"), clipped),
    "cispo": cispo,
    "sapo": sapo,
}


class Sizes(NamedTuple):
    """The numbers that sums over tokens are divided by.

    Attributes:
        accumulated: batches of an optimizer step.
        longest: the greatest length of an answer that may be.
        tokens: tokens of answers in an optimizer step.
    """

    accumulated: int
    longest: int
    tokens: float


def mean_of_answers(loss: Tensor, mask: Tensor, sizes: Sizes) -> Tensor:
    """Return the mean over answers of means over tokens.  Source: arXiv:2402.03300, eq. 3"""
    return ((loss * mask).sum(-1) / mask.sum(-1).clamp(min=1)).mean() / sizes.accumulated


def mean_of_batch(loss: Tensor, mask: Tensor, sizes: Sizes) -> Tensor:
    """Return the mean over the tokens of the batch."""
    return (loss * mask).sum() / mask.sum().clamp(min=1) / sizes.accumulated


def by_greatest_length(loss: Tensor, mask: Tensor, sizes: Sizes) -> Tensor:
    """Return the sum over tokens by the greatest number that could be.  Source: Dr. GRPO, arXiv:2503.20783"""
    return (loss * mask).sum() / (len(loss) * sizes.longest) / sizes.accumulated


def mean_of_step(loss: Tensor, mask: Tensor, sizes: Sizes) -> Tensor:
    """Return the part of a batch in the mean over the tokens of a step.  Source: DAPO, arXiv:2503.14476, eq. 8"""
    return (loss * mask).sum() / max(sizes.tokens, 1)


def sum_of_answers(loss: Tensor, mask: Tensor, sizes: Sizes) -> Tensor:
    """Return the mean over answers of sums over tokens.  Source: LUSPO, arXiv:2602.05261"""
    return (loss * mask).sum(-1).mean() / sizes.accumulated


MEANS: dict[str, Callable[[Tensor, Tensor, Sizes], Tensor]] = {
    **dict.fromkeys(("grpo", "sapo"), mean_of_answers),
    "bnpo": mean_of_batch,
    "dr_grpo": by_greatest_length,
    **dict.fromkeys(("dapo", "cispo"), mean_of_step),
    "luspo": sum_of_answers,
}
