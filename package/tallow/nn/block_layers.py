"""Layers whose weights stay as in a GGUF file, in quantised blocks or in half precision, for inference.

    model = AutoModel.from_pretrained("model-Q4_K_M.gguf")

On the CPU compiled kernels multiply by the blocks as they are in the mapped file, or by a copy of it with interleaved
rows that the first product makes (block_buffer.py). Either takes the memory of the file, and generating a token, which
reads all weights once, takes less time than with float32. Formats without a compiled kernel
are converted to float32 a few rows at a time, for each product: slower, in the same memory. Inputs and results are
floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tallow import devices, kernels
from tallow.core.apply import apply
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import cast
from tallow.kernels.block_groups import grouped
from tallow.kernels.block_matrix import BlockMatrix
from tallow.kernels.table import ARRAY
from tallow.nn.block_buffer import BlockBuffer
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.parameter import Buffer, Parameter
from tallow.nn.transposed_linear import Conv1D
from tallow.nn.weight_only_layers import WeightOnlyEmbedding, WeightOnlyLinear
from tallow.ops.embedding import check_indices
from tallow.ops.quantized_linear import quantized_linear

__all__ = ["BlockConv1D", "BlockEmbedding", "BlockLinear"]

WEIGHT = ".weight"


class _BlockLayer(Module):
    """Base of layers with a quantised matrix."""

    def __init__(self, matrix: BlockMatrix) -> None:
        super().__init__()
        self.take(matrix)

    def take(self, matrix: BlockMatrix) -> None:
        """Use another matrix of the same shape."""
        matrix = matrix.separated()
        self.blocks = BlockBuffer(wrap(matrix.blocks))
        self.format = matrix.format

    @property
    def matrix(self) -> BlockMatrix:
        """The matrix of the layer, whose rows may be interleaved."""
        blocks = self.blocks
        return blocks.matrix(self.format) if isinstance(blocks, BlockBuffer) else BlockMatrix(blocks.array, self.format)

    def for_products(self) -> BlockMatrix:
        """Return the matrix as products read it fastest."""
        return self.blocks.for_products(self.format) if isinstance(self.blocks, BlockBuffer) else self.matrix

    def times(self, input: Tensor, bias: Parameter | None = None) -> Tensor:
        """Return input · matrixᵀ + bias."""
        matrix = self.for_products()
        result: Tensor = apply(quantized_linear, input, wrap(matrix.blocks), matrix.format, bias)
        return result

    @property
    def weight(self) -> Tensor:
        """The matrix in float32: new memory at each use."""
        return wrap(self.matrix.widen())


class BlockLinear(_BlockLayer):
    """A Linear with a quantised weight. The input and the bias can still be differentiated.

    y = x · weightᵀ + bias

    Shapes:  x (..., in_features) -> (..., out_features)
    """

    def __init__(self, matrix: BlockMatrix, bias: Parameter | None = None) -> None:
        super().__init__(matrix)
        self.out_features, self.in_features = matrix.shape
        self.bias = bias

    def forward(self, input: Tensor) -> Tensor:
        return self.times(input, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, "
            f"format={self.format}"
        )


class BlockConv1D(BlockLinear):
    """A Conv1D, GPT-2's linear layer, with a quantised weight. The blocks are those of the transposed weight.

    y = x · weight + bias

    Shapes:  x (..., in_features) -> (..., out_features)
    """

    @property
    def weight(self) -> Tensor:
        """The weight in float32, (in_features, out_features): new memory at each use."""
        return super().weight.T


class BlockEmbedding(_BlockLayer):
    """An Embedding with a quantised table: a look-up converts only the rows it returns, to the model's float dtype.

    Shapes:  input (*) of integers -> (*, embedding_dim)
    """

    def __init__(self, matrix: BlockMatrix) -> None:
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
        return f"{self.num_embeddings}, {self.embedding_dim}, format={self.format}"


def put_block_layers(model: Module, matrices: Mapping[str, BlockMatrix], device: Any = None) -> dict[str, Tensor]:
    """Replace the Linear, Conv1D and Embedding layers whose weights are `matrices`, named as in the state dict.

    Args:     device: the model's; one with a kernel for codes and scales in arrays of their own gets such layers

    Returns:  the entries of the state dict for `matrices`: blocks or codes, or float32 weights for matrices of other
              modules and of wrong shapes
    """
    state: dict[str, Tensor] = {}
    modules = dict(model.named_modules())
    replacement = _with_codes if reads_codes(device) else _with_blocks
    for name, matrix in matrices.items():
        path = name.removesuffix(WEIGHT)
        layer = replacement(modules.get(path), matrix)
        if layer is None:
            weight = matrix.widen()
            state[name] = wrap(weight.T if isinstance(modules.get(path), Conv1D) else weight)
            continue
        parent, _, attribute = path.rpartition(".")
        setattr(model.get_submodule(parent), attribute, layer)
        stored = layer.state_dict(keep_vars=True)
        state |= {f"{path}.{part}": tensor for part, tensor in stored.items() if part != "bias"}
    return state


def reads_codes(device: Any) -> bool:
    """Return whether a device has a kernel of its own for codes and scales; None is the default device."""
    type = devices.chosen(device).type
    return type != "cpu" and ("weight_only_linear", type) in kernels.KERNELS


def has_kernel(matrix: BlockMatrix) -> bool:
    """Return whether a compiled kernel multiplies by the matrix, so that it is better not widened."""
    return _backend(matrix) != ARRAY


def _backend(matrix: BlockMatrix) -> str:
    row, device = np.empty((1, matrix.shape[1]), np.float32), devices.device_of(matrix.blocks).type
    return kernels.pick("quantized_linear", device, row, matrix.blocks, matrix.format, None).backend


def widened_state(model: Module) -> dict[str, Tensor]:
    """Return the state dict of the model with float32 weights in place of quantised ones."""
    state = model.state_dict()
    for path, module in model.named_modules():
        if isinstance(module, _BlockLayer):
            del state[f"{path}.blocks"]
            state[path + WEIGHT] = module.weight
    return state


def block_notes(model: Module) -> list[str]:
    """Return a line for each format of the model's quantised matrices: how products with it are computed."""
    formats: dict[str, list[BlockMatrix]] = {}
    for module in model.modules():
        if isinstance(module, _BlockLayer):
            formats.setdefault(module.format, []).append(module.matrix)
    return [f"{name}  {_product(matrices)}" for name, matrices in formats.items()]


