"""GGUF compared with its own package, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType

import tallow as tl
from tallow.io.gguf import FOREIGN, PLAIN, TYPES
from tallow.kernels.quantized import gguf_blocks
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.grouped_matrix import GroupedMatrix, is_scaled

BLOCKS = 2000
FOUR_BITS = ("Q4_0", "Q4_1", "Q4_K", "TQ1_0", "TQ2_0")


def test_numbers_of_formats_are_those_of_the_package() -> None:
    theirs = {kind.value: kind.name for kind in GGMLQuantizationType}
    assert theirs == TYPES | FOREIGN
    assert set(TYPES.values()) == {*PLAIN, *gguf_blocks.FORMATS}


@pytest.mark.parametrize("name", list(gguf_blocks.FORMATS))
def test_every_format_is_dequantised_to_the_same_bits(name: str) -> None:
    kind = GGMLQuantizationType[name]
    layout = gguf_blocks.FORMATS[name]
    assert (layout.weights, layout.record.itemsize) == gguf.GGML_QUANT_SIZES[kind]
    raw = np.random.default_rng(0).integers(0, 256, BLOCKS * layout.record.itemsize, dtype=np.uint8)
    with np.errstate(all="ignore"):  # random scales include infinity and NaN
        expected = gguf.quants.dequantize(raw, kind)
    np.testing.assert_array_equal(gguf_blocks.dequantize(name, raw).view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("name", list(gguf_blocks.FORMATS))
def test_codes_and_scales_are_the_same_weights(name: str) -> None:
    kind = GGMLQuantizationType[name]
    raw = np.random.default_rng(1).integers(0, 256, (BLOCKS, gguf_blocks.FORMATS[name].record.itemsize), dtype=np.uint8)
    with np.errstate(all="ignore"):
        raw = raw[np.isfinite(gguf.quants.dequantize(raw, kind)).all(axis=1)]
    assert is_scaled(name) != name.startswith(("IQ1", "IQ2", "IQ3"))
    if not is_scaled(name):
        return
    expected, matrix = gguf.quants.dequantize(raw, kind), GroupedMatrix.of(BlockMatrix(raw, name))
    actual = matrix.widen()
    assert matrix.codes.dtype == (np.uint8 if name in FOUR_BITS else np.int8)
    if matrix.shifts is None:
        np.testing.assert_array_equal(actual, expected)
    else:
        magnitude = np.abs(matrix.shifts) + 32 * np.abs(matrix.scales)
        assert (np.abs(actual - expected) <= 3 * 2.0**-24 * np.repeat(magnitude, matrix.group, axis=1)).all()


def test_files_written_by_the_package_load(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    metadata: dict[str, Any] = {"general.architecture": "llama", "a.count": 3, "a.flag": True, "a.rate": 0.5}
    metadata |= {"tokens": ["a", "é"], "scores": [1.0, 2.0], "ids": [1, -2]}
    x = np.random.default_rng(0).standard_normal((3, 256), dtype=np.float32)
    arrays = {"f32": x, "f16": x.astype(np.float16), "f64": x.astype(np.float64), "i32": x.astype(np.int32)}
    quantised = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "BF16")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("a.count", 3)
    writer.add_bool("a.flag", True)
    writer.add_float32("a.rate", 0.5)
    for key in ("tokens", "scores", "ids"):
        writer.add_array(key, metadata[key])
    for name, array in arrays.items():
        writer.add_tensor(name, array)
    for name in quantised:
        kind = GGMLQuantizationType[name]
        writer.add_tensor(name, gguf.quants.quantize(x, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    loaded = tl.load(path)
    assert loaded.metadata == metadata
    assert set(loaded) == {*arrays, *quantised}
    for name, array in arrays.items():
        np.testing.assert_array_equal(loaded[name].numpy(), array, strict=True)
    for tensor in gguf.GGUFReader(path).tensors:
        if tensor.name in arrays:
            continue
        expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        got = loaded[tensor.name]
        assert tuple(got.shape) == tuple(expected.shape)
        np.testing.assert_array_equal(got.float().numpy() if got.dtype is tl.bfloat16 else got.numpy(), expected)
