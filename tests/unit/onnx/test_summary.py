"""The contents of ONNX files: counts, dims, sizes by layer, quantisation."""

from __future__ import annotations

import numpy as np
import pytest
from support.onnx_files import encoded_model, node, value

from tallow.errors import CheckpointError
from tallow.onnx.protobuf import (
    AttributeProto,
    DataType,
    GraphProto,
    NodeProto,
    StringStringEntryProto,
    TensorProto,
)
from tallow.onnx.summary import Value, contents, is_onnx


def weight(name: str, *dims: int, dtype: int = DataType.FLOAT, width: int = 4) -> TensorProto:
    return TensorProto(dims=dims, data_type=dtype, name=name, raw_data=bytes(int(np.prod(dims)) * width))


def model(*nodes: NodeProto, weights: list[TensorProto], **more: object) -> bytes:
    inputs = [
        value("x", "batch", 3, None, -1),
        value("encoder.layers.0.weight", 4),
    ]  # older files list weights as inputs
    return encoded_model(nodes, inputs, [value("y", 2)], weights, **more)


def test_counts_dims_and_layers() -> None:
    inner = AttributeProto(name="then_branch", type=5, g=GraphProto(node=[node("Relu", "x"), node("Relu", "x")]))
    branch = NodeProto(input=["c"], output=["z"], op_type="If", attribute=[inner])
    shown = contents(
        model(
            node("Gemm", "x", "encoder.layers.0.weight", "encoder.layers.0.bias"),
            node("MatMul", "x", "onnx::MatMul_7", name="/encoder/layers.1/fc/MatMul"),
            node("Gelu", "x", domain="com.microsoft"),
            branch,
            weights=[
                weight("encoder.layers.0.weight", 4),
                weight("encoder.layers.0.bias", 2),
                weight("onnx::MatMul_7", 2, 5),
                weight("unread", 3),
            ],
            metadata_props=[StringStringEntryProto("task", "detect")],
        )
    )
    assert shown.operators == {"Relu": 2, "Gemm": 1, "MatMul": 1, "com.microsoft.Gelu": 1, "If": 1}
    assert shown.inputs == [Value("x", "float32", ["batch", 3, None, None])]
    assert shown.outputs == [Value("y", "float32", [2])]
    assert shown.layers == {"encoder.layers.0": 24, "encoder.layers.1": 40, "unread": 12}
    assert shown.opsets == {"ai.onnx": 18, "com.microsoft": 1}
    assert shown.metadata == {"producer": "maker", "graph": "g", "IR version": 10, "task": "detect"}
    assert [(entry.name, entry.shape, entry.bytes) for entry in shown.tensors][2] == ("onnx::MatMul_7", (2, 5), 40)


def test_quantised_nodes_are_described() -> None:
    shown = contents(
        model(
            node("DequantizeLinear", "w"),
            node("DequantizeLinear", "x"),
            node("MatMulNBits", "x", domain="com.microsoft", bits=8, block_size=32),
            node("QLinearConv", "x"),
            node("MatMulInteger", "x"),
            node("MatMul", "x"),
            weights=[weight("w", 6, dtype=DataType.INT8, width=1)],
        )
    )
    assert shown.quantisation == {
        "DequantizeLinear of int8 weights": 1,
        "DequantizeLinear of activations": 1,
        "MatMulNBits, 8 bits, blocks of 32": 1,
        "QLinearConv": 1,
        "MatMulInteger": 1,
    }


@pytest.mark.parametrize(
    ("tensor", "size"),
    [
        (TensorProto(dims=[3], data_type=DataType.INT4), 1),
        (TensorProto(dims=[2, 3], data_type=DataType.BFLOAT16), 12),
        (TensorProto(dims=[2], data_type=DataType.COMPLEX64), 16),
        (TensorProto(dims=[2], data_type=DataType.STRING, string_data=[b"one", b"three"]), 8),
        (TensorProto(dims=[2], data_type=99), 8),
        (
            TensorProto(dims=[5], data_type=1, data_location=1, external_data=[StringStringEntryProto("length", "20")]),
            20,
        ),
    ],
)
def test_sizes_of_tensors(tensor: TensorProto, size: int) -> None:
    tensor.name = "w"
    (entry,) = contents(model(weights=[tensor])).tensors
    assert entry.bytes == size


def test_weights_in_constant_nodes_count() -> None:
    large = AttributeProto(name="value", type=4, t=weight("", 300))
    small = AttributeProto(name="value", type=4, t=weight("", 3))
    nodes = [NodeProto(output=[name], op_type="Constant", attribute=[a]) for name, a in (("k", large), ("s", small))]
    assert contents(model(*nodes, node("Add", "x", "k"), weights=[])).layers == {"k": 1200}


def test_other_files_are_refused() -> None:
    with pytest.raises(CheckpointError):
        contents(b"<!doctype html>")
    assert is_onnx("a/B.ONNX")
    assert not is_onnx("a.onnx/weights.bin")


def test_operators_that_are_missing_are_counted() -> None:
    inner = AttributeProto(name="then_branch", type=5, g=GraphProto(node=[node("Frobnicate", "x")]))
    branch = NodeProto(input=["c"], output=["z"], op_type="If", attribute=[inner])
    nodes = [branch, node("Frobnicate", "x"), node("Fold", "x", domain="com.example"), node("Relu", "x")]
    assert contents(model(*nodes, weights=[])).unsupported == {"Frobnicate": 2, "com.example.Fold": 1}


@pytest.mark.parametrize("dims", [[2**62] * 400, [-3, 2]])
def test_dims_that_no_array_has_are_refused(dims: list[int]) -> None:
    with pytest.raises(CheckpointError, match="'w' has the dims"):
        contents(model(weights=[TensorProto(dims=dims, data_type=DataType.FLOAT, name="w")]))
