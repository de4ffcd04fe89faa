"""Interpreter, Transformer, shape propagation, drawing, and replacing patterns."""

from __future__ import annotations

import operator
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tallow as tl
from tallow import fx
from tallow.errors import ArgumentError, GraphError
from tallow.fx.passes.graph_drawer import FxGraphDrawer
from tallow.fx.passes.shape_prop import ShapeProp
from tallow.fx.passes.utils.matcher_utils import SubgraphMatcher
from tallow.fx.subgraph_rewriter import replace_pattern, replace_pattern_with_filters

nn, F = tl.nn, tl.nn.functional
X = tl.tensor([[-1.0, 2.0], [3.0, -4.0]])


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 3)
        self.w = nn.Parameter(tl.ones(3))

    def forward(self, x: Any, scale: float = 2.0) -> Any:
        y = tl.relu(self.fc(x)) * self.w
        return {"y": y * scale, "rows": y.size(0)}


def test_the_interpreter_runs_a_graph() -> None:
    net = Net()
    traced = fx.symbolic_trace(net)
    runner = fx.Interpreter(traced)
    assert tl.equal(runner.run(X)["y"], net(X)["y"])
    assert runner.run(X, 3.0)["rows"] == 2
    assert tl.equal(runner.run(X, 3.0)["y"], net(X, 3.0)["y"])
    assert len(runner.env) < 4  # values are forgotten
    keeping = fx.Interpreter(traced, garbage_collect_values=False)
    keeping.run(X)
    assert {node.name for node in keeping.env} == {node.name for node in traced.graph.nodes}
    relu = traced.graph.find_nodes(op="call_function", target=tl.relu)[0]
    assert tl.equal(runner.run(X, initial_env={relu: tl.ones(2, 3)})["y"], tl.full((2, 3), 2.0))
    with pytest.raises(ArgumentError, match="expected a value for the argument 'x'"):
        runner.run()
    with pytest.raises(ArgumentError, match="more than the graph has placeholders"):
        runner.run(X, 1.0, 2)
    with pytest.raises(RuntimeError) as caught:
        runner.run(tl.ones(2, 5))
    assert caught.value.__notes__[0].startswith("while executing %fc : [num_users=1] = call_module[target=fc]")
    with pytest.raises(ArgumentError, match="has no graph"):
        fx.Interpreter(net)
    assert tl.equal(fx.Interpreter(net, graph=traced.graph).run(X)["y"], net(X)["y"])
    star = fx.symbolic_trace(lambda x, *rest: x + rest[0])
    assert fx.Interpreter(star).run(1, 2) == 3


