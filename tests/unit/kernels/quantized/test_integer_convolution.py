"""The kernel "integer_convolution", and codes of sums, compared with integers of Python's size."""

from __future__ import annotations

import numpy as np
import pytest
from support.decode_blocks import BACKENDS
from support.kernel_choice import using

from tallow import kernels
from tallow.errors import ShapeError
from tallow.kernels.quantized.integer_convolution import IntegerConvolution
from tallow.kernels.quantized.integer_product import Codes, IntegerMatrix

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("adjacent", [False, True])
@pytest.mark.parametrize(
    ("size", "channels", "outputs", "kernel", "stride", "before", "after", "dilation"),
    [
        ((5, 6), 4, 40, (1, 1), (1, 1), (0, 0), (0, 0), (1, 1)),
        ((5, 6), 3, 5, (1, 1), (2, 1), (0, 0), (0, 0), (1, 1)),
        ((9, 7), 3, 33, (3, 3), (1, 2), (1, 1), (1, 0), (1, 1)),
        ((9, 20), 17, 3, (2, 3), (1, 1), (2, 1), (0, 3), (2, 3)),
        ((1, 30), 1, 2, (1, 5), (1, 1), (0, 4), (0, 4), (1, 1)),
    ],
)
def test_value(
    size: tuple[int, int], channels: int, outputs: int, kernel: tuple[int, int], stride: tuple[int, int],
    before: tuple[int, int], after: tuple[int, int], dilation: tuple[int, int], adjacent: bool, backend: str,
) -> None:  # fmt: skip
    x = RNG.integers(0, 256, (2, channels, *size)).astype(np.uint8)
    weight = RNG.integers(-128, 128, (outputs, channels, *kernel)).astype(np.int16)
    bias = RNG.integers(-(2**20), 2**20, outputs).astype(np.int32)
    factor, zero, codes = RNG.random(outputs, np.float32) / 500, 77, Codes(100, 3, 240)
    block = IntegerConvolution(weight, bias, stride, before, after, dilation, 1)
    image = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) if adjacent else x
    with using(backend, "integer_convolution"):
        sums = kernels.run("integer_convolution", image, block, zero)
        real = kernels.run("integer_convolution", image, block, zero, factor, factor)
        made = kernels.run("integer_convolution", image, block, zero, factor, None, codes)
    expected = np.zeros(sums.shape, np.int64) + bias[:, None, None]
    padded = np.pad(x.astype(np.int64) - zero, ((0, 0), (0, 0), *zip(before, after, strict=True)))
    for v in range(kernel[0]):
        for u in range(kernel[1]):
            rows, columns = (
                slice(at * d, at * d + s * (n - 1) + 1, s)
                for at, d, s, n in zip((v, u), dilation, stride, sums.shape[2:], strict=True)
            )
            expected += np.einsum("nchw,oc->nohw", padded[:, :, rows, columns], weight[:, :, v, u])
    np.testing.assert_array_equal(sums, expected)
    of_channel = factor[:, None, None]
    np.testing.assert_allclose(real, expected * of_channel + of_channel, rtol=1e-5, atol=1e-5 * np.abs(real).max())
    rounded = np.clip(np.rint(expected.astype(np.float32) * of_channel) + codes.zero, codes.low, codes.high)
    np.testing.assert_array_equal(made, rounded)
    assert (sums.dtype, real.dtype, made.dtype) == (np.int32, np.float32, np.uint8)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("size", "channels", "kernel", "stride", "before", "dilation"),
    [
        ((9, 12), 16, (3, 3), (1, 1), (1, 1), (1, 1)),
        ((12, 9), 33, (3, 2), (2, 1), (2, 0), (1, 2)),
        ((70, 1), 47, (5, 1), (1, 1), (0, 0), (1, 1)),
        ((6, 5), 3, (3, 3), (1, 1), (1, 1), (1, 1)),  # fewer than a vector has
    ],
)
def test_a_group_for_each_channel(
    size: tuple[int, int], channels: int, kernel: tuple[int, int], stride: tuple[int, int],
    before: tuple[int, int], dilation: tuple[int, int], backend: str,
) -> None:  # fmt: skip
    x = RNG.integers(0, 256, (2, channels, *size)).astype(np.uint8)
    weight = RNG.integers(-128, 128, (channels, 1, *kernel)).astype(np.int16)
    bias = RNG.integers(-999, 999, channels).astype(np.int32)
    factor, zero, codes = RNG.random(channels, np.float32) / 500, 211, Codes(100, 3, 240)
    block = IntegerConvolution(weight, bias, stride, before, before, dilation, channels)
    is_compiled = channels >= 16 or backend == "array"
    with using(backend if is_compiled else "array", "integer_convolution"):
        sums = kernels.run("integer_convolution", x, block, zero)
        made = kernels.run("integer_convolution", x, block, zero, factor, factor, codes)
    expected = np.zeros(sums.shape, np.int64) + bias[:, None, None]
    padded = np.pad(x.astype(np.int64) - zero, ((0, 0), (0, 0), *((n, n) for n in before)))
    for v in range(kernel[0]):
        for u in range(kernel[1]):
            rows, columns = (
                slice(at * d, at * d + s * (n - 1) + 1, s)
                for at, d, s, n in zip((v, u), dilation, stride, sums.shape[2:], strict=True)
            )
            expected += padded[:, :, rows, columns] * weight[:, 0, v, u, None, None]
    np.testing.assert_array_equal(sums, expected)
    of_channel = factor[:, None, None]
    real = expected.astype(np.float32) * of_channel + of_channel
    np.testing.assert_allclose(made, np.clip(np.rint(real) + codes.zero, codes.low, codes.high), atol=1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_products_have_a_bias_and_codes(backend: str) -> None:
    x, weight = RNG.integers(0, 256, (13, 6)).astype(np.uint8), RNG.integers(-128, 128, (6, 35)).astype(np.int16)
    bias, factor = RNG.integers(-999, 999, 35).astype(np.int32), RNG.random(35, np.float32) / 300
    with using(backend, "integer_product"):
        made = kernels.run("integer_product", x, IntegerMatrix(weight, bias), 9, factor, None, Codes(20, 10, 99))
        whole = kernels.run("integer_product", x, IntegerMatrix(weight, bias), 9, None, None, Codes(20, 10, 99))
    sums = (x.astype(np.int64) - 9) @ weight + bias
    np.testing.assert_array_equal(whole, sums)
    np.testing.assert_array_equal(made, np.clip(np.rint(sums.astype(np.float32) * factor) + 20, 10, 99))


def test_a_bias_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ShapeError, match="a bias"):
        IntegerMatrix(np.ones((2, 3), np.int16), np.zeros(2, np.int32))


@pytest.mark.parametrize("backend", BACKENDS)
def test_factors_that_do_not_fit_are_refused(backend: str) -> None:
    ones = (1, 1)
    block = IntegerConvolution(np.ones((2, 3, 1, 1), np.int16), np.zeros(2, np.int32), ones, (0, 0), (0, 0), ones, 1)
    x = np.ones((1, 3, 4, 4), np.uint8)
    with using(backend, "integer_convolution"):
        with pytest.raises(ShapeError, match="for 2 channels"):
            kernels.run("integer_convolution", x, block, 0, np.ones(3, np.float32))
        with pytest.raises(ShapeError):
            kernels.run("integer_convolution", x[:, :2], block, 0)
