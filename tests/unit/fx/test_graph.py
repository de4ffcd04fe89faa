"""Graphs: building, changing, checking, running, copying, printing."""

from __future__ import annotations

import copy
import gc
import linecache
import operator
import pickle
import sys
import traceback
from types import ModuleType
from typing import Any

import pytest

import tallow as tl
from tallow import fx
from tallow.errors import ArgumentError, ArgumentTypeError, GraphError, InvalidKeyError

nn, F = tl.nn, tl.nn.functional
X = tl.tensor([[-1.0, 2.0], [3.0, -4.0]])


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.scale = nn.Parameter(tl.ones(2) * 2)
        self.register_buffer("shift", tl.ones(2))

    def forward(self, x: Any) -> Any:
        y = self.body(x) * self.scale
        return (y + self.shift).sum(dim=-1)


@pytest.fixture
def traced() -> fx.GraphModule:
    return fx.symbolic_trace(Net())


def names(graph: fx.Graph) -> list[str]:
    return [node.name for node in graph.nodes]


def test_building() -> None:
    net = Net()
    graph = fx.Graph()
    x, d = graph.placeholder("x"), graph.placeholder("d", default_value=0.5)
    y = graph.call_module("body", (x,))
    w = graph.get_attr("scale")
    z = graph.call_function(tl.add, (y, w), {"alpha": 2})
    s = graph.call_method("sum", (z,), {"dim": (0, 1)})
    out = graph.output({"s": [s, d], "slice": slice(0, z)})
    assert names(graph) == ["x", "d", "body", "scale", "add", "sum_1", "output"]
    assert graph.output_node() is out
    assert len(graph.nodes) == 7
    assert next(n.op for n in reversed(graph.nodes)) == "output"
    assert z.users == {s: None, out: None}
    assert out.all_input_nodes == [s, d, z]
    assert graph.find_nodes(op="call_function", target=tl.add) == [z]
    module = fx.GraphModule(net, graph, "Built")
    result = module(X)
    assert result["s"][1] == 0.5
    assert type(module).__name__ == "Built"
    assert tl.equal(result["s"][0], (net.body(X) + 2 * net.scale).sum((0, 1)))
    graph.lint()


def test_names_are_unique_and_hide_nothing() -> None:
    graph = fx.Graph()
    for name in ("x", "x", "x_1", "sum", "class", "a b", "1st", "x_1", "self"):
        graph.placeholder(name)
    assert names(graph) == ["x", "x_1", "x_2", "sum_1", "class_1", "a_b", "_1st", "x_3", "self_1"]


def test_users_follow_the_arguments() -> None:
    graph = fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    c = graph.call_function(tl.add, (a, a))
    d = graph.call_function(tl.stack, ([a, c],), {"dim": 0})
    c.args = (a, b)
    assert list(a.users) == [c, d]
    assert list(b.users) == [c]
    c.update_arg(0, b)
    assert list(a.users) == [d]
    d.insert_arg(1, b)
    d.update_kwarg("dim", a)
    assert d.args == ([a, c], b)
    assert d.kwargs == {"dim": a}
    assert a.replace_all_uses_with(b) == [d]
    assert not a.users
    assert d.args[0][0] is b
    assert d.kwargs["dim"] is b
    d.replace_input_with(c, a)
    assert not c.users
    assert d.args[0][1] is a
    with pytest.raises(TypeError, match="does not support mutation"):
        d.args[0].append(a)
    with pytest.raises(TypeError, match="does not support mutation"):
        d.kwargs["dim"] = 1
    d.meta["note"] = 1
    e = graph.call_function(tl.neg, (a,))
    d.replace_all_uses_with(e, propagate_meta=True)
    assert e.meta == {"note": 1}


