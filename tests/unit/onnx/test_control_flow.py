"""If, Loop and Scan run their graphs, which read values from outside."""

from __future__ import annotations

import pytest

import tallow as tl
from tallow.errors import CheckpointError
from tallow.onnx.operators.registry import operator
from tallow.onnx.protobuf import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    ValueInfoProto,
    encode,
)
from tallow.onnx.tensors import tensor_proto

DOMAIN = "tallow.test.control_flow"
OPSETS = [OperatorSetIdProto("", 18), OperatorSetIdProto(DOMAIN, 1)]


@operator("Plus", domain=DOMAIN)
def plus(a: tl.Tensor, b: tl.Tensor) -> tl.Tensor:
    return a + b


@operator("Times", domain=DOMAIN)
def times(a: tl.Tensor, *, by: float) -> tl.Tensor:
    return a * by


@operator("Less", domain=DOMAIN)
def less(a: tl.Tensor, b: tl.Tensor) -> tl.Tensor:
    return a < b


def values(names: list[str]) -> list[ValueInfoProto]:
    return [ValueInfoProto(name=name) for name in names]


def graph(nodes: list[NodeProto], inputs: list[str], outputs: list[str], *weights: TensorProto) -> GraphProto:
    return GraphProto(node=nodes, input=values(inputs), output=values(outputs), initializer=weights)


def call(name: str, inputs: list[str], outputs: list[str]) -> NodeProto:
    return NodeProto(op_type=name, input=inputs, output=outputs, domain=DOMAIN)


def with_graphs(name: str, inputs: list[str], outputs: list[str], **graphs: GraphProto) -> NodeProto:
    held = [AttributeProto(name=key, g=value) for key, value in graphs.items()]
    return NodeProto(op_type=name, input=inputs, output=outputs, attribute=held)


def loaded(whole: GraphProto, functions: list[FunctionProto] | None = None) -> tl.onnx.OnnxModule:
    return tl.onnx.load(encode(ModelProto(graph=whole, opset_import=OPSETS, functions=functions or [])))


def weight(name: str, value: float) -> TensorProto:
    return tensor_proto(tl.tensor([value]), name)


def choice() -> GraphProto:
    one = graph([call("Plus", ["x", "w"], ["a"])], [], ["a"])
    other = graph([call("Plus", ["x", "v"], ["a"])], [], ["a"], weight("v", -1.0))
    node = with_graphs("If", ["c"], ["y"], then_branch=one, else_branch=other)
    return graph([node], ["c", "x"], ["y"], weight("w", 1.0))


def test_if_runs_one_of_two_graphs_that_read_values_from_outside() -> None:
    model = loaded(choice())
    x = tl.tensor([5.0])
    assert model(tl.tensor(True), x).tolist() == [6.0]
    assert model(tl.tensor(False), x).tolist() == [4.0]


def test_weights_of_branches_train() -> None:
    model = loaded(choice())
    assert sorted(name.rpartition(".")[2] for name, _ in model.named_parameters()) == ["v", "w"]
    model(tl.tensor(True), tl.tensor([5.0])).sum().backward()
    assert [p.grad is None for name, p in sorted(model.named_parameters(), key=lambda each: each[0][-1])] == [
        True,
        False,
    ]


def test_a_branch_that_is_known_replaces_the_if() -> None:
    whole = choice()
    whole.initializer = [*whole.initializer, tensor_proto(tl.tensor(False), "c")]
    model = loaded(whole)
    assert model.input_names == ("x",)
    assert "if_" not in model.code
    assert model(tl.tensor([5.0])).tolist() == [4.0]


def sum_up(trips: list[TensorProto], condition: str) -> GraphProto:
    body = graph(
        [call("Plus", ["s", "x"], ["t"]), call("Less", ["t", "most"], ["go"])], ["i", "c", "s"], ["go", "t", "t"]
    )
    node = with_graphs("Loop", ["n" if trips else "", condition], ["y", "all"], body=body)
    node.input = [*node.input, "x"]
    return graph([node], ["x", "most"], ["y", "all"], *trips)


@pytest.mark.parametrize("trips", [2, 9])
def test_loop_carries_values_and_stacks_others(trips: int) -> None:
    model = loaded(sum_up([tensor_proto(tl.tensor(trips), "n")], ""))
    y, every = model(tl.tensor([2.0]), tl.tensor(100.0))
    assert y.tolist() == [2.0 * (trips + 1)]
    assert every.flatten().tolist() == [2.0 * (i + 2) for i in range(trips)]


