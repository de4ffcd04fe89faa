"""Rows in int8 with a scale each: the array code against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.devices import to_host
from tallow.dtypes import cast
from tallow.kernels.quantized.int8_rows import Int8Rows, read, rounded, write

TINY = np.float32(2.0**-149)  # the smallest subnormal number


def on_device(x: Any) -> Any:
    """Return an array on the default device."""
    return tl.tensor(x).array


def test_rounding_against_float64() -> None:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((5, 7, 64)) * 10.0 ** rng.integers(-30, 30, (5, 7, 1))).astype(np.float32)
    rows = rounded(on_device(x))
    codes, scales = to_host(rows.codes), to_host(rows.scales)
    assert (codes.dtype, scales.dtype, scales.shape) == (np.int8, np.float32, (5, 7))
    exact = abs(x.astype(np.float64)).max(axis=-1) / 127
    np.testing.assert_allclose(scales, exact, rtol=2**-24)
    assert (abs(codes).max(axis=-1) == 127).all()
    quotients = x / scales.astype(np.float64)[..., None]
    near_tie = abs(abs(quotients - np.trunc(quotients)) - 0.5) < 1e-4
    np.testing.assert_array_equal(codes[~near_tie], np.rint(quotients)[~near_tie])
    assert (abs(to_host(rows.widen()) - x.astype(np.float64)) <= 0.50001 * scales[..., None]).all()


def test_ties_are_rounded_to_even() -> None:
    x = np.array([127, 0.5, 1.5, 2.5, -0.5, -1.5, -126.5, 125.5], np.float32)
    rows = rounded(on_device(x))
    assert to_host(rows.codes).tolist() == [127, 0, 2, 2, 0, -2, -126, 126]
    assert float(rows.scales) == 1


def test_rows_without_a_scale() -> None:
    """Zeros are exact, and a row with NaN or an infinity is read as NaN; the rows beside them are not affected."""
    x = np.ones((5, 4), np.float32)
    x[0], x[1, 2], x[2, 0], x[3, 3] = 0, np.nan, np.inf, -np.inf
    rows = rounded(on_device(x))
    assert to_host(rows.scales)[0] == 0
    widened = to_host(rows.widen())
    np.testing.assert_array_equal(widened[0], 0)
    assert np.isnan(widened[1:4]).all()
    np.testing.assert_allclose(widened[4], 1, rtol=1e-6)


@pytest.mark.cpu("CuPy flushes subnormal numbers to zero")
def test_subnormal_rows() -> None:
    x = np.array([[1, 0], [180, -200], [30, 1]], np.float32) * TINY
    widened = to_host(rounded(on_device(x)).widen())
    assert (abs(widened - x) <= 127 * TINY).all()


@pytest.mark.parametrize("dtype", [tl.float64, tl.float16, tl.bfloat16])
def test_other_dtypes_are_converted_first(dtype: tl.dtype) -> None:
    x = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    narrow = cast(on_device(x), dtype)
    ours, expected = rounded(narrow), rounded(cast(narrow, tl.float32))
    np.testing.assert_array_equal(to_host(ours.codes), to_host(expected.codes))
    np.testing.assert_array_equal(to_host(ours.scales), to_host(expected.scales))


def test_a_float64_beyond_float32_is_read_as_nan() -> None:
    assert np.isnan(rounded(np.array([1e300, 1.0])).widen()).all()


def test_rows_are_written_and_read_in_place() -> None:
    memory = Int8Rows(on_device(np.zeros((2, 3, 4), np.int8)), on_device(np.zeros((2, 3), np.float32)))
    write(memory, (slice(None), 1), on_device(np.full((2, 4), 3, np.float32)))
    memory[:, 2] = memory[:, 1]
    widened = to_host(read(memory))
    np.testing.assert_array_equal(widened[:, 0], 0)
    np.testing.assert_allclose(widened[:, 1:], 3, rtol=1e-6)
    assert memory.shape == (2, 3, 4)
    assert memory.nbytes == 24 + 24
    assert memory.dtype == np.int8