def test_inserting_and_erasing(traced: fx.GraphModule) -> None:
    graph = traced.graph
    before = traced(X)
    add = next(n for n in graph.nodes if n.target is operator.add)
    with graph.inserting_before(add):
        first = graph.call_function(tl.neg, (add.args[0],))
        second = graph.call_function(tl.neg, (first,))
    with graph.inserting_after(add):
        third = graph.call_function(tl.abs, (add,))
        fourth = graph.call_function(tl.relu, (third,))
    with graph.inserting_before():
        graph.placeholder("unused")
    assert names(graph)[0] == "unused"
    assert names(graph)[-8:] == ["shift", "neg", "neg_1", "add", "abs_1", "relu", "sum_1", "output"]
    add.replace_input_with(first.args[0], second)
    graph.lint()
    traced.recompile()
    assert tl.equal(traced(None, X), before)
    with pytest.raises(GraphError, match="still had 1 users"):
        graph.erase_node(third)
    for node in graph.nodes:  # erases while it iterates
        if node in (fourth, third):
            node.replace_all_uses_with(add)
    for node in reversed(graph.nodes):
        if node in (fourth, third):
            graph.erase_node(node)
    assert "abs_1" not in names(graph)
    assert "relu" not in names(graph)


def test_dead_code(traced: fx.GraphModule) -> None:
    def program(x: Any) -> Any:
        y = x + 1
        y * 2
        x.exp()
        y.mul_(3)
        y[0] = 0
        tl.relu_(x)
        return x - y

    t = fx.symbolic_trace(program)
    before = t(X.clone())
    assert t.graph.eliminate_dead_code()
    t.recompile()
    assert names(t.graph) == ["x", "add", "mul_", "setitem", "relu_", "sub", "output"]
    assert tl.equal(t(X.clone()), before)
    assert not t.graph.eliminate_dead_code()
    t.graph.eliminate_dead_code(lambda node: False)
    assert names(t.graph) == ["x", "add", "sub", "output"]
    traced.body._modules["0"]._is_impure = True
    graph = traced.graph
    with graph.inserting_after(graph.find_nodes(op="placeholder")[0]):
        graph.call_module("body.0", tuple(graph.find_nodes(op="placeholder")))
    graph.eliminate_dead_code()
    assert "body_2" in names(graph)


def test_lint_finds_faults(traced: fx.GraphModule) -> None:
    graph = traced.graph
    first, last = list(graph.nodes)[1], list(graph.nodes)[-2]
    first.append(last)
    with pytest.raises(GraphError, match="has not been defined before it"):
        graph.lint()
    graph = copy.deepcopy(fx.symbolic_trace(lambda x, y: x + y).graph)
    list(graph.nodes)[1].append(next(iter(graph.nodes)))
    next(iter(graph.nodes)).prepend(graph.call_function(tl.rand, (2,)))
    with pytest.raises(GraphError, match="comes after another operation"):
        graph.lint()
    with pytest.warns(UserWarning, match="nothing at 'missing'"):
        node = traced.graph.call_module("missing", ())
    traced.graph._root.append(node)
    with pytest.raises(InvalidKeyError, match="nothing at 'missing'"):
        traced.graph.lint()
    other = fx.Graph()
    with pytest.raises(GraphError, match="of another graph"):
        other.call_function(tl.relu, (node,))
    with pytest.raises(GraphError, match="no output"):
        other.output_node()
    with pytest.raises(ArgumentError, match="unknown op"):
        other.create_node("call", tl.relu)
    with pytest.raises(ArgumentError, match="not callable"):
        other.create_node("call_function", "relu")


def test_a_module_takes_only_what_its_graph_needs() -> None:
    net = Net()
    net.extra = nn.Linear(5, 5)
    module = fx.symbolic_trace(net)
    assert {name for name, _ in module.named_parameters()} == {name for name, _ in Net().named_parameters()}
    assert [name for name, _ in module.named_buffers()] == ["shift"]
    assert "extra" not in module._modules
    graph = copy.deepcopy(module.graph)
    parts = {f"body.{i}": net.body[i] for i in range(2)} | {"scale": net.scale, "shift": net.shift}
    assert tl.equal(fx.GraphModule(parts, graph)(X), net(X))
    with pytest.raises(GraphError, match="refers to 'scale', which root lacks"):
        fx.GraphModule({k: v for k, v in parts.items() if k != "scale"}, graph)
    with pytest.raises(InvalidKeyError, match="Module has nothing at 'scale': no 'scale'"):
        fx.GraphModule(nn.Module(), graph)
    with pytest.raises(ArgumentTypeError, match="a Module or a dict"):
        fx.GraphModule(3, graph)  # type: ignore[arg-type]


