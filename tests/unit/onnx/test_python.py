"""A loaded model is written as a Python module that computes the same."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from support import onnx_damage

import tallow as tl


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def model() -> tl.onnx.OnnxModule:
    return tl.onnx.load(onnx_damage.valid_file())


@pytest.mark.cpu("the written module reads its tensors to the CPU")
def test_the_module_computes_the_same_and_trains(model: tl.onnx.OnnxModule, tmp_path: Path) -> None:
    model.to_python(tmp_path / "net.py")
    again = imported(tmp_path / "net.py").Model()
    x = tl.randn(3, 1, 4, 4)
    assert np.array_equal(again(x).detach().numpy(), model(x).detach().numpy())
    assert {name for name, _ in again.named_parameters()} == {name for name, _ in model.named_parameters()}
    assert {*again.state_dict()} == {*model.state_dict()}
    again(x).sum().backward()


def test_explain_counts_what_was_recognized(model: tl.onnx.OnnxModule, capsys: pytest.CaptureFixture[str]) -> None:
    model.explain()
    printed = capsys.readouterr().out
    assert "1 constants that are numbers" in printed
    assert "1 If" in printed
    assert "1 Loop" in printed
