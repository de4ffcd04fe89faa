"""Shape arithmetic is recorded as sizes of dims, and sizes that no input decides are known when a file is loaded."""

from __future__ import annotations

import pytest
from support.onnx_graphs import call, loaded, typed

import tallow as tl
from tallow.onnx.protobuf import ValueInfoProto

HEADS = [
    call("Shape", "x", "s"),
    call("Gather", "s zero", "b"),
    call("Unsqueeze", "b axes", "b1"),
    call("Concat", "b1 rest", "shape", axis=0),
    call("Reshape", "x shape", "y"),
]
NUMBERS = {"zero": 0, "axes": [0], "rest": [4, -1]}


def test_a_reshape_reads_the_size_of_a_dim() -> None:
    model = loaded(HEADS, [typed("x", "batch", 8)], NUMBERS)
    assert "tensor" not in model.code
    assert "shape[0]" in model.code.replace("getattr_1[0]", "shape[0]")
    for batch in (1, 2, 7):
        assert model(tl.ones(batch, 8)).shape == (batch, 4, 2)


def test_sizes_that_are_known_are_numbers() -> None:
    model = loaded(HEADS, [typed("x", 3, 8)], NUMBERS)
    assert "getattr" not in model.code
    assert "(3, 4, -1)" in model.code


def test_a_shape_without_a_known_number_of_dims() -> None:
    model = loaded(HEADS, [ValueInfoProto("x")], NUMBERS)
    assert model(tl.ones(2, 2, 4)).shape == (2, 4, 2)


def test_arithmetic_of_sizes() -> None:
    nodes = [
        call("Shape", "x", "s"),
        call("Gather", "s zero", "n"),
        call("Mul", "n two", "m"),
        call("Sub", "m one", "k"),
        call("Range", "zero k one", "y"),
    ]
    model = loaded(nodes, [typed("x", "n")], {"zero": 0, "one": 1, "two": 2})
    assert "arange" in model.code
    assert model(tl.ones(3)).tolist() == [0, 1, 2, 3, 4]


def test_the_shape_that_exporters_write_for_expand() -> None:
    nodes = [
        call("Shape", "x", "s"),
        call("Gather", "s zero", "n"),
        call("Unsqueeze", "n axes", "n1"),
        call("Concat", "n1 open", "wanted", axis=0),
        call("Equal", "wanted open2", "is_open"),
        call("Where", "is_open ones wanted", "shape"),
        call("Expand", "row shape", "y"),
    ]
    numbers = {"zero": 0, "axes": [0], "open": [-1], "open2": [-1, -1], "ones": [1, 1], "row": [[5, 6]]}
    model = loaded(nodes, [typed("x", "n")], numbers)
    assert "where" not in model.code
    assert model(tl.ones(3)).tolist() == [[5, 6]] * 3


@pytest.mark.parametrize("dims", [("n", "m"), (2, "m"), ("n", 6)])
def test_a_shape_that_goes_elsewhere_is_a_tensor(dims: tuple[int | str, ...]) -> None:
    model = loaded([call("Shape", "x", "y")], [typed("x", *dims)], {})
    assert model(tl.ones(2, 6)).tolist() == [2, 6]


def test_sizes_in_int32_stay_in_int32() -> None:
    nodes = [call("Shape", "x", "s"), call("Cast", "s", "c", to=6), call("Concat", "c two", "d", axis=0)]
    nodes += [call("Mul", "d two", "y")]
    model = loaded(nodes, [typed("x", "n", 4)], {"two": tl.tensor([2], dtype=tl.int32)})
    found = model(tl.ones(3, 4))
    assert found.dtype is tl.int32
    assert found.tolist() == [6, 8, 4]


@pytest.mark.parametrize("divisor", [2, 3, 4])
def test_a_part_of_a_batch_depends_on_its_size(divisor: int) -> None:
    nodes = [
        call("Shape", "x", "s"),
        call("Gather", "s zeros", "b"),
        call("Div", "b divisor", "end"),
        call("Slice", "x zeros end zeros", "part"),
        call("Shape", "part", "y"),
    ]
    model = loaded(nodes, [typed("x", "n", 4)], {"zeros": [0], "divisor": [divisor]})
    for batch in (4, 12):
        assert model(tl.ones(batch, 4)).tolist() == [batch // divisor, 4]