def test_submodules_come_and_go(traced: fx.GraphModule) -> None:
    assert traced.add_submodule("new.deep.layer", nn.ReLU())
    assert isinstance(traced.new.deep.layer, nn.ReLU)
    assert not traced.add_submodule("scale.layer", nn.ReLU())
    assert traced.delete_submodule("new.deep.layer")
    assert not traced.delete_submodule("new.deep.layer")
    traced.delete_all_unused_submodules()
    assert [name for name, _ in traced.named_modules()] == ["", "body", "body.0", "body.1"]


def test_recompile_changes_this_module_alone() -> None:
    one, two = (fx.symbolic_trace(lambda x: tl.relu(x)) for _ in range(2))
    node = one.graph.find_nodes(op="call_function", target=tl.relu)[0]
    node.target = tl.neg
    assert tl.equal(one(X), tl.relu(X))
    one.recompile()
    assert tl.equal(one(X), -X)
    assert tl.equal(two(X), tl.relu(X))
    assert "tallow.neg(x)" in one.code


def test_errors_show_the_line_of_the_code(traced: fx.GraphModule) -> None:
    traced.scale = nn.Parameter(tl.ones(3))
    with pytest.raises(RuntimeError) as caught:
        traced(X)
    assert "mul = body_1 * scale" in "".join(traceback.format_exception(caught.value))


def test_sources_are_forgotten_with_their_modules() -> None:
    def sources() -> set[str]:
        gc.collect()
        return {name for name in linecache.cache if name.startswith("<tallow.fx")}

    before = sources()
    module = fx.symbolic_trace(lambda x: x + 1)
    for _ in range(5):
        module.recompile()
    assert len(sources() - before) == 1
    del module
    assert sources() <= before


def test_copies(traced: fx.GraphModule) -> None:
    traced.graph.output_node().meta["list"] = [1]
    before = traced(X)
    deep, shallow = copy.deepcopy(traced), copy.copy(traced)
    assert deep.body is not traced.body
    assert shallow.body is traced.body
    assert deep.scale is not traced.scale
    assert shallow.scale is traced.scale
    for module in (deep, shallow):
        assert tl.equal(module(X), before)
        assert names(module.graph) == names(traced.graph)
        assert module.graph is not traced.graph
        assert module.graph.owning_module is module
        assert module.graph.output_node().meta == {"list": [1]}
    assert deep.graph.output_node().meta["list"] is not traced.graph.output_node().meta["list"]
    deep.graph.find_nodes(op="call_function", target=operator.mul)[0].target = operator.add
    deep.recompile()
    assert tl.equal(traced(X), before)
    assert not tl.equal(deep(X), before)
    assert names(fx.GraphModule(traced, copy.deepcopy(traced.graph)).graph) == names(traced.graph)


def module_level(x: Any) -> Any:
    return x * 2


