"""ONNX files in the commands: `tallow inspect`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tallow.cli import main
from tallow.onnx.protobuf import GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, encode


@pytest.fixture
def path(tmp_path: Path) -> Path:
    weight = TensorProto(dims=[2, 3], data_type=1, name="fc.weight", raw_data=bytes(24))
    node = NodeProto(input=["x", "fc.weight"], output=["y"], op_type="Gemm")
    graph = GraphProto(node=[node, node], name="net\x1b[31m", initializer=[weight])
    path = tmp_path / "net.onnx"
    path.write_bytes(encode(ModelProto(ir_version=10, graph=graph, opset_import=[OperatorSetIdProto(version=18)])))
    return path


def test_inspect_shows_operators_and_layers(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "format  ONNX" in shown
    assert "opset   ai.onnx 18" in shown
    assert "2 operators\n  Gemm  2\n" in shown
    assert "layers\n  fc  24 bytes\n" in shown
    assert "1 tensor, 6 elements, 24 bytes (float32)" in shown
    assert "\x1b" not in shown


def test_inspect_as_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["operators"] == {"Gemm": 2}
    assert shown["layers"] == {"fc": 24}
    assert shown["tensors"][0]["shape"] == [2, 3]


def test_inspect_of_a_file_that_is_no_onnx(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.onnx").write_text("<!doctype html>")
    assert main(["inspect", str(tmp_path / "page.onnx")]) == 2
    assert "page.onnx" in capsys.readouterr().err
