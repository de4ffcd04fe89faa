"""Rules of losses and softmax."""

from __future__ import annotations

from tallow.autograd.recorded.rules import Map, difference, linear, rule
from tallow.autograd.recorded.saved import Gradients, Saved
from tallow.core.apply import apply
from tallow.core.tensor import Tensor, from_array
from tallow.devices import array_module
from tallow.dtypes import Array, widen
from tallow.ops.activation import hardtanh, logsigmoid
from tallow.ops.cross_entropy import Targets


@rule("absolute_error")
def _absolute_error(saved: Saved, g: Tensor) -> Gradients:
    slope = difference(saved.constant("d"), saved.node.edges).sign().detach()
    return [g * slope, -g * slope]


@rule("squared_error", "huber_error")
def _error(saved: Saved, g: Tensor) -> Gradients:
    d = saved.operand("input") - saved.operand("target", 1)
    if saved.node.op_name == "squared_error":
        return [g * 2 * d, g * -2 * d]
    delta = saved.constant("delta")
    slope = apply(hardtanh, d, -delta, delta)
    return [g * slope, -g * slope]


@rule("binary_cross_entropy")
def _binary_cross_entropy(saved: Saved, g: Tensor) -> Gradients:
    p, t = saved.operand("input"), saved.operand("target", 1)
    return [g * (p - t) / (p * (1 - p)).clamp(min=1e-12), g * ((-p).log1p() - p.log())]


@rule("binary_cross_entropy_with_logits")
def _binary_cross_entropy_with_logits(saved: Saved, g: Tensor) -> Gradients:
    x, t, surplus = saved.operand("input"), saved.operand("target", 1), saved.constant("surplus")
    surplus = from_array(surplus) if hasattr(surplus, "dtype") else surplus
    saved.ignore("weight", "softplus", "pos_weight")
    return [g * (1 - t - (surplus * t + 1) * (-x).sigmoid()), g * (-surplus * apply(logsigmoid, x) - x)]


@rule("kl_divergence")
def _kl_divergence(saved: Saved, g: Tensor) -> Gradients:
    if saved.has("t"):
        saved.ignore("t")
        x, log_t = saved.operand("input"), saved.operand("target", 1)
        t = log_t.exp()
        return [-g * t, g * t * (log_t - x + 1)]
    x, t = saved.operand("input"), saved.operand("target", 1)
    return [-g * t, g * ((t.log() + 1).masked_fill(t.detach() == 0, 0) - x)]


@rule("cross_entropy_of_classes")
def _cross_entropy(saved: Saved, g: Tensor) -> Gradients:
    x, axis, unit = saved.operand("input"), saved.constant("axis"), saved.constant("unit")
    _, target, weight, ignored, smoothing = saved.constant("arguments")
    saved.ignore("highest", "total", "is_last")
    # The loss is -Σ shares · log_softmax(x), classes last.
    xp = array_module(x.array)
    rows = xp.moveaxis(widen(x.array), axis, -1)
    targets = Targets(None, rows, target, weight, ignored)
    shares = xp.zeros_like(rows)
    targets.add(shares, targets.share * (1 - smoothing))
    if smoothing:
        shares += targets.valid[..., None] * (1 if weight is None else weight) * (smoothing / rows.shape[-1])
    scaled = (g * unit).unsqueeze(-1) * from_array(shares)
    probabilities = x.movedim(axis, -1).softmax(-1)
    return [(probabilities * scaled.sum(-1, keepdim=True) - scaled).movedim(-1, axis)]


@linear("nll_loss_of_classes")
def _nll_loss(saved: Saved) -> Map:
    targets, unit, shape = saved.constant("targets"), saved.constant("unit"), saved.node.shape
    saved.ignore("shape")

    def loss(x: Array) -> Array:
        losses = array_module(x).where(targets.valid, -targets.pick(x) * unit * targets.share, 0)
        return losses if shape else losses.sum()

    return loss
