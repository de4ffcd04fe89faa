"""Models of one ONNX node, run by tallow and by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import tallow as tl


def node_model(
    name: str, inputs: Sequence[Any], outputs: int, domain: str, attributes: dict[str, Any], weights: Sequence[int] = ()
) -> bytes:
    """Return a model of one node.

    Args:
        inputs: arrays; None for operands that are absent.
        weights: the numbers of the operands that are initializers.
    """
    names = ["" if each is None else f"x{i}" for i, each in enumerate(inputs)]
    node = helper.make_node(name, names, [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    given = [
        helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
        if each.dtype != object
        else helper.make_tensor_value_info(f"x{i}", TensorProto.STRING, each.shape)
        for i, each in enumerate(inputs)
        if each is not None and i not in weights
    ]
    graph = helper.make_graph(
        [node],
        "graph",
        given,
        [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)],
        [numpy_helper.from_array(inputs[i], f"x{i}") for i in weights],
    )
    opsets = [
        helper.make_opsetid("", 17),
        helper.make_opsetid("com.microsoft", 1),
        helper.make_opsetid("ai.onnx.ml", 3),
    ]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def check_node(
    name: str,
    inputs: Sequence[Any],
    *,
    outputs: int = 1,
    compared: Sequence[int] | None = None,
    domain: str = "com.microsoft",
    weights: Sequence[int] = (),
    distance: float | None = None,
    approximate: bool = False,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    **attributes: Any,
) -> None:
    """Compare a node's outputs with onnxruntime's: dtypes, shapes and values.

    Args:
        compared: the numbers of the outputs that are compared; by default all.
        distance: compare the norm of the difference with that of the output, instead of each element.
        approximate: of `tl.onnx.load`.
    """
    content = node_model(name, inputs, outputs, domain, attributes, weights)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    feeds = {f"x{i}": each for i, each in enumerate(inputs) if each is not None and i not in weights}
    expected = session.run(None, feeds)
    model = tl.onnx.load(content, approximate=approximate)
    with tl.no_grad():
        results = model(*(each if each.dtype == object else tl.tensor(each) for each in feeds.values()))
    results = results if isinstance(results, tuple) else (results,)
    assert len(results) == len(expected)
    for i in range(outputs) if compared is None else compared:
        result, wanted = results[i], expected[i]
        if isinstance(wanted, list):  # of dicts: ZipMap
            assert [list(each) for each in result] == [list(each) for each in wanted]
            continue
        found = result if isinstance(result, np.ndarray) else result.numpy()
        assert found.shape == wanted.shape
        if wanted.dtype == object:
            assert found.tolist() == wanted.tolist()
        elif distance is not None:
            assert np.linalg.norm(found - wanted) <= distance * np.linalg.norm(wanted)
        else:
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol, atol)
