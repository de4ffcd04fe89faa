"""Functions that torch has at its top level with the signatures of its C++ code; most people call those of functional.

A reduction is a number: 0 is "none", 1 "mean" and 2 "sum"; as are the modes of sampling. PyTorch's declarations say
mean, but what it computes without the argument is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numpy as np

from tallow.core.apply import apply
from tallow.core.creation import arange, empty
from tallow.core.factories import creates
from tallow.core.overrides import overridable
from tallow.core.tensor import Tensor
from tallow.dtypes import get_default_dtype
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError, warn
from tallow.functions import classification_loss, dropout, interpolation, loss, margin_loss
from tallow.functions import embedding as lookups
from tallow.functions import normalization as norms
from tallow.functions.pooling import adaptive_max_pool1d_with_indices
from tallow.ops.channel_normalization import group_norm
from tallow.ops.normalization import layer_norm
from tallow.ops.padding import pad as pad_op
from tallow.ops.rounding import fake_quantize

REDUCTIONS = ("none", "mean", "sum")


def typename(obj: object) -> str:
    """Return the type of a tensor, as its method `type`, or the class of another object with its module."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", None) or ""
    return str(kind.__qualname__) if module in ("", "builtins") else f"{module}.{kind.__qualname__}"


@creates
def range(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the numbers from `start` to `end`, including it; `arange` does not include it. Deprecated in PyTorch."""
    warn("range is deprecated: its behavior is inconsistent with Python's range; use arange, which excludes the end")
    if end is None:
        start, end = 0, start
    if not step or (end - start) / step < 0:
        raise ArgumentError(f"range: a step of {step} does not lead from {start} to {end}")
    count = math.floor((end - start) / step) + 1
    values = arange(count, dtype=get_default_dtype() if dtype is None else dtype, device=device)
    values = values.mul_(step).add_(start)
    return values.requires_grad_() if requires_grad else values


@creates
def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor without values whose dims lie in memory in the order `physical_layout`, the outermost first."""
    dims = list(arange(len(size)).tolist())
    if sorted(physical_layout) != dims:
        raise ArgumentError(f"empty_permuted: {list(physical_layout)} is no order of {len(size)} dims")
    value = empty([size[d] for d in physical_layout], dtype=dtype, device=device)
    value = value.permute([list(physical_layout).index(d) for d in dims])
    return value.requires_grad_() if requires_grad else value


def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Count the rows of the input in the cells of a grid. Return the counts, and the edges along each dim.

    Args:
        bins: the number of bins, the number along each dim, or the edges along each dim.
        range: least and greatest edge along each dim; the extremes of the input by default.
        weight: what each row counts, 1 by default.
        density: divide by the sum and by the volume of each cell.

    Shapes:  (..., D) -> one dim for each of the D columns
    """
    rows = input.reshape(-1, input.shape[-1])
    columns = rows.unbind(1)
    counts = [bins] * len(columns) if isinstance(bins, int) else list(bins)
    if len(counts) != len(columns):
        raise ShapeError(f"histogramdd: bins for {len(counts)} dims, but the input has {len(columns)} columns")
    edges = []
    for i, (column, count) in enumerate(zip(columns, counts, strict=True)):
        if isinstance(count, Tensor):
            edges.append(count)
            continue
        if range is not None:
            low, high = range[2 * i : 2 * i + 2]
        else:
            low, high = (column.min().item(), column.max().item()) if len(column) else (0.0, 1.0)
        low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
        steps = arange(count + 1, dtype=input.dtype, device=input.device)
        edge = low + (high - low) * steps / count
        edge[-1] = high  # exactly, so that the greatest element is inside
        edges.append(edge)
    flat = rows.new_zeros(len(rows)).long()
    inside = rows.new_ones(len(rows)).bool()
    for column, edge in zip(columns, edges, strict=True):
        place = (edge <= column.unsqueeze(1)).sum(1) - 1
        last = len(edge) - 1
        place = place.masked_fill(column == edge[-1], last - 1)
        inside &= (place >= 0) & (place < last)
        flat = flat * last + place
    shape = [len(edge) - 1 for edge in edges]
    shares = rows.new_ones(len(rows)) if weight is None else weight.reshape(-1).to(input.dtype)
    hist = rows.new_zeros(math.prod(shape)).index_add_(0, flat[inside], shares[inside]).reshape(shape)
    if density:
        hist = hist / hist.sum()
        for i, edge in enumerate(edges):
            hist = hist / edge.diff().reshape([-1 if d == i else 1 for d in arange(len(edges)).tolist()])
    return hist, tuple(edges)


# ------------------------------------------------------------------------------------------------------------- losses


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:
    """See `nn.functional.binary_cross_entropy_with_logits`."""
    return loss.binary_cross_entropy_with_logits(
        input, target, weight, reduction=REDUCTIONS[reduction], pos_weight=pos_weight
    )


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """See `nn.functional.cosine_embedding_loss`."""
    return margin_loss.cosine_embedding_loss(input1, input2, target, margin, reduction=REDUCTIONS[reduction])


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """See `nn.functional.ctc_loss`."""
    return classification_loss.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, REDUCTIONS[reduction], zero_infinity
    )


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """See `nn.functional.hinge_embedding_loss`."""
    return margin_loss.hinge_embedding_loss(input, target, margin, reduction=REDUCTIONS[reduction])


def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """See `nn.functional.kl_div`."""
    values = loss.kl_div(input, target, reduction="none", log_target=log_target)
    return values if reduction == 0 else values.mean() if reduction == 1 else values.sum()


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """See `nn.functional.margin_ranking_loss`."""
    return margin_loss.margin_ranking_loss(input1, input2, target, margin, reduction=REDUCTIONS[reduction])


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """See `nn.functional.poisson_nll_loss`."""
    return loss.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=REDUCTIONS[reduction])


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """See `nn.functional.triplet_margin_loss`."""
    return margin_loss.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=REDUCTIONS[reduction]
    )


# -------------------------------------------------------------------------------------- normalization, padding, samples


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """See `nn.functional.batch_norm`, which has the running statistics before weight and bias."""
    return norms.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """See `nn.functional.instance_norm`, which has the running statistics before weight and bias."""
    return norms.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def _moments(groups: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return mean and 1 / √(var + eps) along the last dim."""
    variance = groups.var(-1, correction=0)
    return groups.mean(-1), (variance + eps).rsqrt()


def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the value of `nn.functional.layer_norm`, the mean, and 1 / √(var + eps)."""
    shape = tuple(normalized_shape)
    outer = input.shape[: input.ndim - len(shape)]
    mean, rstd = _moments(input.detach().reshape(*outer, math.prod(shape)), eps)
    kept = (*outer, *[1] * len(shape))
    return apply(layer_norm, input, shape, weight, bias, eps), mean.reshape(kept), rstd.reshape(kept)


def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the value of `nn.functional.group_norm`, the mean, and 1 / √(var + eps) of each group.

    As in PyTorch, the moments of groups have gradients; those of layers and batches have none.
    """
    mean, rstd = _moments(input.reshape(N, group, C // group * HxW), eps)
    return apply(group_norm, input, group, weight, bias, eps), mean, rstd


def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the value of `batch_norm`, the mean, and 1 / √(var + eps) of the batch; empty ones in evaluation."""
    if training:
        mean, rstd = _moments(input.detach().transpose(0, 1).reshape(input.shape[1], -1), eps)
    else:
        mean = rstd = input.new_empty(0)
    value = norms.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    return value, mean, rstd


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Pad with a constant; see `nn.functional.pad`."""
    return apply(pad_op, input, tuple(pad), "constant", value)


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """See `nn.functional.grid_sample`. The modes are numbers: bilinear, nearest, bicubic; zeros, border, reflection."""
    mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
    padding = ("zeros", "border", "reflection")[padding_mode]
    return interpolation.grid_sample(input, grid, mode, padding, align_corners)


grid_sampler_2d = grid_sampler_3d = grid_sampler


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """See `nn.functional.affine_grid`."""
    return interpolation.affine_grid(theta, size, align_corners)


def adaptive_max_pool1d(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """Return maxima and their indices; see `nn.functional.adaptive_max_pool1d`."""
    return adaptive_max_pool1d_with_indices(input, output_size)


# --------------------------------------------------------------------------------------------------- embedding, dropout


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """See `nn.functional.embedding`, which has the indices before the weight. A padding_idx of -1 is none."""
    padding = None if padding_idx < 0 else padding_idx
    return lookups.embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale the rows at `indices` whose norm exceeds `max_norm` down to it, in place."""
    lookups.embedding(indices.reshape(-1), input.detach(), max_norm=max_norm, norm_type=norm_type)
    return input


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Compute `dropout` in place."""
    return dropout.dropout(input, p, train, inplace=True)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Compute `alpha_dropout` in place."""
    return dropout.alpha_dropout(input, p, train, inplace=True)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero whole channels, as `nn.functional.dropout2d`, for any number of dims after them."""
    return dropout.drop_channels(input, p, train, inplace=False)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Compute `feature_dropout` in place."""
    return dropout.drop_channels(input, p, train, inplace=True)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Compute `feature_alpha_dropout` in place."""
    return dropout.feature_alpha_dropout(input, p, train, inplace=True)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Return the value of `dropout`, and which elements were kept."""
    if train is False or not p:
        return input.clone(), input.detach().new_ones(input.shape).bool()
    keep = dropout.dropout(input.detach().new_ones(input.shape), p, True) != 0
    return input * keep * (0.0 if p == 1 else 1 / (1 - p)), keep


# ------------------------------------------------------------------------------------------------ methods as functions


def detach_(input: Tensor) -> Tensor:
    """See `Tensor.detach_`."""
    return input.detach_()


def fill_(input: Tensor, value: Any) -> Tensor:
    """See `Tensor.fill_`."""
    return input.fill_(value)


def zero_(input: Tensor) -> Tensor:
    """See `Tensor.zero_`."""
    return input.zero_()


def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """See `Tensor.index_put_`."""
    return input.index_put_(indices, values, accumulate)


def as_strided_(input: Tensor, size: Any, stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """See `Tensor.as_strided_`."""
    return input.as_strided_(size, stride, storage_offset)


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """See `Tensor.resize_as_`."""
    return input.resize_as_(the_template, memory_format)


def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """See `Tensor.ldexp_`."""
    return input.ldexp_(other)


def addmv_(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """See `Tensor.addmv_`."""
    return input.addmv_(mat, vec, beta=beta, alpha=alpha)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Return the norm over all dims but one, which weight normalization divides by; over all dims for -1."""
    if dim == -1:
        return v.norm(pow)
    others = [d for d in arange(v.ndim).tolist() if d != dim]
    return v.norm(pow, others, keepdim=True)


def frobenius_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the root of the sum of squares over `dim`."""
    return input.norm("fro", dim, keepdim)


def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the sum of the singular values of matrices."""
    return input.norm("nuc", dim, keepdim)


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: float | Tensor, zero_point: int | Tensor, quant_min: int, quant_max: int
) -> Tensor:
    """Round to the values that integers from `quant_min` to `quant_max` stand for, scale · (integer - zero_point).

    The gradient passes unchanged where the integer is in their range, and is 0 elsewhere.
    """
    if not isinstance(zero_point, int | np.integer | Tensor):
        raise ArgumentTypeError(
            f"fake_quantize_per_tensor_affine: zero_point must be an int or a tensor, not {type(zero_point).__name__}"
        )
    scale = scale if isinstance(scale, Tensor) else input.new_full((), scale).float()
    zero_point = zero_point if isinstance(zero_point, Tensor) else input.new_full((), zero_point)
    return apply(fake_quantize, input, scale, zero_point, quant_min, quant_max)


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """Round as `fake_quantize_per_tensor_affine`, with a scale and a zero point for each slice along `axis`."""
    shape = [1] * input.ndim
    shape[axis] = -1
    return apply(fake_quantize, input, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max)


for _name, _function in [*globals().items()]:  # they call public functions, which ask no subclass for tallow's code
    if isinstance(_function, FunctionType) and _function.__module__ == __name__ and _name[0] != "_":
        globals()[_name] = overridable(_function)
