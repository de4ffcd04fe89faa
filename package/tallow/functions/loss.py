"""Losses.

All take `reduction`: "none" for one loss an element or sample, "sum", or "mean". `size_average` and `reduce` are what
PyTorch had before it; if given, they decide.
"""

from __future__ import annotations

import math

from tallow.core.apply import apply
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.core.whole_calls import recorded_whole
from tallow.errors import ArgumentError, GraphError, ShapeError, warn
from tallow.functions.like import full_like
from tallow.ops import losses
from tallow.ops.checks import expect_float
from tallow.ops.table import Op
from tallow.tape.modes import is_grad_enabled


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Return `reduction`, or what the older arguments say if they are given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def reduced(values: Tensor, reduction: str, name: str) -> Tensor:
    """Reduce the losses of elements: "mean", "sum" or "none". Raises: ArgumentError for another word."""
    if reduction == "mean":
        return values.mean()
    if reduction == "sum":
        return values.sum()
    expect_reduction(reduction, name)
    return values


def expect_reduction(reduction: str, name: str) -> None:
    """Raise ArgumentError unless the reduction is "mean", "sum" or "none"."""
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError(
            f"{name}: {reduction} is not a valid value for reduction", hint="use 'none', 'mean' or 'sum'"
        )


def _weighted(name: str, values: Tensor, weight: Tensor | None) -> Tensor:
    """Return values · weight. The weight is broadcast to the values, not the other way round."""
    if weight is None:
        return values
    weighted = values * weight
    if weighted.shape != values.shape:
        raise ShapeError(f"{name}: weight {tuple(weight.shape)} does not broadcast to input {tuple(values.shape)}")
    return weighted


def check_constant(name: str, argument: str, value: Tensor | None) -> None:
    """Raise GraphError for an argument that requires grad but has no derivative, as in PyTorch."""
    if value is not None and value.requires_grad and is_grad_enabled():
        raise GraphError(f"{name}: the derivative for {argument!r} is not implemented", hint="pass it with .detach()")


def check_same_size(name: str, input: Tensor, target: Tensor) -> None:
    """Raise ArgumentError unless input and target have the same shape."""
    if input.array.shape != target.array.shape:
        raise ArgumentError(
            f"{name}: target size {tuple(target.shape)} must be the same as input size {tuple(input.shape)}"
        )


# ------------------------------------------------------------------------------------------------------- differences


def _differences(name: str, op: Op, input: Tensor, target: Tensor, weight: Tensor | None, *options: float) -> Tensor:
    """Return the loss of each element, times its weight."""
    if input.array.shape != target.array.shape:
        warn(
            f"{name}: target size {tuple(target.shape)} is different to the input size {tuple(input.shape)}; both are "
            "broadcast, which is likely a mistake"
        )
    values = apply(op, input, target, *options)
    if weight is None:
        return values
    if weight.array.shape != input.array.shape:
        raise ArgumentError(f"{name}: weight and input must have the same size")
    return values * weight


def _weighted_mean(values: Tensor, weight: Tensor | None, reduction: str, name: str) -> Tensor:
    """Reduce as `reduced` does, but divide a mean by the sum of weights."""
    if weight is not None and reduction == "mean":
        return values.sum() / weight.sum()
    return reduced(values, reduction, name)


@public("F")
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Compute (input - target)²."""
    reduction = reduction_of(size_average, reduce, reduction)
    values = _differences("mse_loss", losses.squared_error, input, target, weight)
    return _weighted_mean(values, weight, reduction, "mse_loss")


@public("F")
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Compute |input - target|."""
    reduction = reduction_of(size_average, reduce, reduction)
    if input.is_complex() or target.is_complex():
        return _weighted_mean((input - target).abs(), weight, reduction, "l1_loss")
    values = _differences("l1_loss", losses.absolute_error, input, target, weight)
    return _weighted_mean(values, weight, reduction, "l1_loss")


