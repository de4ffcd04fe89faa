"""Decompositions of low rank and older names of linear algebra, compared with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

RNG = np.random.default_rng(0)
LOW = RNG.standard_normal((2, 12, 3)) @ RNG.standard_normal((2, 3, 9))


@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
@pytest.mark.parametrize("name", ["svd_lowrank", "pca_lowrank"])
def test_low_rank(name: str, wide: bool) -> None:
    matrix = LOW.swapaxes(-1, -2) if wide else LOW
    u, s, v = getattr(tl, name)(tl.tensor(matrix), q=4)
    _, expected, _ = getattr(torch, name)(torch.tensor(matrix), q=4)
    np.testing.assert_allclose(s[..., :3].numpy(), expected[..., :3].numpy())
    product = (u * s.unsqueeze(-2) @ v.mT).numpy()
    centred = matrix - matrix.mean(-2, keepdims=True) if name == "pca_lowrank" else matrix
    np.testing.assert_allclose(product, centred, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("options", [{}, {"upper": False}, {"transpose": True}, {"unitriangular": True}], ids=str)
def test_triangular_solve(options: dict[str, Any]) -> None:
    a, b = LOW[0, :3, :3] + 4 * np.eye(3), LOW[:, :3, :2]
    mine = tl.triangular_solve(tl.tensor(b), tl.tensor(a), **options)
    for x, expected in zip(mine, torch.triangular_solve(torch.tensor(b), torch.tensor(a), **options), strict=True):
        np.testing.assert_allclose(x.numpy(), expected.numpy())


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_lu_solve() -> None:
    a, b = LOW[0, :3, :3] + 4 * np.eye(3), LOW[:, :3, :2]
    mine = tl.lu_solve(tl.tensor(b), *tl.linalg.lu_factor(tl.tensor(a)))
    np.testing.assert_allclose(mine.numpy(), np.linalg.solve(a, b))


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_lu_returns_infos_on_demand() -> None:
    a = np.diag([1.0, 0.0, 2.0])
    for x, expected in zip(tl.tensor(a).lu(get_infos=True), torch.tensor(a).lu(get_infos=True), strict=True):
        np.testing.assert_array_equal(x.numpy(), expected.numpy())
    with pytest.raises(tl.linalg.LinAlgError):
        tl.lu(tl.tensor(a))
