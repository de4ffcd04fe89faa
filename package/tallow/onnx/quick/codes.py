"""Layers of tensors of eight-bit codes, on the integer kernels: products and convolutions between DequantizeLinear and
QuantizeLinear, QLinearConv, QLinearMatMul and ConvInteger.

    y = act((codes - zero) @ (weights - zeros) + bias) · scale · weight_scale,    in floats, or in codes again

The sums are exact. As in onnxruntime, a bias of a result in codes counts in steps of scale · weight_scale, and codes
are rounded from the sums times one factor in float32; to a result in floats, a bias is added as it is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.errors import TallowError
from tallow.fx.graph import Graph
from tallow.fx.node import Node
from tallow.kernels import run
from tallow.kernels.quantized.integer_convolution import IntegerConvolution
from tallow.kernels.quantized.integer_product import Codes, IntegerMatrix
from tallow.nn import functional as F
from tallow.onnx.operators import quantization
from tallow.onnx.operators.windows import explicit_pads
from tallow.onnx.passes.matching import dtype_of, name_of
from tallow.onnx.quick.constants import Constants
from tallow.onnx.quick.images import action_of, as_image, settings_of
from tallow.onnx.quick.integers import OFFSET, as_bytes, as_signed, only_user, scaled
from tallow.onnx.quick.pads import amounts_of

MOST = np.iinfo(np.int32).max
WIDEST = 1e36  # of scales, by which the numbers of codes are finite
EIGHT_BITS = (tl.uint8, tl.int8)
PLAIN = {"axis", "saturate"}  # options that decide nothing where there is one scale


class Scale(NamedTuple):
    """Codes of eight bits as numbers: (code - zero) · scale.  Args: zero: of int8 codes moved by OFFSET"""

    scale: float
    zero: int
    is_signed: bool


class Weight(NamedTuple):
    """Weights without zero points, and the scale of each output.  Shapes: codes (O, ...), scales (O,)"""

    codes: Array
    scales: Array


class Following(NamedTuple):
    """The last node of a layer, and the codes that its result is rounded to, if it is."""

    last: Node
    scale: Scale | None = None
    low: int = 0
    high: int = 255


class CodesLayer:
    """A layer of codes with known weights.

    Args:    block: the weights, for a convolution or a product
             factor: of the sums; None for sums in int32, unless a call has it
             shift: of the result with a factor
    """

    __name__ = "integer_layer"

    def __init__(
        self,
        block: IntegerConvolution | IntegerMatrix,
        zero: int,
        factor: Array | None,
        follows: Following,
        shift: Array | None = None,
    ) -> None:
        self.block, self.zero, self.factor, self.shift = block, zero, factor, shift
        self.scale, self.is_line = follows.scale, False
        self.codes = None if self.scale is None else Codes(self.scale.zero, follows.low, follows.high)
        self.outputs = (block.codes if isinstance(block, IntegerMatrix) else block.weight.T).shape[-1]
        self.kernel = "integer_product" if isinstance(block, IntegerMatrix) else "integer_convolution"

    def __call__(self, x: Tensor, zero: Tensor | None = None, factor: Tensor | None = None) -> Tensor:
        """Return the result.

        Shapes:  x (..., K) -> (..., N), or (N, C, *sizes) -> (N, O, *out); zero, of the dtype of x, and factor have one
                 element
        Dtypes:  x uint8 or int8 -> int32; with a factor float32, or with a scale that of its codes
        """
        codes = as_bytes(x.array)
        if self.is_line:
            codes = codes[..., None]
        start = self.zero if zero is None else int(as_bytes(zero.array).item())
        if zero is None and self.factor is None and x.array.dtype != np.uint8:
            start = OFFSET
        factors = self.factor if factor is None else np.full(self.outputs, factor.array.item(), np.float32)
        y = run(self.kernel, codes, self.block, start, factors, self.shift, self.codes)
        if self.scale is not None and self.scale.is_signed:
            y = as_signed(y)
        return wrap(y[..., 0] if self.is_line else y)


class Quantized:
    """A Tensor in codes of one scale."""

    __name__ = "quantized"

    def __init__(self, scale: Scale) -> None:
        self.scale = scale

    def __call__(self, x: Tensor) -> Tensor:
        """Return the codes.  Shapes: x (...) -> the same"""
        array, images = x.array, x.array.ndim == 4 and not x.array.flags.c_contiguous
        codes = run("quantize_u8", array.transpose(0, 2, 3, 1) if images else array, self.scale.scale, self.scale.zero)
        if self.scale.is_signed:
            codes = as_signed(codes)
        return wrap(codes.transpose(0, 3, 1, 2) if images else codes)


class Dequantized:
    """The float32 numbers of codes of one scale."""

    __name__ = "dequantized"

    def __init__(self, scale: Scale) -> None:
        self.scale, self.zero = np.float32(scale.scale), np.float32(scale.zero - (OFFSET if scale.is_signed else 0))

    def __call__(self, x: Tensor) -> Tensor:
        """Return the numbers.  Shapes: x (...) -> the same"""
        y = x.array.astype(np.float32)
        if self.zero:
            y -= self.zero
        y *= self.scale
        return wrap(y)


def codes(graph: Graph, constants: Constants) -> None:
    """Replace the layers of codes, and then each QuantizeLinear and DequantizeLinear of one scale that is left."""
    for node in graph.nodes:
        value = _again(node, constants)
        if value is not None:
            node.replace_all_uses_with(value)
    for node in graph.nodes:
        try:
            found = _layer(node, constants)
        except TallowError:
            continue  # the operator raises it when it runs
        if found is not None:
            _replace(graph, *found)
    graph.eliminate_dead_code()
    for node in graph.nodes:
        scale = _scale_of(node, constants)
        if scale is not None and node.target is quantization.quantize_linear and dtype_of(node.args[0]) is tl.float32:
            _replace(graph, node, Quantized(scale), node.args[:1])
        elif scale is not None and node.target is quantization.dequantize_linear:
            _replace(graph, node, Dequantized(scale), node.args[:1])


def _replace(graph: Graph, node: Node, call: Any, arguments: tuple[Any, ...]) -> None:
    with graph.inserting_before(node):
        new = graph.call_function(call, arguments)
    new.meta = dict(node.meta)
    node.replace_all_uses_with(new)


def _again(node: Node, constants: Constants) -> Node | None:
    """Return what QuantizeLinear and DequantizeLinear give back as it is: numbers of the same scale, and zeros around.

    Whoever quantizes a network writes both around each operator, also around a pad between two layers.
    """
    scale = _scale_of(node, constants) if node.target is quantization.dequantize_linear else None
    codes = node.args[0] if scale is not None and scale.scale < WIDEST else None
    if not isinstance(codes, Node) or codes.target is not quantization.quantize_linear:
        return None
    value = codes.args[0]
    pad = amounts_of(value, constants)
    inner = value if pad is None else value.args[0] if pad[1] == 0.0 else None
    if _dequantized(inner, constants)[1] == scale == _scale_of(codes, constants):
        return value
    return None


Found = tuple[Node, CodesLayer, tuple[Any, ...]]  # the last node of a layer, and the call in its place


def _layer(node: Node, constants: Constants) -> Found | None:
    if node.op != "call_function":
        return None
    if node.target in (F.conv1d, F.conv2d):
        return _convolution(node, constants)
    if node.target in (tl.matmul, tl.addmm):
        return _product(node, constants)
    if node.target is quantization.qlinear_conv:
        return _qlinear_conv(node, constants)
    if node.target is quantization.conv_integer:
        return _conv_integer(node, constants)
    return _qlinear_matmul(node, constants) if node.target is quantization.qlinear_matmul else None


def _convolution(node: Node, constants: Constants) -> Found | None:
    """Return a convolution of what DequantizeLinear gives."""
    found = settings_of(node, constants)
    if found is None:
        return None
    x, weight, bias, settings = found
    codes, scale = _dequantized(x, constants)
    weights = _weight(weight, constants, 0)
    if scale is None or weights is None:
        return None
    return _call(node, codes, scale, weights, _bias(bias, constants), _following(node, constants), settings)


def _product(node: Node, constants: Constants) -> Found | None:
    """Return a product of what DequantizeLinear gives with a matrix."""
    if node.kwargs or len(node.args) != (3 if node.target is tl.addmm else 2):
        return None
    *bias, x, weight = node.args
    codes, scale = _dequantized(x, constants)
    turned = isinstance(weight, Node) and name_of(weight) == "transpose" and weight.args[1:] in ((0, 1), (1, 0))
    weights = _weight(weight.args[0] if turned else weight, constants, 0 if turned else 1)
    if scale is None or weights is None or weights.codes.ndim != 2:
        return None
    if not turned:
        weights = Weight(weights.codes.T, weights.scales)
    return _call(node, codes, scale, weights, _bias(bias[0] if bias else None, constants), _following(node, constants))


def _qlinear_conv(node: Node, constants: Constants) -> Found | None:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = (*node.args, None)[:9]
    scale, out = _scale(x_scale, x_zero, constants), _scale(y_scale, y_zero, constants)
    weights, settings = _weights(w, w_scale, w_zero, constants, 0), _settings(node, constants.tensor(w))
    if scale is None or out is None or weights is None or settings is None:
        return None
    steps = _known(bias, constants)
    values = steps if steps is None else steps * (np.float64(scale.scale) * weights.scales)
    if bias is not None and values is None:
        return None
    return _call(node, x, scale, weights, (values,), Following(node, out), settings)


def _conv_integer(node: Node, constants: Constants) -> Found | None:
    x, w, zero, w_zero = (*node.args, None, None)[:4]
    held, settings = constants.tensor(w), _settings(node, constants.tensor(w))
    zeros = None if w_zero is None else constants.tensor(w_zero)
    if held is None or settings is None or (zeros is None and w_zero is not None):
        return None
    codes = quantization.shifted(constants.copy(held), None if zeros is None else constants.copy(zeros), 0)
    block = _block(codes.array, np.zeros(len(held), np.int32), settings)
    per_channel = ((len(held), *ones), (1, len(held), *ones)) if (ones := (1,) * (held.dim() - 2)) else ()
    last, factor, bias = scaled(node, constants, ((), (1,)), per_channel)
    layer = CodesLayer(block, 0, None, Following(last), bias)
    layer.is_line = held.dim() == 3
    return last, layer, (x, zero) if factor is None else (x, zero, factor)


def _qlinear_matmul(node: Node, constants: Constants) -> Found | None:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = node.args
    scale, out = _scale(a_scale, a_zero, constants), _scale(y_scale, y_zero, constants)
    weights = _weights(b, b_scale, b_zero, constants, 1)
    if scale is None or out is None or weights is None or weights.codes.ndim != 2:
        return None
    return _call(node, a, scale, Weight(weights.codes.T, weights.scales), (None,), Following(node, out))


def _call(
    node: Node,
    codes: Any,
    scale: Scale,
    weights: Weight,
    bias: tuple[Array | None] | None,
    follows: Following,
    settings: tuple[Any, ...] = (),
) -> Found | None:
    """Return a layer, or None if its bias is not known or too large.

    Args:    bias: (of the result in floats or None,), or None if it is not known
             settings: of a convolution: stride, before, after, dilation, groups; none for a product
    """
    if bias is None:
        return None
    outputs, step = len(weights.codes), np.float64(scale.scale) * weights.scales
    steps = np.zeros(outputs) if bias[0] is None else np.rint(bias[0] / step)
    if steps.shape != (outputs,) or not np.abs(steps).max(initial=0) <= MOST - _largest(weights.codes):
        return None
    shift: Array | None = None
    if follows.scale is None and bias[0] is not None:
        steps, shift = np.zeros(outputs), np.array(np.broadcast_to(bias[0], (outputs,)), np.float32)
    whole = steps.astype(np.int32)
    block = _block(weights.codes, whole, settings) if settings else IntegerMatrix(weights.codes.T, whole)
    out = 1.0 if follows.scale is None else follows.scale.scale
    factor = np.broadcast_to(np.float32(scale.scale) * weights.scales / np.float32(out), (outputs,))
    layer = CodesLayer(block, scale.zero, np.ascontiguousarray(factor, np.float32), follows, shift)
    layer.is_line = bool(settings) and weights.codes.ndim == 3
    return follows.last, layer, (codes,)


def _largest(codes: Array) -> int:
    """Return a bound of the sums."""
    return math.prod(codes.shape[1:]) * 255 * 255


def _block(codes: Array, bias: Array, settings: tuple[Any, ...]) -> IntegerConvolution:
    """Return the weights of a convolution of images; a line is one row of an image."""
    weight, settings = as_image(codes.astype(np.int16), settings)
    return IntegerConvolution(weight, bias, *settings)


def _settings(node: Node, weight: Tensor | None) -> tuple[Any, ...] | None:
    """Return stride, pads, dilation and groups of a node with ONNX's attributes, or None if sizes decide them."""
    options = node.kwargs
    if weight is None or options.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return None
    rank = weight.dim() - 2
    if rank not in (1, 2):
        return None
    stride, dilation = (tuple(options.get(name) or (1,) * rank) for name in ("strides", "dilations"))
    return (
        stride,
        *explicit_pads(options.get("pads"), rank, options.get("auto_pad", "")),
        dilation,
        options.get("group", 1),
    )


