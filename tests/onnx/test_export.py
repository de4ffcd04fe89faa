"""Modules exported to ONNX: onnx's checker accepts the file, and onnxruntime computes what the module does."""

from __future__ import annotations

import inspect
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.module_cases import CASES, Case, build, convert, flat, ids

import tallow as tl

onnx = pytest.importorskip("onnx", reason="onnx, which checks the files, is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime, the reference of these tests, is not installed")
pytestmark = [pytest.mark.native, pytest.mark.cpu("onnxruntime computes on the CPU")]

TOLERANCE = 1e-5  # float32, sums in another order
# Modules that have no form yet, and lines that decide by the values of their arguments.
NO_FORM = "AdaptiveLogSoftmaxWithLoss CTCLoss EmbeddingBag GaussianNLLLoss LinearCrossEntropyLoss MultiLabelMarginLoss"
NO_FORM += " MultiMarginLoss NLLLoss CrossEntropyLoss"
BY_VALUES = ("max_norm", "-tgt_mask=array", "-mask=array", "proj_size", "return_indices=True", "padding=1-count")


def single(value: Any) -> Any:
    """Return arguments with float32 in place of float64."""
    if isinstance(value, tl.Tensor) and value.dtype is tl.float64:
        return value.float()
    if isinstance(value, tuple | list):
        return type(value)(map(single, value))
    return {key: single(x) for key, x in value.items()} if isinstance(value, dict) else value


def tensors(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the tensors of arguments in order."""
    if isinstance(value, tl.Tensor):
        yield value.numpy().copy()  # layers in place write to their arguments
    elif isinstance(value, tuple | list):
        for part in value:
            yield from tensors(part)


def session(file: bytes) -> Any:
    """Return onnxruntime's session of a file that onnx's checker accepts."""
    onnx.checker.check_model(onnx.load_from_string(file), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def assert_equal(program: Any, file: bytes, module: Any, args: Any, kwargs: Any, tolerance: float = TOLERANCE) -> None:
    """Run a file by onnxruntime, and compare its outputs with those of the module."""
    ordered = [kwargs[name] for name in inspect.signature(module.forward).parameters if name in kwargs]
    names = [value.name for value in program.model_proto.graph.input]
    run = session(file)
    used = {value.name for value in run.get_inputs()}
    feeds = {n: x for n, x in zip(names, tensors([*args, *ordered]), strict=True) if n in used}
    with tl.no_grad():
        expected = list(flat(module(*args, **kwargs)))
    for got, want in zip(run.run(None, feeds), expected, strict=True):
        assert got.shape == tuple(want.shape)
        assert got.dtype == want.numpy().dtype
        np.testing.assert_allclose(got, want.numpy(), rtol=tolerance, atol=tolerance)


def exported(module: Any, args: Any, **options: Any) -> tuple[Any, bytes]:
    """Return the program of an export, and the bytes of its file."""
    file = io.BytesIO()
    program = tl.onnx.export(module, args, file, **options)
    return program, file.getvalue()


EXPORTED = [
    pytest.param(line, id=name)
    for line, name in zip(CASES, ids(CASES), strict=True)
    if line.name not in NO_FORM.split() and not any(part in name for part in BY_VALUES)
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("line", EXPORTED)
def test_a_module_is_exported(line: Case) -> None:
    tl.manual_seed(0)
    module = build(tl, line).float().eval()
    args, kwargs = single(convert(tl, line.inputs)), single(convert(tl, line.call))
    program, file = exported(module, args, kwargs=kwargs)
    assert_equal(program, file, module, args, kwargs)
