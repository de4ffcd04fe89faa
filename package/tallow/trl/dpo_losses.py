"""The losses of DPO: functions of the log-probabilities that two models give to two answers.

Letters: B batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from tallow.core.tensor import Tensor
from tallow.nn import functional as F


class Pairs(NamedTuple):
    """The values that the losses read; tensors have shape (B,).

    Attributes:
        chosen, rejected: log-probabilities of the answers.
        chosen_reference, rejected_reference: those that the reference gives.
        chosen_score, rejected_score: functions of log-ratios, by the divergence.
        chosen_length, rejected_length: number of tokens of the answers.
        chosen_mean: mean log-probability of all tokens of chosen answers, of no dimension.
        beta, smoothing, tau: numbers of the arguments.
    """

    chosen: Tensor
    rejected: Tensor
    chosen_reference: Tensor
    rejected_reference: Tensor
    chosen_score: Tensor
    rejected_score: Tensor
    chosen_length: Tensor
    rejected_length: Tensor
    chosen_mean: Tensor
    beta: float
    smoothing: float
    tau: float

    @property
    def chosen_ratio(self) -> Tensor:
        """The log-ratio of the chosen answer to its reference."""
        return self.chosen - self.chosen_reference

    @property
    def rejected_ratio(self) -> Tensor:
        """The log-ratio of the rejected answer to its reference."""
        return self.rejected - self.rejected_reference

    @property
    def margin(self) -> Tensor:
        """The score of the chosen answer above that of the rejected one, times beta."""
        return self.beta * (self.chosen_score - self.rejected_score)

    @property
    def margin_a_token(self) -> Tensor:
        """The score of the chosen answer above that of the rejected one, both by their lengths."""
        return self.chosen_score / self.chosen_length.clamp(min=1) - self.rejected_score / self.rejected_length.clamp(
            min=1
        )


Loss: TypeAlias = Callable[[Pairs], Tensor]


def sigmoid(p: Pairs) -> Tensor:
    """Return the loss of DPO.  Source: arXiv:2305.18290, eq. 7"""
    return -F.logsigmoid(p.margin)


def hinge(p: Pairs) -> Tensor:
    """Return the loss of SLiC.  Source: arXiv:2305.10425"""
    return F.relu(1 - p.margin)


def ipo(p: Pairs) -> Tensor:
    """Return the loss of IPO, of means over tokens.  Source: arXiv:2310.12036, eq. 17"""
    return (p.margin_a_token - 1 / (2 * p.beta)) ** 2


def exo_pair(p: Pairs) -> Tensor:
    """Return the loss of EXO.  Source: arXiv:2402.00856, eq. 16"""
    win, lose = F.logsigmoid(p.margin), F.logsigmoid(-p.margin)
    return win.exp() * (win - math.log1p(-p.smoothing)) + lose.exp() * (lose - math.log(p.smoothing))


def nca_pair(p: Pairs) -> Tensor:
    """Return the loss of NCA.  Source: arXiv:2402.05369"""
    chosen, rejected = p.beta * p.chosen_ratio, p.beta * p.rejected_ratio
    return -F.logsigmoid(chosen) - 0.5 * F.logsigmoid(-chosen) - 0.5 * F.logsigmoid(-rejected)


def robust(p: Pairs) -> Tensor:
    """Return the loss for preferences that are wrong with probability `smoothing`.  Source: arXiv:2403.00409"""
    clean, flipped = F.logsigmoid(p.margin), F.logsigmoid(-p.margin)
    return (-(1 - p.smoothing) * clean + p.smoothing * flipped) / (1 - 2 * p.smoothing)


def bco_pair(p: Pairs) -> Tensor:
    """Return the loss of BCO.  Source: arXiv:2404.04656"""
    return -F.logsigmoid(p.beta * p.chosen_ratio) - F.logsigmoid(-p.beta * p.rejected_ratio)


def sppo_hard(p: Pairs) -> Tensor:
    """Return the loss of SPPO with certain preferences.  Source: arXiv:2405.00675, eq. 4.7"""
    return (p.chosen_ratio - 0.5 / p.beta) ** 2 + (p.rejected_ratio + 0.5 / p.beta) ** 2


def _smoothed(p: Pairs, delta: Tensor) -> Tensor:
    return -F.logsigmoid(p.beta * delta) * (1 - p.smoothing) - F.logsigmoid(-p.beta * delta) * p.smoothing


def aot(p: Pairs) -> Tensor:
    """Return the loss of AOT of pairs.  Source: arXiv:2406.05882"""
    own, reference = p.chosen - p.rejected, p.chosen_reference - p.rejected_reference
    return _smoothed(p, own.sort(dim=0).values - reference.sort(dim=0).values)


def aot_unpaired(p: Pairs) -> Tensor:
    """Return the loss of AOT of answers that need not be of one prompt.  Source: arXiv:2406.05882"""
    return _smoothed(p, p.chosen_ratio.sort(dim=0).values - p.rejected_ratio.sort(dim=0).values)


def apo_zero(p: Pairs) -> Tensor:
    """Return the loss of APO for chosen answers better than the model's own.  Source: arXiv:2408.06266, eq. 7"""
    return 1 - (p.beta * p.chosen_ratio).sigmoid() + (p.beta * p.rejected_ratio).sigmoid()


