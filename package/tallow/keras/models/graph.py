"""The graph between a model's inputs and outputs, in an order in which it can be computed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import tallow as tl
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError
from tallow.keras.layers import InputLayer, Layer
from tallow.keras.layers.masks import masks_of, set_masks
from tallow.keras.naming import snake_case, unique_among
from tallow.keras.structure import flatten, map_structure
from tallow.keras.symbolic import KerasTensor, Node
from tallow.tensor import Tensor


class Graph:
    """Every call of a layer that the outputs need, in order.

    Args:
        inputs, outputs: structures of KerasTensors.

    Attributes:
        nodes: the calls, each after those it depends on.
        layers: the layers, in the order of Keras: those furthest from the outputs first.

    Raises:  ArgumentTypeError for anything else; ArgumentError for an output that needs more than the inputs, and for
        two layers of one name
    """

    def __init__(self, inputs: Any, outputs: Any) -> None:
        self.input_structure, self.output_structure = inputs, outputs
        self.inputs, self.outputs = _checked(inputs, "inputs"), _checked(outputs, "outputs")
        self.nodes, found_at = _walk(self.outputs, set(self.inputs))
        self.layers = _by_depth(self.nodes, found_at, self.inputs)
        names = Counter(layer.name for layer in self.layers)
        if twice := sorted(name for name, count in names.items() if count > 1):
            raise ArgumentError(f"two layers are named {twice[0]!r}", mend="give each layer a name of its own")
        self._steps = _steps(self.nodes, self.outputs)

    def run(self, inputs: list[Any]) -> Any:
        """The outputs' values, from those of the inputs in their order."""
        values = dict(zip(self.inputs, inputs, strict=True))
        for step in self._steps:
            step.compute(values)
        return map_structure(values.__getitem__, self.output_structure)

    def aligned(self, inputs: Any, name: str) -> list[Any]:
        """The values of the inputs, in their order, dtype and rank; `name` is the model's, for messages.

        Raises:  ShapeError for another number of inputs; ArgumentError for a dict that lacks one
        """
        if isinstance(inputs, dict) and not isinstance(self.input_structure, dict):
            inputs = _picked(inputs, [tensor.name for tensor in self.inputs], name)
        elif isinstance(self.input_structure, dict) and isinstance(inputs, dict):
            keys = list(self.input_structure)
            inputs = dict(zip(keys, _picked(inputs, keys, name), strict=True))
        values = flatten(inputs)
        if len(values) != len(self.inputs):
            names = ", ".join(tensor.name for tensor in self.inputs)
            raise ShapeError(f"{name}: expected {len(self.inputs)} inputs ({names}), got {len(values)}")
        return [_fitted(tensor, value) for tensor, value in zip(self.inputs, values, strict=True)]

    def replayed(self, copy: Callable[[Layer], Layer]) -> Graph:
        """The same calls of copies of the layers.

        Args:    copy: of a layer that is not an input
        """
        copies = {layer: _fresh(layer) if isinstance(layer, InputLayer) else copy(layer) for layer in self.layers}
        values: dict[KerasTensor, KerasTensor] = {}
        for tensor in self.inputs:
            layer = copies.get(tensor.history.layer)
            made = layer if isinstance(layer, InputLayer) else InputLayer(batch_shape=tensor.shape, dtype=tensor.dtype)
            values[tensor] = made.inbound_nodes[0].outputs
        for node in self.nodes:
            if not node.is_input:
                args, kwargs = node.fill(values)
                results = flatten(copies[node.layer](*args, **kwargs))
                values.update(zip(flatten(node.outputs), results, strict=True))
        ends = (map_structure(values.__getitem__, end) for end in (self.input_structure, self.output_structure))
        return Graph(*ends)

    def check_shapes(self, values: list[Any], name: str) -> None:
        """Raises ShapeError naming the input, the shape it has and the shape it was given."""
        for expected, value in zip(self.inputs, values, strict=True):
            shape = tuple(value.shape)
            sizes = zip(shape, expected.shape, strict=False)
            if len(shape) != expected.ndim or any(n != m for n, m in sizes if n is not None and m is not None):
                raise ShapeError(f"{name}: the input {expected.name!r} expects shape {expected.shape}, got {shape}")


def _fresh(layer: Layer) -> Layer:
    made: Layer = type(layer).from_config(layer.get_config())
    return made


def _checked(structure: Any, what: str) -> list[KerasTensor]:
    tensors = flatten(structure)
    for tensor in tensors:
        if not isinstance(tensor, KerasTensor):
            raise ArgumentTypeError(
                f"Model: {what} must be made of keras.Input and of layers called with it, not {type(tensor).__name__}"
            )
    if not tensors:
        raise ArgumentError(f"Model: there are no {what}")
    return tensors


