"""Weights in the layout in which operators read them: the export does what Split and Transpose nodes would do in each
run, as those of attention, whose weights for queries, keys and values are one matrix.

Tools such as onnxruntime's `quantize_dynamic` look for products with a weight of the file. A weight that something
else reads as well, such as an embedding that is the last layer too, stays as it is, so that the file holds it once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from tallow.onnx.exporters.builder import Call, Value


def laid_out(
    calls: Sequence[Call], weights: Mapping[str, Value], outputs: AbstractSet[str], unique: Callable[[str], str]
) -> tuple[list[Call], dict[str, Value]]:
    """Return nodes and weights, with the weights divided and transposed that only such nodes read.

    Args:
        weights: name -> value. A transposed weight keeps its name; parts have it with a number.
        outputs: names of the values that the graph returns, which stay results of nodes.
        unique: returns a new name that begins as another.
    """
    return _transposed(*_divided(calls, weights, outputs, unique), outputs)


def _readers(calls: Sequence[Call], weights: Mapping[str, Value]) -> dict[str, list[Call]]:
    readers: dict[str, list[Call]] = {}
    for call in calls:
        for name in call.inputs:
            if name in weights:
                readers.setdefault(name, []).append(call)
    return readers


def _without(calls: Sequence[Call], replaced: Mapping[str, str]) -> list[Call]:
    """Return nodes without those whose results are weights now, which the others read."""
    return [
        replace(call, inputs=[replaced.get(name, name) for name in call.inputs])
        for call in calls
        if call.outputs[0] not in replaced
    ]


def _divided(
    calls: Sequence[Call], weights: Mapping[str, Value], outputs: AbstractSet[str], unique: Callable[[str], str]
) -> tuple[list[Call], dict[str, Value]]:
    made, replaced = dict(weights), dict[str, str]()
    for name, readers in _readers(calls, weights).items():
        weight, call = weights[name], readers[0]
        sizes = weights.get(call.inputs[-1])
        if len(readers) > 1 or (call.domain, call.op_type) != ("", "Split") or not outputs.isdisjoint(call.outputs):
            continue
        if len(call.inputs) != 2 or call.inputs[0] != name or weight.array is None:
            continue
        if sizes is None or not sizes.is_constant or sizes.array is None:
            continue
        ends = np.cumsum(sizes.array)[:-1]
        parts = np.split(weight.array, ends, call.attributes.get("axis", 0))
        for number, (part, result) in enumerate(zip(parts, call.outputs, strict=True)):
            replaced[result] = unique(f"{name}_{number}")
            made[replaced[result]] = replace(weight, name=replaced[result], array=part, shape=part.shape)
    return _without(calls, replaced), made


def _transposed(
    calls: Sequence[Call], weights: Mapping[str, Value], outputs: AbstractSet[str]
) -> tuple[list[Call], dict[str, Value]]:
    turned = {name: found for name, found in _readers(calls, weights).items() if _is_alike(found, outputs)}
    replaced = {call.outputs[0]: name for name, found in turned.items() for call in found}
    made = {name: _turned(value, turned[name][0]) if name in turned else value for name, value in weights.items()}
    return _without(calls, replaced), made


def _is_alike(readers: Sequence[Call], outputs: AbstractSet[str]) -> bool:
    order = readers[0].attributes.get("perm")
    return all(
        (call.domain, call.op_type, call.attributes.get("perm")) == ("", "Transpose", order)
        and call.outputs[0] not in outputs
        for call in readers
    )


def _turned(weight: Value, call: Call) -> Value:
    assert weight.array is not None
    array = np.transpose(weight.array, call.attributes.get("perm"))
    return replace(weight, array=array, shape=array.shape)
