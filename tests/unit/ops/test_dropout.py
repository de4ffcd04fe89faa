"""Dropout: the kept elements, their scale, and the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import tallow as tl
import tallow.nn.functional as F

N = 200_000


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_keeps_a_part_and_scales_it(p: float) -> None:
    tl.manual_seed(0)
    y = F.dropout(tl.ones(N), p).numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / (1 - p))}
    assert abs((y == 0).mean() - p) < 5 * math.sqrt(p * (1 - p) / N)


def test_gradient_goes_where_the_value_went() -> None:
    x = tl.ones(1000, requires_grad=True)
    y = F.dropout(x, 0.3)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())


def test_the_seed_decides() -> None:
    tl.manual_seed(7)
    first = F.dropout(tl.ones(100)).numpy()
    again = F.dropout(tl.ones(100)).numpy()
    tl.manual_seed(7)
    np.testing.assert_array_equal(F.dropout(tl.ones(100)).numpy(), first)
    assert (first != again).any()


@pytest.mark.parametrize("function", [F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout])
def test_out_of_training_it_is_the_identity(function: Callable[..., tl.Tensor]) -> None:
    x = tl.ones({F.dropout2d: (2, 3, 4, 5), F.dropout3d: (2, 3, 4, 5)}.get(function, (2, 3, 4)))
    assert function(x, 0.5, training=False) is x
    assert function(x, 0.0, training=True) is x


@pytest.mark.parametrize("function", [F.dropout, F.alpha_dropout])
def test_dropping_all_gives_zeros(function: Callable[..., tl.Tensor]) -> None:
    x = tl.ones(5, requires_grad=True)
    y = function(x, 1.0, training=True)
    y.sum().backward()
    assert not y.detach().numpy().any()
    assert not x.grad.numpy().any()


def test_in_place_writes_into_the_input() -> None:
    x = tl.ones(100)
    y = F.dropout(x, 0.5, inplace=True)
    assert y is x
    assert 0 < (x.numpy() == 0).sum() < 100


@pytest.mark.parametrize(
    ("function", "shape", "channel_dims"),
    [
        (F.dropout1d, (8, 9, 5), 2),
        (F.dropout1d, (60, 5), 1),
        (F.dropout2d, (8, 9, 5, 3), 2),
        (F.dropout3d, (8, 9, 5, 3, 2), 2),
        (F.dropout3d, (60, 5, 3, 2), 1),
        (F.feature_alpha_dropout, (8, 9, 5, 3), 2),
    ],
)
def test_channels_are_dropped_together(
    function: Callable[..., tl.Tensor], shape: tuple[int, ...], channel_dims: int
) -> None:
    tl.manual_seed(1)
    y = function(tl.ones(shape), 0.5, training=True).numpy().reshape(math.prod(shape[:channel_dims]), -1)
    assert (y == y[:, :1]).all()
    assert len(np.unique(y)) == 2


def test_2d_warns_that_three_dims_are_a_batch_of_sequences() -> None:
    with pytest.warns(UserWarning, match="dropout1d"):
        y = F.dropout2d(tl.ones(4, 50, 6), 0.5).numpy().reshape(200, 6)
    assert (y == y[:, :1]).all()


@pytest.mark.parametrize("p", [0.1, 0.4])
def test_alpha_dropout_keeps_mean_and_variance(p: float) -> None:
    tl.manual_seed(2)
    x = np.random.default_rng(0).standard_normal(N)
    y = F.alpha_dropout(tl.tensor(x), p, training=True).numpy()
    assert abs(y.mean()) < 0.02
    assert abs(y.var() - 1) < 0.02
