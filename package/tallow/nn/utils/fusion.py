"""Fold batch normalization into the layer before it, for inference, as torch.nn.utils.fusion."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from tallow.errors import ArgumentError
from tallow.functions.like import ones_like, zeros_like
from tallow.lazy_names import names_of
from tallow.nn.module import Module
from tallow.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_linear_bn_eval"]

M = TypeVar("M", bound=Module)


def _fused(layer: M, bn: Any, output_dim: int) -> M:
    if layer.training or bn.training:
        raise ArgumentError("fusion is for inference only", hint="call eval() on both modules first")
    fused: Any = copy.deepcopy(layer)
    weight, mean = fused.weight, bn.running_mean
    gain = (ones_like(mean) if bn.weight is None else bn.weight) * (bn.running_var + bn.eps).rsqrt()
    bias = (zeros_like(mean) if fused.bias is None else fused.bias) - mean
    shape = [-1 if i == output_dim else 1 for i in range(weight.ndim)]
    fused.weight = Parameter((weight * gain.reshape(shape)).detach(), weight.requires_grad)
    shifted = bias * gain + (0 if bn.bias is None else bn.bias)
    fused.bias = Parameter(shifted.detach(), weight.requires_grad)
    return fused


def fuse_conv_bn_eval(conv: M, bn: Any, transpose: bool = False) -> M:
    """Return a convolution that computes `bn(conv(x))`; `transpose` for a transposed one without groups."""
    return _fused(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: M, bn: Any) -> M:
    """Return a linear layer that computes `bn(linear(x))`."""
    return _fused(linear, bn, 0)


__getattr__, __dir__ = names_of(__name__)
