"""Sums of columns, compared with NumPy in float64, and the gradients that use them."""

from __future__ import annotations

import numpy as np
import pytest
from support.card import Card

import tallow as tl


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (130, 40), (1000, 33), (4133, 8), (3, 70_000), (0, 4), (4, 0)])
def test_column_sums(card: Card, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    sums = card.get(card.run("column_sums", card.put(x)))
    exact = x.astype(np.float64).sum(axis=0)
    assert sums.shape == exact.shape
    assert (abs(sums - exact) <= 1e-6 * abs(x).sum(axis=0)).all()


def test_gradients_of_what_was_broadcast(cuda: str) -> None:
    rng = np.random.default_rng(0)
    x, g = (rng.standard_normal((2, 70, 3)).astype(np.float32) for _ in range(2))
    row, matrix = tl.zeros(3, device=cuda, requires_grad=True), tl.zeros(70, 3, device=cuda, requires_grad=True)
    (tl.tensor(x, device=cuda) + row + matrix).backward(tl.tensor(g, device=cuda))
    np.testing.assert_allclose(row.grad.cpu().numpy(), g.sum(axis=(0, 1)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(matrix.grad.cpu().numpy(), g.sum(axis=0), rtol=1e-5, atol=1e-6)
    sums = tl.tensor(x[0], device=cuda).sum(0)
    np.testing.assert_allclose(sums.cpu().numpy(), x[0].sum(axis=0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), ()])
def test_gradients_of_empty_arrays_that_were_broadcast(cuda: str, shape: tuple[int, ...]) -> None:
    x, y = tl.zeros(shape, device=cuda, requires_grad=True), tl.zeros(5, *shape, device=cuda)
    (x + y).sum().backward()
    assert x.grad is not None
    assert x.grad.cpu().tolist() == tl.full(shape, 5.0).tolist()
