"""Modules exported to ONNX: the checker accepts the file, and onnxruntime and `tl.onnx.load` compute the same."""

from __future__ import annotations

import pytest
from support.module_cases import CASES, Case, build, convert, ids

import tallow as tl

pytest.importorskip("onnx", reason="onnx, which checks the files, is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime, the reference of these tests, is not installed")
pytestmark = [pytest.mark.native, pytest.mark.cpu("onnxruntime computes on the CPU")]

# Modules without a form in ONNX, or that decide by values; and lines of others.
NO_FORM = "AdaptiveLogSoftmaxWithLoss CTCLoss MultiLabelMarginLoss"
LEFT_OUT = (
    "max_norm",  # writes to the weight
    "-tgt_mask=array",  # a mask that is an argument is compared with the causal one
    "-mask=array",
    "proj_size",  # LSTM of ONNX has no projection
    "AdaptiveMaxPool2d-2-return_indices",
    "eps=0.4",  # the loss has a gradient below its lowest variance
    "GroupNorm-4-4",  # one element for each group, which instance_norm refuses
)
EXPORTED = {
    name: line
    for line, name in zip(CASES, ids(CASES), strict=True)
    if line.name not in NO_FORM.split() and not any(part in name for part in LEFT_OUT)
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("line", EXPORTED.values(), ids=EXPORTED)
def test_a_module_is_exported(line: Case) -> None:
    from support import onnx_runs as runs

    tl.manual_seed(0)
    module = build(tl, line).float().eval()
    args, kwargs = runs.single(convert(tl, line.inputs)), runs.single(convert(tl, line.call))
    program, file = runs.exported(module, args, kwargs=kwargs)
    runs.assert_loaded_agrees(file, module, args, kwargs)
    runs.assert_runtime_agrees(program, runs.session(file), module, args, kwargs)


def test_most_modules_are_exported() -> None:
    assert len({line.name for line in EXPORTED.values()}) >= 133
