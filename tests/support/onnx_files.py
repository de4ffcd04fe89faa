"""Small ONNX files for tests, made by the writer of `tallow.onnx.protobuf`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.onnx.protobuf import (
    AttributeProto,
    DataType,
    Dimension,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    TensorShapeProto,
    TensorType,
    TypeProto,
    ValueInfoProto,
    encode,
)


def value(name: str, *dims: int | str | None, dtype: int = DataType.FLOAT) -> ValueInfoProto:
    """Return an input or output; a name or None stands for an open dim."""
    entries = [Dimension(dim_value=dim) if isinstance(dim, int) else Dimension(dim_param=dim or "") for dim in dims]
    return ValueInfoProto(name=name, type=TypeProto(tensor_type=TensorType(dtype, TensorShapeProto(dim=entries))))


def node(op: str, *inputs: str, output: str = "y", name: str = "", domain: str = "", **numbers: int) -> NodeProto:
    """Return a node with integers as attributes."""
    attributes = [AttributeProto(name=each, type=2, i=number) for each, number in numbers.items()]
    return NodeProto(input=inputs, output=[output], name=name, op_type=op, domain=domain, attribute=attributes)


def encoded_model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    weights: Sequence[TensorProto] = (),
    **more: Any,
) -> bytes:
    """Return a file of opset 18 that also has Microsoft's operators."""
    graph = GraphProto(node=nodes, name="g", initializer=weights, input=inputs, output=outputs)
    opsets = [OperatorSetIdProto(version=18), OperatorSetIdProto("com.microsoft", 1)]
    return encode(ModelProto(ir_version=10, producer_name="maker", graph=graph, opset_import=opsets, **more))
