"""Patterns that exporters write become one function, with the same values, and no others do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.onnx_graphs import call, loaded, typed

import tallow as tl
from tallow.nn import functional as F
from tallow.onnx.protobuf import NodeProto

CLOSE = 1e-6  # float32, in another order


def agrees(model: tl.onnx.OnnxModule, expected: tl.Tensor, *inputs: tl.Tensor) -> bool:
    with tl.no_grad():
        return bool(np.allclose(model(*inputs).numpy(), expected.detach().numpy(), atol=CLOSE, rtol=CLOSE))


@pytest.fixture(autouse=True)
def _seed() -> None:
    tl.manual_seed(0)


def erf_gelu(order: int) -> list[NodeProto]:
    inner = [call("Div", "x root", "a"), call("Erf", "a", "e"), call("Add", "e one", "f")]
    ends = [
        [call("Mul", "x f", "g"), call("Mul", "g half", "y")],
        [call("Mul", "half f", "g"), call("Mul", "x g", "y")],
        [call("Mul", "x half", "g"), call("Mul", "f g", "y")],
    ]
    return inner + ends[order]


TANH_GELU = [
    call("Pow", "x three", "p"),
    call("Mul", "p c", "q"),
    call("Add", "x q", "r"),
    call("Mul", "r rate", "s"),
    call("Tanh", "s", "t"),
    call("Add", "t one", "u"),
    call("Mul", "x half", "h"),
    call("Mul", "h u", "y"),
]
NUMBERS: dict[str, Any] = {"root": math.sqrt(2), "one": 1.0, "half": 0.5, "three": 3.0, "c": 0.044715}
NUMBERS |= {"rate": math.sqrt(2 / math.pi), "two": 2.0, "eps": 1e-5}


@pytest.mark.parametrize("order", range(3))
def test_gelu(order: int) -> None:
    model = loaded(erf_gelu(order), [typed("x", "n", 4)], NUMBERS)
    x = tl.randn(3, 4)
    assert "functional.gelu(x)" in model.code
    assert agrees(model, F.gelu(x), x)


def test_gelu_by_tanh() -> None:
    model = loaded(TANH_GELU, [typed("x", "n", 4)], NUMBERS)
    x = tl.randn(3, 4)
    assert "functional.gelu(x, approximate = 'tanh')" in model.code
    assert agrees(model, F.gelu(x, approximate="tanh"), x)


def test_other_numbers_are_no_gelu() -> None:
    model = loaded(erf_gelu(0), [typed("x", "n", 4)], {**NUMBERS, "root": 1.5})
    x = tl.randn(3, 4)
    assert "gelu" not in model.code
    assert agrees(model, x * (tl.erf(x / 1.5) + 1) * 0.5, x)


@pytest.mark.parametrize("divided_last", [False, True])
def test_hard_swish(divided_last: bool) -> None:
    nodes = [call("Add", "x three", "a"), call("Clip", "a zero six", "c")]
    nodes += [call("Mul", "x c", "m"), call("Div", "m six", "y")] if divided_last else [
        call("Div", "c six", "d"), call("Mul", "x d", "y")
    ]  # fmt: skip
    model = loaded(nodes, [typed("x", "n", 4)], {"three": 3.0, "zero": 0.0, "six": 6.0})
    x = 4 * tl.randn(3, 4)
    assert "functional.hardswish(x)" in model.code
    assert agrees(model, F.hardswish(x), x)


def test_silu() -> None:
    model = loaded([call("Sigmoid", "x", "s"), call("Mul", "s x", "y")], [typed("x", "n", 4)], {})
    x = tl.randn(3, 4)
    assert "functional.silu(x)" in model.code
    assert agrees(model, F.silu(x), x)


def written_layer_norm(axis: int) -> list[NodeProto]:
    return [
        call("ReduceMean", "x", "m", axes=[axis], keepdims=1),
        call("Sub", "x m", "d"),
        call("Pow", "d two", "q"),
        call("ReduceMean", "q", "v", axes=[axis], keepdims=1),
        call("Add", "v eps", "w"),
        call("Sqrt", "w", "s"),
        call("Div", "d s", "n"),
        call("Mul", "n weight", "k"),
        call("Add", "k bias", "y"),
    ]


def test_layer_norm() -> None:
    weights = {"weight": tl.randn(4), "bias": tl.randn(4), **NUMBERS}
    model = loaded(written_layer_norm(-1), [typed("x", "n", 4)], weights)
    x = tl.randn(3, 4)
    assert "layer_norm(x, (4,)" in model.code
    assert len(model.graph.nodes) == 5
    assert agrees(model, F.layer_norm(x, (4,), weights["weight"], weights["bias"], 1e-5), x)


def test_a_norm_over_another_dim_stays() -> None:
    weights = {"weight": tl.randn(4), "bias": tl.randn(4), **NUMBERS}
    model = loaded(written_layer_norm(0), [typed("x", 4, 4)], weights)
    x = tl.randn(4, 4)
    d = x - x.mean(0, keepdim=True)
    assert "layer_norm" not in model.code
    expected = d / tl.sqrt((d**2).mean(0, keepdim=True) + 1e-5) * weights["weight"] + weights["bias"]
    assert agrees(model, expected, x)


def test_rms_norm() -> None:
    nodes = [
        call("Pow", "x two", "q"),
        call("ReduceMean", "q", "v", axes=[-1], keepdims=1),
        call("Add", "v eps", "w"),
        call("Sqrt", "w", "s"),
        call("Reciprocal", "s", "r"),
        call("Mul", "x r", "n"),
        call("Mul", "weight n", "y"),
    ]
    weights = {"weight": tl.randn(4), **NUMBERS}
    model = loaded(nodes, [typed("x", "n", 4)], weights)
    x = tl.randn(3, 4)
    assert "rms_norm(x, (4,)" in model.code
    assert agrees(model, F.rms_norm(x, (4,), weights["weight"], 1e-5), x)


@pytest.mark.parametrize(
    "nodes",
    [
        [call("MatMul", "x w", "p"), call("Add", "p b", "y")],
        [call("MatMul", "x w", "p"), call("Add", "b p", "y")],
        [call("Gemm", "x w b", "y")],
    ],
)
def test_a_product_with_a_weight_is_a_linear_layer(nodes: list[NodeProto]) -> None:
    w, b, x = tl.randn(4, 3), tl.randn(3), tl.randn(5, 4)
    model = loaded(nodes, [typed("x", "n", 4)], {"w": w, "b": b})
    assert "functional.linear(x, w, b)" in model.code
    assert model.w.shape == (3, 4)
    assert agrees(model, x @ w + b, x)
    model(x).sum().backward()
    assert np.allclose(model.w.grad.numpy(), (tl.ones(3, 5) @ x).numpy(), atol=1e-5)


@pytest.mark.parametrize(("columns", "size"), [(1, 5), (3, 1)])
def test_a_sum_that_is_no_bias_of_a_product_stays(columns: int, size: int) -> None:
    w, b, x = tl.randn(4, columns), tl.randn(size), tl.randn(2, 4)
    model = loaded([call("MatMul", "x w", "p"), call("Add", "p b", "y")], [typed("x", "n", 4)], {"w": w, "b": b})
    assert agrees(model, x @ w + b, x)


def test_a_weight_that_is_used_otherwise_too_is_not_transposed() -> None:
    w, x = tl.randn(4, 4), tl.randn(5, 4)
    nodes = [call("MatMul", "x w", "p"), call("Transpose", "p", "pt"), call("MatMul", "w pt", "y")]
    model = loaded(nodes, [typed("x", 5, 4)], {"w": w})
    assert agrees(model, w @ (x @ w).mT, x)


def test_batch_norm_is_folded_into_the_convolution() -> None:
    nodes = [
        call("Conv", "x w", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        call("BatchNormalization", "c scale shift mean var", "y"),
    ]
    weights = {"w": tl.randn(2, 3, 3, 3), "scale": tl.randn(2), "shift": tl.randn(2), "mean": tl.randn(2)}
    weights["var"] = tl.rand(2) + 0.5
    model = loaded(nodes, [typed("x", "n", 3, 8, 8)], weights)
    x = tl.randn(2, 3, 8, 8)
    statistics = weights["mean"], weights["var"], weights["scale"], weights["shift"]
    assert "batch_norm" not in model.code
    assert sorted(name for name, _ in model.named_parameters()) == ["w", "w_folded_bias"]
    expected = F.batch_norm(F.conv2d(x, weights["w"], padding=1), *statistics)
    with tl.no_grad():
        assert np.allclose(model(x).numpy(), expected.numpy(), atol=1e-5)


def attention_nodes(mask: str) -> list[NodeProto]:
    scores = [call("Transpose", "k", "kt", perm=[0, 1, 3, 2]), call("Mul", "q r", "q1"), call("Mul", "kt r", "k1")]
    scores += [call("MatMul", "q1 k1", "s")]
    scores += [call("Add", f"s {mask}", "t")] if mask else []
    return [*scores, call("Softmax", "t" if mask else "s", "w", axis=-1), call("MatMul", "w v", "y")]


@pytest.mark.parametrize("mask", ["", "mask"])
def test_attention(mask: str) -> None:
    q, k, v = (tl.randn(2, 2, 5, 4) for _ in range(3))
    inputs = [typed(name, "b", 2, "n", 4) for name in ("q", "k", "v")]
    held = tl.where(tl.ones(5, 5).tril().bool(), 0.0, -1e9)
    model = loaded(attention_nodes(mask), inputs + ([typed("mask", "n", "n")] if mask else []), {"r": 0.25**0.5 * 0.8})
    assert "scaled_dot_product_attention" in model.code
    assert "permute" not in model.code
    expected = F.scaled_dot_product_attention(q, k, v, held if mask else None, scale=0.25 * 0.64)
    assert agrees(model, expected, q, k, v, *([held] if mask else []))


def test_attention_over_thirty_seconds_of_sound() -> None:
    inputs = [typed(name, 1, 6, 1500, 64) for name in ("q", "k", "v")]
    model = loaded(attention_nodes(""), inputs, {"r": 1.0})
    assert "scaled_dot_product_attention" in model.code


@pytest.mark.parametrize("shape", [(3, 2, 5, 5), (3, 1, 1, 1)])
def test_a_mask_with_more_elements_than_the_scores_makes_no_attention(shape: tuple[int, ...]) -> None:
    q, mask = tl.randn(1, 2, 5, 4), tl.randn(*shape)
    inputs = [typed(name, 1, 2, 5, 4) for name in ("q", "k", "v")]
    model = loaded(attention_nodes("mask"), [*inputs, typed("mask", *shape)], {"r": 1.0})
    assert agrees(model, tl.softmax(q @ q.mT + mask, -1) @ q, q, q, q, mask)


def test_what_depends_on_one_weight_alone_is_computed_at_load() -> None:
    held = tl.randn(4, 3)
    nodes = [call("Mul", "w two", "v"), call("Transpose", "v", "t", perm=[1, 0]), call("MatMul", "t x", "y")]
    model = loaded(nodes, [typed("x", 4, "n")], {"w": held, "two": [2.0]})
    x = tl.randn(4, 5)
    assert [node.op for node in model.graph.nodes] == ["placeholder", "get_attr", "call_function", "output"]
    assert [name for name, _ in model.named_parameters()] == ["w"]
    assert agrees(model, (held * 2).mT @ x, x)


def test_a_computed_weight_with_two_uses_is_one_weight() -> None:
    w, x = tl.randn(4), tl.randn(3, 4)
    nodes = [call("Exp", "w", "a"), call("Sigmoid", "w", "b"), call("Add", "a b", "s"), call("Neg", "s", "t")]
    nodes += [call("Mul", "x s", "p"), call("Div", "x t", "q"), call("Add", "p q", "y")]
    model = loaded(nodes, [typed("x", "n", 4)], {"w": w})
    s = w.exp() + w.sigmoid()
    assert len([*model.parameters()]) == 1
    assert agrees(model, x * s + x / -s, x)


def test_a_weight_with_two_uses_trains_as_one() -> None:
    held = tl.randn(3, 3)
    nodes = [call("Transpose", "w", "t", perm=[1, 0]), call("MatMul", "t x", "a"), call("MatMul", "w a", "y")]
    model = loaded(nodes, [typed("x", 3, "n")], {"w": held})
    x = tl.randn(3, 2)
    assert agrees(model, held @ (held.mT @ x), x)
    assert len(list(model.parameters())) == 1


@pytest.mark.parametrize("index", [1, -1])
def test_a_known_index_selects(index: int) -> None:
    model = loaded([call("Gather", "x i", "y", axis=1)], [typed("x", "n", 3)], {"i": index})
    x = tl.randn(2, 3)
    assert f"tallow.select(x, 1, {index})" in model.code
    assert agrees(model, x[:, index], x)