def _known(value: Any, constants: Constants) -> Array | None:
    held = constants.tensor(value)
    return None if held is None else constants.copy(held).array


def _scale(scale: Any, zero: Any, constants: Constants) -> Scale | None:
    """Return the scale of codes, if it is known, positive and one, and the zero point one of eight bits."""
    number, held = _known(scale, constants), _known(zero, constants)
    if number is None or held is None or number.size != 1 or number.dtype != np.float32 or held.size != 1:
        return None
    if held.dtype not in (np.uint8, np.int8) or not 0 < number.item() < math.inf:
        return None
    return Scale(number.item(), int(as_bytes(held.reshape(1)).item()), held.dtype == np.int8)


def _scale_of(node: Any, constants: Constants) -> Scale | None:
    """Return the scale of QuantizeLinear or DequantizeLinear; None for other nodes, and where it is not one."""
    if not isinstance(node, Node) or node.target not in (quantization.quantize_linear, quantization.dequantize_linear):
        return None
    others = {name for name, value in node.kwargs.items() if value} - PLAIN
    if others or len(node.args) != 3:
        return None
    return _scale(*node.args[1:], constants)


def _dequantized(value: Any, constants: Constants) -> tuple[Any, Scale | None]:
    """Return the codes that DequantizeLinear takes, and their scale; None for other nodes."""
    if not isinstance(value, Node) or value.target is not quantization.dequantize_linear:
        return None, None
    return value.args[0], _scale_of(value, constants)