def test_loop_ends_when_its_graph_says_so() -> None:
    model = loaded(sum_up([tensor_proto(tl.tensor(100), "n")], ""))
    assert model(tl.tensor([2.0]), tl.tensor(7.0))[1].flatten().tolist() == [4.0, 6.0, 8.0]


def test_a_loop_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="it has no end"):
        loaded(sum_up([], ""))(tl.tensor([2.0]), tl.tensor(7.0))


def test_loops_that_go_on_after_max_trips_are_stopped() -> None:
    raw = encode(ModelProto(graph=sum_up([tensor_proto(tl.tensor(2**62), "n")], ""), opset_import=OPSETS))
    with pytest.raises(RuntimeError, match="goes on after 5 iterations"):
        tl.onnx.load(raw, max_trips=5)(tl.tensor([2.0]), tl.tensor(1e9))


def test_scan_runs_along_a_dim() -> None:
    body = graph([call("Plus", ["s", "x"], ["t"])], ["s", "x"], ["t", "t"])
    node = with_graphs("Scan", ["first", "xs"], ["last", "all"], body=body)
    node.attribute = [
        *node.attribute,
        AttributeProto(name="num_scan_inputs", i=1),
        AttributeProto(name="scan_input_axes", ints=[1]),
        AttributeProto(name="scan_input_directions", ints=[1]),
    ]
    model = loaded(graph([node], ["first", "xs"], ["last", "all"]))
    last, every = model(tl.tensor([0.0]), tl.tensor([[1.0, 2.0, 3.0]]))
    assert last.tolist() == [6.0]
    assert every.flatten().tolist() == [3.0, 5.0, 6.0]


def scale_twice(**more: object) -> FunctionProto:
    scale = NodeProto(
        op_type="Times", domain=DOMAIN, input=["a"], output=["b"], attribute=[AttributeProto("by", ref_attr_name="k")]
    )
    again = NodeProto(
        op_type="Times", domain=DOMAIN, input=["b"], output=["c"], attribute=[AttributeProto("by", f=2.0)]
    )
    return FunctionProto(
        name="Twice",
        domain="mine",
        input=["a"],
        output=["c"],
        attribute_proto=[AttributeProto("k", f=10.0)],
        node=[scale, again],
        opset_import=OPSETS,
    )


def test_functions_of_the_file_are_inlined_with_their_attributes() -> None:
    first = NodeProto(op_type="Twice", domain="mine", input=["x"], output=["b"])
    second = NodeProto(
        op_type="Twice", domain="mine", input=["b"], output=["y"], attribute=[AttributeProto("k", f=3.0)]
    )
    model = loaded(graph([first, second], ["x"], ["y"]), [scale_twice()])
    assert model(tl.tensor([1.0])).tolist() == [10 * 2 * 3 * 2]


def test_functions_that_call_themselves_or_grow_without_bound_are_refused() -> None:
    def function(number: int, called: int) -> FunctionProto:
        nodes = [NodeProto(op_type=f"F{called}", domain="mine", input=["a"], output=[f"b{i}"]) for i in range(2)]
        return FunctionProto(name=f"F{number}", domain="mine", input=["a"], output=["b1"], node=nodes)

    whole = graph([NodeProto(op_type="F0", domain="mine", input=["x"], output=["y"])], ["x"], ["y"])
    with pytest.raises(CheckpointError, match="calls itself"):
        loaded(whole, [function(0, 0)])
    last = FunctionProto(name="F40", domain="mine", input=["a"], output=["b"], node=[call("Plus", ["a", "a"], ["b"])])
    with pytest.raises(CheckpointError, match="too many nodes"):
        loaded(whole, [*(function(i, i + 1) for i in range(40)), last])


def test_a_weight_of_two_graphs_stays_one() -> None:
    def product(name: str) -> GraphProto:
        return graph([NodeProto(op_type="MatMul", input=["x", "w"], output=[name])], [], [name])

    node = with_graphs("If", ["c"], ["y"], then_branch=product("a"), else_branch=product("b"))
    held = tl.arange(6, dtype=tl.float32).reshape(2, 3)
    model = loaded(graph([node], ["c", "x"], ["y"], tensor_proto(held, "w")))
    x = tl.ones(1, 2)
    for choice in (True, False):
        assert model(tl.tensor(choice), x).tolist() == (x @ held).tolist()
    assert len(list(model.parameters())) == 1
