"""Batch norms for training, which the weights in a file do not have: they are folded into the convolutions."""

from __future__ import annotations

from typing import TypeVar

import tallow as tl
from tallow.nn import Module
from tallow.nn.utils.fusion import fuse_conv_bn_eval

M = TypeVar("M", bound=Module)
NORMALIZED = ("stem", "shrink", "spatial", "widen", "lateral", "mask_lateral")


def with_norms(model: M) -> M:
    """Return the model, changed so that a batch norm follows its convolutions with the names above."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if name in NORMALIZED:
                setattr(parent, name, tl.nn.Sequential(child, tl.nn.BatchNorm2d(child.out_channels, momentum=0.03)))
    return model


def folded_state(model: Module) -> dict[str, tl.Tensor]:
    """Return the parameters of a model that `with_norms` has changed, for the model as it was before."""
    model.eval()
    state = {name: tensor.detach() for name, tensor in model.named_parameters()}
    for name, module in model.named_modules():
        if isinstance(module, tl.nn.Sequential):
            fused = fuse_conv_bn_eval(module[0], module[1])
            for part in ("0.weight", "0.bias", "1.weight", "1.bias"):
                del state[f"{name}.{part}"]
            state |= {f"{name}.{part}": getattr(fused, part).detach() for part in ("weight", "bias")}
    return state
