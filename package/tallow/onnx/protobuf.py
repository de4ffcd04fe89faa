"""The messages of an ONNX file: read them, build them, write them.

    model = read_model("net.onnx")
    model.graph.node[0].op_type
    write(ModelProto(ir_version=10, graph=GraphProto(...)), file)

Names and numbers are those of `onnx.proto`. The bytes of tensors are views of the file, which is mapped.

Source:  https://github.com/onnx/onnx, the files `onnx/onnx.proto` and `docs/IR.md`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy.typing as npt

from tallow.errors import CheckpointError
from tallow.io.source import Source, open_source
from tallow.onnx.wire import (
    HINT,
    Message,
    Reader,
    array,
    data,
    datas,
    integer,
    integers,
    message,
    messages,
    real,
    reals,
    text,
    texts,
)
from tallow.onnx.wire import Buffer as Buffer
from tallow.onnx.wire import encode as encode
from tallow.onnx.wire import write as write


class DataType(IntEnum):
    """The numbers of `TensorProto.data_type` and of `TypeProto.Tensor.elem_type`."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22
    FLOAT4E2M1 = 23
    FLOAT8E8M0 = 24
    UINT2 = 25
    INT2 = 26


class AttributeType(IntEnum):
    """The numbers of `AttributeProto.type`."""

    UNDEFINED = 0
    FLOAT = 1
    INT = 2
    STRING = 3
    TENSOR = 4
    GRAPH = 5
    FLOATS = 6
    INTS = 7
    STRINGS = 8
    TENSORS = 9
    GRAPHS = 10
    SPARSE_TENSOR = 11
    SPARSE_TENSORS = 12
    TYPE_PROTO = 13
    TYPE_PROTOS = 14


EXTERNAL = 1  # of TensorProto.data_location: the bytes are in another file


@dataclass(slots=True)
class StringStringEntryProto(Message):
    """A key and a value of metadata."""

    key: str = text(1)
    value: str = text(2)


@dataclass(slots=True)
class OperatorSetIdProto(Message):
    """The version of the operators of a domain."""

    domain: str = text(1)
    version: int = integer(2)


@dataclass(slots=True)
class TensorProto(Message):
    """A tensor: its bytes in `raw_data`, its numbers in a field by dtype, or a place in another file."""

    dims: Sequence[int] = integers(1)
    data_type: int = integer(2)
    segment: Segment | None = message(3, lambda: Segment)
    float_data: npt.NDArray[Any] | None = array(4, "<f4")
    int32_data: npt.NDArray[Any] | None = array(5, "<i4")
    string_data: Sequence[Buffer] = datas(6)
    int64_data: npt.NDArray[Any] | None = array(7, "<i8")
    name: str = text(8)
    raw_data: Buffer | None = data(9)
    double_data: npt.NDArray[Any] | None = array(10, "<f8")
    uint64_data: npt.NDArray[Any] | None = array(11, "<u8")
    doc_string: str = text(12)
    external_data: Sequence[StringStringEntryProto] = messages(13, lambda: StringStringEntryProto)
    data_location: int = integer(14)


@dataclass(slots=True)
class Segment(Message):
    """A part of a tensor; such tensors are refused."""

    begin: int = integer(1)
    end: int = integer(2)


@dataclass(slots=True)
class SparseTensorProto(Message):
    """A sparse tensor: the values that are not zero and their indices."""

    values: TensorProto | None = message(1, lambda: TensorProto)
    indices: TensorProto | None = message(2, lambda: TensorProto)
    dims: Sequence[int] = integers(3)


@dataclass(slots=True)
class Dimension(Message):
    """A dim: a number, a name, or neither."""

    dim_value: int | None = integer(1, None)
    dim_param: str = text(2)
    denotation: str = text(3)


@dataclass(slots=True)
class TensorShapeProto(Message):
    """The dims of a tensor."""

    dim: Sequence[Dimension] = messages(1, lambda: Dimension)


@dataclass(slots=True)
class TensorType(Message):
    """A tensor's dtype, and its shape unless that is unknown."""

    elem_type: int = integer(1)
    shape: TensorShapeProto | None = message(2, lambda: TensorShapeProto)


@dataclass(slots=True)
class ElementType(Message):
    """A sequence or an optional: the type of its elements."""

    elem_type: TypeProto | None = message(1, lambda: TypeProto)


@dataclass(slots=True)
class MapType(Message):
    """A map from keys of a dtype to values of a type."""

    key_type: int = integer(1)
    value_type: TypeProto | None = message(2, lambda: TypeProto)


@dataclass(slots=True)
class TypeProto(Message):
    """The type of a value; one of the fields is there."""

    tensor_type: TensorType | None = message(1, lambda: TensorType)
    sequence_type: ElementType | None = message(4, lambda: ElementType)
    map_type: MapType | None = message(5, lambda: MapType)
    denotation: str = text(6)
    sparse_tensor_type: TensorType | None = message(8, lambda: TensorType)
    optional_type: ElementType | None = message(9, lambda: ElementType)


