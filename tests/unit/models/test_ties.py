"""Weights that a checkpoint holds under several names: which are one, which are apart."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import tallow as tl
from tallow.io import safetensors
from tallow.io.stored import stored_folder
from tallow.models.ties import COMPARED_BYTES, are_equal, tied_values

TIES = {"encoder": "shared", "decoder": "shared", "head": "shared"}


def tensors(**values: float) -> dict[str, tl.Tensor]:
    return {name: tl.full((3, 2), value) for name, value in values.items()}


@pytest.mark.parametrize(
    "names", [("shared",), ("head",), ("decoder", "head"), ("shared", "encoder"), (*TIES, "shared")]
)
def test_one_name_is_enough(names: tuple[str, ...]) -> None:
    values, apart = tied_values(TIES, tensors(**dict.fromkeys(names, 1.0)))
    assert values.keys() == {*TIES, "shared"}
    assert all((value == 1).all() for value in values.values())
    assert not apart


@pytest.mark.parametrize(
    ("held", "expected", "apart"),
    [
        ({"shared": 0, "head": 1}, {"shared": 0, "encoder": 0, "decoder": 0, "head": 1}, {"head"}),
        ({"encoder": 0, "decoder": 1}, {"shared": 0, "encoder": 0, "decoder": 1, "head": 0}, {"decoder"}),
        ({"decoder": 1, "head": 2}, {"shared": 1, "encoder": 1, "decoder": 1, "head": 2}, {"head"}),
        (
            {"shared": 0, "encoder": 1, "head": 1},
            {"shared": 0, "encoder": 1, "decoder": 0, "head": 1},
            {"encoder", "head"},
        ),
    ],
)
def test_other_values_are_apart(held: dict[str, float], expected: dict[str, float], apart: set[str]) -> None:
    values, found = tied_values(TIES, tensors(**held))
    assert {name: value.flatten()[0].item() for name, value in values.items()} == expected
    assert found == apart


def test_nothing_is_invented() -> None:
    assert tied_values(TIES, tensors(other=1)) == ({}, frozenset())


@pytest.mark.parametrize("dtype", [tl.float32, tl.float16, tl.bfloat16], ids=str)
def test_one_different_element(dtype: tl.dtype) -> None:
    rows = COMPARED_BYTES // 2048 + 3
    one, other = tl.ones(rows, 1024, dtype=dtype), tl.ones(rows, 1024, dtype=dtype)
    assert are_equal(one, other)
    assert are_equal(one, tl.ones(rows, 1024, dtype=tl.float32))
    other[-1, -1] = 2
    assert not are_equal(one, other)
    assert not are_equal(one, one[:-1])


def test_scalars_and_empty_tensors() -> None:
    assert are_equal(tl.tensor(1.0), tl.tensor(1.0))
    assert not are_equal(tl.tensor(1.0), tl.tensor(2.0))
    assert are_equal(tl.ones(0, 3), tl.ones(0, 3))
    assert are_equal(tl.ones(3, 0), tl.ones(3, 0))


def test_tensors_in_files(tmp_path: Path) -> None:
    table = tl.randn(50, 4)
    other = table.clone()
    other[49, 3] += 1
    safetensors.save({"a": table, "b": table, "c": other, "s": tl.tensor(1.0)}, tmp_path / "model.safetensors")
    stored = stored_folder(tmp_path)
    assert are_equal(stored["a"], stored["b"])
    assert not are_equal(stored["a"], stored["c"])
    assert are_equal(stored["s"], stored["s"])


def test_memory_does_not_grow_with_the_tensors() -> None:
    rows = 8 * COMPARED_BYTES // 4096
    one, other = tl.ones(rows, 1024), tl.ones(rows, 1024)
    tracemalloc.start()
    try:
        assert are_equal(one, other)
        assert tracemalloc.get_traced_memory()[1] < COMPARED_BYTES
    finally:
        tracemalloc.stop()


def test_the_same_memory_is_not_read() -> None:
    array = np.full((4, 4), np.nan, np.float32)  # unequal to itself, if read
    assert are_equal(tl.from_numpy(array), tl.from_numpy(array))
