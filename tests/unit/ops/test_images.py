"""Pooling, padding, resizing and sampling: identities that hold for any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallow as tl
import tallow.nn.functional as F
from tallow.ops.resampling import mean_taps

RNG = np.random.default_rng(0)


def normal(*shape: int) -> tl.Tensor:
    return tl.tensor(RNG.standard_normal(shape))


def test_max_pool_indices_point_at_the_maxima() -> None:
    x = normal(2, 3, 7, 8)
    y, places = F.max_pool2d(x, 3, stride=2, padding=1, return_indices=True)
    flat = x.numpy().reshape(2, 3, -1)
    np.testing.assert_array_equal(np.take_along_axis(flat, places.numpy().reshape(2, 3, -1), 2), y.flatten(2).numpy())


def test_max_pool_of_nan_is_nan() -> None:
    x = tl.tensor([[1.0, np.nan, 3.0, 4.0]])
    assert np.isnan(F.max_pool1d(x, 2).numpy()).tolist() == [[True, False]]
    y, places = F.max_pool1d(x, 4, return_indices=True)
    assert np.isnan(y.item())
    assert places.item() == 1


def test_max_pool_of_minus_infinity_keeps_its_index_inside() -> None:
    _, places = F.max_pool1d(tl.full((1, 3), -np.inf), 3, stride=1, padding=1, return_indices=True)
    assert ((places.numpy() >= 0) & (places.numpy() < 3)).all()


def test_unpooling_inverts_pooling_at_the_maxima() -> None:
    x = normal(1, 2, 6, 6)
    y, places = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(y, places, 2).numpy()
    assert ((back == 0) | (back == x.numpy())).all()
    assert (back != 0).sum() == y.numel()


@given(size=st.integers(1, 40), out=st.integers(1, 40))
def test_adaptive_means_of_a_constant_are_that_constant(size: int, out: int) -> None:
    y = F.adaptive_avg_pool1d(tl.ones(1, 1, size, dtype=tl.float64), out)
    np.testing.assert_allclose(y.numpy(), 1, rtol=1e-12)


@given(size=st.integers(1, 30), out=st.integers(1, 30))
def test_transposed_taps_are_the_transposed_matrix(size: int, out: int) -> None:
    taps = mean_taps(size, out)
    matrix = taps.apply(np.eye(size), -1)
    np.testing.assert_allclose(taps.transposed().apply(np.eye(out), -1), matrix.T, atol=1e-12)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_resizing_to_the_same_size_changes_nothing(mode: str) -> None:
    x = normal(1, 2, 5, 7)
    np.testing.assert_allclose(F.interpolate(x, size=(5, 7), mode=mode).numpy(), x.numpy(), rtol=1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiasing_keeps_the_mean_of_a_ramp(mode: str) -> None:
    x = tl.arange(64).double().reshape(1, 1, 1, 64).expand(1, 1, 4, 64)
    y = F.interpolate(x, size=(4, 16), mode=mode, antialias=True)
    np.testing.assert_allclose(y.mean().item(), x.mean().item(), rtol=1e-12)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_sampling_at_the_identity_grid_changes_nothing(mode: str, align_corners: bool) -> None:
    x = normal(2, 3, 4, 5)
    theta = tl.tensor([[[1.0, 0, 0], [0, 1, 0]]] * 2, dtype=tl.float64)
    grid = F.affine_grid(theta, (2, 3, 4, 5), align_corners)
    y = F.grid_sample(x, grid, mode, align_corners=align_corners)
    np.testing.assert_allclose(y.numpy(), x.numpy(), rtol=1e-9, atol=1e-9)


def test_unshuffling_inverts_shuffling() -> None:
    x = normal(2, 12, 3, 5)
    np.testing.assert_array_equal(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2).numpy(), x.numpy())
    np.testing.assert_array_equal(F.channel_shuffle(F.channel_shuffle(x, 3), 4).numpy(), x.numpy())


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_negative_padding_undoes_padding(mode: str) -> None:
    x = normal(2, 3, 6, 5)
    padded = F.pad(x, (2, 3, 1, 4), mode=mode)
    assert tuple(padded.shape) == (2, 3, 11, 10)
    np.testing.assert_array_equal(F.pad(padded, (-2, -3, -1, -4)).numpy(), x.numpy())


def test_padding_matches_numpys() -> None:
    x = normal(1, 4, 5)
    for mode, numpys in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
        expected = np.pad(x.numpy(), ((0, 0), (0, 0), (3, 2)), mode=numpys)  # type: ignore[call-overload]
        np.testing.assert_array_equal(F.pad(x, (3, 2), mode=mode).numpy(), expected)


def test_fold_of_unfold_counts_the_windows_of_each_pixel() -> None:
    x = tl.ones(1, 1, 5, 6)
    seen = F.fold(F.unfold(x, 3), (5, 6), 3).numpy()[0, 0]
    rows, columns = np.minimum([1, 2, 3, 2, 1], 3), np.minimum([1, 2, 3, 3, 2, 1], 3)
    np.testing.assert_array_equal(seen, np.outer(rows, columns))
