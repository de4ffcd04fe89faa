"""Products of quantized inputs are exact, or run on the kernels for blocks and stay close to those of floats."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.onnx_graphs import call, loaded, typed

import tallow as tl
from tallow.nn.block_layers import BlockLinear

IN, OUT = 96, 24
DYNAMIC = [
    call("DynamicQuantizeLinear", "x", "q s z"),
    call("MatMulInteger", "q w z wz", "sums"),
    call("Cast", "sums", "floats", to=1),
    call("Mul", "s ws", "both"),
    call("Mul", "floats both", "y"),
]


def dynamic(offset: int, spread: int, per_column: bool, **options: Any) -> tuple[tl.onnx.OnnxModule, tl.Tensor]:
    """Return a model as onnxruntime's quantize_dynamic writes it, and the weight that it stands for."""
    random = np.random.default_rng(1)
    codes = random.integers(offset - spread, offset + spread, (IN, OUT), endpoint=True)
    scale = random.uniform(0.01, 0.02, OUT if per_column else ()).astype(np.float32)
    dtype = tl.uint8 if offset else tl.int8
    zero = tl.tensor(np.full(scale.shape, offset), dtype=dtype)
    weights: dict[str, Any] = {"w": tl.tensor(codes, dtype=dtype), "wz": zero, "ws": tl.tensor(scale)}
    model = loaded(DYNAMIC, [typed("x", "n", IN)], weights, **options)
    return model, tl.tensor(((codes - offset) * scale).astype(np.float32))


def distance(found: tl.Tensor, expected: tl.Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize(("offset", "spread"), [(0, 127), (128, 127), (100, 100), (180, 75)])
def test_a_dynamic_product_of_bytes_is_a_layer(offset: int, spread: int, per_column: bool) -> None:
    model, weight = dynamic(offset, spread, per_column, approximate=True)
    assert [each.stored.format for each in model.modules() if isinstance(each, BlockLinear)] == ["Q8_0"]
    assert "matmul_integer(" not in model.code
    x = tl.randn(5, IN, generator=tl.Generator().manual_seed(0))
    with tl.no_grad():
        assert distance(model(x), x @ weight) < 0.01


def test_weights_that_exceed_a_byte_are_rounded_to_blocks() -> None:
    codes = np.array([[0, 255] * (OUT // 2)] * IN, np.uint8)  # minus 20: up to 235
    x = tl.randn(5, IN, generator=tl.Generator().manual_seed(0))
    weights = {"w": tl.tensor(codes), "wz": tl.tensor(20, dtype=tl.uint8), "ws": tl.tensor(0.01)}
    model = loaded(DYNAMIC, [typed("x", "n", IN)], weights, approximate=True)
    assert any(isinstance(each, BlockLinear) for each in model.modules())
    weight = tl.tensor((codes.astype(np.float32) - 20) * np.float32(0.01))
    with tl.no_grad():
        assert distance(model(x), x @ weight) < 0.02


def quantized(x: tl.Tensor) -> tuple[Any, Any, Any]:
    """Return numbers, scale and zero point by ONNX's definition of DynamicQuantizeLinear."""
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    scale = np.float32(high - low) / np.float32(255)
    zero = np.rint(np.float32(-low) / scale)
    return np.clip(np.rint(x.numpy() / scale) + zero, 0, 255), scale, zero


def test_the_integers_of_a_dynamic_product_are_exact() -> None:
    x = tl.randn(5, IN, generator=tl.Generator().manual_seed(0))
    numbers, scale, zero = quantized(x)
    model, weight = dynamic(100, 100, per_column=True)
    assert not any(isinstance(each, BlockLinear) for each in model.modules())
    factors = scale * model.get_parameter("ws").detach().numpy()
    codes = np.rint(weight.numpy() / model.get_parameter("ws").detach().numpy()).astype(np.int64)
    expected = ((numbers - zero).astype(np.int64) @ codes).astype(np.float32) * factors
    assert np.array_equal(model(x).detach().numpy(), expected)


@pytest.mark.parametrize("approximate", [False, True])
def test_integers_that_are_used_otherwise_stay_exact(approximate: bool) -> None:
    nodes = [call("DynamicQuantizeLinear", "x", "q s z"), call("MatMulInteger", "q w z", "y")]
    codes = np.random.default_rng(2).integers(-127, 127, (IN, OUT)).astype(np.int8)
    model = loaded(nodes, [typed("x", "n", IN)], {"w": tl.tensor(codes)}, approximate=approximate)
    assert not any(isinstance(each, BlockLinear) for each in model.modules())
    x = tl.randn(3, IN)
    numbers, _, zero = quantized(x)
    assert np.array_equal(model(x).numpy(), (numbers - zero).astype(np.int64) @ codes.astype(np.int64))


@pytest.mark.parametrize("terms", [1, 258, 259, 700])
def test_long_sums_of_bytes_are_exact(terms: int) -> None:
    a, b = np.full((2, terms), 255, np.uint8), np.full((terms, 3), 255, np.uint8)
    a[0, -1] = 254
    model = loaded([call("MatMulInteger", "a b", "y")], [typed("a", 2, terms, dtype=tl.uint8)], {"b": tl.tensor(b)})
    assert np.array_equal(model(tl.tensor(a)).numpy(), a.astype(np.int64) @ b.astype(np.int64))


@pytest.mark.cpu("the written module reads its tensors to the CPU")
def test_the_source_of_a_quantized_model_runs(tmp_path: Path) -> None:
    model, _ = dynamic(0, 127, True, approximate=True)
    model.to_python(tmp_path / "net.py")
    spec = importlib.util.spec_from_file_location("net_of_test_quantized", tmp_path / "net.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = tl.randn(3, IN)
    with tl.no_grad():
        assert np.array_equal(module.Model()(x).numpy(), model(x).numpy())
