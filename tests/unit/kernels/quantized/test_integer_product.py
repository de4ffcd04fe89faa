"""The kernels "integer_product" and "quantize_u8", compared with integers of Python's size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.decode_blocks import BACKENDS
from support.kernel_choice import using

from tallow import kernels
from tallow.errors import ShapeError
from tallow.kernels.quantized.integer_product import IntegerMatrix

RNG = np.random.default_rng(4)
SIZES = [(1, 1, 1), (1, 8, 5), (5, 3, 40), (13, 12, 33), (20, 70, 64), (3, 5000, 17)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("zero", [0, 7, 255])
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_value(m: int, k: int, n: int, zero: int, backend: str) -> None:
    x = RNG.integers(0, 256, (m, k)).astype(np.uint8)
    codes = RNG.integers(-128, 128, (k, n)).astype(np.int16)
    x[0], codes[:, 0] = 255, -128  # the largest sums
    factor, shift = RNG.random(n, np.float32), RNG.random(n, np.float32)
    expected = (x.astype(np.int64) - zero) @ codes.astype(np.int64)
    matrix = IntegerMatrix(codes)
    with using(backend, "integer_product"):
        sums = kernels.run("integer_product", x, matrix, zero)
        scaled = kernels.run("integer_product", x.reshape(m, 1, k), matrix, zero, factor, shift)
    np.testing.assert_array_equal(sums, expected)
    assert sums.dtype == np.int32
    np.testing.assert_allclose(scaled[:, 0], expected * factor + shift, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_weights_beyond_eight_bits_are_multiplied_too() -> None:
    x, codes = np.full((2, 6), 200, np.uint8), np.full((6, 3), -255, np.int16)
    assert (kernels.run("integer_product", x, IntegerMatrix(codes), 3) == 6 * 197 * -255).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [1, 15, 16, 17, 100])
def test_quantize(count: int, backend: str) -> None:
    x: Any = RNG.standard_normal(count).astype(np.float32)
    x[:1] = 1e30
    x[-1:] = -0.125  # half a step
    scale = np.float32(0.25)
    with using(backend, "quantize_u8"):
        codes = kernels.run("quantize_u8", x, scale, 120)
    np.testing.assert_array_equal(codes, np.clip(np.rint(x.astype(np.float64) / 0.25) + 120, 0, 255))
    assert codes.dtype == np.uint8


@pytest.mark.parametrize("backend", BACKENDS)
def test_shapes_that_do_not_fit_are_refused(backend: str) -> None:
    matrix = IntegerMatrix(np.ones((4, 3), np.int16))
    with using(backend, "integer_product"), pytest.raises(ShapeError, match="a factor for each column"):
        kernels.run("integer_product", np.ones((2, 5), np.uint8), matrix, 0)
    with using(backend, "integer_product"), pytest.raises(ShapeError, match="a factor for each column"):
        kernels.run("integer_product", np.ones((2, 4), np.uint8), matrix, 0, np.ones(4, np.float32))
