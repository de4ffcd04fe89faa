"""The graph between a model's inputs and outputs, in topological order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import tallow as tl
from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError, ArgumentTypeError, ShapeError
from tallow.keras.layers import InputLayer, Layer
from tallow.keras.layers.masks import masks_of, set_masks
from tallow.keras.naming import snake_case, unique_among
from tallow.keras.structure import flatten, map_structure
from tallow.keras.symbolic import KerasTensor, Node


class Graph:
    """All layer calls that the outputs need, in topological order.

    Args:
        inputs, outputs: structures of KerasTensors.

    Attributes:
        nodes: the calls, each after those it depends on.
        layers: the layers, in Keras' order: those furthest from the outputs first.

    Raises:  ArgumentTypeError for anything but KerasTensors; ArgumentError for an output that needs an input not
        listed, and for duplicate layer names
    """

    def __init__(self, inputs: Any, outputs: Any) -> None:
        self.input_structure, self.output_structure = inputs, outputs
        self.inputs, self.outputs = _check_tensors(inputs, "inputs"), _check_tensors(outputs, "outputs")
        self.nodes, ranks = _walk(self.outputs, set(self.inputs))
        self.layers = _sort_by_depth(self.nodes, ranks, self.inputs)
        names = Counter(layer.name for layer in self.layers)
        if duplicates := sorted(name for name, count in names.items() if count > 1):
            raise ArgumentError(f"two layers are named {duplicates[0]!r}", hint="use unique layer names")
        self._steps = _steps(self.nodes, self.outputs)

    def run(self, inputs: list[Any]) -> Any:
        """Return the output values for input values in their order."""
        values = dict(zip(self.inputs, inputs, strict=True))
        for step in self._steps:
            step.compute(values)
        return map_structure(values.__getitem__, self.output_structure)

    def align(self, inputs: Any, name: str) -> list[Any]:
        """Return the input values in order, with the inputs' dtype and rank; `name` is the model's, for messages.

        Raises:  ShapeError for another number of inputs; ArgumentError for a dict with a missing input
        """
        if isinstance(inputs, dict) and not isinstance(self.input_structure, dict):
            inputs = _select(inputs, [tensor.name for tensor in self.inputs], name)
        elif isinstance(self.input_structure, dict) and isinstance(inputs, dict):
            keys = list(self.input_structure)
            inputs = dict(zip(keys, _select(inputs, keys, name), strict=True))
        values = flatten(inputs)
        if len(values) != len(self.inputs):
            names = ", ".join(tensor.name for tensor in self.inputs)
            raise ShapeError(f"{name}: expected {len(self.inputs)} inputs ({names}), got {len(values)}")
        return [_cast_input(tensor, value) for tensor, value in zip(self.inputs, values, strict=True)]

    def replay(self, copy: Callable[[Layer], Layer]) -> Graph:
        """Return a graph with the same calls of copied layers.

        Args:    copy: a function that copies a layer other than an input
        """
        copies = {layer: _recreate(layer) if isinstance(layer, InputLayer) else copy(layer) for layer in self.layers}
        values: dict[KerasTensor, KerasTensor] = {}
        for tensor in self.inputs:
            layer = copies.get(tensor.history.layer)
            if isinstance(layer, InputLayer):
                input_layer = layer
            else:
                input_layer = InputLayer(batch_shape=tensor.shape, dtype=tensor.dtype)
            values[tensor] = input_layer.inbound_nodes[0].outputs
        for node in self.nodes:
            if not node.is_input:
                args, kwargs = node.fill(values)
                results = flatten(copies[node.layer](*args, **kwargs))
                values.update(zip(flatten(node.outputs), results, strict=True))
        structures = (
            map_structure(values.__getitem__, structure) for structure in (self.input_structure, self.output_structure)
        )
        return Graph(*structures)

    def check_shapes(self, values: list[Any], name: str) -> None:
        """Raise ShapeError if the shape of a value does not fit its input."""
        for expected, value in zip(self.inputs, values, strict=True):
            shape = tuple(value.shape)
            sizes = zip(shape, expected.shape, strict=False)
            if len(shape) != expected.ndim or any(n != m for n, m in sizes if n is not None and m is not None):
                raise ShapeError(f"{name}: the input {expected.name!r} expects shape {expected.shape}, got {shape}")


def _recreate(layer: Layer) -> Layer:
    duplicate: Layer = type(layer).from_config(layer.get_config())
    return duplicate


def _check_tensors(structure: Any, what: str) -> list[KerasTensor]:
    tensors = flatten(structure)
    for tensor in tensors:
        if not isinstance(tensor, KerasTensor):
            raise ArgumentTypeError(
                f"Model: {what} must be keras.Input tensors or outputs of layers called with them, "
                f"not {type(tensor).__name__}"
            )
    if not tensors:
        raise ArgumentError(f"Model: {what} is empty")
    return tensors


def _walk(outputs: list[KerasTensor], inputs: set[KerasTensor]) -> tuple[list[Node], dict[Layer, int]]:
    """Return the nodes behind the outputs in topological order, and the order in which layers were first visited."""
    order: list[Node] = []
    ranks: dict[Layer, int] = {}
    visited: set[Node] = set()
    for output in outputs:
        stack = [(output, False)]
        while stack:  # iterative, because a browser's recursion limit is too low for deep models
            tensor, is_expanded = stack.pop()
            node = tensor.history.node
            if is_expanded:
                order.append(node)
                continue
            if node in visited or (tensor in inputs and not node.is_input):
                continue
            if node.is_input and tensor not in inputs:
                raise ArgumentError(
                    f"the outputs need the input {tensor.name!r}, which is not among the model's inputs",
                    hint="add it to the model's inputs",
                )
            visited.add(node)
            ranks.setdefault(node.layer, len(ranks))
            stack.append((tensor, True))
            stack += [(source, False) for source in reversed(node.inputs)]
    return order, ranks


def _sort_by_depth(nodes: list[Node], ranks: dict[Layer, int], inputs: list[KerasTensor]) -> list[Layer]:
    """Sort layers by their distance from the outputs, furthest first, then by the order of visits.

    This is Keras' order, which `get_weights` follows.
    """
    node_set = set(nodes)
    depths: dict[Node, int] = {}
    layer_depths: dict[Layer, int] = {}
    for node in reversed(nodes):
        depth = max(depths.get(node, 0), layer_depths.get(node.layer, 0))
        depths[node] = layer_depths[node.layer] = depth
        for source in {tensor.history.node: None for tensor in node.inputs}:
            if source in node_set:
                depths[source] = max(depth + 1, depths.get(source, 0))
    for tensor in inputs:
        layer = tensor.history.layer
        if isinstance(layer, InputLayer) and layer not in layer_depths:  # an unused input
            layer_depths[layer], ranks[layer] = 0, -1
    return sorted(layer_depths, key=lambda layer: (-layer_depths[layer], ranks[layer]))


class _Step:
    """A node with precomputed tensors.

    Args:    done: tensors that no later node needs, whose values are released
    """

    def __init__(self, node: Node, done: list[KerasTensor]) -> None:
        self.node = node
        self.layer = node.layer
        self.done = done
        self.outputs: list[KerasTensor] = flatten(node.outputs)
        is_plain = len(node.args) == 1 and not node.kwargs and isinstance(node.args[0], KerasTensor)
        self.only_input = node.args[0] if is_plain and isinstance(node.outputs, KerasTensor) else None

    def compute(self, values: dict[KerasTensor, Any]) -> None:
        """Compute the node's outputs and store them in `values`."""
        if self.only_input is not None:  # the common case
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


def _select(inputs: dict[str, Any], names: list[str], model: str) -> list[Any]:
    missing = [name for name in names if name not in inputs]
    if missing:
        raise ArgumentError(f"{model}: input {missing[0]!r} is missing; got {', '.join(map(repr, inputs))}")
    return [inputs[name] for name in names]


def _cast_input(expected: KerasTensor, value: Any) -> Any:
    """Convert a value to a tensor with the input's dtype, and add or remove a last axis of size 1 to match its rank."""
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
    """Return the names of a model's layers in its `state_dict`.

    Automatic names become dense, dense_1, ... by position in this model, so that the same program produces the same
    names each time; other names stay.
    """
    names = []
    for layer in layers:
        kind = snake_case(type(layer).__name__)
        is_automatic = re.fullmatch(rf"{re.escape(kind)}(_\d+)?", layer.name)
        names.append(kind if is_automatic else layer.name.replace(".", "_").replace("/", "_") or kind)
    return unique_among(names)
