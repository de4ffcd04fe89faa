"""Weights in the layout in which operators read them: the export does what Transpose nodes would do in each run.

Tools such as onnxruntime's `quantize_dynamic` look for products with a weight of the file. A weight that something
else reads as well, such as an embedding that is the last layer too, stays as it is, so that the file holds it once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tallow.onnx.exporters.builder import Call, Value


def transposed(
    calls: Sequence[Call], weights: Mapping[str, Value], outputs: Collection[str]
) -> tuple[list[Call], dict[str, Value]]:
    """Return nodes and weights, with the weights transposed that are read only by Transpose nodes of one order.

    Args:
        weights: name -> value; a weight keeps its name.
        outputs: names of the values that the graph returns, which stay results of nodes.
    """
    readers: dict[str, list[Call]] = {}
    for call in calls:
        for name in call.inputs:
            if name in weights:
                readers.setdefault(name, []).append(call)
    turned = {name: found for name, found in readers.items() if _is_alike(found, outputs)}
    replaced = {call.outputs[0]: name for name, found in turned.items() for call in found}
    kept = [
        replace(call, inputs=[replaced.get(name, name) for name in call.inputs])
        for call in calls
        if call.outputs[0] not in replaced
    ]
    return kept, {name: _turned(value, turned[name][0]) if name in turned else value for name, value in weights.items()}


def _is_alike(readers: Sequence[Call], outputs: Collection[str]) -> bool:
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
