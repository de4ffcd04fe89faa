"""Layers of eight-bit codes run on the integer kernels, and give onnxruntime's results to the bit."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnxruntime
import pytest
from support.onnx_graphs import call, file_of, typed

import tallow as tl
from tallow.onnx.protobuf import NodeProto

pytestmark = [pytest.mark.native, pytest.mark.cpu("the quick form is that of the CPU")]
OPTIONS = onnxruntime.SessionOptions()
OPTIONS.log_severity_level = 3
KINDS = [np.uint8, np.int8]


def codes(rng: Any, kind: Any, *shape: int) -> Any:
    return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, endpoint=True).astype(kind)


def weights_of(rng: Any, *shape: int) -> Any:
    """Return codes of which two products with bytes fit in 16 bits, where onnxruntime adds them without VNNI."""
    return rng.integers(-64, 64, shape, endpoint=True).astype(np.int8)


def check(nodes: list[NodeProto], x: Any, weights: dict[str, Any], layers: int = 1, **close: float) -> None:
    """Compare the quick form with onnxruntime; it has so many layers of codes, and no other product."""
    kind = {"f": tl.float32, "u": tl.uint8, "i": tl.int8}[x.dtype.kind]
    raw = file_of(nodes, [typed("x", *x.shape, dtype=kind)], {name: tl.tensor(each) for name, each in weights.items()})
    model = tl.onnx.load(raw)
    with tl.no_grad():
        found = model(tl.from_numpy(x))
    quick = type(model).quick
    assert quick is not None
    assert len(re.findall("= integer_(?:layer|product)", quick.source)) == layers, quick.source
    assert not re.search("= (conv|matmul|addmm|q?linear|matmul_integer)", quick.source), quick.source
    (expected,) = onnxruntime.InferenceSession(raw, OPTIONS, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    assert found.numpy().dtype == expected.dtype
    np.testing.assert_allclose(found.numpy(), expected, **{"rtol": 0, "atol": 0} | close)


SHAPES = [  # x, weight, attributes
    ((2, 5, 6, 7), (9, 5, 1, 1), {}),
    ((1, 3, 9, 8), (33, 3, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ((1, 8, 9, 10), (4, 8, 3, 2), {"pads": [2, 0, 1, 1], "dilations": [2, 3]}),
    ((1, 6, 7, 7), (6, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 6}),
    ((1, 6, 5, 5), (4, 3, 1, 1), {"group": 2}),
    ((2, 3, 20), (5, 3, 4), {"pads": [1, 2], "strides": [3]}),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("shape", "weight", "attributes"), SHAPES)
def test_convolutions_between_codes(shape: Any, weight: Any, attributes: dict[str, Any], kind: Any) -> None:
    rng = np.random.default_rng(0)
    outputs, middle = weight[0], 0 if kind is np.int8 else 120
    weights = {
        "s": np.float32(0.03),
        "z": np.array(middle + 3, kind),
        "w": weights_of(rng, *weight),
        "ws": rng.uniform(0.001, 0.01, outputs).astype(np.float32),
        "wz": np.zeros(outputs, np.int8),
        "b": rng.integers(-9999, 9999, outputs).astype(np.int32),
        "ys": np.float32(0.05),
        "yz": np.array(middle, kind),
    }
    weights["bs"] = weights["ws"] * weights["s"]
    nodes = [
        *(call("QuantizeLinear", "x s z", "q"), call("DequantizeLinear", "q s z", "d")),
        *(call("DequantizeLinear", "w ws wz", "dw", axis=0), call("DequantizeLinear", "b bs", "db", axis=0)),
        *(call("Conv", "d dw db", "c", **attributes), call("QuantizeLinear", "c ys yz", "y")),
    ]
    x = rng.standard_normal(shape).astype(np.float32) * 3
    check(nodes, x, weights)
    attributes = attributes | {"kernel_shape": weight[2:]}
    check([nodes[0], call("QLinearConv", "q s z w ws wz ys yz b", "y", **attributes)], x, weights)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("action", ["Relu", "Clip"])
def test_activations_bound_codes(action: str, kind: Any) -> None:
    rng = np.random.default_rng(1)
    weights = {"s": np.float32(0.05), "z": np.array(4, kind), "w": weights_of(rng, 7, 3, 1, 1)}
    weights |= {"ws": np.float32(0.01), "wz": np.array(0, np.int8), "low": np.float32(-0.5), "high": np.float32(2.0)}
    nodes = [
        *(call("QuantizeLinear", "x s z", "q"), call("DequantizeLinear", "q s z", "d")),
        *(call("DequantizeLinear", "w ws wz", "dw"), call("Conv", "d dw", "c")),
        call(action, "c" if action == "Relu" else "c low high", "a"),
        *(call("QuantizeLinear", "a s z", "e"), call("DequantizeLinear", "e s z", "y")),
    ]
    check(
        nodes, rng.standard_normal((1, 3, 6, 6)).astype(np.float32) * 3, weights, rtol=0, atol=0.051
    )  # float products


@pytest.mark.parametrize("kind", KINDS)
def test_maxima_of_codes(kind: Any) -> None:
    rng = np.random.default_rng(4)
    weights = {"w": weights_of(rng, 5, 3, 1, 1), "z": np.array(0, kind), "wz": np.array(0, np.int8)}
    weights |= {"s": np.float32(0.02), "ws": np.float32(0.01)}
    pool = call("MaxPool", "c", "y", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
    nodes = [call("QLinearConv", "x s z w ws wz s z", "c"), pool]
    check(nodes, codes(rng, kind, 1, 3, 6, 6), weights)


@pytest.mark.parametrize("transposed", [0, 1])
def test_products_between_codes(transposed: int) -> None:
    rng = np.random.default_rng(2)
    weights = {
        "s": np.float32(0.04),
        "z": np.array(130, np.uint8),
        "w": weights_of(rng, *((9, 40), (40, 9))[1 - transposed]),
        "ws": np.float32(0.01),
        "wz": np.array(0, np.int8),
        "ys": np.float32(0.1),
        "yz": np.array(99, np.uint8),
        "b": rng.integers(-999, 999, 9).astype(np.int32),
        "bs": np.float32(0.04) * np.float32(0.01),
    }
    begin = [call("QuantizeLinear", "x s z", "q"), call("DequantizeLinear", "q s z", "d")]
    begin.append(call("DequantizeLinear", "w ws wz", "dw"))
    x = rng.standard_normal((5, 40)).astype(np.float32)
    gemm = [call("DequantizeLinear", "b bs", "db"), call("Gemm", "d dw db", "p", transB=transposed)]
    end = [call("QuantizeLinear", "p ys yz", "y")]
    check([*begin, *gemm, *end], x, weights)
    if not transposed:
        check([*begin, call("MatMul", "d dw", "p"), *end], x, weights)
        check([begin[0], call("QLinearMatMul", "q s z w ws wz ys yz", "y")], x, weights)


@pytest.mark.parametrize("kind", KINDS)
def test_convolutions_of_integers(kind: Any) -> None:
    rng = np.random.default_rng(3)
    weights = {"w": codes(rng, np.uint8, 5, 3, 3, 3), "wz": np.array(128, np.uint8), "z": np.array(9, kind)}
    node = call("ConvInteger", "x w z wz", "y", pads=[1, 1, 0, 0])
    if kind is np.uint8:  # onnxruntime has no other
        check([node], codes(rng, kind, 1, 3, 6, 6), weights)
    weights |= {"ws": np.float32(0.02), "b": rng.standard_normal((1, 5, 1, 1)).astype(np.float32)}
    nodes = [
        *(call("DynamicQuantizeLinear", "x", "q s zero"), call("ConvInteger", "q w zero wz", "i")),
        *(
            call("Cast", "i", "f", to=1),
            call("Mul", "s ws", "both"),
            call("Mul", "f both", "p"),
            call("Add", "p b", "y"),
        ),
    ]
    check(nodes, rng.standard_normal((1, 3, 6, 6)).astype(np.float32), weights, rtol=1e-6, atol=1e-6)


def test_weights_of_codes_stay_codes_and_others_train() -> None:
    weights = {"w": np.ones((4, 3), np.int8), "ws": np.full(3, 0.5, np.float32), "z": np.zeros(3, np.int8)}
    rest = [call("DequantizeLinear", "w ws z", "dw"), call("MatMul", "d dw", "y")]
    tensors = {name: tl.tensor(each) for name, each in weights.items()} | {"s": tl.tensor(0.1)}
    tensors["xz"] = tl.tensor(0, dtype=tl.uint8)
    begin = [call("QuantizeLinear", "x s xz", "q"), call("DequantizeLinear", "q s xz", "d")]
    kept = tl.onnx.load(file_of([*begin, *rest], [typed("x", 2, 4)], tensors))
    assert any(each.dtype is tl.int8 and each.shape == (4, 3) for each in kept.buffers())
    trained = tl.onnx.load(file_of([call("Relu", "x", "d"), *rest], [typed("x", 2, 4)], tensors))
    trained(tl.ones(2, 4)).sum().backward()
    assert [each.grad is not None for each in trained.parameters()] == [True]
