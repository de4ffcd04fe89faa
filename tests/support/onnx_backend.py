"""The cases of onnx.backend.test: models with inputs and outputs, run by tallow and compared."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

import tallow as tl
from tallow.core.tensor import wrap
from tallow.dtypes import numbers_of
from tallow.onnx.tensors import DTYPES, NARROW, DataType

BY_NAME = {d.name: d for d in DTYPES.values()}
# What holds the elements of types that are narrower than a byte, by their names in ml_dtypes.
HOLDERS = {"int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8", "float4_e2m1fn": "float32"}


def backend_cases(kind: str) -> list[TestCase]:
    """Return the cases of a kind: node, simple, pytorch-operator or pytorch-converted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases overflow and divide by zero on purpose
        return load_model_tests(kind=kind)


def run_case(case: TestCase, *, compare_values: bool = True) -> None:
    """Load and run the model of a case.  Raises: AssertionError if an output differs, and the errors of tallow"""
    model = case.model if case.model is not None else onnx.load(Path(case.model_dir) / "model.onnx")
    module = tl.onnx.load(model.SerializeToString())
    for inputs, expected in case.data_sets or _stored_sets(Path(case.model_dir), model):
        types = [info.type for info in model.graph.input]
        with tl.no_grad():
            results = module(*map(to_tallow, inputs, types[: len(inputs)]))
        results = results if isinstance(results, tuple) and len(model.graph.output) > 1 else (results,)
        assert len(results) == len(expected)
        for result, wanted in zip(results, expected, strict=True):
            assert_same(result, wanted, case.rtol, case.atol if compare_values else 1e30)


def _stored_sets(folder: Path, model: onnx.ModelProto) -> Iterator[tuple[list[Any], list[Any]]]:
    """Read the inputs and outputs that lie beside a model."""

    def read(kind: str, infos: Any) -> list[Any]:
        names = [place / f"{kind}_{i}.pb" for i in range(len(infos))]
        return [_stored(path, info.type) for path, info in zip(names, infos, strict=True) if path.exists()]

    for place in sorted(folder.glob("test_data_set_*")):  # noqa: B007 - `read` uses it
        yield read("input", model.graph.input), read("output", model.graph.output)


def _stored(path: Path, kind: onnx.TypeProto) -> Any:
    readers = {
        "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
        "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
        "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
    }
    message, convert = readers[kind.WhichOneof("value")]
    return convert(message.FromString(path.read_bytes()))


def to_tallow(value: Any, kind: onnx.TypeProto) -> Any:
    """Return an input of a case as tallow takes it: Tensors, lists, None, arrays of strings."""
    while (name := kind.WhichOneof("value")) in ("sequence_type", "optional_type"):
        kind = getattr(kind, name).elem_type
    if value is None:
        return None
    if isinstance(value, list):
        return [to_tallow(each, kind) for each in value]
    array = numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
    if array.dtype.kind in "OUS":
        return array.astype(object)
    element = kind.tensor_type.elem_type
    if element in map(int, NARROW):
        return wrap(array.astype(np.float32).astype(NARROW[DataType(element)][1].storage))
    dtype = BY_NAME[str(array.dtype)]
    if dtype is tl.bfloat16 or dtype.storage.kind == "V":  # NumPy lacks them; the bits are the same
        return wrap(np.ascontiguousarray(array).view(dtype.storage).reshape(array.shape))
    return wrap(array.astype(dtype.storage))


def assert_same(result: Any, wanted: Any, rtol: float, atol: float) -> None:
    """Compare an output with that of a case: type, shape and values."""
    if wanted is None:
        assert result is None
        return
    if isinstance(wanted, list):
        assert len(result) == len(wanted)
        for one, other in zip(result, wanted, strict=True):
            assert_same(one, other, rtol, atol)
        return
    expected = numpy_helper.to_array(wanted) if isinstance(wanted, onnx.TensorProto) else np.asarray(wanted)
    if expected.dtype.kind in "OUS":
        assert result.shape == expected.shape
        assert result.tolist() == expected.tolist()
        return
    name = str(expected.dtype)
    assert result.dtype.name == HOLDERS.get(name, name)
    assert tuple(result.shape) == expected.shape
    numbers = numbers_of(result.detach().array)
    if name not in np.sctypeDict:
        numbers, expected = numbers.astype(np.float32), expected.astype(np.float32)
    if name == "bfloat16":
        rtol = max(rtol, 2**-6)  # as the package's own runner: two units in the last place
    np.testing.assert_allclose(numbers, expected, rtol, atol)
