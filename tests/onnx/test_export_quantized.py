"""Layers with quantised weights, exported as MatMulNBits and GatherBlockQuantized: their codes stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import nn
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.nn.block_layers import BlockEmbedding, BlockLinear
from tallow.nn.quantization import BlockConfig, Int4WeightOnlyConfig, Int8WeightOnlyConfig, quantize_
from tallow.onnx.summary import contents

pytest.importorskip("onnx", reason="onnx, which checks the files, is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime, the reference of these tests, is not installed")
pytestmark = [pytest.mark.native, pytest.mark.cpu("onnxruntime computes on the CPU")]


def quantized(config: Any) -> nn.Sequential:
    tl.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 256, bias=False), nn.Linear(256, 3))
    quantize_(model, config, lambda layer, _: isinstance(layer, nn.Linear) and layer.in_features == 256)
    return model


def in_floats(model: nn.Sequential, x: tl.Tensor) -> tl.Tensor:
    """Return the result by the weights in float32: kernels for blocks round their input to int8."""
    for layer in model:
        x = nn.functional.linear(x, layer.weight, layer.bias) if hasattr(layer, "weight") else layer(x)
    return x


@pytest.mark.parametrize(
    ("config", "operator"),
    [
        (Int8WeightOnlyConfig(), "MatMulNBits"),
        (Int4WeightOnlyConfig(), "MatMulNBits"),
        (BlockConfig("Q6_K"), "MatMulNBits"),
        (BlockConfig("Q4_1"), "Gemm"),  # scales and shifts, which the operator does not have
    ],
)
def test_layers_keep_their_codes(config: Any, operator: str) -> None:
    from support import onnx_runs as runs

    model, x = quantized(config), tl.randn(3, 256)
    program, file = runs.exported(model, (x,))
    assert [n.op_type for n in program.model_proto.graph.node].count(operator) >= 2
    assert isinstance(model[0], BlockLinear)  # what stood in its place is gone
    (got,) = runs.session(file).run(None, {"input_1": x.numpy()})
    np.testing.assert_allclose(got, in_floats(model, x).detach().numpy(), rtol=1e-5, atol=1e-5)


def test_a_loaded_file_has_the_same_blocks() -> None:
    from support import onnx_runs as runs

    model, x = quantized(Int4WeightOnlyConfig()), tl.randn(3, 256)
    _, file = runs.exported(model, (x,))
    loaded = tl.onnx.load(file)
    tl.testing.assert_close(loaded(x), model(x), rtol=1e-5, atol=1e-5)
    program, _ = runs.exported(loaded, (x,))
    assert [n.op_type for n in program.model_proto.graph.node].count("MatMulNBits") == 2


@pytest.mark.parametrize("format", ["Q4_0", "Q8_0"])
def test_a_table_is_read_by_blocks(format: str) -> None:
    from support import onnx_runs as runs

    weight = np.random.default_rng(0).standard_normal((40, 64)).astype(np.float32)
    table, ids = BlockEmbedding(BlockMatrix.quantized(weight, format)), tl.tensor([[1, 39], [0, 7]])
    program, file = runs.exported(table, (ids,))
    assert [n.op_type for n in program.model_proto.graph.node] == ["GatherBlockQuantized"]
    (got,) = runs.session(file).run(None, {program.model_proto.graph.input[0].name: ids.numpy()})
    np.testing.assert_array_equal(got, table(ids).numpy())


@pytest.mark.filterwarnings("ignore")
def test_onnxruntime_finds_the_products_that_it_can_quantize(tmp_path: Path) -> None:
    from onnxruntime.quantization import quantize_dynamic

    model, x = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)), tl.randn(2, 4, 64)
    path, small = tmp_path / "net.onnx", tmp_path / "small.onnx"
    tl.onnx.export(model, (x,), path)
    quantize_dynamic(path, small)
    loaded = tl.onnx.load(small)
    assert contents(str(small)).operators["MatMulInteger"] == 2
    tl.testing.assert_close(loaded(x), model(x), rtol=0.05, atol=0.05)
