"""Compiled sums of rows fulfil the contract of their C file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.guarded_arrays import GuardedArray

import tallow as tl
from tallow import kernels
from tallow.kernels import library

LIBRARY = kernels.info()
pytestmark = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")
rng = np.random.default_rng(8)


def compiled(x: np.ndarray[Any, Any], name: str = "row_sums") -> np.ndarray[Any, Any]:
    result: np.ndarray[Any, Any] = kernels.KERNELS[name, library.BACKEND].fn(x)
    return result


@pytest.mark.parametrize("n", [*range(1, 70), 1000, 1024, 1025, 2049, 5000, 65_536, 1_000_003])
@pytest.mark.parametrize("kind", ["normal", "constant"])
def test_sums_are_within_the_bound(n: int, kind: str, poisoned_empty: list[GuardedArray]) -> None:
    x = rng.standard_normal((3, n)).astype(np.float32) if kind == "normal" else np.full((3, n), 0.1, np.float32)
    sums = compiled(x)
    magnitudes = np.abs(x).sum(axis=1, dtype=np.float64)
    error = np.abs(sums - x.sum(axis=1, dtype=np.float64))
    assert (error <= (40 + np.log2(n)) * 2.0**-24 * magnitudes).all()
    squares = np.square(x, dtype=np.float64).sum(axis=1)
    assert (np.abs(compiled(x, "row_squares") - squares) <= (41 + np.log2(n)) * 2.0**-24 * squares).all()
    for guarded_array in poisoned_empty:
        guarded_array.check_outside()


def test_sum_and_mean_over_the_last_dim_use_it() -> None:
    x = rng.standard_normal((8, 10, 100)).astype(np.float32)
    if LIBRARY.enabled:
        assert kernels.pick("row_sums", "cpu", x).backend == library.BACKEND
    for keepdim in (False, True):
        expected = x.sum(axis=-1, dtype=np.float64, keepdims=keepdim)
        sums, means = tl.tensor(x).sum(-1, keepdim), tl.tensor(x).mean(2, keepdim)
        assert sums.shape == means.shape == expected.shape
        np.testing.assert_allclose(sums.numpy(), expected, rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(means.numpy(), expected / 100, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dim", [None, 0, 2, (1, 2), (0, 2)])
def test_norms_use_sums_of_squares(dim: Any) -> None:
    x = rng.standard_normal((6, 30, 100)).astype(np.float32)
    for keepdim in (False, True):
        expected = np.sqrt(np.square(x, dtype=np.float64).sum(axis=dim, keepdims=keepdim))
        norms = tl.tensor(x).norm(dim=dim, keepdim=keepdim)
        assert norms.shape == expected.shape
        np.testing.assert_allclose(norms.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("dim", [None, (1, 2), (-1, -2), (2, 1, 0)])
def test_so_do_sums_over_several_last_dims(dim: tuple[int, ...] | None) -> None:
    x = rng.standard_normal((6, 30, 100)).astype(np.float32)
    for keepdim in (False, True):
        expected = x.sum(axis=dim, dtype=np.float64, keepdims=keepdim)
        sums, means = tl.tensor(x).sum(dim, keepdim), tl.tensor(x).mean(dim, keepdim)
        assert sums.shape == means.shape == expected.shape
        np.testing.assert_allclose(sums.numpy(), expected, rtol=1e-5, atol=1e-3)
        np.testing.assert_allclose(means.numpy(), expected * (means.numel() / x.size), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((100, 31), np.float32),
        np.zeros((8, 100), np.float32),
        np.zeros((100, 100), np.float64),
        np.zeros((100, 100), np.float32).T[:50].T,
    ],
    ids=["short rows", "few elements", "float64", "not contiguous"],
)
def test_others_are_left_to_numpy(x: np.ndarray[Any, Any]) -> None:
    assert kernels.pick("row_sums", "cpu", x).backend == "array"
