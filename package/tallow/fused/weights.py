"""The arrays of layers, as the descriptors of fused blocks take them."""

from __future__ import annotations

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.fused.affine import Affine, Matrix
from tallow.kernels.block_matrix import BlockMatrix
from tallow.nn.block_layers import BlockEmbedding, BlockLinear
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.normalization import LayerNorm
from tallow.nn.weight_only_layers import WeightOnlyEmbedding, WeightOnlyLinear


def matrix(layer: Linear | WeightOnlyLinear | BlockLinear | Embedding | WeightOnlyEmbedding | BlockEmbedding) -> Matrix:
    """Return the matrix of a layer as it is stored.  Raises: ArgumentError for blocks that are not on the CPU"""
    if isinstance(layer, BlockLinear | BlockEmbedding):
        return _blocks(layer)
    return layer.matrix if isinstance(layer, WeightOnlyLinear | WeightOnlyEmbedding) else layer.weight.array


def _blocks(layer: BlockLinear | BlockEmbedding) -> BlockMatrix:
    if layer.blocks.device.type != "cpu":
        raise ArgumentError(f"no fused block computes with quantised blocks on {layer.blocks.device}")
    return layer.for_products()


def vector(tensor: Tensor | None) -> Array | None:
    """Return a bias or the scale of a norm in float32, whatever the dtype of the matrices."""
    return None if tensor is None else dtypes.widen(tensor.array)


def affine(layer: Linear | WeightOnlyLinear | BlockLinear | LayerNorm) -> Affine:
    """Return the weight and the bias of a layer; vectors in float32.  Raises: as `matrix`"""
    assert not isinstance(layer, LayerNorm) or layer.weight is not None
    weight = vector(layer.weight) if isinstance(layer, LayerNorm) else matrix(layer)
    return Affine(weight, vector(layer.bias))