def _product(matrices: list[BlockMatrix]) -> str:
    backend = _backend(matrices[0])
    count = f"{len(matrices)} matrices" if len(matrices) > 1 else "1 matrix"
    if backend != ARRAY:
        return f"{count}, multiplied as stored: quantized_linear, {backend}"
    return f"{count}, without a compiled kernel: each product converts the rows to float32; pass dtype to convert once"


def _with_blocks(module: Module | None, matrix: BlockMatrix) -> _BlockLayer | None:
    if not isinstance(module, Linear | Conv1D | Embedding):
        return None
    shape = tuple(module.weight.shape)
    if type(module) is Linear and shape == matrix.shape:
        return BlockLinear(matrix, module.bias)
    if type(module) is Conv1D and shape[::-1] == matrix.shape:
        return BlockConv1D(matrix, module.bias)
    return BlockEmbedding(matrix) if type(module) is Embedding and shape == matrix.shape else None


def _with_codes(module: Module | None, matrix: BlockMatrix) -> WeightOnlyLinear | WeightOnlyEmbedding | None:
    layer = _with_blocks(module, matrix)
    codes = None if layer is None or isinstance(layer, BlockConv1D) else grouped(matrix)
    if codes is None:
        return None
    return WeightOnlyLinear(codes, layer.bias) if isinstance(layer, BlockLinear) else WeightOnlyEmbedding(codes)
