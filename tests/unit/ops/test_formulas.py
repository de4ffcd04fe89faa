"""Formulas: one pass over large float32 arrays, and the function itself for all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tallow import kernels
from tallow.kernels import table
from tallow.ops.formulas import formula

X, Y = np.random.default_rng(0).standard_normal((2, 4, 1 << 14)).astype(np.float32)
X[0, :3] = np.nan, np.inf, -np.inf


@formula
def combined(x: Any, y: Any, factor: float) -> Any:
    return np.maximum(np.abs(x) - 0.5, -y * factor) / (1 + np.exp(np.minimum(y, 0.25) + 1))


@pytest.fixture
def chains(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each call of the kernel of chains adds its name."""
    calls: list[str] = []
    run = table.run

    def counted(name: str, *args: Any) -> Any:
        calls.append(name)
        return run(name, *args)

    monkeypatch.setattr("tallow.ops.chain.run", counted)
    return calls


def same(x: Any, y: Any, factor: float) -> None:
    with np.errstate(invalid="ignore"):
        expected = combined.__wrapped__(x, y, factor)  # type: ignore[attr-defined]
    got = combined(x, y, factor)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_large_arrays_take_one_pass(chains: list[str]) -> None:
    info = kernels.info()
    if not info.enabled or not info.kernels:
        pytest.skip(f"no compiled kernels: {info.reason}" if info.enabled else "kernels are switched off")
    for factor in (0.3, 2):
        same(X, Y, factor)
    same(X, np.broadcast_to(Y[:1, :1], Y.shape), 0.3)
    same(X[0], Y[1], 0.3)
    assert chains == ["chain"] * 4


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (X[:, :9], Y[:, :9]),
        (X.astype(np.float64), Y),
        (X, Y.astype(np.float64)),
        (X, Y[:1]),
        (X.T, Y.T),
        (X, Y[0, 0]),
        (X[0, 0], Y[0, 0]),
    ],
    ids=["small", "float64", "another dtype", "broadcast", "transposed", "a scalar", "scalars"],
)
def test_other_operands_take_the_function(x: Any, y: Any, chains: list[str]) -> None:
    same(x, y, 0.3)
    assert not chains


def test_a_formula_may_call_another() -> None:
    @formula
    def outer(x: Any, y: Any) -> Any:
        return combined(x, y, 0.3) * y

    expected = combined.__wrapped__(X, Y, 0.3) * Y  # type: ignore[attr-defined]
    np.testing.assert_allclose(outer(X, Y), expected, rtol=1e-6)
