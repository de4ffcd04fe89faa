"""Linear layers with eight- or four-bit weights: a quarter or an eighth of the memory, and of the reads per token.

    model = AutoModel.from_pretrained("Qwen/Qwen3-0.6B", dtype=tl.bfloat16, device="cuda")
    quantize_(model, Int4WeightOnlyConfig(group_size=64))
    for piece in model.generate_text("Once upon a time", max_tokens=100): ...

On the CPU use BlockConfig: compiled kernels multiply the blocks by rows of the input rounded to int8, several times as
fast as floats.

With the WeightOnly configs inputs, sums and outputs stay floats. A kernel reads the codes directly, on CUDA for up to
eight rows, as in decoding, and on the CPU for up to 256, in about the time of a float32 weight; for one row in less if
that would not fit in a cache. Other products widen the whole matrix first.

Source:  names as in torchao.quantization
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from tallow.dtypes import Array
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.block_matrix import BlockMatrix
from tallow.kernels.gguf_quantize import QUANTIZERS
from tallow.kernels.quantized import QuantizedMatrix, quantize_int4, quantize_int8
from tallow.nn.block_layers import BlockEmbedding, BlockLinear
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.weight_only_layers import WeightOnlyEmbedding, WeightOnlyLinear

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


class QuantizationConfig(ABC):
    """A method of quantizing layers."""

    @abstractmethod
    def layer(self, linear: Linear) -> Module:
        """Return a quantized layer with the bias of `linear`.

        Raises:  ArgumentError, ShapeError when groups or blocks do not divide the rows of the weight
        """


@dataclass(frozen=True)
class BlockConfig(QuantizationConfig):
    """Blocks of a GGUF format, for the CPU: layers become BlockLinear.

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


class WeightOnlyConfig(QuantizationConfig):
    """A method of quantizing weights to integers with scales."""

    @abstractmethod
    def quantized(self, weight: Array) -> QuantizedMatrix:
        """Return a quantized weight.  Raises: ArgumentError when the groups do not divide its rows"""

    def layer(self, linear: Linear) -> WeightOnlyLinear:
        return WeightOnlyLinear(self.quantized(linear.weight.array), linear.bias)


@dataclass(frozen=True)
class Int8WeightOnlyConfig(WeightOnlyConfig):
    """Integers from -127 to 127, with a scale for each row of the weight, or for each `group_size` elements of a row.

    The error of an element is at most half a scale: 1/254 of the largest magnitude in its group.
    """

    group_size: int | None = None

    def __post_init__(self) -> None:
        if self.group_size is not None:
            _check_group(self.group_size)

    def quantized(self, weight: Array) -> QuantizedMatrix:
        return quantize_int8(weight, self.group_size)


@dataclass(frozen=True)
class Int4WeightOnlyConfig(WeightOnlyConfig):
    """Integers from -8 to 7, two in a byte, with a scale for each `group_size` elements of a row of the weight.

    The error of an element is at most half a scale, 1/16 of the largest magnitude in its group; up to a whole scale for
    an element of that magnitude with the opposite sign.
    """

    group_size: int = 128

    def __post_init__(self) -> None:
        _check_group(self.group_size)

    def quantized(self, weight: Array) -> QuantizedMatrix:
        return quantize_int4(weight, self.group_size)


def _check_group(size: int) -> None:
    if size not in GROUP_SIZES:
        raise ArgumentError(f"group_size={size}", hint=f"use one of {', '.join(map(str, GROUP_SIZES))}")


def _is_inner_linear(module: Module, name: str) -> bool:
    return type(module) is Linear and name.split(".")[-1] != "lm_head"


QUANTIZED = (BlockLinear, BlockEmbedding, WeightOnlyLinear, WeightOnlyEmbedding)


def count_weights(model: Module) -> int:
    """Return the number of weights of a model, in parameters and in quantised matrices."""
    quantised = [module.matrix.shape for module in model.modules() if isinstance(module, QUANTIZED)]
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
        setattr(model.get_submodule(parent), attribute, quantized.train(linear.training))
