"""ONNX files become modules whose graphs hold what their operators call."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.onnx_graphs import call, loaded, typed

import tallow as tl
from tallow.errors import CheckpointError, TallowError, UnsupportedError
from tallow.onnx.operators.registry import Ints, ints, operator
from tallow.onnx.protobuf import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    StringStringEntryProto,
    TensorProto,
    ValueInfoProto,
    encode,
)
from tallow.onnx.tensors import ExternalFiles, tensor_of, tensor_proto

DOMAIN = "tallow.test"  # of operators that only these tests have


@operator("Scaled", domain=DOMAIN)
def scaled(x: tl.Tensor, w: tl.Tensor, b: tl.Tensor | None = None, *, by: float = 1.0) -> tl.Tensor:
    y = x * w * by
    return y if b is None else y + b


@operator("Shaped", domain=DOMAIN)
def shaped(x: tl.Tensor, shape: Ints) -> tl.Tensor:
    return x.reshape(ints(shape))


@operator("Positive", domain=DOMAIN)
def positive(x: tl.Tensor) -> tl.Tensor:
    return x if bool((x > 0).all()) else -x  # asks for values, so it cannot be recorded


@operator("Parts", domain=DOMAIN)
def parts(x: tl.Tensor, *, outputs: int) -> tuple[tl.Tensor, ...]:
    return tuple(tl.chunk(x, outputs))


def node(name: str, inputs: list[str], outputs: list[str], **attributes: float | int) -> NodeProto:
    held = [
        AttributeProto(name=key, i=value) if isinstance(value, int) else AttributeProto(name=key, f=value)
        for key, value in attributes.items()
    ]
    return NodeProto(op_type=name, input=inputs, output=outputs, attribute=held, domain=DOMAIN, name=f"the {name}")


def file_of(
    nodes: list[NodeProto], inputs: list[str], outputs: list[str], weights: dict[str, Any] | None = None
) -> bytes:
    tensors = [tensor_proto(tl.tensor(value), name) for name, value in (weights or {}).items()]
    graph = GraphProto(
        node=nodes,
        input=[ValueInfoProto(name=name) for name in inputs],
        output=[ValueInfoProto(name=name) for name in outputs],
        initializer=tensors,
    )
    return encode(ModelProto(ir_version=10, graph=graph, opset_import=[OperatorSetIdProto(DOMAIN, 1)]))


def scaled_file() -> bytes:
    return file_of(
        [node("Scaled", ["x.0", "fc.w", "fc.b"], ["y"], by=2.0)], ["x.0"], ["y"], {"fc.w": [3.0], "fc.b": [1.0]}
    )


def test_a_graph_holds_what_the_operator_calls() -> None:
    model = tl.onnx.load(scaled_file())
    assert model.input_names == ("x.0",)
    assert model.output_names == ("y",)
    assert "fc_w" in model.code
    assert " * " in model.code
    assert model(tl.tensor([1.0, 2.0])).tolist() == [7.0, 13.0]
    assert model(**{"x.0": tl.tensor([1.0])}).tolist() == [7.0]


def test_weights_train_and_are_saved_under_their_names() -> None:
    model = tl.onnx.load(scaled_file())
    assert [name for name, _ in model.named_parameters()] == ["fc.w", "fc.b"]
    model(tl.tensor([1.0, 2.0])).sum().backward()
    assert model.fc.w.grad.tolist() == [6.0]
    model.load_state_dict({"fc.w": tl.tensor([1.0]), "fc.b": tl.tensor([0.0])})
    assert model(tl.tensor([1.0])).tolist() == [2.0]


def test_a_file_is_read_from_a_path_and_from_an_open_file(tmp_path: Any) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(scaled_file())
    for source in (path, str(path), io.BytesIO(scaled_file())):
        assert tl.onnx.load(source)(tl.tensor([1.0])).tolist() == [7.0]


def test_whole_numbers_that_are_known_are_a_tuple() -> None:
    model = tl.onnx.load(file_of([node("Shaped", ["x", "s"], ["y"])], ["x"], ["y"], {"s": [2, -1]}))
    assert ".reshape((2, -1))" in model.code
    assert model(tl.arange(6)).shape == (2, 3)


def test_whole_numbers_of_an_input_are_read_when_the_graph_runs() -> None:
    model = tl.onnx.load(file_of([node("Shaped", ["x", "s"], ["y"])], ["x", "s"], ["y"]))
    assert model(tl.arange(6), tl.tensor([3, 2])).shape == (3, 2)


def test_an_operator_that_asks_for_values_is_one_node() -> None:
    model = tl.onnx.load(file_of([node("Positive", ["x"], ["y"])], ["x"], ["y"]))
    assert model(tl.tensor([-1.0, -2.0])).tolist() == [1.0, 2.0]
    assert [n.op for n in model.graph.nodes] == ["placeholder", "call_function", "output"]


def test_several_outputs() -> None:
    model = tl.onnx.load(file_of([node("Parts", ["x"], ["a", "b"])], ["x"], ["b", "a"]))
    b, a = model(tl.arange(4))
    assert (a.tolist(), b.tolist()) == ([0, 1], [2, 3])


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("Scaled", ["x", "q"], ["y"])], r"node 0, Scaled 'the Scaled': the value 'q' is not defined"),
        ([node("Scaled", ["x", "x"], ["x"])], r"'x' is defined twice"),
        ([node("Scaled", ["x", "y"], ["y"])], r"'y' is not defined before it"),
        ([node("Scaled", ["x", "x"], ["y"], size=1)], r"the attribute 'size', which the operator lacks"),
        ([node("Scaled", ["x"] * 4, ["y"])], r"4 inputs, but the operator 3"),
        ([node("Scaled", ["x", "x"], ["z"])], r"output of the graph: the value 'y' is not defined"),
    ],
)
def test_errors_name_the_node(nodes: list[NodeProto], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        tl.onnx.load(file_of(nodes, ["x"], ["y"]))


def test_all_unsupported_operators_are_listed() -> None:
    nodes = [node("Foo", ["x"], ["a"]), node("Foo", ["a"], ["b"]), node("Bar", ["b"], ["y"])]
    with pytest.raises(UnsupportedError, match=r"tallow\.test\.Foo \(2\), tallow\.test\.Bar \(1\)"):
        tl.onnx.load(file_of(nodes, ["x"], ["y"]))


def test_an_opset_from_the_future_is_refused() -> None:
    graph = GraphProto(input=[ValueInfoProto(name="x")], output=[ValueInfoProto(name="x")])
    with pytest.raises(UnsupportedError, match="opset 99"):
        tl.onnx.load(encode(ModelProto(graph=graph, opset_import=[OperatorSetIdProto("", 99)])))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int64", "bool"])
def test_tensors_of_each_dtype(dtype: str) -> None:
    value = tl.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(tl, dtype))
    again = tensor_of(tensor_proto(value, "w"), ExternalFiles(None))
    assert again.dtype is value.dtype
    assert again.tolist() == value.tolist()


def test_narrow_integers_are_unpacked() -> None:
    proto = TensorProto(dims=[3], data_type=22, raw_data=bytes([0x8F, 0x07]), name="w")  # int4
    assert tensor_of(proto, ExternalFiles(None)).tolist() == [-1, -8, 7]
    with pytest.raises(CheckpointError, match="'w' has the dims"):
        tensor_of(TensorProto(dims=[9], data_type=22, raw_data=b"\0", name="w"), ExternalFiles(None))
    assert (
        np.float32(1.5) in tensor_of(TensorProto(dims=[1], data_type=23, raw_data=b"\3"), ExternalFiles(None)).numpy()
    )


@pytest.mark.parametrize("data_type", [1, 8, 22])
def test_dims_of_an_empty_tensor_that_no_array_has(data_type: int) -> None:
    proto = TensorProto(dims=[0, 1 << 62, 1 << 62], data_type=data_type, name="w")
    with pytest.raises(CheckpointError, match="'w' has the dims"):
        tensor_of(proto, ExternalFiles(None))


def test_an_error_of_a_run_names_the_node_of_the_file() -> None:
    weights = {"fc.w": [3.0, 1.0], "fc.b": [1.0]}
    model = tl.onnx.load(file_of([node("Scaled", ["x", "fc.w", "fc.b"], ["y"])], ["x"], ["y"], weights))
    with pytest.raises(RuntimeError) as error:
        model(tl.ones(3))
    assert error.value.__notes__ == ["in the node 'the Scaled', Scaled"]


EXTERNAL = {"location": "weights.bin", "offset": "4", "length": "8"}


def external_file(place: dict[str, str]) -> bytes:
    entries = [StringStringEntryProto(key, value) for key, value in place.items()]
    proto = TensorProto(dims=[2], data_type=1, name="w", data_location=1, external_data=entries)
    graph = GraphProto(
        node=[node("Scaled", ["x", "w"], ["y"])],
        input=[ValueInfoProto(name="x")],
        output=[ValueInfoProto(name="y")],
        initializer=[proto],
    )
    return encode(ModelProto(graph=graph, opset_import=[OperatorSetIdProto(DOMAIN, 1)]))


def test_external_data_is_read_from_the_folder_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(np.float32([9, 2, 3]).tobytes())
    (tmp_path / "net.onnx").write_bytes(external_file(EXTERNAL))
    assert tl.onnx.load(tmp_path / "net.onnx")(tl.ones(2)).tolist() == [2, 3]
    with pytest.raises(CheckpointError, match="not read from a path"):
        tl.onnx.load(external_file(EXTERNAL))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"location": "../weights.bin"}, "outside"),
        ({"location": "/etc/passwd"}, "outside"),
        ({"location": "a/../../weights.bin"}, "outside"),
        ({"location": "C:\\weights.bin"}, "outside"),
        ({"location": ""}, "outside"),
        ({"location": "link.bin"}, "link"),
        ({"location": "missing.bin"}, "missing"),
        ({"location": "weights.bin", "offset": "8", "length": "8"}, "has 12"),
        ({"location": "weights.bin", "offset": "-4", "length": "8"}, "bytes -4 to 4"),
        ({"location": "weights.bin", "offset": "x"}, "no number"),
        ({"location": "weights.bin"}, "12 bytes"),
    ],
)
def test_external_data_outside_the_folder_or_the_file_is_refused(
    tmp_path: Path, place: dict[str, str], message: str
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "weights.bin").write_bytes(bytes(12))
    (folder / "weights.bin").write_bytes(bytes(12))
    (folder / "link.bin").symlink_to(tmp_path / "weights.bin")
    (folder / "net.onnx").write_bytes(external_file(place))
    with pytest.raises(CheckpointError, match=message):
        tl.onnx.load(folder / "net.onnx")


@pytest.mark.parametrize("name", ["inputs", "input_names", "meta", "code", "explain", "forward", "graph", "training"])
def test_a_weight_may_have_the_name_of_an_attribute_of_modules(name: str) -> None:
    weight, x = tl.randn(3), tl.ones(2, 3)
    model = loaded([call("Mul", f"x {name}", "y")], [typed("x", 2, 3)], {name: weight})
    assert tl.equal(model(x=x), weight * x)
    assert model.input_names == ("x",)


def test_an_input_may_have_the_name_self() -> None:
    model = loaded([call("Neg", "self", "y")], [typed("self", 2)], {})
    assert tl.equal(model(self=tl.ones(2)), -tl.ones(2))


def test_values_that_grow_without_end_are_not_computed_at_load() -> None:
    nodes: list[NodeProto] = []
    for i in range(13):
        nodes += [call("Neg", f"w{i}", f"n{i}"), call("Concat", f"w{i} n{i}", f"w{i + 1}", axis=0)]
    nodes.append(call("Add", "x w13", "y"))
    weights = {"w0": tl.ones(1000, dtype=tl.int32)}
    model = loaded(nodes, [typed("x", "n", dtype=tl.int32)], weights)
    assert sum(buffer.numel() for buffer in model.buffers()) < 1 << 20
    assert model(tl.zeros(1, dtype=tl.int32)).shape == (1000 << 13,)


def test_a_computation_of_weights_that_fails_is_left_to_the_run() -> None:
    nodes = [call("Reshape", "w form", "c"), call("Add", "x c", "y")]
    model = loaded(nodes, [typed("x", 1)], {"w": tl.ones(4), "form": [3]})
    assert "reshape" in model.code
    with pytest.raises(TallowError, match="4"):
        model(tl.ones(1))