@public("F")
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Compute d² / (2 beta) where |d| < beta, else |d| - beta / 2, d = input - target.

    Source:  Girshick 2015, arXiv:1504.08083, eq. 3
    """
    if beta < 0:
        raise ShapeError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    reduction = reduction_of(size_average, reduce, reduction)
    if not beta:
        values = _differences("smooth_l1_loss", losses.absolute_error, input, target, None)
        return reduced(values, reduction, "smooth_l1_loss")
    values = _differences("smooth_l1_loss", losses.huber_error, input, target, None, beta)
    loss = reduced(values, reduction, "smooth_l1_loss")
    return loss if beta == 1 else loss / beta


@public("F")
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Compute d² / 2 where |d| < delta, else delta (|d| - delta / 2), d = input - target.

    Source:  Huber 1964, "Robust Estimation of a Location Parameter"
    """
    if delta <= 0:
        raise ShapeError(f"huber_loss: delta must be positive, got {delta}")
    values = _differences("huber_loss", losses.huber_error, input, target, weight, delta)
    return reduced(values, reduction, "huber_loss")


# ----------------------------------------------------------------------------------------------------- probabilities


@public("F")
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute -(t log p + (1 - t) log(1 - p)) · weight for probabilities p = input; each logarithm is at least -100.

    Raises:  ArgumentError for another size of target, ShapeError for probabilities outside 0 to 1
    """
    check_same_size("binary_cross_entropy", input, target)
    values = apply(losses.binary_cross_entropy, input, target)
    values = _weighted("binary_cross_entropy", values, weight)
    return reduced(values, reduction_of(size_average, reduce, reduction), "binary_cross_entropy")


@public("F")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Compute binary_cross_entropy of sigmoid(input), without overflow and without a bound on the logarithms.

    Args:    pos_weight: what the loss of positive targets is multiplied by; broadcasts
    """
    name = "binary_cross_entropy_with_logits"
    check_same_size(name, input, target)
    check_constant(name, "pos_weight", pos_weight)
    expect_float(name, input.array, target.array)
    values = apply(losses.binary_cross_entropy_with_logits, input, target, pos_weight)
    values = _weighted(name, values, weight)
    return reduced(values, reduction_of(size_average, reduce, reduction), name)


@public("F")
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Compute t (log t - input): the divergence of `input`, a distribution in logarithms, from `target` t.

    Args:
        reduction: "batchmean" (the sum over the size of the first dim) is the divergence as defined; "mean" divides by
            the number of classes too.
        log_target: target holds logarithms too.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    values = apply(losses.kl_divergence, input, target, log_target)
    if reduction == "batchmean":
        return values.sum() / input.array.shape[0] if input.ndim else values.sum()
    return reduced(values, reduction, "kl_div")


@public("F", checked=True)
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute exp(input) - target · input, or with log_input=False input - target · log(input + eps).

    Args:    full: add Stirling's approximation of log(target!), where target > 1
    """
    values = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        values = values + stirling.masked_fill(target <= 1, 0)
    return reduced(values, reduction_of(size_average, reduce, reduction), "poisson_nll_loss")


@public("F")
@recorded_whole
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Compute (log max(var, eps) + (input - target)² / max(var, eps)) / 2. The bound does not affect the gradient.

    Args:    full: add log(2 π) / 2
    Shapes:  var as input, or with one dim that is 1, or without the last dim
    """
    variance: Tensor = full_like(input, var, requires_grad=False) if isinstance(var, int | float) else var
    expect_float("gaussian_nll_loss", variance.array)
    shape, var_shape = input.array.shape, variance.array.shape
    differing = [n for m, n in zip(shape, var_shape, strict=False) if m != n]
    if var_shape != shape and var_shape == shape[:-1]:
        variance = variance.unsqueeze(-1)
    elif len(var_shape) != len(shape) or (differing and sum(differing) != 1):
        raise ArgumentError(f"gaussian_nll_loss: var has size {var_shape}, which does not fit input {shape}")
    fixed = variance.detach()
    if (fixed < 0).any():
        raise ArgumentError("gaussian_nll_loss: var has negative entries")
    bounded = variance + (fixed.clamp(min=eps) - fixed)
    values = 0.5 * (bounded.log() + (input - target).square() / bounded)
    return reduced(values + 0.5 * math.log(2 * math.pi) if full else values, reduction, "gaussian_nll_loss")