def _weight(value: Any, constants: Constants, axis: int) -> Weight | None:
    """Return the weights of a DequantizeLinear with a scale, or one for each index of an axis."""
    if not isinstance(value, Node) or value.target is not quantization.dequantize_linear:
        return None
    held, options = constants.tensor(value.args[0]), value.kwargs
    if held is None or any(v for name, v in options.items() if name not in PLAIN):
        return None
    own = options.get("axis", 1)
    x, scale, zero = (*value.args, None)[:3]
    is_one = (scales := constants.tensor(scale)) is not None and scales.numel() == 1
    if not is_one and own % max(held.dim(), 1) != axis:
        return None
    return _weights(x, scale, zero, constants, axis)


def _weights(codes: Any, scale: Any, zero: Any, constants: Constants, axis: int) -> Weight | None:
    """Return weights with a scale for each index of an axis, or one for all; None if they are not known or wider."""
    held, scales, zeros = constants.tensor(codes), _known(scale, constants), constants.tensor(zero)
    if held is None or scales is None or scales.dtype != np.float32 or (zeros is None and zero is not None):
        return None
    if held.dtype not in EIGHT_BITS or not 2 <= held.dim() <= 4 or not np.all(scales > 0):
        return None
    outputs = held.shape[axis]
    if scales.shape not in ((), (1,), (outputs,)):
        return None
    whole = quantization.shifted(constants.copy(held), None if zeros is None else constants.copy(zeros), axis)
    return Weight(whole.array.astype(np.int16), np.broadcast_to(scales.reshape(-1), (outputs,)))


