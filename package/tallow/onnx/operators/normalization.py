"""ONNX normalizations.

Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import Any

import tallow as tl
import tallow.nn.functional as F
from tallow import Tensor
from tallow.onnx.operators.pooling import joined
from tallow.onnx.operators.registry import State, operator
from tallow.ops.dims import normalize_dim

WIDE = 64  # channels of a window of LRN


@operator("BatchNormalization", since=14)
def batch_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: State,
    var: State,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:
    """Normalize each channel by the running mean and variance, or in training by those of the batch.

    In training the new running statistics follow: momentum · old + (1 - momentum) · of the batch, with the biased
    variance.
    """
    if not training_mode:
        return F.batch_norm(x, mean, var, scale, bias, False, 0.0, epsilon)
    axes = tuple(axis for axis in range(x.dim()) if axis != 1)
    batch_var, batch_mean = tl.var_mean(x, axes, correction=0)
    y = F.batch_norm(x, None, None, scale, bias, True, 0.0, epsilon)
    return y, mean * momentum + batch_mean * (1 - momentum), var * momentum + batch_var * (1 - momentum)


@operator("BatchNormalization", since=1, until=13)
def batch_normalization_in_inference(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: State,
    var: State,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    spatial: int = 1,
    is_test: int = 1,
    consumed_inputs: tuple[int, ...] = (),
) -> Tensor:
    """Normalize by the running mean and variance, of each channel or with `spatial=0` of each element."""
    if spatial:
        return F.batch_norm(x, mean, var, scale, bias, False, 0.0, epsilon)
    return (x - mean) / tl.sqrt(var + epsilon) * scale + bias


@operator("InstanceNormalization", since=1)
def instance_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5, consumed_inputs: tuple[int, ...] = ()
) -> Tensor:
    """Normalize each channel of each element of the batch."""
    return F.instance_norm(x, None, None, scale, bias, True, 0.0, epsilon)


@operator("LayerNormalization", since=17)
def layer_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    outputs: int = 1,
) -> Any:
    """Normalize over the dims from `axis` on; further outputs are the mean and the inverse standard deviation."""
    shape = x.shape[normalize_dim(axis, x.dim(), "LayerNormalization") :]
    if outputs == 1:
        return F.layer_norm(x, shape, scale, bias, epsilon)
    axes = tuple(range(normalize_dim(axis, x.dim(), "LayerNormalization"), x.dim()))
    var, mean = tl.var_mean(x.to(tl.float32), axes, correction=0, keepdim=True)
    return F.layer_norm(x, shape, scale, bias, epsilon), mean, tl.rsqrt(var + epsilon)


@operator("RMSNormalization", since=23)
def rms_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    """Divide by the root mean square over the dims from `axis` on; `scale` broadcasts to the result."""
    shape = x.shape[normalize_dim(axis, x.dim(), "RMSNormalization") :]
    if scale.shape == shape:
        return F.rms_norm(x, shape, scale, epsilon)
    return F.rms_norm(x, shape, None, epsilon) * scale


@operator("GroupNormalization", since=21)
def group_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    """Normalize groups of channels; `scale` and `bias` have one number for each channel."""
    return F.group_norm(x, num_groups, scale, bias, epsilon)


@operator("GroupNormalization", since=18, until=20)
def group_normalization_by_group(
    x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5
) -> Tensor:
    """Normalize groups of channels; `scale` and `bias` have one number for each group."""
    each = x.shape[1] // num_groups
    return F.group_norm(x, num_groups, tl.repeat_interleave(scale, each), tl.repeat_interleave(bias, each), epsilon)


@operator("LRN", since=1)
def lrn(x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
    """Divide by a power of the mean square of `size` neighbouring channels; halves are squared in float32."""
    if x.dtype.is_floating_point and x.dtype.itemsize < 4:
        return lrn(x.float(), size=size, alpha=alpha, beta=beta, bias=bias).to(x.dtype)
    if size > WIDE:
        return _wide_lrn(x, size, alpha, beta, bias)
    # F.local_response_norm has one channel more before than after for even sizes, as ONNX has one more after.
    if size % 2:
        return F.local_response_norm(x, size, alpha, beta, bias)
    flipped = F.local_response_norm(x.flip(1), size, alpha, beta, bias)
    return flipped.flip(1)


def _wide_lrn(x: Tensor, size: int, alpha: float, beta: float, bias: float) -> Tensor:
    """Sum the squares of many channels in halves of windows; it has at most all channels on each side."""
    before, after = (min(n, x.shape[1]) for n in ((size - 1) // 2, size // 2))
    squares = F.pad(x * x, [0, 0] * (x.dim() - 2) + [before, after])
    sums = joined(squares, 1, before + after + 1, 1, add).narrow(1, 0, x.shape[1])
    return x / (bias + alpha / size * sums) ** beta


@operator("LpNormalization", since=1)
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    """Divide by the norm along `axis`; where it is zero, the result is zero."""
    norm = tl.linalg.vector_norm(x, p, axis, keepdim=True)
    return tl.where(norm == 0, tl.zeros_like(x), x / norm)


@operator("MeanVarianceNormalization", since=9)
def mean_variance_normalization(x: Tensor, *, axes: Sequence[int] = (0, 2, 3)) -> Tensor:
    """Subtract the mean over `axes`, and divide by the standard deviation."""
    var, mean = tl.var_mean(x, tuple(axes), correction=0, keepdim=True)
    return (x - mean) / (tl.sqrt(var) + 1e-9)
