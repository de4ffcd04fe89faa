"""The arrays of layers, as the descriptors of fused blocks take them."""

from __future__ import annotations

from tallow import dtypes
from tallow.core.tensor import Tensor
from tallow.dtypes import Array
from tallow.errors import ArgumentError
from tallow.kernels.blocks.affine import Affine, Matrix
from tallow.nn.block_layers import BlockEmbedding, BlockLayer, BlockLinear
from tallow.nn.embedding import Embedding
from tallow.nn.linear import Linear
from tallow.nn.normalization import LayerNorm


def matrix(layer: Linear | BlockLinear | Embedding | BlockEmbedding) -> Matrix:
    """Return the matrix of a layer as products read it.  Raises: ArgumentError for rows that blocks extend by zeros"""
    if not isinstance(layer, BlockLayer):
        return layer.weight.array
    found = layer.for_products()
    if found.shape != layer.size:
        raise ArgumentError(f"no fused block multiplies rows of {layer.size[1]}, which are extended to whole blocks")
    return found


def vector(tensor: Tensor | None) -> Array | None:
    """Return a bias or the scale of a norm in float32, whatever the dtype of the matrices."""
    return None if tensor is None else dtypes.widen(tensor.array)


def affine(layer: Linear | BlockLinear | LayerNorm) -> Affine:
    """Return the weight and the bias of a layer; vectors in float32.  Raises: as `matrix`"""
    assert not isinstance(layer, LayerNorm) or layer.weight is not None
    weight = vector(layer.weight) if isinstance(layer, LayerNorm) else matrix(layer)
    return Affine(weight, vector(layer.bias))
