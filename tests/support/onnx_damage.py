"""Damage ONNX files field by field: wrong numbers, other names, missing and repeated nodes."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import tallow as tl
from support.fuzz import EDGES, change_bytes
from support.onnx_graphs import call, file_of, typed
from tallow.errors import TallowError
from tallow.onnx.protobuf import AttributeProto, GraphProto, NodeProto, ValueInfoProto, encode, read_model
from tallow.onnx.wire import Field, Message, table


def valid_file() -> bytes:
    """Return a file with products, convolutions of floats and of codes, maxima, shapes, a choice and a loop."""
    branch = GraphProto(node=[call("Relu", "f", "t")], output=[ValueInfoProto("t")])
    other = GraphProto(node=[call("Neg", "f", "u")], output=[ValueInfoProto("u")])
    body = GraphProto(
        node=[call("Add", "s one", "next")],
        input=[ValueInfoProto(name) for name in ("i", "going", "s")],
        output=[ValueInfoProto("going"), ValueInfoProto("next")],
    )
    choice = [AttributeProto("then_branch", g=branch), AttributeProto("else_branch", g=other)]
    repeated = AttributeProto("body", g=body)
    nodes = [
        call("QuantizeLinear", "x step zero_point", "codes"),
        call("DequantizeLinear", "codes step zero_point", "d"),
        call("DequantizeLinear", "point step zero_point", "dw"),
        call("Conv", "d dw", "dc", strides=[1, 1]),
        call("QuantizeLinear", "dc step zero_point", "more"),
        call("DequantizeLinear", "more step zero_point", "image"),
        call("MaxPool", "image", "p", kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1]),
        call("Conv", "p kernel", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        call("Shape", "c", "shape"),
        call("Gather", "shape zero", "n"),
        call("Unsqueeze", "n axes", "n1"),
        call("Concat", "n1 rest", "flat", axis=0),
        call("Reshape", "c flat", "r"),
        call("Gemm", "r w b", "g", alpha=0.5, transB=1),
        call("Softmax", "g", "f", axis=-1),
        call("ReduceSum", "f", "sum", keepdims=0),
        call("Greater", "sum one", "is_large"),
        NodeProto(op_type="If", input=["is_large"], output=["chosen"], attribute=choice),
        NodeProto(op_type="Loop", input=["trips", "", "chosen"], output=["y"], attribute=[repeated]),
    ]
    weights: dict[str, Any] = {"kernel": tl.ones(2, 1, 3, 3), "w": tl.ones(3, 32), "b": tl.ones(3), "one": 1.0}
    weights |= {"zero": 0, "axes": [0], "rest": [-1], "trips": 2, "step": 0.1}
    weights |= {"zero_point": tl.tensor(3, dtype=tl.uint8), "point": tl.full((1, 1, 1, 1), 7, dtype=tl.uint8)}
    return file_of(nodes, [typed("x", "n", 1, 4, 4)], weights)


def read(raw: bytes) -> Any:
    """Load a file and run it; a damaged loop may have no end."""
    model = tl.onnx.load(raw, max_trips=100)
    with tl.no_grad():
        return model(tl.ones(2, 1, 4, 4)), sorted(model.state_dict())


def another_order(rng: Random, raw: bytes) -> bytes:
    """Return the file with its tensors in another order."""
    model = read_model(raw)
    assert model.graph is not None
    model.graph.initializer = rng.sample(list(model.graph.initializer), len(model.graph.initializer))
    return encode(model)


def change(rng: Random, raw: bytes) -> bytes:
    """Change one field of a message; in some cases the bytes."""
    try:
        model = read_model(raw)
    except TallowError:
        return change_bytes(rng, raw)
    if rng.random() < 0.3:
        return change_bytes(rng, raw)
    places = list(_places(model))
    holder, field = rng.choice(places)
    value = getattr(holder, field.name)
    names = sorted({name for each, kind in places for name in _texts(getattr(each, kind.name))}) or [""]
    setattr(holder, field.name, _changed(rng, field, value, names))
    try:
        return encode(model)
    except (OverflowError, ValueError):  # the value does not fit its field
        return change_bytes(rng, raw)


def _places(message: Message) -> Iterator[tuple[Message, Field]]:
    for field in table(type(message)).values():
        value = getattr(message, field.name)
        if value is None or (field.repeated and not len(value)):
            continue
        yield message, field
        if field.kind == "message":
            for each in value if field.repeated else [value]:
                yield from _places(each)


def _texts(value: Any) -> list[str]:
    return [each for each in (value if isinstance(value, list | tuple) else [value]) if isinstance(each, str)]


def _changed(rng: Random, field: Field, value: Any, names: list[str]) -> Any:
    if field.repeated and rng.random() < 0.5:
        parts = list(value)
        at = rng.randrange(len(parts))
        match rng.randrange(4):
            case 0:
                del parts[at]
            case 1:
                parts.insert(rng.randrange(len(parts) + 1), parts[at])
            case 2:
                rng.shuffle(parts)
            case _:
                parts *= rng.choice((0, 2, 5))
        return parts
    if field.repeated:
        parts = list(value)
        at = rng.randrange(len(parts))
        parts[at] = _single(rng, field, parts[at], names)
        return parts
    return _single(rng, field, value, names)


def _single(rng: Random, field: Field, value: Any, names: list[str]) -> Any:
    match field.kind:
        case "integer":
            return rng.choice((*EDGES, -1, -2, value + 1, value - 1, 3, 4, 5, 8, 20)) % 2**63
        case "float":
            return rng.choice((0.0, -1.0, 1e38, float("inf"), float("nan"), -value))
        case "text":
            return rng.choice((*names, "", "Add", "Shape", "Reshape", "Expand", "Loop", "\n", "x" * 300))
        case "bytes":
            return change_bytes(rng, bytes(value))
        case "array":
            return value[: rng.randrange(len(value) + 1)]
        case _:
            return None if not field.repeated else value
