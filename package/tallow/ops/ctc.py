"""Connectionist temporal classification.

Letters: T time steps, N batch, C classes, S longest target, L = 2 S + 1 states: the target, blanks around each label.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.devices import array_module
from tallow.errors import ShapeError
from tallow.ops.accumulate import add_at
from tallow.ops.checks import expect_float
from tallow.ops.table import Array, Index, Result, op


@op("")
def ctc(
    log_probs: Array,
    targets: Index,
    input_lengths: Index,
    target_lengths: Index,
    blank: int = 0,
    zero_infinity: bool = False,
) -> Result:
    """Return -log of the probability of all alignments of each target with its input.

    Like PyTorch's, the gradient is that of the logits: exp(log_probs) minus the posterior of each class. It is the
    derivative only if `log_probs` is the output of log_softmax, together with its backward.

    Shapes:  log_probs (T, N, C), targets (N, S), input_lengths and target_lengths (N) -> (N)
    Raises:  ShapeError for lengths or labels out of range
    Source:  Graves et al. 2006, "Connectionist Temporal Classification", eq. 6 to 16
    """
    xp = array_module(log_probs)
    is_label = xp.arange(targets.shape[1], dtype=np.int64) < target_lengths[:, None]  # the rest is padding
    targets = xp.where(is_label, targets, 0)
    _check(log_probs, targets, input_lengths, target_lengths, blank)
    trellis = _Trellis(log_probs, targets, input_lengths, target_lengths, blank)
    alpha = trellis.forward()
    loss = -trellis.end(alpha)
    if zero_infinity:
        loss = xp.where(xp.isinf(loss), 0, loss)

    def backward(g: Array) -> tuple[Array]:
        trellis = _Trellis(log_probs, targets, input_lengths, target_lengths, blank)
        log_total = trellis.end(alpha)
        d = xp.exp(log_probs) - trellis.posterior(alpha, log_total)
        alive = xp.arange(len(log_probs), dtype=np.int64)[:, None] < input_lengths[None, :]
        if zero_infinity:
            alive = alive & xp.isfinite(log_total)
        return (xp.where(alive[:, :, None], d, 0) * g[None, :, None],)

    return loss, backward


def _check(log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int) -> None:
    steps, batch, classes = log_probs.shape
    expect_float("ctc_loss", log_probs)
    if not 0 <= blank < classes:
        raise ShapeError(f"ctc_loss: blank={blank} must be one of {classes} classes")
    if input_lengths.shape != (batch,) or target_lengths.shape != (batch,):
        raise ShapeError(f"ctc_loss: expected input_lengths and target_lengths for a batch of {batch}")
    if batch and (int(input_lengths.max()) > steps or int(input_lengths.min()) < 0):
        raise ShapeError(f"ctc_loss: input_lengths must lie in 0 to {steps}, got {input_lengths.tolist()}")
    if batch and (int(target_lengths.max()) > targets.shape[1] or int(target_lengths.min()) < 0):
        raise ShapeError(f"ctc_loss: target_lengths must lie in 0 to {targets.shape[1]}, got {target_lengths.tolist()}")
    if targets.size and not (int(targets.min()) >= 0 and int(targets.max()) < classes):
        raise ShapeError(f"ctc_loss: a label lies outside the {classes} classes")


class _Trellis:
    """The states of every target, and the log-probabilities of the paths through them.

    Attributes:
        labels: (N, L), the label of each state.
        emit: (T, N, L), log_probs of these labels.
        skips: (N, L), whether a path may come from two states before: over a blank, between different labels.
        ends: (N, 2), the last two states of each target; the same state twice if there is no label.
    """

    def __init__(
        self, log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int
    ) -> None:
        xp = self.xp = array_module(log_probs)
        batch, longest = targets.shape
        self.log_probs = log_probs
        self.lengths = input_lengths
        self.labels = xp.full((batch, 2 * longest + 1), blank, np.int64)
        self.labels[:, 1::2] = targets
        self.emit = xp.take_along_axis(log_probs, self.labels[None].repeat(len(log_probs), axis=0), axis=2)
        self.skips = xp.zeros(self.labels.shape, bool)
        self.skips[:, 3::2] = self.labels[:, 3::2] != self.labels[:, 1:-2:2]  # a label may be the blank, as in PyTorch
        last = 2 * target_lengths.astype(np.int64)
        self.ends = xp.stack((last, xp.maximum(last - 1, 0)), axis=1)
        self.has_label = target_lengths > 0

    def forward(self) -> Array:
        """Return (T, N, L): the log-probability of all paths that emit up to t and are in that state at t."""
        xp = self.xp
        alpha = xp.full(self.emit.shape, -np.inf, self.emit.dtype)
        alpha[:1, :, :2] = self.emit[:1, :, :2]
        if alpha.shape[2] > 1:
            alpha[0, :, 1] = xp.where(self.has_label, alpha[0, :, 1], -np.inf)
        for t in range(1, len(alpha)):
            stay = alpha[t - 1]
            alpha[t] = _log_sum(xp, stay, _shift(xp, stay, 1), self._skipping(_shift(xp, stay, 2))) + self.emit[t]
        return alpha

    def _skipping(self, x: Array) -> Array:
        return self.xp.where(self.skips, x, -np.inf)

    def end(self, alpha: Array) -> Array:
        """Return (N): the log-probability of all paths, which end in one of two states."""
        xp = self.xp
        if not len(alpha):
            return xp.where(self.has_label, -np.inf, 0).astype(alpha.dtype)
        rows = xp.arange(alpha.shape[1], dtype=np.int64)
        last = alpha[xp.maximum(self.lengths - 1, 0), rows]  # (N, L)
        a, b = last[rows, self.ends[:, 0]], last[rows, self.ends[:, 1]]
        total = _log_sum(xp, a, xp.where(self.has_label, b, -np.inf))
        return xp.where(self.lengths > 0, total, xp.where(self.has_label, -np.inf, 0).astype(alpha.dtype))

    def posterior(self, alpha: Array, log_total: Array) -> Array:
        """Return (T, N, C): the probability, given the target, that a class is emitted at t."""
        xp = self.xp
        beta = self._backward()
        state = xp.exp(alpha + beta - log_total[None, :, None])
        by_class = xp.zeros(self.log_probs.shape, alpha.dtype)
        steps, batch, classes = by_class.shape
        place = (xp.arange(steps * batch, dtype=np.int64) * classes).reshape(steps, batch, 1) + self.labels
        add_at(by_class.reshape(-1), (place.reshape(-1),), state.reshape(-1))
        return by_class

    def _backward(self) -> Array:
        """Return (T, N, L): the log-probability of all paths that continue from that state at t to the end."""
        xp = self.xp
        beta = xp.full(self.emit.shape, -np.inf, self.emit.dtype)
        rows = xp.arange(beta.shape[1], dtype=np.int64)
        final = xp.full(beta.shape[1:], -np.inf, beta.dtype)
        final[rows, self.ends[:, 1]] = 0
        final[rows, self.ends[:, 0]] = 0
        following: Any = final
        for t in range(len(beta) - 1, -1, -1):
            is_last = (self.lengths - 1 == t)[:, None]
            beta[t] = xp.where(is_last, final, following)
            ahead = beta[t] + self.emit[t]
            following = _log_sum(xp, ahead, _shift(xp, ahead, -1), _shift(xp, self._skipping(ahead), -2))
        return beta


def _shift(xp: Any, x: Array, by: int) -> Array:
    """Move x along the states; -∞ fills the gap."""
    moved = xp.full(x.shape, -np.inf, x.dtype)
    if by > 0:
        moved[:, by:] = x[:, :-by]
    else:
        moved[:, :by] = x[:, -by:]
    return moved


def _log_sum(xp: Any, *terms: Array) -> Array:
    """Return log Σ exp of the terms; -∞ where all terms are -∞."""
    highest = terms[0]
    for term in terms[1:]:
        highest = xp.maximum(highest, term)
    shift = xp.where(xp.isinf(highest), 0, highest)
    total = xp.exp(terms[0] - shift)
    for term in terms[1:]:
        total = total + xp.exp(term - shift)
    return xp.log(total) + shift
