"""Layers whose weights are int8 or int4 codes with scales in arrays of their own, for inference.

`tallow.nn.quantization.quantize_` makes them from Linear layers; GGUF files give them on a GPU, whose kernels read such
codes, where on the CPU the blocks of the file stay as they are.
"""

from __future__ import annotations

import numpy as np

from tallow.core.apply import apply
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import cast
from tallow.kernels.quantized import QuantizedMatrix
from tallow.nn.module import Module
from tallow.nn.parameter import Buffer, Parameter
from tallow.ops.embedding import check_indices
from tallow.ops.weight_only_linear import weight_only_linear


class _WeightOnlyLayer(Module):
    """Base of layers with a quantized matrix."""

    def __init__(self, matrix: QuantizedMatrix) -> None:
        super().__init__()
        self.codes = Buffer(wrap(matrix.codes))
        self.scales = Buffer(wrap(matrix.scales))
        self.shifts = None if matrix.shifts is None else Buffer(wrap(matrix.shifts))

    @property
    def matrix(self) -> QuantizedMatrix:
        """The codes, scales and shifts as kernels take them."""
        return QuantizedMatrix(self.codes.array, self.scales.array, None if self.shifts is None else self.shifts.array)

    @property
    def weight(self) -> Tensor:
        """The dequantized matrix in float32; each access allocates new memory."""
        return wrap(self.matrix.widen())

    def times(self, input: Tensor, bias: Parameter | None = None) -> Tensor:
        """Return input · matrixᵀ + bias."""
        result: Tensor = apply(weight_only_linear, input, self.codes, self.scales, bias, self.shifts)
        return result

    def form(self) -> str:
        """Return bits and groups for `extra_repr`."""
        return f"bits={8 * self.codes.shape[1] // self.matrix.shape[1]}, group_size={self.matrix.group}"


class WeightOnlyLinear(_WeightOnlyLayer):
    """A Linear with a quantized weight, for inference. Gradients reach only the input and the bias.

    y = x · weightᵀ + bias

    Shapes:  x (..., in_features) -> (..., out_features)
    """

    def __init__(self, matrix: QuantizedMatrix, bias: Parameter | None = None) -> None:
        super().__init__(matrix)
        self.out_features, self.in_features = matrix.shape
        self.bias = bias

    def forward(self, input: Tensor) -> Tensor:
        return self.times(input, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, "
            f"{self.form()}"
        )


class WeightOnlyEmbedding(_WeightOnlyLayer):
    """An Embedding with a quantized table, for inference: a look-up converts only the rows it returns.

    Shapes:  input (*) of integers -> (*, embedding_dim)
    """

    def __init__(self, matrix: QuantizedMatrix) -> None:
        super().__init__(matrix)
        self.num_embeddings, self.embedding_dim = matrix.shape
        self.result_type = Buffer(wrap(np.zeros((), np.float32)), persistent=False)  # `to` converts it with the model

    def forward(self, input: Tensor) -> Tensor:
        check_indices("embedding", input.array, self.num_embeddings)
        return wrap(cast(self.matrix.rows(input.array), self.result_type.dtype))

    def project(self, hidden: Tensor) -> Tensor:
        """Return hidden · tableᵀ: the logits of a model that ties its head to the table.

        Shapes:  hidden (..., embedding_dim) -> (..., num_embeddings)
        """
        return self.times(hidden)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, {self.form()}"
