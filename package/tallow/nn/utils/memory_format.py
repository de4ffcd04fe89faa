"""Let the weights of convolutions lie in memory in another order of dims, as torch.nn.utils.memory_format."""

from __future__ import annotations

from typing import TypeVar

from tallow.errors import ArgumentError
from tallow.lazy_names import names_of
from tallow.nn.convolution import _ConvNd
from tallow.nn.module import Module
from tallow.ops.memory_format import CHANNELS_LAST_NDIM, memory_format

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

M = TypeVar("M", bound=Module)


def _converted(module: M, format: memory_format, ndim: int) -> M:
    if CHANNELS_LAST_NDIM.get(format, ndim) != ndim:
        raise ArgumentError(f"a weight of {ndim} dims has no order {format}")
    for each in module.modules():
        if isinstance(each, _ConvNd) and each.weight.ndim == ndim:
            each.weight.data = each.weight.data.contiguous(memory_format=format)
    return module


def convert_conv2d_weight_memory_format(module: M, memory_format: memory_format) -> M:
    """Convert the weights of all convolutions of two dims in a module. Their values stay."""
    return _converted(module, memory_format, 4)


def convert_conv3d_weight_memory_format(module: M, memory_format: memory_format) -> M:
    """Convert the weights of all convolutions of three dims in a module. Their values stay."""
    return _converted(module, memory_format, 5)


__getattr__, __dir__ = names_of(__name__)
