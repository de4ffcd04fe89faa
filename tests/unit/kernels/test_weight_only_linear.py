"""Products with weights of eight and four bits keep the contract of weight_only_linear.c."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.guarded_arrays import GuardedArray

from tallow import kernels
from tallow.errors import ShapeError
from tallow.kernels import library
from tallow.kernels.quantized import QuantizedMatrix, quantize_int4, quantize_int8

LIBRARY = kernels.info()
pytestmark = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")
rng = np.random.default_rng(3)
Floats = np.ndarray[Any, Any]


def normal(*shape: int) -> Floats:
    return rng.standard_normal(shape).astype(np.float32)


def quantized(n: int, k: int, bits: int, group: int | None) -> QuantizedMatrix:
    matrix = normal(n, k)
    return quantize_int8(matrix, group) if bits == 8 else quantize_int4(matrix, group or k)


def product(x: Floats, matrix: QuantizedMatrix, bias: Floats | None) -> Floats:
    kernel = kernels.KERNELS["weight_only_linear", library.BACKEND]
    assert kernel.accepts is not None
    assert kernel.accepts(x, matrix.codes, matrix.scales, bias)
    y: Floats = kernel.fn(x, matrix.codes, matrix.scales, bias)
    return y


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize(("k", "group"), [(2, None), (30, 6), (50, None), (96, 32), (1024, 256), (1024, None)])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 9, 64])
def test_products_are_within_the_bound(
    rows: int, k: int, group: int | None, bits: int, poisoned_empty: list[GuardedArray]
) -> None:
    for n in (1, 3, 4, 37):
        x, matrix, bias = normal(rows, k), quantized(n, k, bits, group), normal(n)
        weight = matrix.widen().astype(np.float64)
        for offset in (None, bias):
            y = product(x, matrix, offset)
            expected = x @ weight.T + (0 if offset is None else offset)
            bound = abs(x) @ abs(weight).T + abs(bias)
            assert (abs(y - expected) <= (k / 8 + 9) * 2.0**-24 * bound).all()
    for guarded_array in poisoned_empty:
        guarded_array.check_outside()


def test_codes_and_scales_by_hand() -> None:
    x = np.array([[1, 10, 100, 1000]], np.float32)
    eight = QuantizedMatrix(np.array([[1, -2, 3, -128]], np.int8), np.array([[1, 0.5]], np.float32))
    assert product(x, eight, None).tolist() == [[1 - 20 + 150 - 64_000]]
    four = QuantizedMatrix(np.array([[0x0F, 0x98]], np.uint8), np.array([[1, 0.5]], np.float16))
    assert product(x, four, np.array([0.25], np.float32)).tolist() == [[7 - 80 + 0 + 500 + 0.25]]


@pytest.mark.parametrize("bits", [8, 4])
def test_a_number_that_is_none_stays_in_its_row_and_column(bits: int) -> None:
    x, matrix = normal(5, 64), quantized(9, 64, bits, 32)
    x[2, 7], matrix.scales[4, 1] = np.inf, np.nan
    y = product(x, matrix, None)
    expected = np.ones((5, 9), bool)
    expected[2], expected[:, 4] = False, False
    np.testing.assert_array_equal(np.isfinite(y), expected)


def test_what_it_does_not_take() -> None:
    accepts = kernels.KERNELS["weight_only_linear", library.BACKEND].accepts
    assert accepts is not None
    x, matrix = normal(2, 64), quantized(6, 64, 8, 32)
    assert accepts(x, matrix.codes, matrix.scales, None)
    assert not accepts(x.astype(np.float64), matrix.codes, matrix.scales, None)
    assert not accepts(x, matrix.codes, matrix.scales, np.ones(6))
    assert not accepts(x, matrix.codes[::2], matrix.scales[::2], None)
    assert not accepts(normal(300, 64), matrix.codes, matrix.scales, None)
    wide = quantized(2, 2048, 4, None)
    assert not accepts(normal(1, 2048), wide.codes, wide.scales, None)
    with pytest.raises(ShapeError, match="weight_only_linear"):
        kernels.KERNELS["weight_only_linear", library.BACKEND].fn(normal(2, 32), matrix.codes, matrix.scales, None)
