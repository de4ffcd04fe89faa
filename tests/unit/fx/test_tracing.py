"""Symbolic tracing: what becomes a node, what is refused, and that what was traced computes the same."""

from __future__ import annotations

import inspect
import math
import operator
import pickle
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from support.small_models import ENTRIES

import tallow as tl
from tallow import fx, models
from tallow.core.public_api import PUBLIC
from tallow.errors import ArgumentError, GraphError, InvalidKeyError, TraceError, UnsupportedError

nn, F = tl.nn, tl.nn.functional

# Functions that make tensors, or set the state of the process: a number that is not known is an error in them.
MAKES = (
    "arange as_tensor asarray bartlett_window blackman_window broadcast_shapes empty empty_strided eye from_dlpack "
    "from_file from_numpy frombuffer full get_default_device get_rng_state hamming_window hann_window initial_seed "
    "is_tensor kaiser_window linspace logspace manual_seed normal ones rand randint randn randperm scalar_tensor seed "
    "set_default_device set_rng_state tensor tril_indices triu_indices zeros"
)
# Functions that return their operand, or a constant, without a look at it.
TRIVIAL = "chain_matmul conj conj_physical is_conj is_neg real resolve_conj resolve_neg repeat_interleave"


def calls_with_proxies() -> list[Any]:
    return [
        pytest.param(function, id=f"{place}.{name}")
        for place in ("tl", "F", "linalg", "special")
        for name, function in PUBLIC[place].items()
        if function.__module__.partition(".")[0] == "tallow" and name not in f"{MAKES} {TRIVIAL}".split()
    ]


