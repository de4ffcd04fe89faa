"""Layers whose weights stay as in a GGUF file, in quantised blocks or in half precision, for inference.

    model = AutoModel.from_pretrained("model-Q4_K_M.gguf")

On the CPU compiled kernels multiply by the blocks as they are in the mapped file, or by a copy of it with interleaved
rows that the first product makes (block_buffer.py). Either takes the memory of the file, and generating a token, which
reads all weights once, takes less time than with float32. On a GPU kernels multiply by codes and scales in arrays of
their own. Formats without a kernel are converted to float32 a few rows at a time, for each product: slower, in the same
memory. Inputs and results are floats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tallow import devices, kernels
from tallow.core.apply import apply
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import cast
from tallow.errors import TallowError
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.grouped_matrix import GroupedMatrix, is_scaled
from tallow.kernels.quantized.quantized_matrix import QuantizedMatrix
from tallow.kernels.table import ARRAY
from tallow.nn import functional as F
from tallow.nn.block_buffer import BlockBuffer
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.module import Module
from tallow.nn.parameter import Buffer, Parameter
from tallow.nn.transposed_linear import Conv1D
from tallow.ops.embedding import check_indices
from tallow.ops.quantized_linear import quantized_linear

__all__ = ["BlockConv1D", "BlockEmbedding", "BlockLayer", "BlockLinear"]

WEIGHT = ".weight"
CODES = ("codes", "scales", "shifts")  # entries of the state dicts of earlier versions


class BlockLayer(Module):
    """Base of layers with a quantised matrix.

    Attributes:
        size: the shape of the weight, whose rows the blocks may extend by zeros.
    """

    size: tuple[int, int]

    def __init__(self, matrix: BlockMatrix) -> None:
        super().__init__()
        self.take(matrix)

    def take(self, matrix: BlockMatrix) -> None:
        """Use another matrix of the same shape."""
        matrix = matrix.in_blocks()
        self.blocks = BlockBuffer(wrap(matrix.blocks))
        self.format = matrix.format

    @property
    def _buffer(self) -> BlockBuffer:
        blocks = self.blocks
        if not isinstance(blocks, BlockBuffer):  # assigned by a user
            blocks = self.blocks = BlockBuffer(blocks)
        return blocks

    @property
    def matrix(self) -> QuantizedMatrix:
        """The matrix of the layer, on its device."""
        return self._buffer.matrix(self.format)

    @property
    def stored(self) -> BlockMatrix:
        """The matrix on the host, whose rows may be interleaved."""
        return self._buffer.stored(self.format)

    def for_products(self) -> QuantizedMatrix:
        """Return the matrix as products read it fastest."""
        return self._buffer.for_products(self.format)

    def times(self, input: Tensor, bias: Parameter | None = None) -> Tensor:
        """Return input · matrixᵀ + bias."""
        result: Tensor = apply(quantized_linear, input, self.for_products(), bias)
        return result

    @property
    def weight(self) -> Tensor:
        """The matrix in float32: new memory at each use."""
        return wrap(self.matrix.widen())

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Also take int8 or int4 codes and their scales, which earlier versions saved for such a layer."""
        entries = {name: state_dict[prefix + name] for name in CODES if prefix + name in state_dict}
        if {"codes", "scales"} <= entries.keys() and all(isinstance(entry, Tensor) for entry in entries.values()):
            for name in entries:
                del state_dict[prefix + name]
            try:
                grouped = GroupedMatrix(**{name: devices.to_host(entry.array) for name, entry in entries.items()})
                matrix = grouped.in_blocks()
            except TallowError as error:
                args[-1].append(f"  wrong codes  {prefix}codes: {error}")
            else:
                if (matrix.format, grouped.shape) != (self.format, self.size):
                    found, own = f"{matrix.format} {grouped.shape}", f"{self.format} {self.size}"
                    args[-1].append(f"  wrong codes  {prefix}codes: file {found}, model {own}")
                state_dict[prefix + "blocks"] = wrap(matrix.blocks)
        super()._load_from_state_dict(state_dict, prefix, *args)


class BlockLinear(BlockLayer):
    """A Linear with a quantised weight. The input and the bias can still be differentiated.

    y = x · weightᵀ + bias

    Args:    in_features: fewer than the columns of the matrix, if these are extended by zeros to whole blocks
    Shapes:  x (..., in_features) -> (..., out_features)
    """

    def __init__(self, matrix: BlockMatrix, bias: Parameter | None = None, in_features: int | None = None) -> None:
        super().__init__(matrix)
        self.out_features, columns = matrix.shape
        self.in_features = columns if in_features is None else in_features
        self.size, self._missing = (self.out_features, self.in_features), columns - self.in_features
        self.bias = bias

    @property
    def weight(self) -> Tensor:
        """The weight in float32, (out_features, in_features): new memory at each use."""
        return super().weight[:, : self.in_features]

    def forward(self, input: Tensor) -> Tensor:
        return self.times(F.pad(input, (0, self._missing)) if self._missing else input, self.bias)

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


