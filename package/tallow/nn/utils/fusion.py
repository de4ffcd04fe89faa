"""Fold batch normalization into the layer before it, for inference, as torch.nn.utils.fusion."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.functions.like import ones_like, zeros_like
from tallow.lazy_names import names_of
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]

M = TypeVar("M", bound=Module)


def _fused(layer: M, bn: Any, output_dim: int) -> M:
    if layer.training or bn.training:
        raise ArgumentError("fusion is for inference only", hint="call eval() on both modules first")
    fused: Any = copy.deepcopy(layer)
    statistics = bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    fused.weight, fused.bias = _fused_weights(fused.weight, fused.bias, statistics, output_dim)
    return fused


def _fused_weights(
    weight: Tensor,
    bias: Tensor | None,
    statistics: tuple[Tensor, Tensor, float, Tensor | None, Tensor | None],
    output_dim: int,
) -> tuple[Parameter, Parameter]:
    """Return both for the outputs that are normalized by mean, variance and eps, and scaled by a weight and a bias."""
    mean, variance, eps, scale, shift = statistics
    gain = (ones_like(mean) if scale is None else scale) * (variance + eps).rsqrt()
    shape = [-1 if i == output_dim else 1 for i in range(weight.ndim)]
    shifted = ((zeros_like(mean) if bias is None else bias) - mean) * gain + (0 if shift is None else shift)
    values = (weight * gain.reshape(shape)).detach(), shifted.detach()
    return Parameter(values[0], weight.requires_grad), Parameter(values[1], weight.requires_grad)


def fuse_conv_bn_eval(conv: M, bn: Any, transpose: bool = False) -> M:
    """Return a convolution that computes `bn(conv(x))`; `transpose` for a transposed one without groups."""
    return _fused(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: M, bn: Any) -> M:
    """Return a linear layer that computes `bn(linear(x))`."""
    return _fused(linear, bn, 0)


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return the weight and the bias of a convolution whose batch normalization is folded into them.

    Args:
        conv_w, conv_b: the weight and bias of the convolution; `transpose` for a transposed one without groups.
        bn_rm, bn_rv, bn_eps: the running mean and variance, and what is added to the latter.
        bn_w, bn_b: the weight and bias of the normalization; None means ones and zeros.
    """
    return _fused_weights(conv_w, conv_b, (bn_rm, bn_rv, bn_eps, bn_w, bn_b), 1 if transpose else 0)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Return the weight and the bias of a linear layer, as `fuse_conv_bn_weights` does."""
    return _fused_weights(linear_w, linear_b, (bn_rm, bn_rv, bn_eps, bn_w, bn_b), 0)


__getattr__, __dir__ = names_of(__name__)