def _bias(value: Any, constants: Constants) -> tuple[Array | None] | None:
    """Return (a known bias in floats,), (None,) without one, or None if it is not known."""
    if value is None:
        return (None,)
    if (
        isinstance(value, Node)
        and value.target is quantization.dequantize_linear
        and not value.kwargs.get("block_size")
    ):
        operands = [constants.tensor(each) for each in value.args]
        if any(each is None for each in operands):
            return None
        copies: list[Any] = [constants.copy(each) for each in operands if each is not None]
        return (quantization.dequantize_linear(*copies, axis=0).array.astype(np.float64),)
    held = _known(value, constants)
    return None if held is None else (held.astype(np.float64),)


def _following(node: Node, constants: Constants) -> Following:
    """Return the activation and the QuantizeLinear that follow a layer and nothing else reads."""
    user = only_user(node)
    action = None if user is None else action_of(user, constants)
    clamped = user if action is not None and action[0] == "clamp" and user.target is not F.hardsigmoid else None  # type: ignore[union-attr]
    last = user if clamped is None else only_user(clamped)
    if last is None or last.target is not quantization.quantize_linear or last.args[0] not in (node, clamped):
        return Following(node)
    scale = _scale_of(last, constants)
    if scale is None or clamped is None or action is None:
        return Following(node if scale is None else last, scale)
    low, high = (
        int(np.clip(np.rint(np.float32(each) / np.float32(scale.scale)) + scale.zero, 0, 255)) for each in action[1:]
    )
    return Following(last, scale, low, high)
