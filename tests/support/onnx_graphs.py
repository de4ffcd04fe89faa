"""Build small ONNX files in memory, without the package `onnx`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tallow as tl
from tallow.onnx.protobuf import (
    AttributeProto,
    Dimension,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorShapeProto,
    TensorType,
    TypeProto,
    ValueInfoProto,
    encode,
)
from tallow.onnx.tensors import DATA_TYPES, tensor_proto

OPSET = 17


def typed(name: str, *dims: int | str, dtype: Any = tl.float32) -> ValueInfoProto:
    """Return an input with a shape; dims may have names."""
    shape = [Dimension(dim_value=dim) if isinstance(dim, int) else Dimension(dim_param=dim) for dim in dims]
    return ValueInfoProto(name, TypeProto(tensor_type=TensorType(DATA_TYPES[dtype], TensorShapeProto(shape))))


def call(name: str, inputs: str, output: str, **attributes: int | float | str | Sequence[int]) -> NodeProto:
    """Return a node; the names of inputs and outputs are separated by spaces."""
    return NodeProto(
        op_type=name,
        input=inputs.split(),
        output=output.split(),
        attribute=[_attribute(key, value) for key, value in attributes.items()],
    )


def _attribute(name: str, value: int | float | str | Sequence[int]) -> AttributeProto:
    if isinstance(value, str):
        return AttributeProto(name, s=value.encode(), type=3)
    if isinstance(value, int):
        return AttributeProto(name, i=value, type=2)
    if isinstance(value, float):
        return AttributeProto(name, f=value, type=1)
    return AttributeProto(name, ints=value, type=7)


def file_of(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    weights: Mapping[str, Any],
    outputs: Sequence[str] = ("y",),
) -> bytes:
    """Return the bytes of a file; weights are tensors, numbers and lists of them."""
    tensors = [tensor_proto(tl.as_tensor(value), name) for name, value in weights.items()]
    graph = GraphProto(node=nodes, input=inputs, output=[ValueInfoProto(y) for y in outputs], initializer=tensors)
    return encode(ModelProto(ir_version=10, graph=graph, opset_import=[OperatorSetIdProto("", OPSET)]))


def loaded(
    nodes: Sequence[NodeProto], inputs: Sequence[ValueInfoProto], weights: Mapping[str, Any], **options: Any
) -> tl.onnx.OnnxModule:
    """Return the module of a file with the output y, loaded with options of `tl.onnx.load`."""
    return tl.onnx.load(file_of(nodes, inputs, weights), **options)