def test_an_interpreter_can_do_something_else() -> None:
    class Swapped(fx.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(tl.sigmoid if target is tl.relu else target, args, kwargs)

    net = Net()
    assert tl.equal(Swapped(fx.symbolic_trace(net)).run(X)["y"], tl.sigmoid(net.fc(X)) * net.w * 2)


def test_a_transformer_makes_a_graph() -> None:
    class Swapped(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(tl.sigmoid if target is tl.relu else target, args, kwargs)

        def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
            return args[0].shape[0] if target == "size" else super().call_method(target, args, kwargs)

        def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_module(target, args, kwargs) + 1

    net = Net()
    changed = Swapped(fx.symbolic_trace(net)).transform()
    changed.graph.lint()
    assert tl.equal(changed(X)["y"], tl.sigmoid(net.fc(X) + 1) * net.w * 2)
    assert changed(X)["rows"] == 2
    assert "size" not in changed.code
    assert "getattr_1 = mul.shape" in changed.code
    same = fx.Transformer(fx.symbolic_trace(net)).transform()
    assert same.code == fx.symbolic_trace(net).code
    assert same.fc is net.fc


def test_shapes_are_noted() -> None:
    traced = fx.symbolic_trace(lambda x: (x.max(dim=1), x.double().t(), x.shape[0]))
    ShapeProp(traced).propagate(tl.ones(2, 3, requires_grad=True))
    meta = {node.name: node.meta for node in traced.graph.nodes}
    values = meta["max_1"]["tensor_meta"].values
    assert (values.shape, values.dtype, values.requires_grad) == ((2,), tl.float32, True)
    t = meta["t"]["tensor_meta"]
    assert (t.shape, t.dtype, t.stride, t.memory_format) == ((3, 2), tl.float64, (1, 3), None)
    assert meta["double"]["tensor_meta"].memory_format is tl.contiguous_format
    assert "tensor_meta" not in meta["getitem"]
    assert meta["getitem"]["type"] is int


def test_a_drawing(tmp_path: Path) -> None:
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    ShapeProp(traced).propagate(X)
    traced.inner = fx.symbolic_trace(lambda x: tl.where(x < 1, x, -x))
    drawer = FxGraphDrawer(traced, "a <name>")
    assert list(drawer.get_all_dot_graphs()) == ["a <name>", "a <name>_inner"]
    drawer.get_main_dot_graph().write_svg(tmp_path / "graph.svg")
    root = ElementTree.parse(tmp_path / "graph.svg").getroot()
    tag = "{http://www.w3.org/2000/svg}"
    texts = [element.text for element in root.iter(f"{tag}text")]
    assert {"%_0", "call_module: 0", "Linear", "(2, 3) float32", "placeholder: input"} <= set(texts)
    boxes = [{k: float(r.get(k, 0)) for k in ("x", "y", "width", "height")} for r in root.iter(f"{tag}rect")]
    assert len(boxes) == len(traced.graph.nodes)
    inner = ElementTree.fromstring(drawer.get_submod_dot_graph("inner").create_svg())
    boxes += [{k: float(r.get(k, 0)) for k in ("x", "y", "width", "height")} for r in inner.iter(f"{tag}rect")]
    width, height = (float(inner.get(k, 0)) for k in ("width", "height"))
    mine = boxes[4:]
    for i, a in enumerate(mine):
        assert a["x"] >= 0
        assert a["x"] + a["width"] <= width
        assert a["y"] + a["height"] <= height
        for b in mine[:i]:
            apart = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
            assert apart or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"]
    dot = drawer.get_submod_dot_graph("inner").to_string()
    assert len(re.findall("->", dot)) == sum(len(n.all_input_nodes) for n in traced.inner.graph.nodes)


# ------------------------------------------------------------------------------------------------------- patterns


def test_filters_and_callbacks_decide() -> None:
    def program(x: Any, y: Any) -> Any:
        return tl.relu(x) + tl.relu(y) + tl.relu(x * 2)

    def is_input(match: Any, graph: fx.Graph, pattern: fx.Graph) -> bool:
        return match.placeholder_nodes[0].op == "placeholder"

    traced = fx.symbolic_trace(program)
    found = replace_pattern_with_filters(traced, lambda a: tl.relu(a), lambda a: tl.tanh(a), [is_input])
    assert [place.replacements[0].name for place in found] == ["tanh", "tanh_1"]
    assert tl.equal(traced(X, X), 2 * X.tanh() + tl.relu(X * 2))

    def scaled(match: Any, graph: fx.Graph, pattern: fx.Graph) -> fx.Graph:
        count = sum(n.op == "placeholder" for n in match.placeholder_nodes)
        return fx.symbolic_trace(lambda a: a * (10 if count else 20)).graph

    traced = fx.symbolic_trace(program)
    replace_pattern_with_filters(traced, lambda a: tl.relu(a), replacement_callback=scaled)
    assert tl.equal(traced(X, X), 60 * X)
    with pytest.raises(ArgumentError, match="either replacement or replacement_callback"):
        replace_pattern_with_filters(traced, program)


def test_literals_match_or_are_ignored() -> None:
    def program(x: Any) -> Any:
        return tl.clamp(x, 0, 1) + tl.clamp(x, 0, 2)

    traced = fx.symbolic_trace(program)
    assert len(replace_pattern(traced, lambda x: tl.clamp(x, 0, 1), lambda x: tl.neg(x))) == 1
    assert tl.equal(traced(X), -X + tl.clamp(X, 0, 2))
    traced = fx.symbolic_trace(program)
    found = replace_pattern_with_filters(traced, lambda x: tl.clamp(x, 0, 7), lambda x: tl.neg(x), ignore_literals=True)
    assert len(found) == 2
    assert tl.equal(traced(X), -2 * X)
    traced = fx.symbolic_trace(program)
    found = replace_pattern(traced, lambda x, high: tl.clamp(x, 0, high), lambda x, high: x * high)
    assert len(found) == 2
    assert tl.equal(traced(X), 3 * X)


def test_parts_that_are_used_outside_stay() -> None:
    def program(x: Any) -> Any:
        y = tl.relu(x)
        return tl.neg(y) + tl.neg(tl.relu(x)) * y

    traced = fx.symbolic_trace(program)
    assert len(replace_pattern(traced, lambda x: tl.neg(tl.relu(x)), lambda x: tl.exp(x))) == 1
    assert tl.equal(traced(X), tl.exp(X) * tl.relu(X) - tl.relu(X))


def test_a_part_may_begin_where_another_ends() -> None:
    traced = fx.symbolic_trace(lambda x: tl.neg(tl.relu(tl.neg(tl.relu(x)))))
    first, second = replace_pattern(traced, lambda a: tl.neg(tl.relu(a)), lambda a: tl.exp(a))
    assert tl.equal(traced(X), tl.exp(tl.exp(X)))
    assert [
        str(match.nodes_map[node]) for match in (first, second) for node in match.nodes_map if str(node) == "a"
    ] == [
        *("x", "exp"),
    ]


def test_modules_are_replaced() -> None:
    class Old(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x: Any) -> Any:
            return self.act(x)

    class New(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.other = nn.Tanh()
            self.gain = nn.Parameter(tl.ones(2) * 3)

        def forward(self, x: Any) -> Any:
            return self.other(x) * self.gain

    class Outer(Old):
        def forward(self, x: Any) -> Any:
            return self.act(x + 1)

    traced = fx.symbolic_trace(Outer())
    replace_pattern(traced, fx.symbolic_trace(Old()), fx.symbolic_trace(New()))
    assert [name for name, _ in traced.named_modules()] == ["", "other"]
    assert tl.equal(traced(X), tl.tanh(X + 1) * 3)


def test_faulty_replacements_are_refused() -> None:
    traced = fx.symbolic_trace(lambda x: tl.relu(x))
    with pytest.raises(GraphError, match="1 arguments, the replacement 2"):
        replace_pattern(traced, lambda x: tl.relu(x), lambda x, y: x + y)
    with pytest.raises(GraphError, match="returns 1 values, the replacement 2"):
        replace_pattern(traced, lambda x: tl.relu(x), lambda x: (x + 1, x))
    with pytest.raises(GraphError, match="dead code"):
        replace_pattern(traced, lambda x, y: tl.relu(x), lambda x, y: x)
    with pytest.raises(ArgumentError, match="empty pattern"):
        SubgraphMatcher(fx.Graph())


def test_overlapping_matches_can_be_asked_for() -> None:
    graph = fx.symbolic_trace(lambda x: tl.neg(tl.neg(tl.neg(x)))).graph
    pattern = fx.symbolic_trace(lambda x: tl.neg(tl.neg(x))).graph
    assert len(SubgraphMatcher(pattern).match(graph)) == 1
    assert len(SubgraphMatcher(pattern, remove_overlapping_matches=False).match(graph)) == 2
    assert not SubgraphMatcher(pattern, match_placeholder=True).match(fx.symbolic_trace(lambda x: -tl.neg(x)).graph)
    whole = SubgraphMatcher(pattern, match_output=True, match_placeholder=True)
    assert len(whole.match(fx.symbolic_trace(lambda y: tl.neg(tl.neg(y))).graph)) == 1
    assert not whole.match(graph)
    assert operator.neg not in {n.target for n in pattern.nodes}
