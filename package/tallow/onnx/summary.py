"""The contents of an ONNX file, without its weights: operators, inputs and outputs, sizes by layer, quantisation."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tallow.errors import CheckpointError, UnsupportedError
from tallow.io.contents import Contents, Entry
from tallow.io.source import Source
from tallow.onnx import operators as _operators  # noqa: F401 - fills the table of operators
from tallow.onnx.protobuf import (
    EXTERNAL,
    DataType,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    read_model,
)
from tallow.onnx.scopes import Program
from tallow.onnx.tensors import ExternalFiles, shape_of

SUFFIX = ".onnx"
LARGE = 1024  # bytes of a tensor in a Constant node that count as weights
BITS = {"FLOAT": 32, "DOUBLE": 64, "BOOL": 8}  # of dtypes whose names do not say it
OTHER_NAMES = {"FLOAT": "float32", "DOUBLE": "float64"}
QUANTISED = re.compile(
    r"QLinear\w+|QGemm|QAttention|\w+Integer|DynamicQuantize\w+|QuantizeLinear|\w+NBits|GatherBlock\w+"
)


@dataclass(frozen=True, slots=True)
class Value:
    """An input or output of a graph.

    Attributes:
        dtype: such as "float32"; of other values their kind, such as "sequence".
        shape: a number for each dim, its name if the file leaves it open, None if it has no name; None if the file
            does not give the rank.
    """

    name: str
    dtype: str
    shape: list[int | str | None] | None


@dataclass(frozen=True, slots=True)
class OnnxContents(Contents):
    """The contents of an ONNX file.

    Attributes:
        opsets: the version of the operators of each domain; "ai.onnx" is that of ONNX itself.
        inputs, outputs: of the graph.
        operators: how many nodes call each operator, with its domain unless that is ONNX's own; also those of
            subgraphs and functions.
        layers: bytes of the weights of each layer, in the order of the nodes that read them.
        quantisation: how many nodes compute with quantised values, by a description of how.
        unsupported: how many nodes call each operator that `tallow.onnx.load` lacks; or why it reads none of them.
    """

    opsets: dict[str, int]
    inputs: list[Value]
    outputs: list[Value]
    operators: dict[str, int]
    layers: dict[str, int]
    quantisation: dict[str, int]
    unsupported: dict[str, int]


def is_onnx(path: str | os.PathLike[str]) -> bool:
    """Return whether a path names an ONNX file: by its suffix, since the format has no mark at its start."""
    return os.fspath(path).lower().endswith(SUFFIX)


def contents(source: Source) -> OnnxContents:
    """Return the contents of an ONNX file. Weights are not read.

    Raises:  CheckpointError if it is truncated, malformed or no ONNX file; OSError if it cannot be read
    """
    return contents_of(read_model(source))


def contents_of(model: ModelProto) -> OnnxContents:
    """Return the contents of a model that was read."""
    graph = model.graph or GraphProto()
    tensors = [_entry(name, tensor) for name, tensor in each_weight(graph)]
    weights = {tensor.name for tensor in graph.initializer}
    nodes = [*each_node(graph), *(node for function in model.functions for node in each_node(function))]
    metadata: dict[str, Any] = {
        "producer": " ".join(filter(None, (model.producer_name, model.producer_version))),
        "graph": graph.name,
        "IR version": model.ir_version,
        "description": model.doc_string,
        **{entry.key: entry.value for entry in model.metadata_props},
    }
    return OnnxContents(
        "ONNX",
        {name: value for name, value in metadata.items() if value},
        tensors,
        {entry.domain or "ai.onnx": entry.version for entry in model.opset_import},
        [_value(each) for each in graph.input if each.name not in weights],
        [_value(each) for each in graph.output],
        dict(Counter(operator_name(node) for node in nodes).most_common()),
        _layers(graph, tensors),
        dict(Counter(_quantised(graph, nodes)).most_common()),
        _unsupported(model),
    )


def each_node(graph: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    """Yield the nodes of a graph and of the graphs in their attributes."""
    waiting: list[GraphProto | FunctionProto] = [graph]
    while waiting:
        for node in waiting.pop().node:
            yield node
            for attribute in node.attribute:
                waiting += [*([attribute.g] if attribute.g else ()), *attribute.graphs]


def operator_name(node: NodeProto) -> str:
    """Return the name of a node's operator, with its domain unless that is ONNX's own."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def dtype_name(number: int) -> str:
    """Return the name of a dtype by its number in ONNX."""
    try:
        name = DataType(number).name
    except ValueError:
        return f"dtype {number}"
    return OTHER_NAMES.get(name, name.lower())