def apo_down(p: Pairs) -> Tensor:
    """Return the loss of APO for chosen answers worse than the model's own.  Source: arXiv:2408.06266, eq. 8"""
    return (p.beta * p.chosen_ratio).sigmoid() + 1 - (p.beta * (p.chosen_ratio - p.rejected_ratio)).sigmoid()


def discopop(p: Pairs) -> Tensor:
    """Return the loss of DiscoPOP.  Source: arXiv:2406.08414, eq. 5"""
    mix = (p.margin / p.tau).sigmoid()
    return -F.logsigmoid(p.margin) * (1 - mix) + (-p.margin).exp() * mix


def sft(p: Pairs) -> Tensor:
    """Return the loss of the tokens of chosen answers, for each pair."""
    return (-p.chosen_mean).expand(len(p.chosen))


def sigmoid_norm(p: Pairs) -> Tensor:
    """Return the loss of DPO, of means over tokens.  Source: arXiv:2411.15124"""
    return -F.logsigmoid(p.beta * p.margin_a_token)


LOSSES: dict[str, Loss] = {
    each.__name__: each
    for each in (
        *(sigmoid, hinge, ipo, exo_pair, nca_pair, robust, bco_pair, sppo_hard, aot, aot_unpaired),
        *(apo_zero, apo_down, discopop, sft, sigmoid_norm),
    )
}
# Losses that read scores, which another divergence changes.
OF_SCORES = frozenset({"sigmoid", "sigmoid_norm", "hinge", "ipo", "exo_pair", "robust", "discopop", "sft"})

# Scores of a log-ratio log t, by divergence: f'(t) up to a constant.  Source: arXiv:2309.16240, table 1
DIVERGENCES: dict[str, Callable[[Tensor, float], Tensor]] = {
    "reverse_kl": lambda ratio, alpha: ratio,
    "forward_kl": lambda ratio, alpha: 1 - (-ratio).exp(),
    "js_divergence": lambda ratio, alpha: math.log(2) + F.logsigmoid(ratio),
    "alpha_divergence": lambda ratio, alpha: alpha_score(ratio, alpha),
}
MAX_EXPONENT = 80.0  # whose exponential float32 and bfloat16 can hold


def alpha_score(ratio: Tensor, alpha: float) -> Tensor:
    """Return (t^(α - 1) - 1) / (α - 1), whose limit at α = 1 is log t."""
    if abs(alpha - 1) < 1e-6:
        return ratio
    return (((alpha - 1) * ratio).clamp(max=MAX_EXPONENT).exp() - 1) / (alpha - 1)