def test_pickling(monkeypatch: pytest.MonkeyPatch) -> None:
    here = ModuleType("fx_pickled_functions")  # this file cannot be imported by its name
    here.module_level = module_level  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fx_pickled_functions", here)
    monkeypatch.setattr(module_level, "__module__", "fx_pickled_functions")

    class Deep(fx.GraphModule):
        pass

    net = Net()
    graph = fx.Tracer().trace(net)
    for function in (module_level, tl.relu, F.relu, operator.neg, tl.Tensor.abs, F.softmax):
        output = graph.output_node()
        with graph.inserting_before(output):
            new = graph.call_function(function, (output.args[0],), {"dim": 0} if function is F.softmax else {})
        output.args = (new,)
    traced = fx.GraphModule(net, graph, "Saved")
    loaded = pickle.loads(pickle.dumps(traced))
    assert tl.equal(loaded(X), traced(X))
    assert loaded.code == traced.code
    assert type(loaded).__name__ == "Saved"
    assert [n.target for n in loaded.graph.nodes] == [n.target for n in traced.graph.nodes]
    loaded.graph.lint()
    same = pickle.loads(pickle.dumps(traced.graph))
    assert str(same) == str(traced.graph)
    assert pickle.loads(pickle.dumps(traced.eval())).training is False
    assert isinstance(copy.deepcopy(Deep(net, copy.deepcopy(graph))), Deep)


def test_graph_copy_inlines_a_graph() -> None:
    outer = fx.symbolic_trace(lambda x: x + 1)
    inner = fx.symbolic_trace(lambda a, b: (a * b, b))
    add = outer.graph.find_nodes(op="call_function", target=operator.add)[0]
    a, b = (n for n in inner.graph.nodes if n.op == "placeholder")
    with outer.graph.inserting_after(add):
        result = outer.graph.graph_copy(inner.graph, {a: add, b: add})
    outer.graph.output_node().args = (result,)
    outer.recompile()
    assert tl.equal(outer(X)[0], (X + 1) ** 2)
    assert tl.equal(outer(X)[1], X + 1)


def test_literals_in_the_code() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x", default_value=float("-inf"))
    values = [-1, 2.5, float("inf"), 1j, "a'b", b"c", True, None, ..., tl.float16, tl.device("cpu"), tl.channels_last]
    values += [range(2), slice(1, None, 2), tl.Size([1, 2]), {"k": (x,), 2: []}, int, tl.relu, tl.strided]
    graph.output(values)
    got = fx.GraphModule(nn.Module(), graph)()
    assert got[:15] == [*values[:14], (1, 2)]
    assert got[15] == {"k": (float("-inf"),), 2: []}
    assert got[16] is int
    assert got[17] is tl.relu
    assert got[18] is tl.strided
    t = fx.symbolic_trace(lambda x: (x * -1) ** 2 - (-x), {})
    assert tl.equal(t(X), (X * -1) ** 2 + X)
    power = fx.symbolic_trace(lambda x: (-2) ** x)
    assert tl.equal(power(tl.tensor([2, 3])), tl.tensor([4, -8]))
    one = fx.symbolic_trace(lambda x: (-1.5).__add__(2) * x + 0 - 5 % x)
    assert tl.equal(one(X), 0.5 * X - 5 % X)


def test_values_are_freed_after_their_last_use(traced: fx.GraphModule) -> None:
    assert "mul = body_1 * scale;  body_1 = scale = None" in traced.code
    assert traced.code.startswith('def forward(self, x):\n    body_0 = getattr(self.body, "0")(x);  x = None\n')


def test_printing(traced: fx.GraphModule, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = str(traced.graph)
    assert text.startswith("graph(%x):\n    %x : [num_users=1] = placeholder[target=x]\n")
    assert "%add : [num_users=1] = call_function[target=operator.add](args = (%mul, %shift), kwargs = {})" in text
    assert text.endswith("return sum_1")
    assert str(traced).endswith("# To see more debug info, please use `graph_module.print_readable()`")
    traced.print_readable()
    assert capsys.readouterr().out.startswith(
        "class Net(tallow.nn.Module):\n    def forward(self, x):\n        body_0 = "
    )
    monkeypatch.setitem(sys.modules, "tabulate", None)
    traced.graph.print_tabular()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert lines[2].split() == ["placeholder", "x", "x", "()", "{}"]
    table = ModuleType("tabulate")
    table.tabulate = lambda rows, headers: f"{len(rows)} rows of {len(headers)}"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tabulate", table)
    traced.graph.print_tabular()
    assert capsys.readouterr().out == "9 rows of 5\n"
