"""Convert the attributes of nodes to Python values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallow.core.creation import tensor
from tallow.core.tensor import Tensor
from tallow.dtypes import float32, int64
from tallow.errors import CheckpointError, UnsupportedError
from tallow.onnx.protobuf import AttributeProto, AttributeType, Buffer
from tallow.onnx.tensors import ExternalFiles, tensor_of

# The field that holds the value, by the attribute's type
FIELDS = {
    AttributeType.FLOAT: "f",
    AttributeType.INT: "i",
    AttributeType.STRING: "s",
    AttributeType.TENSOR: "t",
    AttributeType.GRAPH: "g",
    AttributeType.FLOATS: "floats",
    AttributeType.INTS: "ints",
    AttributeType.STRINGS: "strings",
    AttributeType.TENSORS: "tensors",
    AttributeType.GRAPHS: "graphs",
    AttributeType.TYPE_PROTO: "tp",
    AttributeType.TYPE_PROTOS: "type_protos",
}
ABSENT = {AttributeType.FLOAT: 0.0, AttributeType.INT: 0, AttributeType.STRING: b""}


def attribute_value(proto: AttributeProto, files: ExternalFiles, where: str) -> Any:
    """Return an attribute: float, int, str, Tensor, message of a graph or type, or a tuple of them.

    Args:    where: names the node, for error messages
    Raises:  CheckpointError if the value is missing; UnsupportedError for sparse tensors
    """
    kind = proto.type or next((kind for kind, name in FIELDS.items() if _is_there(proto, name)), 0)
    if kind in (AttributeType.SPARSE_TENSOR, AttributeType.SPARSE_TENSORS):
        raise UnsupportedError(f"{where}: the attribute {proto.name!r:.80} is a sparse tensor")
    try:
        known = AttributeType(kind)
        value = getattr(proto, FIELDS[known])
    except (ValueError, KeyError) as error:
        raise CheckpointError(f"{where}: the attribute {proto.name!r:.80} has the unknown type {kind}") from error
    if value is None:
        value = ABSENT.get(known)
    if value is None:
        raise CheckpointError(f"{where}: the attribute {proto.name!r:.80} has no value")
    if known is AttributeType.STRING:
        return _text(value)
    if known is AttributeType.TENSOR:
        return tensor_of(value, files)
    if known is AttributeType.STRINGS:
        return tuple(map(_text, value))
    if known is AttributeType.TENSORS:
        return tuple(tensor_of(each, files) for each in value)
    return tuple(value) if isinstance(value, list | tuple) else value


def _is_there(proto: AttributeProto, name: str) -> bool:
    held = getattr(proto, name)
    return held is not None and not (isinstance(held, tuple | list) and not held)


def _text(value: Buffer) -> str:
    return str(value, "utf-8", "surrogateescape")


# Attributes of the operator Constant that are neither a tensor nor strings, and the dtype of the tensor
_CONSTANTS = {"value_float": float32, "value_floats": float32, "value_int": int64, "value_ints": int64}


def constant_value(given: list[AttributeProto], files: ExternalFiles, where: str) -> Any:
    """Return the value of a node Constant: a Tensor, or an array of strings.

    Raises:  as `attribute_value`; CheckpointError unless it has exactly one attribute
    """
    if len(given) != 1:
        raise CheckpointError(f"{where} has {len(given)} attributes; a Constant has one")
    proto = given[0]
    value = attribute_value(proto, files, where)
    if proto.name == "value" and isinstance(value, Tensor | np.ndarray):
        return value
    if proto.name in ("value_string", "value_strings"):
        return np.array(value, object)
    if proto.name in _CONSTANTS:
        return tensor(value, dtype=_CONSTANTS[proto.name])
    raise UnsupportedError(f"{where} has the attribute {proto.name!r:.80}, which is not supported")
