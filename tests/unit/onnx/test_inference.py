"""The quick form of a loaded graph: the same values, as long as nothing has changed, and no errors of its own."""

from __future__ import annotations

import copy
import io
import pickle
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.onnx_graphs import call, loaded, typed
from support.onnx_graphs import file_of as file_of_nodes

import tallow as tl
from tallow import nn
from tallow.compat.torch.overrides import TorchFunctionMode
from tallow.errors import DeviceError, ShapeError
from tallow.nn import functional as F
from tallow.onnx.protobuf import AttributeProto, GraphProto, NodeProto, ValueInfoProto
from tallow.onnx.quick.images import ImageMaxPool

pytestmark = pytest.mark.cpu("the quick form is that of the CPU")
CLOSE: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(autouse=True)
def _seed() -> None:
    tl.manual_seed(0)


class Residual(nn.Module):
    """Layers of networks for images: convolutions, norms and sums."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.deep = nn.Conv2d(16, 16, 3, groups=16, bias=False)
        self.last = nn.Conv2d(16, 16, 1)
        self.gate = nn.Conv2d(16, 16, 1)
        self.scale = nn.Parameter(tl.tensor([0.7]))

    def forward(self, x: tl.Tensor) -> tl.Tensor:
        x = F.max_pool2d(F.relu(self.first(x)), 3, 2, 1)
        y = self.last(F.hardswish(self.deep(F.pad(x, (0, 2, 2, 0)))) * self.scale + 0.25) + x
        y = F.relu(y)
        return y * F.hardsigmoid(self.gate(y.mean((2, 3), keepdim=True)))


def file_of(module: nn.Module, *inputs: tl.Tensor) -> bytes:
    file = io.BytesIO()
    tl.onnx.export(module, inputs, file)
    return file.getvalue()


def residual() -> tuple[tl.onnx.OnnxModule, tl.Tensor]:
    x = tl.randn(2, 3, 17, 18)
    return tl.onnx.load(file_of(Residual(), x)), x


def by_graph(model: tl.onnx.OnnxModule, *inputs: tl.Tensor) -> Any:
    """Compute by the graph itself, as calls with gradients do."""
    with tl.no_grad():
        return model.forward(*inputs)


def calls(model: tl.onnx.OnnxModule, *inputs: tl.Tensor) -> Counter[str]:
    """Return the functions that the quick form calls, without their numbers."""
    with tl.no_grad():
        model(*inputs)
    quick = type(model).quick
    assert quick is not None
    return Counter(name.rstrip("_0123456789") for name in re.findall(r"= (\w+)\(", quick.source))


@pytest.mark.parametrize("size", [(2, 3, 17, 18), (1, 3, 9, 40)])
def test_values_are_those_of_the_graph(size: tuple[int, ...]) -> None:
    x = tl.randn(*size)
    model = tl.onnx.load(file_of(Residual(), x))
    for context in (tl.no_grad(), tl.inference_mode()):
        with context:
            y = model(x)
        np.testing.assert_allclose(y.numpy(), by_graph(model, x).numpy(), **CLOSE)


def test_results_are_viewed_in_another_shape_as_those_of_the_graph() -> None:
    model, x = residual()
    with tl.no_grad():
        np.testing.assert_allclose(model(x).view(2, -1).numpy(), by_graph(model, x).view(2, -1).numpy(), **CLOSE)


def test_convolutions_absorb_what_follows() -> None:
    model, x = residual()
    found = calls(model, x)
    assert found["image_convolution"] == 4
    assert found["image_max_pool"] == 1
    assert not found.keys() & {"conv2d", "relu", "hardsigmoid", "hardswish"}
    assert "conv2d" in model.code
    assert "image" not in model.code


def test_gradients_come_from_the_graph() -> None:
    model, x = residual()
    with tl.no_grad():
        model(x)
    model(x).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def in_place(model: tl.onnx.OnnxModule) -> None:
    for parameter in model.parameters():
        parameter.mul_(1.5)


def through_data(model: tl.onnx.OnnxModule) -> None:
    for parameter in model.parameters():
        parameter.data.mul_(1.5)


def by_state(model: tl.onnx.OnnxModule) -> None:
    model.load_state_dict({name: value * 1.5 for name, value in model.state_dict().items()})


def by_assignment(model: tl.onnx.OnnxModule) -> None:
    model.load_state_dict({name: value * 1.5 for name, value in model.state_dict().items()}, assign=True)


def by_data(model: tl.onnx.OnnxModule) -> None:
    for parameter in model.parameters():
        parameter.data = parameter.data * 1.5


def by_training(model: tl.onnx.OnnxModule) -> None:
    with tl.enable_grad():
        optimizer = tl.optim.SGD(model.parameters(), lr=1.0)
        model(tl.ones(2, 3, 17, 18)).sum().backward()
        optimizer.step()


def by_graph_change(model: tl.onnx.OnnxModule) -> None:
    node = next(node for node in model.graph.nodes if node.target is F.relu)
    node.target = F.silu
    model.recompile()


@pytest.mark.parametrize(
    "change", [in_place, through_data, by_state, by_assignment, by_data, by_training, by_graph_change]
)
def test_a_change_is_seen(change: Callable[[tl.onnx.OnnxModule], None]) -> None:
    model, x = residual()
    with tl.no_grad():
        before = model(x)
        change(model)
        after = model(x)
    assert not np.allclose(before.numpy(), after.numpy(), **CLOSE)
    np.testing.assert_allclose(after.numpy(), by_graph(model, x).numpy(), **CLOSE)


def test_what_has_not_changed_is_not_made_again() -> None:
    model, x = residual()
    with tl.no_grad():
        model(x)
        first = type(model).quick
        nn.Linear(2, 2)  # another module, and a write to another tensor
        tl.ones(3).add_(1)
        model(x)
    assert type(model).quick is first


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_have_quick_forms_of_their_own(copied: Callable[[Any], Any]) -> None:
    model, x = residual()
    with tl.no_grad():
        expected = model(x)
        other = copied(model)
        np.testing.assert_allclose(other(x).numpy(), expected.numpy(), **CLOSE)
        if copied is not copy.copy:
            in_place(other)
        np.testing.assert_array_equal(model(x).numpy(), expected.numpy())


def test_errors_name_the_node() -> None:
    model = loaded(
        [call("Conv", "x w", "y")], [typed("x", "n", "c", "h", "w")], {"w": np.ones((2, 3, 1, 1), np.float32)}
    )
    with tl.no_grad():
        model(tl.ones(1, 3, 4, 4))
        with pytest.raises(ShapeError) as caught:
            model(tl.ones(1, 4, 4, 4))
    assert any("Conv" in note for note in caught.value.__notes__)


def test_hooks_and_training_mode_take_the_graph() -> None:
    model, x = residual()
    seen: list[Any] = []
    handle = model.register_forward_hook(lambda module, args, result: seen.append(result))
    with tl.no_grad():
        model(x)
        handle.remove()
        model.train()
        model(x)
    assert len(seen) == 1
    assert type(model).quick is None


def test_half_precision_and_doubles() -> None:
    model, x = residual()
    for dtype, close in ((tl.float64, 1e-12), (tl.float16, 1e-2)):
        model.to(dtype)
        with tl.no_grad():
            y = model(x.to(dtype))
        assert y.dtype is dtype
        np.testing.assert_allclose(y.numpy(), by_graph(model, x.to(dtype)).numpy(), rtol=close, atol=close)


def convolution(*nodes: Any, **weights: Any) -> tl.onnx.OnnxModule:
    """Return the model of a convolution, c, of x to two channels, and of what follows."""
    given = {"w": np.ones((2, 3, 1, 1), np.float32), **weights}
    return loaded([call("Conv", "x w", "c"), *nodes], [typed("x", "n", 3, "h", "w")], given)


@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 1), (1, 1, 2, 1, 1), (1, 2, 1, 1), (2, 1, 1), (1,)])
@pytest.mark.parametrize("name", ["Add", "Mul"])
def test_constants_with_more_dims_give_the_result_as_many(name: str, shape: tuple[int, ...]) -> None:
    x = tl.randn(1, 3, 2, 2)
    rest = [call(name, "c b", "s"), call("Relu", "s", "r"), call(name, "r one", "y")]
    model = convolution(*rest, b=tl.randn(*shape), one=tl.ones(shape[:1] + (1,) * (len(shape) - 1)) * 2)
    with tl.no_grad():
        y = model(x)
    expected = by_graph(model, x)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y.numpy(), expected.numpy(), **CLOSE)


def test_a_graph_that_a_program_has_changed_is_quick_too() -> None:
    model, x = convolution(call("Relu", "c", "y")), tl.randn(1, 3, 4, 4)
    node = next(node for node in model.graph.nodes if node.target is F.conv2d)
    node.args = (*node.args[:3], 1, "same", 1)
    model.add_module("last", nn.Softplus())
    output = next(node for node in model.graph.nodes if node.op == "output")
    with model.graph.inserting_before(output):
        output.args = (model.graph.call_module("last", output.args),)
    model.recompile()
    assert calls(model, x)["conv2d"] == 1
    quick = type(model).quick
    assert quick is not None
    with tl.no_grad():
        np.testing.assert_allclose(quick.run(x).numpy(), by_graph(model, x).numpy(), **CLOSE)


def test_a_convolution_that_never_fits_fails_where_it_runs() -> None:
    weights = {"w": np.ones((2, 1, 1, 1), np.float32)}
    model = loaded([call("Conv", "x w", "y", group=3)], [typed("x", "n", 3, "h", "w")], weights)
    with tl.no_grad(), pytest.raises(ShapeError) as caught:
        model(tl.ones(1, 3, 4, 4))
    assert any("Conv" in note for note in caught.value.__notes__)


def test_inputs_of_another_device_are_refused_as_by_the_graph() -> None:
    model = convolution(call("Relu", "c", "y"))
    with tl.no_grad(), pytest.raises(DeviceError, match="found meta and cpu"):
        model(tl.ones(1, 3, 4, 4, device="meta"))


def test_modes_see_the_functions_of_the_graph() -> None:
    seen: list[str] = []

    class Names(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function.__name__)
            return function(*args, **(kwargs or {}))

    model, x = convolution(call("Relu", "c", "y")), tl.ones(1, 3, 4, 4)
    with tl.no_grad(), Names():
        model(x)
    assert seen == ["conv2d", "relu"]


QUANTIZED = [
    call("DynamicQuantizeLinear", "x", "q s z"),
    call("MatMulInteger", "q w z wz", "i"),
    call("Cast", "i", "f", to=1),
    call("Mul", "s ws", "m"),
    call("Mul", "f m", "p"),
    call("Add", "p b", "y"),
]


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_dynamically_quantized_products(kind: Any) -> None:
    rng = np.random.default_rng(0)
    weight = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, (12, 33), endpoint=True).astype(kind)
    zero = np.array(0 if kind is np.int8 else 128, kind)
    tensors = {"w": weight, "wz": zero, "ws": np.float32(0.02), "b": rng.standard_normal(33).astype(np.float32)}
    model = loaded(QUANTIZED, [typed("x", 5, 12)], tensors)
    x = tl.randn(5, 12)
    assert calls(model, x) == {"quantized": 1, "integer_product": 1}
    with tl.no_grad():
        y = model(x)
    np.testing.assert_allclose(y.numpy(), by_graph(model, x).numpy(), rtol=1e-6, atol=1e-6)
    low, high = min(x.min().item(), 0), max(x.max().item(), 0)
    scale = np.float32((high - low) / 255)
    codes = np.clip(np.rint(x.numpy() / scale) + np.rint(-low / scale), 0, 255) - np.rint(-low / scale)
    exact = (codes @ (weight.astype(np.float64) - float(zero))) * scale * 0.02 + tensors["b"]
    np.testing.assert_allclose(y.numpy(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU])
def test_recurrent_layers_keep_their_gates(layer: Any) -> None:
    x = tl.randn(5, 2, 6)
    model = tl.onnx.load(file_of(layer(6, 4, bidirectional=True), x))
    assert calls(model, x)["recurrent_layer"] == 2  # one for each direction
    with tl.no_grad():
        for found, expected in zip(model(x), by_graph(model, x), strict=True):
            np.testing.assert_allclose(found.numpy(), expected.numpy(), **CLOSE)


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("has_state", [False, True])
def test_lstm_layers_of_one_direction(direction: str, layout: int, has_state: bool) -> None:
    weights = {"w": tl.randn(1, 16, 6), "r": tl.randn(1, 16, 4), "b": tl.randn(1, 32)}
    states = {name: tl.randn(*((3, 1, 4) if layout else (1, 3, 4))) for name in ("h", "c")} if has_state else {}
    node = call("LSTM", "", "", hidden_size=4, direction=direction, layout=layout)
    node.input = ["x", "w", "r", "b", *(["", "h", "c"] if has_state else [])]
    node.output = ["y", "last_h", "last_c"]
    x = tl.randn(*((3, 5, 6) if layout else (5, 3, 6)))
    raw = file_of_nodes([node], [typed("x", *x.shape)], weights | states, ("y", "last_h", "last_c"))
    model = tl.onnx.load(raw)
    assert calls(model, x)["recurrent_layer"] == 1
    with tl.no_grad():
        for found, expected in zip(model(x), by_graph(model, x), strict=True):
            assert found.shape == expected.shape
            np.testing.assert_allclose(found.numpy(), expected.numpy(), **CLOSE)


def test_what_weights_alone_decide_is_computed_once() -> None:
    nodes = [call("Transpose", "w", "t", perm=[1, 0]), call("MatMul", "x t", "p"), call("Add", "p t", "y")]
    model = loaded(nodes, [typed("x", 3, 3)], {"w": tl.randn(3, 3)})
    x = tl.randn(3, 3)
    assert "permute" not in calls(model, x)
    with tl.no_grad():
        np.testing.assert_allclose(model(x).numpy(), by_graph(model, x).numpy(), **CLOSE)
        in_place(model)
        np.testing.assert_allclose(model(x).numpy(), by_graph(model, x).numpy(), **CLOSE)


@pytest.mark.parametrize("groups", [1, 4])
def test_convolutions_of_lines_absorb_what_follows(groups: int) -> None:
    class Line(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv1d(4, 8, 3, stride=2, padding=1, groups=groups)
            self.last = nn.Conv1d(8, 8, 2, dilation=3, bias=False)
            self.scale = nn.Parameter(tl.rand(8, 1))

        def forward(self, x: tl.Tensor) -> tl.Tensor:
            y = F.relu(self.first(x))
            return F.relu(self.last(F.pad(y, (0, 3))) * self.scale + 0.25 + y)

    x = tl.randn(2, 4, 21)
    model = tl.onnx.load(file_of(Line(), x))
    found = calls(model, x)
    assert found["image_convolution"] == 2
    assert not found.keys() & {"conv1d", "relu", "add"}
    with tl.no_grad():
        np.testing.assert_allclose(model(x).numpy(), by_graph(model, x).numpy(), **CLOSE)


def test_branches_that_are_known_are_taken() -> None:
    branches = [
        GraphProto(node=[call(name, "x", out)], output=[ValueInfoProto(out)])
        for name, out in (("Neg", "t"), ("Abs", "u"))
    ]
    choice = [AttributeProto(f"{name}_branch", g=graph) for name, graph in zip(("then", "else"), branches, strict=True)]
    rank = [call("Shape", "x", "shape"), call("Size", "shape", "rank"), call("Cast", "rank", "is_any", to=9)]
    sizes = [call("Mul", "shape shape", "squares")]
    nodes = [*rank, *sizes, NodeProto(op_type="If", input=["is_any"], output=["y"], attribute=choice)]
    model = tl.onnx.load(file_of_nodes(nodes, [typed("x", "n", "m")], {}, ("y", "squares")))
    x = tl.randn(2, 3)
    assert "if_(" in model.code
    assert not calls(model, x)["if_"]
    with tl.no_grad():
        y, squares = model(x)
    np.testing.assert_array_equal(y.numpy(), -x.numpy())
    assert squares.tolist() == [4, 9]


RESULTS: dict[str, Any] = {
    "a size": ([call("Shape", "x", "s"), call("Gather", "s i", "y")], {"i": [1]}),
    "all of a slice": ([call("Slice", "x a b", "y")], {"a": [0], "b": [2**63 - 1]}),
    "a pad of nothing": ([call("Pad", "x n", "y")], {"n": [0, 0, 0, 0]}),
    "of weights": (
        [call("Neg", "w", "y"), call("MatMul", "x w", "z"), call("Add", "z y", "p")],
        {"w": [[1.0] * 3] * 3},
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_no_constants_and_no_inputs(name: str) -> None:
    nodes, weights = RESULTS[name]
    outputs = ("y", "p") if nodes[-1].output == ["p"] else ("y",)
    model, x = tl.onnx.load(file_of_nodes(nodes, [typed("x", "n", 3)], weights, outputs)), tl.ones(3, 3)

    def first(x: tl.Tensor) -> tl.Tensor:
        results = model(x)
        return results[0] if isinstance(results, tuple) else results

    with tl.no_grad():
        y = first(x)
        assert y is not x
        before = y.tolist()
        y += 5
        assert first(tl.ones(3, 3)).tolist() == before


def test_codes_of_windows_that_lie_between_pads_are_the_least() -> None:
    pool = ImageMaxPool((2, 2), (1, 1), (1, 1), (1, 1), (2, 2))
    for dtype, least in ((tl.int8, -128), (tl.uint8, 0)):
        assert pool(tl.full((1, 1, 1, 1), 3, dtype=dtype)).tolist() == [[[[least]]]]


@pytest.mark.parametrize("name", ["Conv", "Gemm"])
def test_a_small_bias_of_codes_is_added_to_floats_as_it_is(name: str) -> None:
    codes = [call("QuantizeLinear", "x s z", "q"), call("DequantizeLinear", "q s z", "d")]
    nodes = [*codes, call("DequantizeLinear", "w s wz", "dw", axis=0), call(name, "d dw b", "y")]
    sizes = (1, 2, 1, 1) if name == "Conv" else (1, 2)
    weights = {"s": tl.tensor(0.1), "z": tl.tensor(7, dtype=tl.uint8), "wz": tl.tensor(0, dtype=tl.int8)}
    weights |= {"w": tl.ones(2, *sizes[1:], dtype=tl.int8), "b": tl.tensor([0.004, -0.003])}  # less than half a step
    model, x = loaded(nodes, [typed("x", *sizes)], weights), tl.ones(sizes)
    assert calls(model, x)["integer_layer"] == 1
    with tl.no_grad():
        np.testing.assert_allclose(model(x).numpy().ravel(), [0.204, 0.197], rtol=1e-5)


def test_codes_pass_through_pads_and_second_quantizations() -> None:
    def codes(value: str) -> list[Any]:
        return [
            call("QuantizeLinear", f"{value} s z", f"{value}q"),
            call("DequantizeLinear", f"{value}q s z", f"{value}d"),
        ]

    nodes = [*codes("x"), call("Pad", "xd pads", "p"), *codes("p"), call("Conv", "pd v", "c", group=16), *codes("c")]
    nodes = [call("DequantizeLinear", "w ws wz", "v"), *nodes, *codes("cd"), call("Relu", "cdd", "y")]
    zero = tl.tensor(99, dtype=tl.uint8)
    held = {"w": tl.randint(-127, 127, (16, 1, 3, 3), dtype=tl.int8), "ws": 0.01, "wz": tl.tensor(0, dtype=tl.int8)}
    pads = tl.tensor([0, 0, 1, 1, 0, 0, 1, 0])
    model = loaded(nodes, [typed("x", 1, 16, "h", "w_")], held | {"s": 0.5, "z": zero, "pads": pads})
    x = tl.randn(1, 16, 9, 8) * 20
    found = calls(model, x)
    assert (found["quantized"], found["integer_layer"], found["pad"]) == (1, 1, 0)
    with tl.no_grad():
        assert tl.allclose(model(x), by_graph(model, x), atol=0.5)  # a code
