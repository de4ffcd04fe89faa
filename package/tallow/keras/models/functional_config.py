"""A model of tensors as plain values, and back: Keras' description of the calls between inputs and outputs."""

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
    graph = model._graph
    for tensor in graph.inputs:
        if not isinstance(tensor.history.layer, InputLayer):
            raise ArgumentError(
                f"{model.name} starts at the result of {tensor.history.layer.name}, so it has no configuration",
                mend="start it at a keras.Input",
            )
    calls = {layer: [node for node in layer.inbound_nodes if node in set(graph.nodes)] for layer in graph.layers}
    places = {node: index for layer, nodes in calls.items() for index, node in enumerate(nodes)}

    def place(tensor: KerasTensor) -> list[Any]:
        history = tensor.history
        return [history.layer.name, places.get(history.node, 0), history.tensor_index]

    def end(tensor: KerasTensor) -> list[Any]:
        """As `place`, but Keras counts the calls of a model from 1 here."""
        name, index, position = place(tensor)
        return [name, index + getattr(tensor.history.layer, "calls_at_start", 0), position]

    def described(leaf: Any) -> Any:
        if not isinstance(leaf, KerasTensor):
            return serialize_keras_object(leaf)
        config = {"shape": list(leaf.shape), "dtype": leaf.dtype.name, "keras_history": place(leaf)}
        return {"class_name": TENSOR, "config": config}

    def call(node: Node) -> dict[str, Any]:
        # Keras writes the mode that a call was described in, and does not mean it to stay; one that was asked for is
        # kept where Keras does not look.
        kwargs = {key: value for key, value in node.kwargs.items() if key != TRAINING}
        asked = {TRAINING: node.kwargs[TRAINING]} if TRAINING in node.kwargs else {}
        return {"args": map_structure(described, list(node.args)), "kwargs": map_structure(described, kwargs), **asked}

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
        "input_layers": map_structure(end, graph.input_structure),
        "output_layers": map_structure(end, graph.output_structure),
    }


def from_config(kind: Any, config: dict[str, Any], custom_objects: Any = None) -> Any:
    """Make the layers, and repeat their calls, each as soon as there is what it was called with.

    Raises:  CheckpointError for a call that needs a tensor which nothing gives
    """
    layers: dict[str, Layer] = {}
    calls: dict[str, deque[dict[str, Any]]] = {}
    results: dict[str, list[list[KerasTensor]]] = {}  # of each layer's calls so far
    first: dict[str, int] = {}  # from where the model's ends count them
    for entry in config["layers"]:
        name = entry["name"]
        layer = deserialize_keras_object({k: v for k, v in entry.items() if k != "inbound_nodes"}, custom_objects)
        layers[name], calls[name] = layer, deque(entry["inbound_nodes"])
        results[name] = [flatten(layer.output)] if isinstance(layer, InputLayer) else []
        # Earlier files of tallow's call the class Model, and count from 0 everywhere.
        first[name] = 0 if entry.get("class_name") == "Model" else getattr(layer, "calls_at_start", 0)
    while any(calls.values()):
        before = sum(map(len, calls.values()))
        for name, waiting in calls.items():
            while waiting and all(_is_there(place, results) for place in _places(waiting[0])):
                call = waiting.popleft()
                kwargs = {key: value for key, value in call["kwargs"].items() if key != TRAINING}
                asked = {TRAINING: call[TRAINING]} if call.get(TRAINING) is not None else {}
                outputs = layers[name](*_filled(call["args"], results), **_filled(kwargs, results), **asked)
                results[name].append(flatten(outputs))
        if sum(map(len, calls.values())) == before:
            stuck = next(name for name, waiting in calls.items() if waiting)
            raise CheckpointError(f"the graph of {config.get('name')!r} is broken: what {stuck!r} takes is not there")
    shown: dict[str, list[list[KerasTensor]]] = {name: [[]] * first[name] + found for name, found in results.items()}
    ends = [_ends(config[key], shown) for key in ("input_layers", "output_layers")]
    model = kind(*ends, name=config.get("name"))
    if not config.get("trainable", True):
        model.trainable = False
    return model


def _is_tensor(value: Any) -> bool:
    return isinstance(value, dict) and value.get("class_name") == TENSOR


def _places(value: Any) -> Iterator[Any]:
    """Where the tensors in a call's arguments come from."""
    if _is_tensor(value):
        yield value["config"]["keras_history"]
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _places(part)


def _is_there(place: Any, results: dict[str, list[list[KerasTensor]]]) -> bool:
    name, call, _ = place
    return call < len(results[name])


def _filled(value: Any, results: dict[str, list[list[KerasTensor]]]) -> Any:
    if _is_tensor(value):
        name, call, output = value["config"]["keras_history"]
        return results[name][call][output]
    if isinstance(value, list):
        return [_filled(part, results) for part in value]
    if isinstance(value, dict) and "class_name" not in value:
        return {key: _filled(part, results) for key, part in value.items()}
    return deserialize_keras_object(value)


def _ends(value: Any, results: dict[str, list[list[KerasTensor]]]) -> Any:
    """The tensors at the places in a structure; a place is a layer's name, a call, and an output."""
    if isinstance(value, dict):
        return {key: _ends(part, results) for key, part in value.items()}
    if value and isinstance(value[0], str):
        name, call, output = value
        return results[name][call][output]
    return [_ends(part, results) for part in value]
