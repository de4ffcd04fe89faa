"""Modules written as ONNX files: checked by onnx, run by onnxruntime, and loaded again."""

from __future__ import annotations

import inspect
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime

import tallow as tl

TOLERANCE = 1e-5  # float32, sums in another order
LOADED = 1e-6  # the same functions


def single(value: Any) -> Any:
    """Return arguments with float32 in place of float64."""
    if isinstance(value, tl.Tensor) and value.dtype is tl.float64:
        return value.float()
    if isinstance(value, tuple | list):
        return type(value)(map(single, value))
    return {key: single(x) for key, x in value.items()} if isinstance(value, dict) else value


def tensors(value: Any) -> Iterator[tl.Tensor]:
    """Yield the tensors of arguments or results in order."""
    if isinstance(value, tl.Tensor):
        yield value
    elif isinstance(value, tuple | list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors(part)


def in_order(module: Any, args: Any, kwargs: dict[str, Any]) -> list[tl.Tensor]:
    """Return the tensors of a call in the order of the inputs of a file."""
    return list(tensors([*args, *(kwargs[n] for n in inspect.signature(module.forward).parameters if n in kwargs)]))


def exported(module: Any, args: Any, **options: Any) -> tuple[Any, bytes]:
    """Return the program of an export, and the bytes of its file."""
    file = io.BytesIO()
    program = tl.onnx.export(module, args, file, **options)
    return program, file.getvalue()


def session(file: bytes) -> Any:
    """Return onnxruntime's session of a file that onnx's checker accepts."""
    onnx.checker.check_model(onnx.load_from_string(file), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def assert_runtime_agrees(
    program: Any, run: Any, module: Any, args: Any, kwargs: dict[str, Any], tolerance: float = TOLERANCE
) -> None:
    """Compare what onnxruntime computes with the module."""
    names = [value.name for value in program.model_proto.graph.input]
    used = {value.name for value in run.get_inputs()}
    arrays = [x.detach().numpy().copy() for x in in_order(module, args, kwargs)]  # layers in place write to arguments
    with tl.no_grad():
        expected = list(tensors(module(*args, **kwargs)))
    got = run.run(None, {n: x for n, x in zip(names, arrays, strict=True) if n in used})
    for x, y in zip(got, expected, strict=True):
        assert x.shape == tuple(y.shape)
        assert x.dtype == y.numpy().dtype
        np.testing.assert_allclose(x, y.numpy(), rtol=tolerance, atol=tolerance)


def assert_loaded_agrees(
    file: bytes, module: Any, args: Any, kwargs: dict[str, Any], tolerance: float = LOADED
) -> None:
    """Compare the loaded file with the module: results, and gradients of the arguments."""
    arguments = in_order(module, args, kwargs)
    loaded = tl.onnx.load(file)
    mine, theirs = ([x.detach().clone() for x in arguments] for _ in range(2))
    for x in (*mine, *theirs):
        x.requires_grad_(x.is_floating_point())
    expected = list(tensors(_called(module, args, kwargs, mine)))
    got = list(tensors(loaded(*(x * 1 if x.is_floating_point() else x for x in theirs))))
    for x, y in zip(got, expected, strict=True):
        _assert_close(x, y, tolerance)
    for results in (got, expected):
        floats = [x for x in results if x.requires_grad]
        if floats:
            tl.autograd.backward(floats, [tl.ones_like(x) * (i + 1) for i, x in enumerate(floats)])
    for x, y in zip(theirs, mine, strict=True):
        if y.grad is not None:
            assert x.grad is not None
            _assert_close(x.grad, y.grad, 10 * tolerance)


def _called(module: Any, args: Any, kwargs: dict[str, Any], leaves: list[tl.Tensor]) -> Any:
    """Return the result of a call with other tensors."""
    values = iter(leaves)

    def replaced(value: Any) -> Any:
        if isinstance(value, tl.Tensor):
            x = next(values)
            return x * 1 if x.is_floating_point() else x  # layers in place may not write to leaves
        return type(value)(map(replaced, value)) if isinstance(value, tuple | list) else value

    given = replaced(args)
    named = {n: replaced(kwargs[n]) for n in inspect.signature(module.forward).parameters if n in kwargs}
    return module(*given, **named)


def _assert_close(x: tl.Tensor, y: tl.Tensor, tolerance: float) -> None:
    a, b = x.detach().numpy(), y.detach().numpy()
    assert a.shape == b.shape
    scale = max(1.0, float(np.abs(b).max())) if b.size and b.dtype.kind == "f" else 1.0
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)