@dataclass(slots=True)
class ValueInfoProto(Message):
    """The name and the type of a value."""

    name: str = text(1)
    type: TypeProto | None = message(2, lambda: TypeProto)
    doc_string: str = text(3)
    metadata_props: Sequence[StringStringEntryProto] = messages(4, lambda: StringStringEntryProto)


@dataclass(slots=True)
class AttributeProto(Message):
    """An attribute of a node. `type` says which field holds it; `ref_attr_name` names one of the function around."""

    name: str = text(1)
    f: float | None = real(2)
    i: int | None = integer(3, None)
    s: Buffer | None = data(4)
    t: TensorProto | None = message(5, lambda: TensorProto)
    g: GraphProto | None = message(6, lambda: GraphProto)
    floats: Sequence[float] = reals(7)
    ints: Sequence[int] = integers(8)
    strings: Sequence[Buffer] = datas(9)
    tensors: Sequence[TensorProto] = messages(10, lambda: TensorProto)
    graphs: Sequence[GraphProto] = messages(11, lambda: GraphProto)
    doc_string: str = text(13)
    tp: TypeProto | None = message(14, lambda: TypeProto)
    type_protos: Sequence[TypeProto] = messages(15, lambda: TypeProto)
    type: int = integer(20)
    ref_attr_name: str = text(21)
    sparse_tensor: SparseTensorProto | None = message(22, lambda: SparseTensorProto)
    sparse_tensors: Sequence[SparseTensorProto] = messages(23, lambda: SparseTensorProto)


@dataclass(slots=True)
class NodeProto(Message):
    """A call of an operator. An empty name among the inputs or outputs leaves out an optional one."""

    input: Sequence[str] = texts(1)
    output: Sequence[str] = texts(2)
    name: str = text(3)
    op_type: str = text(4)
    attribute: Sequence[AttributeProto] = messages(5, lambda: AttributeProto)
    doc_string: str = text(6)
    domain: str = text(7)
    overload: str = text(8)
    metadata_props: Sequence[StringStringEntryProto] = messages(9, lambda: StringStringEntryProto)


@dataclass(slots=True)
class GraphProto(Message):
    """Nodes in the order of their execution, the tensors they use, inputs and outputs."""

    node: Sequence[NodeProto] = messages(1, lambda: NodeProto)
    name: str = text(2)
    initializer: Sequence[TensorProto] = messages(5, lambda: TensorProto)
    doc_string: str = text(10)
    input: Sequence[ValueInfoProto] = messages(11, lambda: ValueInfoProto)
    output: Sequence[ValueInfoProto] = messages(12, lambda: ValueInfoProto)
    value_info: Sequence[ValueInfoProto] = messages(13, lambda: ValueInfoProto)
    sparse_initializer: Sequence[SparseTensorProto] = messages(15, lambda: SparseTensorProto)
    metadata_props: Sequence[StringStringEntryProto] = messages(16, lambda: StringStringEntryProto)


@dataclass(slots=True)
class FunctionProto(Message):
    """An operator that the file defines by other operators."""

    name: str = text(1)
    input: Sequence[str] = texts(4)
    output: Sequence[str] = texts(5)
    attribute: Sequence[str] = texts(6)
    node: Sequence[NodeProto] = messages(7, lambda: NodeProto)
    doc_string: str = text(8)
    opset_import: Sequence[OperatorSetIdProto] = messages(9, lambda: OperatorSetIdProto)
    domain: str = text(10)
    attribute_proto: Sequence[AttributeProto] = messages(11, lambda: AttributeProto)
    value_info: Sequence[ValueInfoProto] = messages(12, lambda: ValueInfoProto)
    overload: str = text(13)
    metadata_props: Sequence[StringStringEntryProto] = messages(14, lambda: StringStringEntryProto)


@dataclass(slots=True)
class ModelProto(Message):
    """A file: a graph, and the versions of what it is written in."""

    ir_version: int = integer(1)
    producer_name: str = text(2)
    producer_version: str = text(3)
    domain: str = text(4)
    model_version: int = integer(5)
    doc_string: str = text(6)
    graph: GraphProto | None = message(7, lambda: GraphProto)
    opset_import: Sequence[OperatorSetIdProto] = messages(8, lambda: OperatorSetIdProto)
    metadata_props: Sequence[StringStringEntryProto] = messages(14, lambda: StringStringEntryProto)
    functions: Sequence[FunctionProto] = messages(25, lambda: FunctionProto)


def read_model(source: Source) -> ModelProto:
    """Read a model from a path, which is mapped, or from bytes.

    Raises:  CheckpointError if it is truncated, malformed or no ONNX file; OSError if the path cannot be read
    """
    opened = open_source(source)
    model = Reader(opened.data.data, opened.name).read(ModelProto)
    if model.graph is None:
        raise CheckpointError(f"{opened.name} has no graph; it is no ONNX model", hint=HINT)
    return model


def read_tensor(source: Source) -> TensorProto:
    """Read a file that holds one tensor, as test data sets do.  Raises: as `read_model`"""
    opened = open_source(source)
    return Reader(opened.data.data, opened.name).read(TensorProto)
