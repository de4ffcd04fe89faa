"""The gradient of an embedding by CUDA kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.card import Card

import tallow as tl
from tallow.nn import functional as F


def expected(g: Any, index: Any, rows: int, padding: int | None = None) -> Any:
    table = np.zeros((rows, g.shape[1]))
    for n, v in enumerate(index):
        if 0 <= v < rows and v != padding:
            table[v] += g[n]
    return table


# Rows, columns, and the indices: all equal, so that sums span many blocks; neighbours at the ends of blocks; a few
# frequent ones among many; columns that are not a multiple of a vector load.
CASES: dict[str, tuple[int, int, Any]] = {
    "one": (1, 4, np.zeros(1)),
    "all alike": (5, 8, np.full(130, 3)),
    "in order": (600, 4, np.arange(600)[::-1]),
    "blocks end between": (4, 3, np.repeat([0, 1, 2, 3], 32)),
    "blocks end within": (4, 132, np.repeat([0, 1, 2, 3], [31, 34, 30, 33])),
    "frequent": (300, 20, np.where(np.arange(700) % 3, 7, np.arange(700) % 300)),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_are_added_up(card: Card, case: str) -> None:
    rows, width, index = CASES[case]
    g = np.random.default_rng(0).standard_normal((len(index), width)).astype(np.float32)
    index = index.astype(np.int32 if case == "frequent" else np.int64)
    got = card.run("add_rows", card.put(g), card.put(index), rows, None)
    np.testing.assert_allclose(card.get(got), expected(g, index, rows), rtol=1e-5, atol=1e-5)


def test_padding_and_invalid_indices_are_ignored(card: Card) -> None:
    index = np.array([2, 0, -1, 2, 5, 1, 2, 7, 1])
    g = np.random.default_rng(0).standard_normal((9, 5)).astype(np.float32)
    got = card.run("add_rows", card.put(g[:, ::-1]), card.put(index), 5, 2)
    np.testing.assert_allclose(card.get(got), expected(g[:, ::-1], index, 5, 2), rtol=1e-6)


def test_through_the_op(cuda: str) -> None:
    """Includes 16-bit weights, and gradients divided by the frequency of a row."""
    index = tl.tensor([[1, 4, 1], [0, 1, 3]])
    grads = []
    for device in ("cpu", cuda):
        for dtype in (tl.float32, tl.bfloat16):
            weight = tl.arange(20.0).reshape(5, 4).to(device, dtype).requires_grad_()
            y = F.embedding(index.to(device), weight, padding_idx=3, scale_grad_by_freq=True)
            (y * y).sum().backward()
            assert weight.grad is not None
            grads.append(weight.grad.float().tolist())
    assert grads[:2] == grads[2:]
