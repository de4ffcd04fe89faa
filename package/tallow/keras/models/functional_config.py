"""The configuration of a functional model: Keras' description of the calls between inputs and outputs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from tallow.errors import ArgumentError, CheckpointError
from tallow.keras.layers import InputLayer, Layer
from tallow.keras.serialization import deserialize_keras_object, serialize_keras_object
from tallow.keras.structure import flatten, map_structure
from tallow.keras.symbolic import KerasTensor, Node

TENSOR, TRAINING = "__keras_tensor__", "training"


def get_config(model: Any) -> dict[str, Any]:
    """Return a functional model's configuration.

    Raises:  ArgumentError for a model whose inputs are not keras.Input tensors
    """
    graph = model._graph
    for tensor in graph.inputs:
        if not isinstance(tensor.history.layer, InputLayer):
            raise ArgumentError(
                f"{model.name} starts at the output of {tensor.history.layer.name} and has no configuration",
                hint="use keras.Input tensors as its inputs",
            )
    calls = {layer: [node for node in layer.inbound_nodes if node in set(graph.nodes)] for layer in graph.layers}
    indices = {node: index for layer, nodes in calls.items() for index, node in enumerate(nodes)}

    def history_of(tensor: KerasTensor) -> list[Any]:
        history = tensor.history
        return [history.layer.name, indices.get(history.node, 0), history.tensor_index]

    def endpoint(tensor: KerasTensor) -> list[Any]:
        """Like `history_of`, but Keras counts the calls of a model from 1 here."""
        name, index, position = history_of(tensor)
        return [name, index + getattr(tensor.history.layer, "calls_at_start", 0), position]

    def describe(leaf: Any) -> Any:
        if not isinstance(leaf, KerasTensor):
            return serialize_keras_object(leaf)
        config = {"shape": list(leaf.shape), "dtype": leaf.dtype.name, "keras_history": history_of(leaf)}
        return {"class_name": TENSOR, "config": config}

    def call(node: Node) -> dict[str, Any]:
        # Keras writes the training mode of a call and ignores it when loading. A mode that was passed explicitly is
        # stored next to the arguments, where Keras does not look.
        kwargs = {key: value for key, value in node.kwargs.items() if key != TRAINING}
        mode = {TRAINING: node.kwargs[TRAINING]} if TRAINING in node.kwargs else {}
        return {"args": map_structure(describe, list(node.args)), "kwargs": map_structure(describe, kwargs), **mode}

    return {
        "name": model.name,
        "trainable": model.trainable,
        "layers": [
            {
                **serialize_keras_object(layer),
                "name": layer.name,
                "inbound_nodes": [call(node) for node in nodes if not node.is_input],
            }
            for layer, nodes in calls.items()
        ],
        "input_layers": map_structure(endpoint, graph.input_structure),
        "output_layers": map_structure(endpoint, graph.output_structure),
    }


def from_config(kind: Any, config: dict[str, Any], custom_objects: Any = None) -> Any:
    """Create the layers and repeat their calls, each as soon as its arguments are available.

    Raises:  CheckpointError for a call whose arguments never become available
    """
    layers: dict[str, Layer] = {}
    calls: dict[str, deque[dict[str, Any]]] = {}
    results: dict[str, list[list[KerasTensor]]] = {}  # outputs of each layer's calls so far
    first: dict[str, int] = {}  # index of the first call in input_layers and output_layers
    for entry in config["layers"]:
        name = entry["name"]
        layer = deserialize_keras_object({k: v for k, v in entry.items() if k != "inbound_nodes"}, custom_objects)
        layers[name], calls[name] = layer, deque(entry["inbound_nodes"])
        results[name] = [flatten(layer.output)] if isinstance(layer, InputLayer) else []
        # Files of earlier tallow versions name the class Model and count from 0 everywhere.
        first[name] = 0 if entry.get("class_name") == "Model" else getattr(layer, "calls_at_start", 0)
    while any(calls.values()):
        count = sum(map(len, calls.values()))
        for name, pending in calls.items():
            while pending and all(_is_available(source, results) for source in _sources(pending[0])):
                call = pending.popleft()
                kwargs = {key: value for key, value in call["kwargs"].items() if key != TRAINING}
                mode = {TRAINING: call[TRAINING]} if call.get(TRAINING) is not None else {}
                outputs = layers[name](*_resolve(call["args"], results), **_resolve(kwargs, results), **mode)
                results[name].append(flatten(outputs))
        if sum(map(len, calls.values())) == count:
            stuck = next(name for name, pending in calls.items() if pending)
            raise CheckpointError(f"the graph of {config.get('name')!r} is broken: an input of {stuck!r} is missing")
    numbered: dict[str, list[list[KerasTensor]]] = {name: [[]] * first[name] + calls for name, calls in results.items()}
    ends = [_endpoints(config[key], numbered) for key in ("input_layers", "output_layers")]
    model = kind(*ends, name=config.get("name"))
    if not config.get("trainable", True):
        model.trainable = False
    return model


def _is_tensor(value: Any) -> bool:
    return isinstance(value, dict) and value.get("class_name") == TENSOR


def _sources(value: Any) -> Iterator[Any]:
    """Yield the origin of each tensor in a call's arguments: layer, call, output."""
    if _is_tensor(value):
        yield value["config"]["keras_history"]
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _sources(part)


def _is_available(source: Any, results: dict[str, list[list[KerasTensor]]]) -> bool:
    name, call, _ = source
    return call < len(results[name])


def _resolve(value: Any, results: dict[str, list[list[KerasTensor]]]) -> Any:
    if _is_tensor(value):
        name, call, output = value["config"]["keras_history"]
        return results[name][call][output]
    if isinstance(value, list):
        return [_resolve(part, results) for part in value]
    if isinstance(value, dict) and "class_name" not in value:
        return {key: _resolve(part, results) for key, part in value.items()}
    return deserialize_keras_object(value)


def _endpoints(value: Any, results: dict[str, list[list[KerasTensor]]]) -> Any:
    """Return the tensors of a structure of endpoints, each a layer's name, a call and an output."""
    if isinstance(value, dict):
        return {key: _endpoints(part, results) for key, part in value.items()}
    if value and isinstance(value[0], str):
        name, call, output = value
        return results[name][call][output]
    return [_endpoints(part, results) for part in value]
