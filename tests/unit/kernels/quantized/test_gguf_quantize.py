"""Weights quantised to GGUF blocks: the same bytes as llama.cpp's, and errors as small as its own."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.quantized.gguf_blocks import FORMATS, dequantize
from tallow.kernels.quantized.gguf_quantize import CHUNK, QUANTIZERS, quantize

# The first 16 digits of the SHA-256 of the blocks of `weights()`, and the root of the mean of importance · error² with
# `importance()`, from ggml_quantize_chunk of llama.cpp 0c1e570, built for x86-64 by gcc.
GOLDEN = {
    "Q4_0": ("0ebe967293e94759", 0.001947879),
    "Q4_1": ("45d57b175d329ff2", 0.001788932),
    "Q5_0": ("407a5e35da848daa", 0.0009852326),
    "Q5_1": ("2e9de8dfecc97db6", 0.0008918656),
    "Q8_0": ("31892659a44eda57", 0.0001410224),
    "Q2_K": ("9338ff8760490dd8", 0.006567443),
    "Q3_K": ("c318e88bbeca0419", 0.003393764),
    "Q4_K": ("36820680a663de71", 0.001811198),
    "Q5_K": ("b96aadc72697a793", 0.0009380687),
    "Q6_K": ("d5c95e8a32c3e644", 0.0004404844),
}
IMPORTANCE_TOLERANCE = 1.001  # llama.cpp fuses multiply and add, so it finds other scales of nearly the same error


def numbers(count: int) -> Any:
    """Return pseudo-random float64 numbers between 0 and 1, the same on every platform."""
    x = np.arange(count, dtype=np.uint32) * np.uint32(2654435761)
    for shift, factor in ((15, 2246822519), (13, 3266489917), (16, 668265263)):
        x = (x ^ (x >> np.uint32(shift))) * np.uint32(factor)
    return x / 2.0**32


def weights() -> Any:
    """Return (64, 512) weights: more small ones than large ones, as in models."""
    x = numbers(64 * 512) - 0.5
    return (x * x * x).astype(np.float32).reshape(64, 512)


def importance() -> Any:
    return (numbers(1024)[512:] ** 2).astype(np.float32)


def widened(name: str, blocks: Any) -> Any:
    return dequantize(name, blocks.reshape(-1)).reshape(len(blocks), -1)


def error_of(name: str, rows: Any, w: Any = None) -> float:
    difference = widened(name, quantize(name, rows, w)).astype(np.float64) - rows
    return float(np.sqrt((difference * difference * (1 if w is None else w)).mean()))


def test_formats_that_are_written() -> None:
    assert {*QUANTIZERS} == {*GOLDEN} <= {*FORMATS}


@pytest.mark.parametrize("name", list(QUANTIZERS))
def test_blocks_are_those_of_llama_cpp(name: str) -> None:
    blocks = quantize(name, weights())
    assert blocks.shape == (64, 512 // FORMATS[name].weights * FORMATS[name].record.itemsize)
    assert hashlib.sha256(blocks.tobytes()).hexdigest()[:16] == GOLDEN[name][0]


@pytest.mark.parametrize("name", list(QUANTIZERS))
def test_errors_weighted_by_importance_are_those_of_llama_cpp(name: str) -> None:
    got, expected = error_of(name, weights(), importance()), GOLDEN[name][1]
    assert expected / IMPORTANCE_TOLERANCE < got < expected * IMPORTANCE_TOLERANCE


@pytest.mark.parametrize("name", [name for name in QUANTIZERS if name != "Q8_0"])
def test_importance_moves_the_error_to_unimportant_columns(name: str) -> None:
    w = np.where(np.arange(512) % 2, np.float32(1), np.float32(0.001))
    plain, weighted = (widened(name, quantize(name, weights(), each)) - weights() for each in (None, w))
    assert (weighted[:, 1::2] ** 2).mean() < 0.97 * (plain[:, 1::2] ** 2).mean()


@pytest.mark.parametrize("name", list(QUANTIZERS))
def test_quantised_weights_are_nearly_fixed(name: str) -> None:
    """Quantising what has been quantised changes much less than the first time."""
    once = widened(name, quantize(name, weights()))
    twice = widened(name, quantize(name, once))
    assert abs(twice - once).mean() < 0.4 * abs(once - weights()).mean()


@pytest.mark.parametrize(
    "w", [None, np.ones(512, np.float32), np.zeros(512, np.float32)], ids=["none", "ones", "zeros"]
)
@pytest.mark.parametrize("name", list(QUANTIZERS))
@pytest.mark.parametrize("value", [0.0, 1.0, -0.25, 1e-30])
def test_constant_rows(value: float, name: str, w: Any) -> None:
    rows = np.full((3, 512), value, np.float32)
    got = widened(name, quantize(name, rows, w))
    assert np.isfinite(got).all()
    if w is None or w.any():
        np.testing.assert_allclose(got, rows, atol=1e-8, rtol=0.02)


@pytest.mark.parametrize("name", list(QUANTIZERS))
def test_rows_do_not_depend_on_others(name: str) -> None:
    """Rows are quantised in parts; parts change nothing."""
    rows = np.tile(weights(), (1 + CHUNK // weights().size, 1))
    whole = quantize(name, rows)
    np.testing.assert_array_equal(whole[:64], quantize(name, weights()))
    np.testing.assert_array_equal(whole[-64:], whole[:64])
    assert quantize(name, rows[:0]).shape == (0, whole.shape[1])


@pytest.mark.parametrize("name", list(QUANTIZERS))
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_weights_that_no_block_stores(value: float, name: str) -> None:
    rows = weights()
    rows[5, 7] = value
    with pytest.raises(ArgumentError, match="infinite or NaN" if not np.isfinite(value) else "exceed the range"):
        quantize(name, rows)


def test_arguments() -> None:
    with pytest.raises(ArgumentError, match="unknown format 'Q9_9'"):
        quantize("Q9_9", weights())
    with pytest.raises(ShapeError, match="blocks of 256 weights"):
        quantize("Q4_K", weights()[:, :128])
    with pytest.raises(ShapeError, match="rows of 512"):
        quantize("Q4_K", weights(), np.ones(256, np.float32))
    with pytest.raises(ArgumentError, match="negative"):
        quantize("Q4_K", weights(), -importance())