class BlockEmbedding(BlockLayer):
    """An Embedding with a quantised table: a look-up converts only the rows it returns, to the model's float dtype.

    Shapes:  input (*) of integers -> (*, embedding_dim)
    """

    def __init__(self, matrix: BlockMatrix) -> None:
        super().__init__(matrix)
        self.size = self.num_embeddings, self.embedding_dim = matrix.shape
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

    Args:     device: the model's

    Returns:  the entries of the state dict for `matrices`: blocks, or float32 weights for matrices of other modules, of
              wrong shapes, and on a GPU of formats without codes
    """
    state: dict[str, Tensor] = {}
    modules = dict(model.named_modules())
    is_on_host = devices.chosen(device).type == "cpu"
    for name, matrix in matrices.items():
        path = name.removesuffix(WEIGHT)
        layer = _with_blocks(modules.get(path), matrix) if is_on_host or is_scaled(matrix.format) else None
        if layer is None:
            weight = matrix.widen()
            state[name] = wrap(weight.T if isinstance(modules.get(path), Conv1D) else weight)
            continue
        parent, _, attribute = path.rpartition(".")
        setattr(model.get_submodule(parent), attribute, layer)
        stored = layer.state_dict(keep_vars=True)
        state |= {f"{path}.{part}": tensor for part, tensor in stored.items() if part != "bias"}
    return state


def multiplies_blocks(device: Any) -> bool:
    """Return whether a device has kernels for quantised weights; None is the default device."""
    type = devices.chosen(device).type
    return type == "cpu" or ("quantized_linear", type) in kernels.KERNELS


def block_layers(model: Module) -> Iterator[tuple[str, BlockLayer]]:
    """Iterate over (path, layer) of the layers with matrices of blocks, each once."""
    for path, module in model.named_modules():
        if isinstance(module, BlockLayer):
            yield path, module


def arrange_blocks(model: Module) -> None:
    """Arrange the blocks of all layers on a GPU now, which their first use would do otherwise."""
    for _, layer in block_layers(model):
        if layer.blocks.device.type != "cpu":
            layer.for_products()


def has_kernel(matrix: QuantizedMatrix) -> bool:
    """Return whether a compiled kernel multiplies by the matrix, so that it is better not widened."""
    return _backend(matrix) != ARRAY


def _backend(matrix: QuantizedMatrix) -> str:
    row, device = np.empty((1, matrix.shape[1]), np.float32), devices.device_of(matrix.memory).type
    return kernels.pick("quantized_linear", device, row, matrix, None).backend


def widened_state(model: Module) -> dict[str, Tensor]:
    """Return the state dict of the model with float32 weights in place of quantised ones."""
    state = model.state_dict()
    for path, layer in block_layers(model):
        del state[f"{path}.blocks"]
        state[path + WEIGHT] = layer.weight
    return state


def block_notes(model: Module) -> list[str]:
    """Return a line for each format of the model's quantised matrices: how products with it are computed."""
    formats: dict[str, list[QuantizedMatrix]] = {}
    for _, layer in block_layers(model):
        formats.setdefault(layer.format, []).append(layer.matrix)
    return [f"{name}  {_product(matrices)}" for name, matrices in formats.items()]


def _product(matrices: list[QuantizedMatrix]) -> str:
    backend = _backend(matrices[0])
    count = f"{len(matrices)} matrices" if len(matrices) > 1 else "1 matrix"
    if backend != ARRAY:
        return f"{count}, multiplied as stored: quantized_linear, {backend}"
    return f"{count}, without a compiled kernel: each product converts the rows to float32; pass dtype to convert once"


def _with_blocks(module: Module | None, matrix: BlockMatrix) -> BlockLayer | None:
    if not isinstance(module, Linear | Conv1D | Embedding):
        return None
    shape = tuple(module.weight.shape)
    if type(module) is Linear and shape == matrix.shape:
        return BlockLinear(matrix, module.bias)
    if type(module) is Conv1D and shape[::-1] == matrix.shape:
        return BlockConv1D(matrix, module.bias)
    return BlockEmbedding(matrix) if type(module) is Embedding and shape == matrix.shape else None
