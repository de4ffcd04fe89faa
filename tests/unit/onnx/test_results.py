"""Results of a loaded model belong to the caller: later calls are not changed by what is done to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.onnx_graphs import call, file_of, loaded, typed

import tallow as tl
from tallow.devices import to_host
from tallow.onnx import inference

WEIGHTS: dict[str, Any] = {"k": [1.0, 2.0], "form": [2, 1], "n": 7}


@pytest.mark.parametrize(
    "nodes",
    [
        [call("Identity", "k", "y")],
        [call("Reshape", "k form", "y")],
        [call("Reshape", "k form", "r"), call("Transpose", "r", "y"), call("Add", "x k", "z")],
        [call("Shape", "x", "s"), call("Expand", "k s", "y")],
        [call("SequenceConstruct", "k x", "q"), call("SequenceAt", "q zero", "y")],
    ],
    ids=["known", "view", "view of a weight with two uses", "broadcast", "sequence"],
)
@pytest.mark.parametrize("recording", [False, True])
def test_a_result_that_the_file_holds_is_a_copy(nodes: list[Any], recording: bool) -> None:
    outputs = ("y", *(["z"] if any("z" in node.output for node in nodes) else []))
    model = tl.onnx.load(file_of(nodes, [typed("x", 2)], WEIGHTS | {"zero": 0}, outputs))
    x = tl.zeros(2)
    with tl.set_grad_enabled(recording):
        first = model(x)
        result = first[0] if isinstance(first, tuple) else first
        before = to_host(result.detach().array).copy()
        with tl.no_grad():
            result.add_(1.0)
        again = model(x)
    again = again[0] if isinstance(again, tuple) else again
    np.testing.assert_array_equal(to_host(again.detach().array), before)


def test_a_result_that_is_computed_is_not_copied() -> None:
    model = loaded([call("MatMul", "x w", "y")], [typed("x", 1, 2)], {"w": [[1.0], [2.0]]})
    assert "copied" not in model.code


def test_the_gradient_of_a_copied_weight_reaches_it() -> None:
    model = tl.onnx.load(file_of([call("Identity", "k", "y")], [typed("x", 2)], WEIGHTS))
    model(tl.zeros(2)).sum().backward()
    (weight,) = model.parameters()
    assert weight.grad is not None
    assert weight.grad.tolist() == [1.0, 1.0]


@pytest.mark.cpu("the quick form is that of the CPU")
def test_a_quick_form_that_cannot_be_made_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def fails(graph: Any, constants: Any) -> None:
        tried.append(graph)
        raise ValueError("no such form")

    monkeypatch.setattr(inference, "QUICK", (fails,))
    model = loaded([call("Mul", "x k", "y")], [typed("x", 2)], {"k": [1.0, 2.0]})
    with tl.no_grad():
        assert [model(tl.ones(2)).tolist() for _ in range(3)] == [[1.0, 2.0]] * 3
        assert len(tried) == 1
        model.k.mul_(2)
        assert model(tl.ones(2)).tolist() == [2.0, 4.0]
