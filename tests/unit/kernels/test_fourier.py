"""Transforms of many short rows, against NumPy's in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tallow import kernels
from tallow.kernels import library
from tallow.kernels.table import run

Array = np.ndarray[Any, Any]
LIBRARY = kernels.info()
pytestmark = [
    pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}"),
    pytest.mark.skipif(not LIBRARY.enabled, reason="kernels are switched off"),
]
LENGTHS = [2, 3, 4, 5, 8, 9, 10, 16, 60, 75, 100, 128, 400, 512, 1000, 1024, 4096]
rng = np.random.default_rng(3)


def rows(count: int, n: int) -> Array:
    return rng.standard_normal((count, n)).astype(np.float32)


def check(name: str, expected: Array, *arguments: Any) -> None:
    with kernels.require(library.BACKEND):
        y = run(name, *arguments)
    assert y.shape == expected.shape
    assert y.dtype == (np.float32 if expected.dtype.kind == "f" else np.complex64)
    assert np.all(np.linalg.norm(y - expected, axis=-1) <= 1e-6 * np.linalg.norm(expected, axis=-1))


@pytest.mark.parametrize("norm", ["backward", "forward", "ortho"])
@pytest.mark.parametrize("n", LENGTHS)
def test_agrees_with_numpy(n: int, norm: Any) -> None:
    x, exact = rows(37, 2 * n), np.float64
    numbers = x.view(np.complex64)
    check("fft_complex", np.fft.fft(numbers.astype(complex), norm=norm), numbers, (1,), norm, False)
    check("fft_complex", np.fft.ifft(numbers.astype(complex), norm=norm), numbers, (-1,), norm, True)
    if n <= 2048:
        check("fft_of_real", np.fft.rfft(x.astype(exact), norm=norm), x, -1, norm)
        half = rows(37, 2 * n + 2).view(
            np.complex64
        )  # the first and the last are not real, and are taken as if they were
        check("fft_to_real", np.fft.irfft(half.astype(complex), 2 * n, norm=norm), half, 2 * n, 1, norm)


@pytest.mark.parametrize(
    ("count", "n"), [(1, 256), (2, 768), (7, 1024), (1, 6400), (9, 8192), (1, 1 << 15), (1, 1 << 17)]
)
@pytest.mark.parametrize("norm", ["backward", "ortho"])
def test_few_and_long_rows_agree_with_numpy(count: int, n: int, norm: Any) -> None:
    x = rows(count, 2 * n)
    numbers, half = x.view(np.complex64), rows(count, 2 * n + 2).view(np.complex64)
    check("fft_complex", np.fft.fft(numbers.astype(complex), norm=norm), numbers, (1,), norm, False)
    check("fft_complex", np.fft.ifft(numbers.astype(complex), norm=norm), numbers, (-1,), norm, True)
    check("fft_of_real", np.fft.rfft(x.astype(np.float64), norm=norm), x, -1, norm)
    check("fft_to_real", np.fft.irfft(half.astype(complex), 2 * n, norm=norm), half, 2 * n, 1, norm)


@pytest.mark.parametrize(("n", "hop"), [(2, 1), (10, 3), (400, 160), (512, 512), (60, 90), (4096, 1000)])
@pytest.mark.parametrize("norm", ["backward", "ortho"])
def test_spectra_of_frames(n: int, hop: int, norm: Any) -> None:
    x, window = rows(3, n + 20 * hop + hop // 2), rows(1, n)[0]
    for signals in (x, x[:, : n + hop], x[1:2, :n], x[:, ::2] if hop < n else x):
        if signals.shape[1] >= n:
            frames = np.lib.stride_tricks.sliding_window_view(signals, n, 1)[:, ::hop]
            expected = np.fft.rfft(frames.astype(np.float64) * window, norm=norm)
            check("spectra_of_frames", expected, signals, window, hop, norm)


def test_a_frame_does_not_depend_on_others() -> None:
    x, window = rows(2, 60 + 39 * 7), rows(1, 60)[0]
    y = run("spectra_of_frames", x, window, 7, "backward")
    np.testing.assert_array_equal(run("spectra_of_frames", x[1:, 35:200], window, 7, "backward")[0], y[1, 5:21])
    x[0, 70] = np.nan
    changed = np.isnan(run("spectra_of_frames", x, window, 7, "backward")).any(-1)
    starts = 7 * np.arange(y.shape[1])
    np.testing.assert_array_equal(changed, [(starts <= 70) & (starts + 60 > 70), np.zeros(len(starts), bool)])


def test_a_row_does_not_depend_on_others() -> None:
    x = rows(40, 60)
    y = run("fft_of_real", x, 1, "backward")
    np.testing.assert_array_equal(run("fft_of_real", x[5:22], 1, "backward"), y[5:22])
    x[7] = np.nan
    np.testing.assert_array_equal(np.delete(run("fft_of_real", x, 1, "backward"), 7, 0), np.delete(y, 7, 0))


@pytest.mark.parametrize(("count", "n"), [(16, 2), (16, 4), (16, 6), (16, 10), (16, 16), (4, 512)])
def test_sums_of_infinite_numbers(count: int, n: int) -> None:
    x = rows(count, n)
    x[3, 1] = np.inf
    with np.errstate(invalid="ignore"):
        expected = np.fft.rfft(x)
    y = run("fft_of_real", x, 1, "backward")
    np.testing.assert_array_equal(y[3, [0, -1]], expected[3, [0, -1]])
    assert not np.isfinite(y[3]).any()


def test_what_the_kernel_refuses_is_left_to_numpy() -> None:
    for shape, axis in (
        ((37, 14), 1),
        ((37, 15), 1),
        ((3, 16), 1),
        ((16, 16), 0),
        ((8, 8194), 1),
        ((1, 80), 1),
        ((1, 1 << 19), 1),
        ((0, 16), 1),
        ((16,), 0),
    ):
        x = rng.standard_normal(shape).astype(np.float32)
        np.testing.assert_array_equal(run("fft_of_real", x, axis, "backward"), np.fft.rfft(x, axis=axis))
    strided = rows(37, 64)[:, ::2]
    np.testing.assert_allclose(run("fft_of_real", strided, 1, "backward"), np.fft.rfft(strided), atol=1e-5)
