"""Convolutions of images with the sum and the activation that follow, and maxima: images with adjacent channels."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor, wrap
from tallow.dtypes import Array
from tallow.fx.graph import Graph
from tallow.fx.node import Node
from tallow.kernels import run
from tallow.kernels.blocks.image_convolution import ImageConvolution, Sizes
from tallow.nn import functional as F
from tallow.onnx.operators import pooling
from tallow.onnx.operators.windows import explicit_pads
from tallow.onnx.passes.matching import shape_of
from tallow.onnx.quick.constants import Constants
from tallow.onnx.quick.pads import amounts_of

SIMPLE = {
    F.relu: ("clamp", 0.0, math.inf),
    F.hardsigmoid: ("clamp", 0.0, 1.0),  # of x / 6 + 1 / 2
    F.hardswish: ("hard_swish", -math.inf, math.inf),
    F.silu: ("silu", -math.inf, math.inf),
}


class FusedConvolution:
    """A convolution of a Tensor, what is added to it and an activation, as a node of a quick graph."""

    __name__ = "image_convolution"

    def __init__(self, block: ImageConvolution, is_line: bool = False) -> None:
        self.block, self.is_line = block, is_line

    def __call__(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        """Return the result.  Shapes:  x (N, C, H, W) or (N, C, L), plus broadcasts to the result -> (N, O, *out)

        Raises:  ShapeError for another x; ValueError if the sum has another shape than the convolution
        """
        image = x.array[..., None] if self.is_line else x.array
        added = None
        if plus is not None:
            shape = (len(image), len(self.block.weight), *self.block.out(image.shape))
            added = plus.array[..., None] if self.is_line else plus.array
            added = added if added.shape == shape else np.broadcast_to(added, shape)
        y = run("image_convolution", image, self.block, added)
        return wrap(y[..., 0] if self.is_line else y)


class ImageMaxPool:
    """The maxima of windows of a Tensor."""

    __name__ = "image_max_pool"

    def __init__(self, kernel: Sizes, stride: Sizes, before: Sizes, after: Sizes, dilation: Sizes) -> None:
        self.settings = kernel, stride, before, dilation
        self.reach = [a + b - d * (k - 1) - 1 for k, a, b, d in zip(kernel, before, after, dilation, strict=True)]

    def __call__(self, x: Tensor) -> Tensor:
        """Return the maxima.  Shapes:  x (N, C, H, W) -> (N, C, *out)"""
        stride = self.settings[1]
        out = tuple((n + r) // s + 1 for n, r, s in zip(x.array.shape[2:], self.reach, stride, strict=True))
        if x.array.dtype.itemsize > 1:
            return wrap(run("image_max_pool", x.array, *self.settings, out))
        floats = run("image_max_pool", x.array.astype(np.float32), *self.settings, out)  # codes, which float32 holds
        least = np.float32(np.iinfo(x.array.dtype).min)  # of windows whose elements are all pads, between which x lies
        return wrap(np.maximum(floats, least).astype(x.array.dtype))


class _Convolution:
    """A convolution that is found in a graph, and what follows it, as it is absorbed.

    Attributes:
        weight, bias: with the factors and the sums that follow before `plus` and the action.
    """

    def __init__(self, x: Node, weight: Tensor, bias: Tensor | None, settings: tuple[Any, ...]) -> None:
        self.x, self.weight, self.bias = x, weight, bias
        self.settings = settings  # stride, before, after, dilation, groups
        self.dims = weight.dim()
        self.plus: Node | None = None
        self.action: tuple[Any, ...] = ()
        self.scale, self.shift = 1.0, 0.0

    @property
    def arguments(self) -> tuple[Node, ...]:
        """The operands of a call."""
        return (self.x,) if self.plus is None else (self.x, self.plus)

    def block(self) -> ImageConvolution:
        """Return the arrays as a kernel takes them."""
        bias = None if self.bias is None else self.bias.array
        weight, settings = as_image(self.weight.array, self.settings)
        action, low, high = self.action or ("nothing", -math.inf, math.inf)
        follows = {"action": action, "low": low, "high": high, "scale": self.scale, "shift": self.shift}
        return ImageConvolution(weight, bias, *settings, **follows)

    def add(self, other: Any, constants: Constants) -> bool:
        """Add a constant or an image; return whether it could be absorbed."""
        if self.action:
            number = self._number(other, constants)
            self.shift += number or 0.0
            return number is not None
        if self.plus is None and (bias := self._by_channel(other, constants)) is not None:
            self.bias = bias if self.bias is None else self.bias + bias
        elif self.plus is None and _is_image(other, self.dims):
            self.plus = other
        else:
            return False
        return True

    def multiply(self, other: Any, constants: Constants) -> bool:
        """Multiply by a constant; return whether it could be absorbed."""
        if self.action:
            number = self._number(other, constants)
            if number is None or self.shift:
                return False
            self.scale *= number
        elif self.plus is not None or (factor := self._by_channel(other, constants)) is None:
            return False
        else:
            self.weight = self.weight * factor.reshape(-1, *[1] * (self.dims - 1))
            self.bias = None if self.bias is None else self.bias * factor
        return True

    def act(self, node: Node, constants: Constants) -> bool:
        """Apply an activation; return whether it could be absorbed."""
        action = None if self.action else action_of(node, constants)
        if action is None:
            return False
        if node.target is F.hardsigmoid:
            if self.plus is not None:
                return False
            self.weight = self.weight / 6
            self.bias = (0.0 if self.bias is None else self.bias / 6) + tl.full((len(self.weight),), 0.5)
        self.action = action
        return True

    def _by_channel(self, value: Any, constants: Constants) -> Tensor | None:
        """Return a number, or one for each channel of an image, as a vector; or None."""
        held, outputs, ones = constants.tensor(value), len(self.weight), (1,) * (self.dims - 2)
        if held is not None and held.dtype is tl.float32 and held.shape in ((outputs, *ones), (1, outputs, *ones)):
            return constants.copy(held).reshape(-1)
        number = self._number(value, constants)
        return None if number is None else tl.full((outputs,), number)

    def _number(self, value: Any, constants: Constants) -> float | None:
        """Return the number that an operand of an image is, or None; also for one that gives the result more dims."""
        held = constants.tensor(value)
        return None if held is not None and held.dim() > self.dims else constants.number(value)


def images(graph: Graph, constants: Constants) -> None:
    """Replace the convolutions of a graph by fused ones; and its maxima, if it has convolutions of floats or codes."""
    for node in graph.nodes:
        found = _found(node, constants)
        if found is not None:
            last = _absorb(found, node, constants)
            _replace(graph, last, FusedConvolution(found.block(), found.dims == 3), found.arguments)
    has_some = any(hasattr(node.target, "is_line") for node in graph.nodes)
    for node in graph.nodes if has_some else ():
        pool = _max_pool(node)
        if pool is not None:
            _replace(graph, node, pool, node.args)
    graph.eliminate_dead_code()


def _replace(graph: Graph, node: Node, call: FusedConvolution | ImageMaxPool, arguments: tuple[Any, ...]) -> None:
    with graph.inserting_before(node):
        new = graph.call_function(call, arguments)
    new.meta = dict(node.meta)
    node.replace_all_uses_with(new)


def _found(node: Node, constants: Constants) -> _Convolution | None:
    """Return the convolution of a node whose weights are float32 and known; None for other nodes."""
    is_one = node.op == "call_function" and node.target in (F.conv1d, F.conv2d)
    found = settings_of(node, constants) if is_one else None
    if found is None:
        return None
    x, weight, bias, settings = found
    held, own = constants.tensor(weight), constants.tensor(bias)
    if held is None or (own is None and bias is not None) or held.dtype is not tl.float32:
        return None
    own = None if own is None else constants.copy(own)
    return _Convolution(x, constants.copy(held), own, settings)


def settings_of(node: Node, constants: Constants) -> tuple[Any, Any, Any, tuple[Any, ...]] | None:
    """Return x, weight and bias of a call of F.conv1d or F.conv2d, and its settings, with the pads of x before it.

    Returns: x, weight, bias, (stride, before, after, dilation, groups); None for calls of another form
    """
    if node.kwargs or len(node.args) < 6:
        return None
    x, weight, bias, stride, padding, dilation, *groups = node.args
    if not all(
        isinstance(each, tuple) for each in (stride, padding, dilation)
    ):  # in a graph that a program has changed
        return None
    before, after, dims = padding, padding, len(stride)
    pad = amounts_of(x, constants)
    if pad is not None and pad[1] == 0.0 and min(pad[0]) >= 0 and not any(pad[0][2 * dims :]):
        amounts = [*pad[0], *[0] * 2 * dims][: 2 * dims]
        x = x.args[0]
        before = tuple(a + b for a, b in zip(before, amounts[-2::-2], strict=True))
        after = tuple(a + b for a, b in zip(after, amounts[::-2], strict=True))
    return x, weight, bias, (stride, before, after, dilation, *(groups or [1]))


def _absorb(found: _Convolution, node: Node, constants: Constants) -> Node:
    """Absorb what follows a convolution and nothing else reads; return the last node that is computed."""
    while len(node.users) == 1:
        user = next(iter(node.users))
        if user.op != "call_function":
            break
        others = [arg for arg in user.args if arg is not node]
        is_sum, is_product = (user.target is each and len(others) == 1 for each in (operator.add, operator.mul))
        absorbed = (
            found.add(others[0], constants)
            if is_sum
            else found.multiply(others[0], constants)
            if is_product
            else found.act(user, constants)
        )
        if not absorbed:
            break
        node = user
    return node


def as_image(weight: Array, settings: tuple[Any, ...]) -> tuple[Array, tuple[Any, ...]]:
    """Return the weight and the settings of a convolution of images; a line (N, C, L) is one of width 1."""
    if weight.ndim == 4:
        return weight, settings
    stride, before, after, dilation, groups = settings
    return weight[..., None], ((*stride, 1), (*before, 0), (*after, 0), (*dilation, 1), groups)


def _is_image(value: Any, dims: int) -> bool:
    """Return whether a node is known to have so many dims: by its shape, or because a convolution makes it."""
    if not isinstance(value, Node) or value.op == "get_attr":
        return False
    if isinstance(value.target, FusedConvolution):
        return value.target.is_line == (dims == 3)
    return len(shape_of(value) or ()) == dims


def action_of(node: Node, constants: Constants) -> tuple[Any, ...] | None:
    """Return the activation of a node with one operand, as ImageConvolution takes it; or None."""
    if node.target in SIMPLE and len(node.args) == 1 and not node.kwargs:
        return SIMPLE[node.target]
    if node.target is not tl.clamp or len(node.args) != 3 or node.kwargs:
        return None
    limits = [
        default if each is None else constants.number(each)
        for each, default in zip(node.args[1:], (-math.inf, math.inf), strict=True)
    ]
    return ("clamp", *limits) if None not in limits and limits[0] <= limits[1] else None  # type: ignore[operator]


def _max_pool(node: Node) -> ImageMaxPool | None:
    """Return the pooling of a node with two spatial dims and plain windows, or None."""
    if node.op != "call_function" or node.target is not pooling.max_pool or len(node.args) != 1:
        return None
    options = node.kwargs
    kernel = options["kernel_shape"]
    plain = options.get("outputs", 1) == 1 and not options.get("ceil_mode") and not options.get("storage_order")
    if (
        not plain
        or len(kernel) != 2
        or math.prod(kernel) > pooling.LARGE
        or options.get("auto_pad", "NOTSET") != "NOTSET"
    ):
        return None
    before: Any
    after: Any
    before, after = explicit_pads(options.get("pads"), 2, "NOTSET")
    stride, dilation = (options.get(name) or (1, 1) for name in ("strides", "dilations"))
    reaches = all(p < d * (k - 1) + 1 for p, d, k in zip((*before, *after), dilation * 2, kernel * 2, strict=True))
    return ImageMaxPool(kernel, stride, before, after, dilation) if reaches else None