@pytest.mark.parametrize("function", calls_with_proxies())
def test_every_function_of_tensors_becomes_one_node(function: Callable[..., Any]) -> None:
    graph = fx.Graph()
    tracer = fx.proxy.GraphAppendingTracer(graph)
    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    taken = [p for p in required if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # softmax without a dim
        result = function(*[fx.Proxy(graph.placeholder(p.name), tracer) for p in taken])
    made = [node for node in graph.nodes if node.op != "placeholder"]
    assert isinstance(result, fx.Proxy)
    assert [(node.op, node.target) for node in made] == [("call_function", function)]
    assert made[0].all_input_nodes == [node for node in graph.nodes if node.op == "placeholder"]


def test_a_proxy_anywhere_among_the_arguments_makes_a_node() -> None:
    x = tl.ones(3)
    traced = fx.symbolic_trace(
        lambda y, n: (
            tl.cat([x, y]),
            tl.where(x > 0, x, y),
            x + y,
            x < y,
            x.expand(n, 3),
            x[:n],
            F.linear(x, weight=y),
            x.clone().add_(y),
            F.relu(y, inplace=True),
        )
    )
    assert [(n.op, fx.node.candidate_for(n.target)) for n in traced.graph.nodes if n.op.startswith("call")] == [
        *(("call_function", name) for name in ("cat", "where", "add", "gt")),
        *(("call_method", name) for name in ("expand", "getitem")),
        ("call_function", "linear"),
        ("call_method", "add_"),
        ("call_function", "relu"),
    ]
    y = tl.tensor([3.0, -4.0, 5.0])
    expected = tl.cat([x, y]), x, x + y, x < y, x.expand(2, 3), x[:2], F.linear(x, y), x + y, F.relu(y)
    for got, right in zip(traced(y.clone(), 2), expected, strict=True):
        assert tl.equal(got, right)


def test_an_ordinary_mistake_is_reported_as_before() -> None:
    for call in (
        lambda: tl.relu("x"),
        lambda: F.softmax(None, 0),
        lambda: tl.max(object(), 1),
        lambda: tl.ones(2)["a"],
    ):
        with pytest.raises((TypeError, AttributeError)):
            call()


def test_another_class_can_answer_by_torch_function() -> None:
    class Recorder:
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return function.__name__, types, len(args), kwargs

    assert tl.add(tl.ones(2), Recorder()) == ("add", (Recorder,), 2, {})
    assert F.interpolate(Recorder(), scale_factor=2) == ("interpolate", (Recorder,), 1, {"scale_factor": 2})


@pytest.mark.usefixtures("forget_new_ops")
def test_a_custom_op_becomes_a_node() -> None:
    @tl.op
    def cube(x):  # type: ignore[no-untyped-def]
        return x**3, lambda g: (3 * x * x * g,)

    traced = fx.symbolic_trace(lambda x: cube(x) + 1)
    assert tl.equal(traced(tl.tensor([2.0])), tl.tensor([9.0]))
    assert next(n for n in traced.graph.nodes if n.op == "call_function").target is cube


# -------------------------------------------------------------------------------------------------- what is refused


def branches(x: Any) -> Any:
    if x.sum() > 0:  # the line of the error
        return x
    return -x


def loops(x: Any) -> Any:
    return [row for row in x]  # noqa: C416 - the line of the error


@pytest.mark.parametrize(
    ("function", "message", "line"),
    [
        (branches, "control flow", "if x.sum() > 0:"),
        (loops, "cannot be iterated", "return [row for row in x]"),
        (lambda x: len(x), "'len' is not supported", "len(x)"),
        (lambda x: int(x.max()), "a number that is not known", "int(x.max())"),
        (lambda x: float(x.max()), "a number that is not known", "float(x.max())"),
        (lambda x: 1 in x, "'in' asks for values", "1 in x"),
        (lambda x: range(x.shape[0]), "a number that is not known", "range(x.shape[0])"),
        (lambda x: x and 1, "control flow", "x and 1"),
        (lambda x: tl.zeros(x.shape[0]), "a number that is not known", "tl.zeros(x.shape[0])"),
        (lambda x: nn.Linear(2, 2).forward(x) if x.ndim == 2 else x, "control flow", "x.ndim == 2"),
    ],
)
def test_a_value_that_decides_is_an_error_that_names_the_line(function: Any, message: str, line: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        fx.symbolic_trace(function)
    assert line in str(caught.value)
    assert "test_tracing.py:" in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_unpacking_into_names_is_recorded() -> None:
    def unpacks(x: Any) -> Any:
        a, b = x.shape
        (c, d), e = x.split(1, dim=1), 3
        return x.reshape(b, a) * e, c + d

    x = tl.arange(6.0).reshape(3, 2)
    got, expected = fx.symbolic_trace(unpacks)(x), unpacks(x)
    assert tl.equal(got[0], expected[0])
    assert tl.equal(got[1], expected[1])


def test_arguments_of_other_types_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="argument of type"):
        fx.symbolic_trace(lambda x: x.apply(object()))
    with pytest.raises(GraphError, match="keys for dictionaries"):
        fx.symbolic_trace(lambda x: {(x,): 1})
    other = nn.Linear(2, 2)
    with pytest.raises(InvalidKeyError, match="not installed as a submodule"):
        fx.symbolic_trace(lambda x: other(x))
    with pytest.raises(InvalidKeyError, match="not a member of this module"):
        fx.symbolic_trace(lambda x: x + other.weight)
    with pytest.raises(ArgumentError, match="Python function"):
        fx.symbolic_trace(math.sqrt)


def test_proxies_of_two_graphs_do_not_mix() -> None:
    a, b = (fx.Proxy(fx.Graph().placeholder("x")) for _ in range(2))
    with pytest.raises(GraphError, match="2 tracers"):
        tl.add(a, b)


# ------------------------------------------------------------------------------------------------- what is recorded


class Mixed(nn.Module):
    """Modules, parameters, buffers, plain tensors, writes, and all kinds of arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(3, 4)
        self.w = nn.Parameter(tl.full((4,), 2.0))
        self.register_buffer("b", tl.ones(4))
        self.c = tl.ones(4) * 3

    def forward(self, x: Any, scale: float = 2.0, *rest: Any, offset: Any = 1, **others: Any) -> Any:
        y = self.l(x) * self.w + self.b
        y[0] = scale
        y[1:, :2] += offset
        return F.dropout(y, 0.5, self.training) - self.c


def test_all_kinds_of_arguments() -> None:
    m = Mixed().eval()
    traced = fx.symbolic_trace(m)
    x = tl.randn(2, 3)
    assert tl.equal(traced(x), m(x))
    assert tl.equal(traced(x, 5.0, offset=3, anything=4), m(x, 5.0, offset=3, anything=4))
    assert [n.target for n in traced.graph.nodes if n.op == "placeholder"] == [
        "x",
        "scale",
        "*rest",
        "offset",
        "**others",
    ]
    assert traced.w is m.w
    assert traced.l is m.l
    assert [name for name, _ in traced.named_buffers()] == ["b", "c"]  # PyTorch keeps tensors as buffers, too


def test_gradients_flow_through_a_graph_module() -> None:
    m = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    traced = fx.symbolic_trace(m)
    traced(tl.ones(2, 3)).sum().backward()
    got = m[0].weight.grad.clone()
    m.zero_grad()
    m(tl.ones(2, 3)).sum().backward()
    assert tl.equal(got, m[0].weight.grad)


def test_concrete_args_fix_values() -> None:
    def choose(x: Any, flag: Any, other: Any = None) -> Any:
        return (x if flag else -x) if other is None else other

    traced = fx.symbolic_trace(choose, {"flag": False, "other": None})
    assert tl.equal(traced(tl.ones(2), False, None), -tl.ones(2))
    with pytest.raises(AssertionError, match="flag has been specialized to have value False"):
        traced(tl.ones(2), True, None)
    with pytest.raises(AssertionError, match="other has been specialized"):
        traced(tl.ones(2), False, 3)
    assert tl.equal(fx.symbolic_trace(choose, (fx.PH, True, None))(tl.ones(2), True, None), tl.ones(2))
    with pytest.raises(ArgumentError, match="which the function does not take"):
        fx.symbolic_trace(choose, {"flags": 1})
    with pytest.raises(ArgumentError, match="2 concrete_args for 3 arguments"):
        fx.symbolic_trace(choose, (fx.PH, True))


def test_concrete_args_have_containers() -> None:
    class Pair(NamedTuple):
        a: Any
        b: Any

    def total(values: Any, pair: Any) -> Any:
        result = pair.a - pair.b
        for x in values.values():
            result = result + (sum(x) if isinstance(x, list) else x)
        return result

    marks = {"values": {"a": fx.PH, "b": [fx.PH, fx.PH], "c": 3}, "pair": Pair(fx.PH, 1)}
    traced = fx.symbolic_trace(total, marks)
    assert traced({"a": 1, "b": [2, 4], "c": 3}, Pair(20, 1)) == 29
    with pytest.raises(AssertionError, match=r"values\['c'\] has been specialized"):
        traced({"a": 1, "b": [2, 4], "c": 4}, Pair(20, 1))


def helper(x: Any) -> Any:
    return x * len(x)


fx.wrap("helper")
fx.wrap("sum")


def test_wrapped_functions_are_calls() -> None:
    traced = fx.symbolic_trace(lambda x: helper(x) + math.sqrt(x.shape[0]) + sum(x))
    assert next(n.target for n in traced.graph.nodes if n.op == "call_function") is helper
    assert {math.sqrt, sum} <= {n.target for n in traced.graph.nodes}
    assert tl.equal(traced(tl.ones(4)), tl.ones(4) * 10)
    again = fx.symbolic_trace(traced)
    assert again.code == traced.code
    assert helper(tl.ones(4)).sum() == 16  # nothing stays replaced
    assert sum([1]) == 1
    assert math.sqrt(4) == 2
    assert nn.Module.__call__.__module__ == "tallow.nn.module"


def test_everything_is_restored_after_an_error() -> None:
    before = nn.Module.__call__, nn.Module.__getattr__, math.sqrt
    with pytest.raises(TraceError):
        fx.symbolic_trace(branches)
    assert (nn.Module.__call__, nn.Module.__getattr__, math.sqrt) == before


def test_wrap_is_for_the_top_level_of_a_module() -> None:
    with pytest.raises(GraphError, match="top level"):
        fx.wrap("helper")
    with pytest.raises(TypeError, match="a function or its name"):
        fx.wrap(3)  # type: ignore[type-var]


def test_a_tracer_decides_what_is_a_leaf() -> None:
    class Deep(fx.Tracer):
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return isinstance(m, nn.Sequential)

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.ReLU())
            self.head = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.head(self.body(x))

    outer = Outer()
    graph = Deep().trace(outer)
    assert [n.op for n in graph.nodes] == [
        *("placeholder", "call_module", "get_attr", "get_attr", "call_function", "output")
    ]
    assert graph._tracer_cls is Deep
    linear = next(n for n in graph.nodes if n.op == "call_function")
    assert linear.meta["nn_module_stack"]["head"] == ("head", nn.Linear)
    assert tl.equal(fx.GraphModule(outer, graph)(tl.ones(1, 2)), outer(tl.ones(1, 2)))


def test_settings_of_a_tracer() -> None:
    class Buffered(fx.Tracer):
        proxy_buffer_attributes = True
        record_stack_traces = True

    graph = Buffered().trace(Mixed())
    assert sum(n.target == "b" for n in graph.nodes) == 1
    assert "y = self.l(x) * self.w + self.b" in (next(n for n in graph.nodes if n.target == "b").stack_trace or "")

    class Shaped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(tl.ones(2, 3))

        def forward(self, x: Any) -> Any:
            return x @ self.w if self.w.shape[0] == 2 and self.w.dim() == 2 and self.w.numel() == 6 else x

    graph = fx.Tracer(param_shapes_constant=True).trace(Shaped())
    assert [n.target for n in graph.nodes] == ["x", "w", operator.matmul, "output"]
    with pytest.raises(TraceError):
        fx.symbolic_trace(Shaped())


def test_code_can_be_written_with_proxies() -> None:
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    graph.output((tl.relu(x.view(-1)[0]) + 1).node)
    assert fx.GraphModule(nn.Module(), graph)(tl.tensor([[3.0]])) == 4


@pytest.mark.parametrize(
    ("name", "path", "size"),
    [
        ("BertModel", "pooler", (2, 5, 8)),
        ("ViTModel", "encoder", (2, 5, 8)),
        ("ViTModel", "encoder.layer.0", (2, 5, 8)),
        ("ViTModel", "pooler", (2, 5, 8)),
        ("Dinov2Model", "encoder", (2, 5, 8)),
        ("Llama", "model.layers.0.mlp", (2, 5, 8)),
        ("Gemma", "model.layers.0.mlp", (2, 5, 8)),
        ("Qwen3", "model.layers.0.input_layernorm", (2, 5, 8)),
    ],
)
def test_parts_of_models(name: str, path: str, size: tuple[int, ...]) -> None:
    cls = getattr(models, name)
    part = cls(cls.config_class.from_entries(ENTRIES[name], "entries")).eval().get_submodule(path)
    outer = nn.Sequential(part)
    traced = fx.symbolic_trace(part)
    x = tl.randn(size)
    assert tl.equal(traced(x), outer(x))
    assert tl.equal(pickle.loads(pickle.dumps(traced))(x), outer(x))


def test_a_whole_model_that_looks_at_its_input_says_where() -> None:
    cls = models.ViTModel
    with pytest.raises(TraceError, match=r"vit\.py:\d+, in check_image"):
        fx.symbolic_trace(cls(cls.config_class.from_entries(ENTRIES["ViTModel"], "entries")))
