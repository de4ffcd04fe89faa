"""Linear layers with weights of eight or four bits: a quarter or an eighth of the memory, and of what a token reads.

    model = AutoModel.from_pretrained("Qwen/Qwen3-0.6B", dtype=tl.bfloat16, device="cuda")
    quantize_(model, Int4WeightOnlyConfig(group_size=64))
    for piece in model.generate_text("Once upon a time", max_tokens=100): ...

Inputs, sums and results stay floats. On cuda a kernel reads the codes as they are, for up to eight rows, which is what
decoding has; elsewhere the matrix is widened for each product, which saves memory and no time.

Source:  names as in torchao.quantization
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from tallow.apply import apply
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.kernels.quantized import QuantizedMatrix, quantize_int4, quantize_int8
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.parameter import Buffer, Parameter
from tallow.ops.weight_only_linear import weight_only_linear
from tallow.tensor import Tensor, wrap

__all__ = ["Int4WeightOnlyConfig", "Int8WeightOnlyConfig", "WeightOnlyConfig", "WeightOnlyLinear", "quantize_"]

GROUP_SIZES = (32, 64, 128, 256)


class WeightOnlyConfig(ABC):
    """How a weight is quantized."""

    @abstractmethod
    def quantized(self, weight: Array) -> QuantizedMatrix:
        """Raises:  ArgumentError where the groups do not divide its rows"""


@dataclass(frozen=True)
class Int8WeightOnlyConfig(WeightOnlyConfig):
    """Integers from -127 to 127, and a scale for each row of the weight, or for `group_size` neighbours in it.

    An element is off by half a scale at most: 1/254 of the largest magnitude in its group.
    """

    group_size: int | None = None

    def __post_init__(self) -> None:
        if self.group_size is not None:
            _check_group(self.group_size)

    def quantized(self, weight: Array) -> QuantizedMatrix:
        return quantize_int8(weight, self.group_size)


@dataclass(frozen=True)
class Int4WeightOnlyConfig(WeightOnlyConfig):
    """Integers from -8 to 7, two in a byte, and a scale for `group_size` neighbours in a row of the weight.

    An element is off by half a scale, 1/16 of the largest magnitude in its group; by up to a whole one where it is as
    large as that and of the other sign.
    """

    group_size: int = 128

    def __post_init__(self) -> None:
        _check_group(self.group_size)

    def quantized(self, weight: Array) -> QuantizedMatrix:
        return quantize_int4(weight, self.group_size)


def _check_group(size: int) -> None:
    if size not in GROUP_SIZES:
        raise ArgumentError(f"group_size={size}", mend=f"choose one of {', '.join(map(str, GROUP_SIZES))}")


class WeightOnlyLinear(Module):
    """A Linear with a quantized weight, for inference. The input and the bias can still be differentiated.

    y = x · weightᵀ + bias

    Shapes:  x (..., in_features) -> (..., out_features)
    """

    def __init__(self, matrix: QuantizedMatrix, bias: Parameter | None = None) -> None:
        super().__init__()
        self.out_features, self.in_features = matrix.shape
        self.codes = Buffer(wrap(matrix.codes))
        self.scales = Buffer(wrap(matrix.scales))
        self.bias = bias

    @property
    def matrix(self) -> QuantizedMatrix:
        return QuantizedMatrix(self.codes.array, self.scales.array)

    @property
    def weight(self) -> Tensor:
        """The weight that the codes stand for, in float32: new memory at each use."""
        return wrap(self.matrix.widen())

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = apply(weight_only_linear, input, self.codes, self.scales, self.bias)
        return result

    def extra_repr(self) -> str:
        bits = 8 if self.codes.shape[1] == self.in_features else 4
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, "
            f"bits={bits}, group_size={self.matrix.group}"
        )


def _is_inner_linear(module: Module, name: str) -> bool:
    return type(module) is Linear and name.split(".")[-1] != "lm_head"


def quantize_(model: Module, config: WeightOnlyConfig, filter_fn: Callable[[Module, str], bool] | None = None) -> None:
    """Put a WeightOnlyLinear in the place of every Linear of a model, one after the other.

    Args:    filter_fn: of a Linear and its dotted name, whether it is quantized; by default all are but an `lm_head`,
                        whose errors go straight into the logits.
    Raises:  ArgumentError where groups do not divide in_features, with the layer's name
    """
    chosen = _is_inner_linear if filter_fn is None else filter_fn
    layers = [(name, module) for name, module in model.named_modules() if isinstance(module, Linear)]
    for name, linear in layers:
        if not name or not chosen(linear, name):
            continue
        try:
            matrix = config.quantized(linear.weight.array)
        except ArgumentError as error:
            raise ArgumentError(f"quantize_: {name}: {error}") from error
        parent, _, attribute = name.rpartition(".")
        quantized = WeightOnlyLinear(matrix, linear.bias)
        setattr(model.get_submodule(parent), attribute, quantized.train(linear.training))