def _walk(outputs: list[KerasTensor], given: set[KerasTensor]) -> tuple[list[Node], dict[Layer, int]]:
    """The nodes behind the outputs, each after those it depends on, and the order in which their layers were met."""
    order: list[Node] = []
    met: dict[Layer, int] = {}
    seen: set[Node] = set()
    for output in outputs:
        stack = [(output, False)]
        while stack:  # without recursion, which in a browser is not deep enough for some models
            tensor, is_behind_done = stack.pop()
            node = tensor.history.node
            if is_behind_done:
                order.append(node)
                continue
            if node in seen or (tensor in given and not node.is_input):
                continue
            if node.is_input and tensor not in given:
                raise ArgumentError(
                    f"the outputs need the input {tensor.name!r}, which is not among the model's inputs",
                    mend="add it to the inputs",
                )
            seen.add(node)
            met.setdefault(node.layer, len(met))
            stack.append((tensor, True))
            stack += [(behind, False) for behind in reversed(node.inputs)]
    return order, met


def _by_depth(nodes: list[Node], met: dict[Layer, int], inputs: list[KerasTensor]) -> list[Layer]:
    """The layers by their distance from the outputs, the furthest first; at one distance in the order they were met.

    Keras' order, which that of `get_weights` follows.
    """
    known = set(nodes)
    depths: dict[Node, int] = {}
    of_layer: dict[Layer, int] = {}
    for node in reversed(nodes):
        depth = max(depths.get(node, 0), of_layer.get(node.layer, 0))
        depths[node] = of_layer[node.layer] = depth
        for behind in {tensor.history.node: None for tensor in node.inputs}:
            if behind in known:
                depths[behind] = max(depth + 1, depths.get(behind, 0))
    for tensor in inputs:
        layer = tensor.history.layer
        if isinstance(layer, InputLayer) and layer not in of_layer:  # an input that nothing uses
            of_layer[layer], met[layer] = 0, -1
    return sorted(of_layer, key=lambda layer: (-of_layer[layer], met[layer]))


class _Step:
    """A node with its tensors at hand.

    Args:    done: what nothing needs after it, to be let go
    """

    def __init__(self, node: Node, done: list[KerasTensor]) -> None:
        self.node = node
        self.layer = node.layer
        self.done = done
        self.outputs: list[KerasTensor] = flatten(node.outputs)
        is_plain = len(node.args) == 1 and not node.kwargs and isinstance(node.args[0], KerasTensor)
        self.only_input = node.args[0] if is_plain and isinstance(node.outputs, KerasTensor) else None

    def compute(self, values: dict[KerasTensor, Any]) -> None:
        """Put the results among the values."""
        if self.only_input is not None:  # nearly all of most models
            values[self.outputs[0]] = self.layer(values[self.only_input])
        else:
            args, kwargs = self.node.fill(values)
            values.update(zip(self.outputs, flatten(self.layer(*args, **kwargs)), strict=True))
        for key in self.done:
            del values[key]


def _steps(nodes: list[Node], outputs: list[KerasTensor]) -> list[_Step]:
    last = {tensor: node for node in nodes for tensor in node.inputs}
    done: dict[Node, list[KerasTensor]] = {}
    for tensor in last.keys() - set(outputs):
        done.setdefault(last[tensor], []).append(tensor)
    return [_Step(node, done.get(node, [])) for node in nodes if not node.is_input]


def _picked(inputs: dict[str, Any], names: list[str], model: str) -> list[Any]:
    missing = [name for name in names if name not in inputs]
    if missing:
        raise ArgumentError(f"{model}: no input {missing[0]!r} among {', '.join(map(repr, inputs))}")
    return [inputs[name] for name in names]


def _fitted(expected: KerasTensor, value: Any) -> Any:
    """A value as a tensor of the input's dtype, with or without a last axis of length one as it has."""
    if isinstance(value, KerasTensor):
        return value
    mask = masks_of(value)
    value = value if isinstance(value, Tensor) else tl.as_tensor(np.asarray(value))
    value = value if value.dtype is expected.dtype else value.to(expected.dtype)
    if value.ndim == expected.ndim - 1 and expected.shape[-1] == 1:
        value = value[..., None]
    elif value.ndim == expected.ndim + 1 and value.shape[-1] == 1:
        value = value[..., 0]
    set_masks(value, mask)
    return value


def child_names(layers: Iterable[Layer]) -> list[str]:
    """What a model's layers are called in its `state_dict`: dense, dense_1, ... by their places in this model, so that
    the same program makes the same names each time it builds the model; or the names they were given.
    """
    names = []
    for layer in layers:
        kind = snake_case(type(layer).__name__)
        is_automatic = re.fullmatch(rf"{re.escape(kind)}(_\d+)?", layer.name)
        names.append(kind if is_automatic else layer.name.replace(".", "_").replace("/", "_") or kind)
    return unique_among(names)
