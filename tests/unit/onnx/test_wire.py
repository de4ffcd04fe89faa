"""The messages of ONNX files are read as they were written, and malformed ones are refused."""

from __future__ import annotations

import numpy as np
import pytest

from tallow.errors import CheckpointError
from tallow.onnx.protobuf import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    encode,
    read_model,
)


def small_model() -> ModelProto:
    node = NodeProto(input=["x", "", "w"], output=["y"], op_type="Clip", attribute=[AttributeProto(name="i", i=0)])
    packed = TensorProto(dims=[3], data_type=7, name="k", int64_data=np.array([-1, 2**40, 0]))
    raw = TensorProto(dims=[2], data_type=1, name="w", raw_data=np.float32([1, 2]).tobytes())
    graph = GraphProto(node=[node], name="g", initializer=[packed, raw])
    return ModelProto(ir_version=10, graph=graph, opset_import=[OperatorSetIdProto(version=18)])


def test_a_model_is_read_as_it_was_written() -> None:
    model = read_model(encode(small_model()))
    assert model.graph is not None
    assert [*model.graph.node[0].input] == ["x", "", "w"]
    assert model.graph.node[0].attribute[0].i == 0  # written although it is zero: it tells 0 from absent
    assert model.graph.initializer[0].int64_data.tolist() == [-1, 2**40, 0]
    assert bytes(model.graph.initializer[1].raw_data) == np.float32([1, 2]).tobytes()
    assert model.opset_import[0].version == 18


def test_bytes_of_a_tensor_are_views_of_the_source() -> None:
    source = bytearray(encode(small_model()))
    raw = read_model(source).graph.initializer[1].raw_data
    assert np.shares_memory(np.frombuffer(raw, np.uint8), np.frombuffer(source, np.uint8))


def test_unpacked_numbers_are_read_too() -> None:
    # 10: dims; 38: int64_data, one field for each number, as a writer of proto2 writes them
    tensor = bytes([0x08, 2, 0x10, 7, 0x38, 5, 0x38, 6])
    graph = bytes([0x2A, len(tensor)]) + tensor
    model = read_model(bytes([0x3A, len(graph)]) + graph)
    assert model.graph.initializer[0].int64_data.tolist() == [5, 6]


@pytest.mark.parametrize("length", range(1, 60, 7))
def test_a_truncated_file_is_refused(length: int) -> None:
    with pytest.raises(CheckpointError, match=r"truncated|no graph"):
        read_model(encode(small_model())[:-length])


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "no graph"),
        (b"\x3a\x7f", "127 bytes"),
        (b"\x3b", "wire type 3"),
        (b"\x3a\x02\x0a\x7f", "127 bytes"),
        (b"\xff" * 12, "without an end"),
        (b"\x3a\x00\x3a\x00", "twice"),
        (b"\x3a\x04\x12\x02\xff\xfe", "not UTF-8"),
        (b"\x38\x01", "wire type 0"),
    ],
)
def test_a_malformed_file_is_refused(data: bytes, found: str) -> None:
    with pytest.raises(CheckpointError, match=found):
        read_model(data)


def test_deep_nesting_is_refused() -> None:
    graph = GraphProto()
    for _ in range(40):
        node = NodeProto(op_type="If", attribute=[AttributeProto(name="then_branch", g=graph)])
        graph = GraphProto(node=[node])
    with pytest.raises(CheckpointError, match="nested more than 100 deep"):
        read_model(encode(ModelProto(graph=graph)))
