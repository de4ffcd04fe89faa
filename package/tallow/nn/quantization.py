"""Linear layers with eight- or four-bit weights: a quarter or an eighth of the memory, and of the reads per token.

    model = AutoModel.from_pretrained("Qwen/Qwen3-0.6B", dtype=tl.bfloat16, device="cuda")
    quantize_(model, Int4WeightOnlyConfig())
    for piece in model.generate_text("Once upon a time", max_tokens=100): ...

The weights are blocks of a GGUF format. On the CPU compiled kernels multiply them by rows of the input rounded to int8,
several times as fast as floats. On CUDA, kernels read them for up to eight rows, as in decoding, and inputs and sums
stay floats. Other products widen a few rows of the matrix at a time.

Source:  names as in torchao.quantization
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tallow.devices import to_host
from tallow.dtypes import widen
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.gguf_blocks import FORMATS
from tallow.kernels.quantized.gguf_quantize import QUANTIZERS
from tallow.nn.block_layers import BlockEmbedding, BlockLinear, block_layers
from tallow.nn.linear import Linear
from tallow.nn.module import Module

__all__ = [
    "BlockConfig",
    "Int4WeightOnlyConfig",
    "Int8WeightOnlyConfig",
    "QuantizationConfig",
    "WeightOnlyConfig",
    "WeightOnlyEmbedding",
    "WeightOnlyLinear",
    "quantize_",
]

GROUP_SIZES = (32, 64, 128, 256)
WeightOnlyLinear, WeightOnlyEmbedding = BlockLinear, BlockEmbedding  # names of earlier versions


class QuantizationConfig(ABC):
    """A method of quantizing layers."""

    @abstractmethod
    def layer(self, linear: Linear) -> Module:
        """Return a quantized layer with the bias of `linear`.

        Raises:  ArgumentError, ShapeError when groups or blocks do not divide the rows of the weight
        """


@dataclass(frozen=True)
class BlockConfig(QuantizationConfig):
    """Blocks of a GGUF format: layers become BlockLinear.

    Args:    format: one that tallow writes, such as "Q8_0": integers from -127 to 127, with a float16 scale for each 32
                     elements of a row
    Raises:  ArgumentError for another format
    """

    format: str = "Q8_0"

    def __post_init__(self) -> None:
        if self.format not in QUANTIZERS:
            raise ArgumentError(
                f"BlockConfig: format={self.format!r}", hint=f"use one of {', '.join(map(repr, QUANTIZERS))}"
            )

    def layer(self, linear: Linear) -> BlockLinear:
        return BlockLinear(BlockMatrix.quantized(linear.weight.array, self.format), linear.bias)


@dataclass(frozen=True)
class WeightOnlyConfig(QuantizationConfig):
    """Blocks of a format with a scale for each 32 elements of a row; the last block of a row is extended by zeros.

    Args:    group_size: the most elements that may share a scale, 32, 64, 128 or 256, which blocks stay within
    Raises:  ArgumentError for another size
    """

    format: ClassVar[str]
    group_size: int | None = None

    def __post_init__(self) -> None:
        if self.group_size not in (None, *GROUP_SIZES):
            raise ArgumentError(f"group_size={self.group_size}", hint=f"use one of {', '.join(map(str, GROUP_SIZES))}")

    def layer(self, linear: Linear) -> BlockLinear:
        missing = -linear.in_features % FORMATS[self.format].weights
        weight = np.pad(widen(to_host(linear.weight.array)), ((0, 0), (0, missing)))
        return BlockLinear(BlockMatrix.quantized(weight, self.format), linear.bias, linear.in_features)


@dataclass(frozen=True)
class Int8WeightOnlyConfig(WeightOnlyConfig):
    """Blocks of Q8_0: integers from -127 to 127.

    The error of an element is at most half a scale: 1/254 of the largest magnitude among the 32 of its block.

    Args:    as WeightOnlyConfig
    """

    format = "Q8_0"


@dataclass(frozen=True)
class Int4WeightOnlyConfig(WeightOnlyConfig):
    """Blocks of Q4_0: integers from -8 to 7.

    The error of an element is at most half a scale, 1/16 of the largest magnitude in its block; up to a whole scale for
    an element of that magnitude with the opposite sign.

    Args:    as WeightOnlyConfig
    """

    format = "Q4_0"
    group_size: int | None = 128


def _is_inner_linear(module: Module, name: str) -> bool:
    return type(module) is Linear and name.split(".")[-1] != "lm_head"


def count_weights(model: Module) -> int:
    """Return the number of weights of a model, in parameters and in quantised matrices."""
    quantised = [layer.size for _, layer in block_layers(model)]
    return sum(parameter.numel() for parameter in model.parameters()) + sum(map(math.prod, quantised))


def quantize_(
    model: Module, config: QuantizationConfig, filter_fn: Callable[[Module, str], bool] | None = None
) -> None:
    """Replace every Linear of a model by a quantized layer, one at a time.

    Args:    filter_fn: returns whether to quantize a Linear, from the layer and its dotted name. By default all are
                        quantized except an `lm_head`, whose errors go straight into the logits.
    Raises:  ArgumentError, with the layer's name, when groups or blocks do not divide in_features
    """
    is_quantized = _is_inner_linear if filter_fn is None else filter_fn
    layers = [(name, module) for name, module in model.named_modules() if isinstance(module, Linear)]
    for name, linear in layers:
        if not name or not is_quantized(linear, name):
            continue
        try:
            quantized = config.layer(linear)
        except (ArgumentError, ShapeError) as error:
            raise ArgumentError(f"quantize_: {name}: {error}") from error
        parent, _, attribute = name.rpartition(".")
        quantized.to(linear.weight.device).train(linear.training)
        setattr(model.get_submodule(parent), attribute, quantized)
