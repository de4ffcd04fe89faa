"""Inputs of a model: what the file says, and what a call is checked against."""

from __future__ import annotations

import numpy as np
import pytest

import tallow as tl
from tallow.onnx.operators.registry import operator
from tallow.onnx.protobuf import (
    Dimension,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorShapeProto,
    TensorType,
    TypeProto,
    ValueInfoProto,
    encode,
)

DOMAIN = "tallow.test.signature"


@operator("Both", domain=DOMAIN)
def both(a: tl.Tensor, b: tl.Tensor) -> tl.Tensor:
    return a + b


def typed(name: str, data_type: int, *dims: int | str) -> ValueInfoProto:
    shape = [Dimension(dim_value=dim) if isinstance(dim, int) else Dimension(dim_param=dim) for dim in dims]
    return ValueInfoProto(name, TypeProto(tensor_type=TensorType(data_type, TensorShapeProto(shape))))


@pytest.fixture
def model() -> tl.onnx.OnnxModule:
    graph = GraphProto(
        node=[NodeProto(op_type="Both", domain=DOMAIN, input=["a", "b"], output=["y"])],
        input=[typed("a", 1, "batch", 3), typed("b", 1, -1, 3)],
        output=[ValueInfoProto("y")],
    )
    return tl.onnx.load(encode(ModelProto(graph=graph, opset_import=[OperatorSetIdProto(DOMAIN, 1)])))


def test_inputs_and_outputs_say_what_the_file_says(model: tl.onnx.OnnxModule) -> None:
    a, b = model.inputs()
    assert (a.name, a.kind, a.dtype, a.shape) == ("a", "tensor", tl.float32, ("batch", 3))
    assert b.shape == (None, 3)
    assert [(info.name, info.kind, info.shape) for info in model.outputs()] == [("y", "unknown", None)]


def test_all_problems_are_listed_at_once(model: tl.onnx.OnnxModule) -> None:
    with pytest.raises(TypeError) as error:
        model(tl.ones(2, 3, dtype=tl.int64), b=tl.ones(3), c=1)
    for part in (
        "c: no such input",
        "a: dtype tallow.int64; expected tallow.float32",
        "b: shape (3,); expected (?, 3)",
    ):
        assert part in str(error.value)


def test_strings_are_an_array() -> None:
    node = NodeProto(op_type="Identity", input=["s"], output=["y"])
    graph = GraphProto(node=[node], input=[typed("s", 8, "n")], output=[ValueInfoProto("y")])
    model = tl.onnx.load(encode(ModelProto(graph=graph, opset_import=[OperatorSetIdProto("", 20)])))
    assert model(np.array(["a", "b"], dtype=object)).tolist() == ["a", "b"]
    for wrong in (["a"], "a", tl.ones(1)):
        with pytest.raises(TypeError, match="expected a NumPy array of str"):
            model(wrong)


@pytest.mark.parametrize(
    ("args", "names", "message"),
    [
        (1, (), "b: missing"),
        (3, (), "3 values by position; expected at most 2"),
        (2, ("a",), "a: given twice"),
    ],
)
def test_missing_and_surplus_inputs_are_named(
    model: tl.onnx.OnnxModule, args: int, names: tuple[str, ...], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        model(*[tl.ones(2, 3)] * args, **dict.fromkeys(names, tl.ones(2, 3)))


def test_a_model_in_another_dtype_takes_inputs_of_it(model: tl.onnx.OnnxModule) -> None:
    with pytest.raises(TypeError, match="float16"):
        model(tl.ones(2, 3).half(), tl.ones(2, 3).half())
    model.register_parameter("w", tl.nn.Parameter(tl.ones(1)))
    model.half()
    assert model(tl.ones(2, 3).half(), tl.ones(2, 3).half()).dtype is tl.float16
