"""GGUF files that tallow writes: what they hold is what is read; values that GGUF cannot store are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.errors import ArgumentError, ArgumentTypeError
from tallow.io import gguf, gguf_weights
from tallow.io.gguf_layout import PLAIN
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.gguf_quantize import QUANTIZERS, quantize


def matrix(rows: int = 3, width: int = 512) -> Any:
    return np.random.default_rng(0).standard_normal((rows, width), dtype=np.float32)


def test_metadata_is_read_as_it_was_written(tmp_path: Path) -> None:
    metadata: dict[str, Any] = {"name": "é", "yes": True, "count": 7, "below": -1, "large": 2**40, "lowest": -(2**63)}
    metadata |= {"largest": 2**64 - 1, "rate": 0.5, "words": ["a", "é", ""], "ids": [1, -2], "rates": [0.5, 2]}
    metadata |= {"flags": [True, False], "none": [], "wide": [2**40, -1], "widest": [2**63, 1]}
    gguf.save({}, tmp_path / "x.gguf", metadata)
    read = gguf.load(tmp_path / "x.gguf").metadata
    assert read == metadata
    assert [type(value) for value in read.values()] == [type(value) for value in metadata.values()]


def test_numpy_values_keep_their_dtype(tmp_path: Path) -> None:
    metadata = {"short": np.uint16(3), "exact": np.float64(0.1), "bytes": np.arange(3, dtype=np.int8)}
    gguf.save({}, tmp_path / "x.gguf", metadata | {"longs": np.arange(2, dtype=np.int64)})
    raw = (tmp_path / "x.gguf").read_bytes()
    assert gguf.load(raw).metadata == {"short": 3, "exact": 0.1, "bytes": [0, 1, 2], "longs": [0, 1]}
    assert b"short\x02\0\0\0\x03\0" in raw  # a type of two bytes
    assert b"bytes\x09\0\0\0\x01\0\0\0\x03" in raw
    assert b"longs\x09\0\0\0\x0b\0\0\0\x02" in raw


@pytest.mark.parametrize("format", [*QUANTIZERS, "F32", "F16", "BF16", "F64"])
@pytest.mark.parametrize("dtype", [tl.float32, tl.float16, tl.bfloat16])
def test_tensors_are_converted(format: str, dtype: tl.dtype, tmp_path: Path) -> None:
    x = tl.tensor(matrix()).to(dtype)
    gguf.save({"odd": tl.ones(3), "x": x}, tmp_path / "x.gguf", types={"x": format})
    file = gguf.load(tmp_path / "x.gguf")
    assert file.info("x").type == format
    assert file.info("x").begin == 32
    if format in PLAIN:
        assert tl.equal(file["x"], x.cpu().to(PLAIN[format]))
    else:
        np.testing.assert_array_equal(file.get_blocks("x"), quantize(format, x.float().numpy()).reshape(-1))
    assert file["odd"].tolist() == [1, 1, 1]


def test_parts_make_the_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gguf.save({"x": tl.tensor(matrix(9))}, tmp_path / "whole.gguf", types={"x": "Q4_K"})
    monkeypatch.setattr(gguf_weights, "PART", 1024)
    gguf.save({"x": tl.tensor(matrix(9))}, tmp_path / "parts.gguf", types={"x": "Q4_K"})
    assert (tmp_path / "parts.gguf").read_bytes() == (tmp_path / "whole.gguf").read_bytes()


def test_shapes_and_other_dtypes(tmp_path: Path) -> None:
    tensors = {"scalar": tl.tensor(1.5), "empty": tl.zeros(0, 3), "ids": tl.tensor([1, -2]), "cube": tl.randn(2, 3, 4)}
    tensors |= {"view": tl.randn(4, 6).T, "many": tl.tensor(np.arange(70000, dtype=np.int16))}
    tl.save(tensors, tmp_path / "x.gguf")
    read = tl.load(tmp_path / "x.gguf")
    assert read.metadata == {}
    for name, tensor in tensors.items():
        assert read[name].dtype is tensor.dtype
        assert tl.equal(read[name], tensor.cpu())


def test_blocks_are_copied(tmp_path: Path) -> None:
    blocks = BlockMatrix(quantize("Q6_K", matrix()), "Q6_K")
    gguf.save({"x": blocks}, tmp_path / "x.gguf")
    assert gguf.load(tmp_path / "x.gguf").matrix("x").blocks.tobytes() == blocks.blocks.tobytes()
    with pytest.raises(ArgumentError, match="in Q6_K already"):
        gguf.save({"x": blocks}, tmp_path / "x.gguf", types={"x": "Q4_K"})


@pytest.mark.parametrize(
    ("tensors", "metadata", "types", "error", "message"),
    [
        ({"x": 1}, {}, {}, ArgumentTypeError, "'x' is int, not a Tensor"),
        ({"x": tl.tensor([True])}, {}, {}, ArgumentTypeError, "bool, which GGUF lacks"),
        ({"x": tl.zeros(1, 1, 1, 1, 1)}, {}, {}, ArgumentError, "5 dims"),
        ({"x": tl.zeros(2, 100)}, {}, {"x": "Q8_0"}, ArgumentError, "multiples of 32"),
        ({"x": tl.zeros(2, 32)}, {}, {"x": "Q4_K"}, ArgumentError, "multiples of 256"),
        ({"x": tl.zeros(2, 32)}, {}, {"x": "Q9"}, ArgumentError, "unknown format 'Q9'"),
        ({"x": tl.zeros(2, 32)}, {}, {"y": "Q8_0"}, ArgumentError, "'y', which is not the name"),
        ({"x": tl.full((2, 32), float("nan"))}, {}, {"x": "Q8_0"}, ArgumentError, "tensor 'x': .* NaN"),
        ({"x": tl.full((2, 32), float("inf"))}, {}, {"x": "BF16"}, ArgumentError, "tensor 'x' has .* infinite"),
        ({"x": tl.full((2, 32), 1e6)}, {}, {"x": "F16"}, ArgumentError, "beyond the range of F16"),
        ({"x": tl.full((2, 32), 1e7)}, {}, {"x": "Q8_0"}, ArgumentError, "tensor 'x': .* exceed the range of Q8_0"),
        ({}, {"a": None}, {}, ArgumentTypeError, "metadata 'a'"),
        ({}, {"a": [1, "b"]}, {}, ArgumentTypeError, "of one kind"),
        ({}, {"a": 2**64}, {}, ArgumentTypeError, "metadata 'a'"),
        ({}, {"a": 1j}, {}, ArgumentTypeError, "metadata 'a'"),
        ({}, {"a": np.zeros((2, 2))}, {}, ArgumentTypeError, "metadata 'a'"),
        ({}, {"a": np.float16(1)}, {}, ArgumentTypeError, "metadata 'a'"),
    ],
)
def test_unsupported_values_leave_the_old_file(
    tensors: Any, metadata: Any, types: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    (tmp_path / "x.gguf").write_bytes(b"old")
    with pytest.raises(error, match=message):
        gguf.save(tensors, tmp_path / "x.gguf", metadata, types)
    assert (tmp_path / "x.gguf").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x.gguf"]


def test_plain_tensors_keep_what_is_not_finite(tmp_path: Path) -> None:
    tl.save({"x": tl.tensor([float("nan"), float("inf")])}, tmp_path / "x.gguf")
    np.testing.assert_array_equal(tl.load(tmp_path / "x.gguf")["x"].numpy(), [np.nan, np.inf])
