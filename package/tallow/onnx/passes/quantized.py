"""Run products with quantized weights on the kernels for blocks: the weights stay as narrow as in the file.

    MatMulNBits    becomes    blocks(x)

and, if the caller of `load` allows another rounding of inputs that the file quantizes,

    DynamicQuantizeLinear -> MatMulInteger -> Cast -> Mul by both scales    becomes    blocks(x) * weight_scale
    DynamicQuantizeMatMul, MatMulIntegerToFloat                             become     blocks(x)

The kernels round each 32 elements of a row of the input to int8 by a scale of their own, where such a file has one
scale for all rows: results are as close to those of floats, or closer. Scales of blocks are rounded to float16.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.fx.graph import at_path
from tallow.fx.graph_module import GraphModule
from tallow.fx.node import Node
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.gguf_blocks import FORMATS
from tallow.kernels.quantized.grouped_matrix import GroupedMatrix
from tallow.nn.block_layers import BlockLinear, arrange_blocks
from tallow.nn.parameter import Parameter
from tallow.onnx.operators.microsoft_quantized import (
    block_weights,
    dynamic_quantize_matmul,
    matmul_integer_to_float,
    matmul_nbits,
    unpacked,
)
from tallow.onnx.operators.quantization import dynamic_quantize_linear, matmul_integer, shifted
from tallow.onnx.passes.matching import name_of

Array = np.ndarray[Any, Any]
Rules = dict[Any, Callable[[GraphModule, Node], tuple[Node, Node] | None]]
IN_A_BLOCK = 32
SMALLEST_SCALE = 2.0**-14  # below it float16 has fewer digits
EXACT = (1, 2, 3)  # values of accuracy_level: the products are of floats


def quantized(module: GraphModule) -> int:
    """Replace the products of floats with quantized weights; return how many there were."""
    return _replaced(module, {matmul_nbits: _matmul_nbits})


def dynamic(module: GraphModule) -> int:
    """Replace the products of inputs that the file quantizes by their range; return how many there were."""
    return _replaced(module, DYNAMIC)


def _replaced(module: GraphModule, rules: Rules) -> int:
    count = 0
    for node in module.graph.nodes:
        if node.op == "call_function" and (rule := rules.get(node.target)) is not None:
            with module.graph.inserting_before(node):
                new = rule(module, node)
            if new is not None:
                last, value = new
                last.replace_all_uses_with(value)
                count += 1
    if count:
        module.graph.eliminate_dead_code()
        arrange_blocks(module)
    return count


def _held(module: GraphModule, value: Any) -> Tensor | None:
    """Return the constant that a node reads, or None."""
    if not isinstance(value, Node) or value.op != "get_attr":
        return None
    held = at_path(module, str(value.target))
    return held.detach() if isinstance(held, Tensor) else None


def _arguments(node: Node, count: int) -> list[Any]:
    return [*node.args, *[None] * (count - len(node.args))]


def _dynamic_input(numbers: Any, scale: Any, zero_point: Any) -> Any:
    """Return the tensor whose numbers, scale and zero point DynamicQuantizeLinear gives, or None."""
    parts = (numbers, scale, zero_point)
    if not all(isinstance(each, Node) and each.target is operator.getitem for each in parts):
        return None
    if [each.args[1] for each in parts] != [0, 1, 2] or len({each.args[0] for each in parts}) > 1:
        return None
    source = numbers.args[0]
    return source.args[0] if source.target is dynamic_quantize_linear else None


def _blocks(module: GraphModule, node: Node, x: Any, matrix: BlockMatrix, columns: int) -> Node:
    """Add a layer under the name of a node, and a call of it."""
    name = f"{node.name}_blocks"
    module.add_submodule(name, BlockLinear(matrix, in_features=columns))
    return module.graph.call_module(name, (x,))


def _of_bytes(module: GraphModule, node: Node, x: Any, weight: Any, scale: Any, zero_point: Any) -> Node | None:
    """Return x times weights (K, N) of eight bits, or None if they are not constants."""
    numbers, zeros, scales = (_held(module, each) for each in (weight, zero_point, scale))
    if numbers is None or scales is None or numbers.dim() != 2 or (zeros is None and zero_point is not None):
        return None
    codes = shifted(numbers, zeros, -1).cpu().numpy().T  # (N, K)
    if np.abs(codes).max(initial=0) < 128:
        matrix = GroupedMatrix(np.ascontiguousarray(codes, np.int8), np.ones((len(codes), 1), np.float16)).in_blocks()
        return module.graph.call_function(operator.mul, (_blocks(module, node, x, matrix, codes.shape[1]), scale))
    wide = codes * scales.to(tl.float32).cpu().numpy().reshape(-1, 1)
    if codes.shape[1] % IN_A_BLOCK:
        return None
    return _blocks(module, node, x, BlockMatrix.quantized(wide.astype(np.float32), "Q8_0"), codes.shape[1])


def _plus(module: GraphModule, product: Node | None, bias: Any) -> Node | None:
    return product if product is None or bias is None else module.graph.call_function(operator.add, (product, bias))


def _matmul_integer(module: GraphModule, node: Node) -> tuple[Node, Node] | None:
    """Replace the multiplication by scales that follows a product, if nothing else uses its integers."""
    numbers, weight, zero_point, weight_zero_point = _arguments(node, 4)
    cast = _only_user(node)
    last = None if cast is None or name_of(cast) != "to" else _only_user(cast)
    if last is None or name_of(last) != "mul":
        return None
    factors = [each for each in last.args if each is not cast]
    if len(factors) != 1 or name_of(factors[0]) != "mul":
        return None
    for scale, weight_scale in (factors[0].args, factors[0].args[::-1]):
        x = _dynamic_input(numbers, scale, zero_point)
        if x is not None:
            with module.graph.inserting_before(last):
                new = _of_bytes(module, node, x, weight, weight_scale, weight_zero_point)
            return None if new is None else (last, new)
    return None


def _only_user(node: Node) -> Node | None:
    return next(iter(node.users)) if len(node.users) == 1 else None


def _matmul_integer_to_float(module: GraphModule, node: Node) -> tuple[Node, Node] | None:
    numbers, weight, scale, weight_scale, zero_point, weight_zero_point, bias = _arguments(node, 7)
    x = _dynamic_input(numbers, scale, zero_point)
    if x is None:
        return None
    new = _plus(module, _of_bytes(module, node, x, weight, weight_scale, weight_zero_point), bias)
    return None if new is None else (node, new)


def _dynamic_quantize_matmul(module: GraphModule, node: Node) -> tuple[Node, Node] | None:
    x, weight, scale, zero_point, bias = _arguments(node, 5)
    new = _plus(module, _of_bytes(module, node, x, weight, scale, zero_point), bias)
    return None if new is None else (node, new)


def _matmul_nbits(module: GraphModule, node: Node) -> tuple[Node, Node] | None:
    """Replace a product of blocks; where no kernel has them, the weights become floats once, at load."""
    x, weight, scale, zero_point, columns_order, bias = _arguments(node, 6)
    packed, scales, zeros = (_held(module, each) for each in (weight, scale, zero_point))
    if packed is None or scales is None or (zeros is None and zero_point is not None) or columns_order is not None:
        return None
    options = node.kwargs
    rows, columns, bits, size = (int(options[name]) for name in ("N", "K", "bits", "block_size"))
    exact = options.get("accuracy_level") in EXACT
    matrix = None if exact else _matrix(packed, scales, zeros, rows, columns, bits, size)
    if matrix is not None:
        new = _plus(module, _blocks(module, node, x, matrix, columns), bias)
        return None if new is None else (node, new)
    wide = block_weights(packed, scales, zeros, rows, columns, bits, size)
    name = f"{node.name}_weight"
    setattr(module, name, Parameter(wide.to(scales.dtype)))
    linear = module.graph.call_function(tl.nn.functional.linear, (x, module.graph.get_attr(name), bias))
    return node, linear


def _matrix(
    packed: Tensor, scales: Tensor, zeros: Tensor | None, rows: int, columns: int, bits: int, size: int
) -> BlockMatrix | None:
    """Return the weights in blocks of 32, or None if float16 or the format does not hold them."""
    blocks = -(-columns // size)
    factors = scales.to(tl.float32).cpu().numpy().reshape(rows, blocks)
    smallest = np.abs(factors[factors != 0]).min(initial=1.0)
    if size % IN_A_BLOCK or smallest < SMALLEST_SCALE or bits not in (4, 8):
        return None
    data = packed.cpu().numpy().reshape(rows, -1)
    try:
        if zeros is None and bits == 4:
            return GroupedMatrix(data, factors).in_blocks()
        if zeros is None:
            return GroupedMatrix((data ^ np.uint8(128)).view(np.int8), factors).in_blocks()
    except ArgumentError:  # scales beyond the range of float16
        return None
    if bits == 8 or (zeros is not None and zeros.dtype is not tl.uint8):
        return None
    assert zeros is not None
    middle = unpacked(zeros.reshape(rows, -1), bits, blocks).cpu().numpy()
    return _with_shifts(unpacked(packed.reshape(rows, -1), bits, blocks * size).cpu().numpy(), factors, middle, size)


def _with_shifts(codes: Array, scales: Array, middle: Array, size: int) -> BlockMatrix:
    """Return blocks of Q4_1: code · scale - middle · scale."""
    rows, columns = codes.shape
    records = np.empty((rows, columns // IN_A_BLOCK), FORMATS["Q4_1"].record)
    records["d"] = np.repeat(scales, size // IN_A_BLOCK, axis=1)
    records["m"] = np.repeat(-scales * middle, size // IN_A_BLOCK, axis=1)
    pairs = codes.reshape(rows, -1, IN_A_BLOCK)
    records["qs"] = pairs[..., :16] | (pairs[..., 16:] << np.uint8(4))
    return BlockMatrix(records.view(np.uint8).reshape(rows, -1), "Q4_1")


DYNAMIC: Rules = {
    matmul_integer: _matmul_integer,
    matmul_integer_to_float: _matmul_integer_to_float,
    dynamic_quantize_matmul: _dynamic_quantize_matmul,
}
