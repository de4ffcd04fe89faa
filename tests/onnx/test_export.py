"""Modules exported to ONNX: the checker accepts the file, and onnxruntime and `tl.onnx.load` compute the same."""

from __future__ import annotations

import pytest
from support.module_cases import CASES, Case, build, convert, ids

import tallow as tl

pytest.importorskip("onnx", reason="onnx, which checks the files, is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime, the reference of these tests, is not installed")
pytestmark = [pytest.mark.native, pytest.mark.cpu("onnxruntime computes on the CPU")]

# Modules that have no form yet, and lines that decide by the values of their arguments.
NO_FORM = "AdaptiveLogSoftmaxWithLoss CTCLoss EmbeddingBag GaussianNLLLoss LinearCrossEntropyLoss MultiLabelMarginLoss"
NO_FORM += " MultiMarginLoss NLLLoss CrossEntropyLoss"
BY_VALUES = (
    "GroupNorm-4-4",
    "max_norm",
    "-tgt_mask=array",
    "-mask=array",
    "proj_size",
    "return_indices=True",
    "padding=1-count",
)
EXPORTED = [
    pytest.param(line, id=name)
    for line, name in zip(CASES, ids(CASES), strict=True)
    if line.name not in NO_FORM.split() and not any(part in name for part in BY_VALUES)
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("line", EXPORTED)
def test_a_module_is_exported(line: Case) -> None:
    from support import onnx_runs as runs

    tl.manual_seed(0)
    module = build(tl, line).float().eval()
    args, kwargs = runs.single(convert(tl, line.inputs)), runs.single(convert(tl, line.call))
    program, file = runs.exported(module, args, kwargs=kwargs)
    runs.assert_loaded_agrees(file, module, args, kwargs)
    runs.assert_runtime_agrees(program, runs.session(file), module, args, kwargs)


def test_most_modules_are_exported() -> None:
    names = {param.values[0].name for param in EXPORTED}
    assert len(names) >= 120
