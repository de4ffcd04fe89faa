"""Products of eight-bit integers, as `quantize_dynamic` of onnxruntime writes them, on the integer kernels.

numbers, scale, zero = DynamicQuantizeLinear(x)
y = Cast(MatMulInteger(numbers, w, zero, w_zero)) · (scale · w_scale) + bias
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.fx.graph import Graph
from tallow.fx.node import Node
from tallow.kernels import run
from tallow.kernels.quantized.integer_product import IntegerMatrix
from tallow.onnx.operators.quantization import dynamic_quantize_linear, matmul_integer, shifted
from tallow.onnx.passes.matching import dtype_of, shape_of
from tallow.onnx.quick.constants import Constants

OFFSET = 128  # of int8 as uint8


def as_bytes(codes: Array) -> Array:
    """Return eight-bit codes as uint8: int8 is moved by OFFSET."""
    return codes if codes.dtype == np.uint8 else codes.view(np.uint8) ^ np.uint8(OFFSET)


def as_signed(codes: Array) -> Array:
    """Return uint8 codes as int8, moved back by OFFSET."""
    return (codes ^ np.uint8(OFFSET)).view(np.int8)


def quantized(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return x in uint8 with its scale and zero point, as DynamicQuantizeLinear does."""
    array = x.array
    low, high = min(array.min(), np.float32(0)), max(array.max(), np.float32(0))
    scale = (high - low) / np.float32(255) or np.float32(1)
    zero = np.uint8(np.clip(np.rint(-low / scale), 0, 255))
    codes = run("quantize_u8", array, scale, int(zero))
    return wrap(codes), wrap(np.asarray(scale)), wrap(np.asarray(zero))


class IntegerProduct:
    """A product of eight-bit integers by a matrix that is known; in float32 with a factor, to which a bias is added.

    Args:    bias: of the result with a factor, (N,), or None
    """

    __name__ = "integer_product"

    def __init__(self, matrix: IntegerMatrix, bias: Any = None) -> None:
        self.matrix, self.bias = matrix, bias

    def __call__(self, x: Tensor, zero: Tensor | None = None, factor: Tensor | None = None) -> Tensor:
        """Return the product.  Shapes:  x (..., K), zero one element, factor (N,) or one element -> (..., N)"""
        numbers, offset = x.array, 0 if zero is None else int(zero.array.item())
        if numbers.dtype == np.int8:
            numbers, offset = as_bytes(numbers), offset + OFFSET
        columns = self.matrix.codes.shape[1:]
        factors = None if factor is None else np.broadcast_to(factor.array, columns)
        return wrap(run("integer_product", numbers, self.matrix, offset, factors, self.bias))


def integers(graph: Graph, constants: Constants) -> None:
    """Replace the products whose weights are known, with the factor and the bias that follow."""
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        if node.target is dynamic_quantize_linear and not node.kwargs:
            node.target = quantized
        elif node.target is matmul_integer and not node.kwargs:
            _replace(graph, node, constants)
    graph.eliminate_dead_code()


def _replace(graph: Graph, node: Node, constants: Constants) -> None:
    x, weight, zero, weight_zero = (*node.args, None, None)[:4]
    held, zeros = constants.tensor(weight), constants.tensor(weight_zero)
    if held is None or held.dim() != 2 or (zeros is None and weight_zero is not None):
        return
    if zero is not None and not _is_one(zero, constants):
        return
    codes = shifted(constants.copy(held), None if zeros is None else constants.copy(zeros), -1)
    matrix = IntegerMatrix(codes.array.astype(np.int16))
    columns = codes.shape[1:]
    last, factor, bias = scaled(node, constants, ((), (1,), columns), (columns,))
    with graph.inserting_before(last):
        new = graph.call_function(IntegerProduct(matrix, bias), (x, zero) if factor is None else (x, zero, factor))
    last.replace_all_uses_with(new)


def _is_one(zero: Any, constants: Constants) -> bool:
    """Return whether a zero point is known to be one number: that of DynamicQuantizeLinear, or a constant."""
    held = constants.tensor(zero)
    if held is not None:
        return held.numel() == 1
    source = zero.args[0] if isinstance(zero, Node) and zero.target is operator.getitem else None
    return isinstance(source, Node) and source.target in (quantized, dynamic_quantize_linear)


Shapes = tuple[tuple[int, ...], ...]


def scaled(node: Node, constants: Constants, factors: Shapes, biases: Shapes) -> tuple[Node, Node | None, Any]:
    """Return the last node of `to(float32) · factor + bias` after sums, the factor, and the bias as a vector.

    Args:    factors, biases: the shapes that they may have
    """
    cast = only_user(node)
    if cast is None or (cast.target, cast.args[1:], cast.kwargs) != ("to", (tl.float32,), {}):
        return node, None, None
    product = only_user(cast)
    if product is None or product.target is not operator.mul:
        return node, None, None
    factor = next((arg for arg in product.args if arg is not cast), None)
    if dtype_of(factor) is not tl.float32 or shape_of(factor) not in factors:
        return node, None, None
    total = only_user(product)
    if total is not None and total.target is operator.add:
        other = next((arg for arg in total.args if arg is not product), None)
        bias = constants.tensor(other)
        if bias is not None and bias.shape in biases and bias.dtype is tl.float32:
            return total, factor, constants.copy(bias).array.reshape(-1)
    return product, factor, None


def only_user(node: Node) -> Node | None:
    """Return the only node that reads a node, or None."""
    return next(iter(node.users)) if len(node.users) == 1 else None