def _unsupported(model: ModelProto) -> dict[str, int]:
    try:
        return dict(Program(model, ExternalFiles(None), "the file").unsupported().most_common())
    except (UnsupportedError, CheckpointError) as error:  # such as an opset from the future
        return {str(error).partition("\n")[0]: 1}


def each_weight(graph: GraphProto) -> Iterator[tuple[str, TensorProto]]:
    """Yield the initializers, and large tensors of Constant nodes, with their names."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        for attribute in node.attribute if node.op_type == "Constant" else ():
            if attribute.t is not None and _bytes(attribute.t) >= LARGE:
                yield node.output[0] if node.output else "", attribute.t


def _entry(name: str, tensor: TensorProto) -> Entry:
    return Entry(name, dtype_name(tensor.data_type), shape_of(tensor), _bytes(tensor))


def _bytes(tensor: TensorProto) -> int:
    """Return the size of a tensor in its file, as far as the file says."""
    if tensor.raw_data is not None:
        return memoryview(tensor.raw_data).nbytes
    external = {entry.key: entry.value for entry in tensor.external_data} if tensor.data_location == EXTERNAL else {}
    if (length := external.get("length", "")).isdecimal() and len(length) < 20:
        return int(length)
    if tensor.data_type == DataType.STRING:
        return sum(len(each) for each in tensor.string_data)
    name = DataType(tensor.data_type).name if tensor.data_type in list(DataType) else ""
    digits = re.search(r"\d+", name)
    bits = BITS.get(name) or (int(digits[0]) if digits else 32)
    return prod(tensor.dims) * bits // 8


def _value(value: ValueInfoProto) -> Value:
    kind = value.type
    if kind is None:
        return Value(value.name, "unknown", None)
    tensor = kind.tensor_type or kind.sparse_tensor_type
    if tensor is None:
        kinds = {"sequence": kind.sequence_type, "map": kind.map_type, "optional": kind.optional_type}
        return Value(value.name, next((name for name, given in kinds.items() if given), "unknown"), None)
    dims = (
        None
        if tensor.shape is None
        else [
            dim.dim_param or None if dim.dim_value is None or dim.dim_value < 0 else dim.dim_value
            for dim in tensor.shape.dim
        ]
    )
    return Value(value.name, dtype_name(tensor.elem_type), dims)


def _layers(graph: GraphProto, tensors: Sequence[Entry]) -> dict[str, int]:
    """Return the bytes of the weights of each layer: the module that the first node that reads them is named after."""
    sizes = {entry.name: entry.bytes for entry in tensors}
    layers: Counter[str] = Counter()
    for node in graph.node:
        for name in node.input:
            if size := sizes.pop(name, 0):
                layers[_layer(node.name if "/" in node.name else name)] += size
    for name, size in sizes.items():  # only subgraphs read these, or nothing
        if size:
            layers[_layer(name)] += size
    return dict(layers)


def _layer(path: str) -> str:
    """Return the beginning of a path, up to its first number: `encoder.layers.0` of a part of that layer."""
    parts = [part for part in re.split(r"[/.]", path) if part]
    number = next((i for i, part in enumerate(parts) if part.isdecimal()), None)
    return ".".join(parts[: number + 1] if number is not None else parts[:-1] or parts) or path


def _quantised(graph: GraphProto, nodes: Sequence[NodeProto]) -> Iterator[str]:
    """Yield a description of each node that computes with quantised values."""
    dtypes = {tensor.name: dtype_name(tensor.data_type) for tensor in graph.initializer}
    for node in nodes:
        numbers = {attribute.name: attribute.i for attribute in node.attribute if attribute.i is not None}
        if node.op_type == "DequantizeLinear":
            dtype = dtypes.get(node.input[0]) if node.input else None
            yield f"DequantizeLinear of {dtype} weights" if dtype else "DequantizeLinear of activations"
        elif QUANTISED.fullmatch(node.op_type):
            block = (
                f", {numbers.get('bits', 4)} bits, blocks of {numbers['block_size']}" if "block_size" in numbers else ""
            )
            yield node.op_type + block
