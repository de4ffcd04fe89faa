"""Reductions, sorting and linear algebra compared with PyTorch, beyond the cases: 16-bit floats and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.errors import TallowError

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

RNG = np.random.default_rng(7)
X = RNG.standard_normal((6, 40)).astype(np.float32)
Y = RNG.standard_normal((40, 5)).astype(np.float32)
Z = RNG.standard_normal((2, 6, 40)).astype(np.float32)

HALVES: dict[str, Callable[..., Any]] = {
    "sum": lambda m, x: x.sum(1),
    "sum to float32": lambda m, x: x.sum(1, dtype=m.float32),
    "sum from float32": lambda m, x: x.float().sum(1, dtype=x.dtype),
    "mean": lambda m, x: x.mean((0, 1)),
    "amax": lambda m, x: x.amax(0),
    "max": lambda m, x: x.max(1),
    "argmax": lambda m, x: x.argmax(1),
    "aminmax": lambda m, x: x.aminmax(dim=0),
    "sort": lambda m, x: x.sort(dim=1, stable=True),
    "topk": lambda m, x: x.topk(3, 1).values,
    "median": lambda m, x: x.median(1).values,
    "unique": lambda m, x: x.unique(),
    "logsumexp": lambda m, x: x.logsumexp(1),
    "var": lambda m, x: x.var(1),
    "std": lambda m, x: x.std(0, correction=0),
    "norm": lambda m, x: x.norm(dim=1),
    "matmul": lambda m, x: x @ x.mT,
    "mv": lambda m, x: m.mv(x, x[0]),
    "addmm": lambda m, x: m.addmm(x[:, :6], x, x.mT, alpha=0.5),
    "einsum": lambda m, x: m.einsum("ij,kj->ik", x, x),
    "searchsorted": lambda m, x: m.searchsorted(x[0].sort().values, x),
}


def leaves(result: Any) -> list[Any]:
    return [leaf for item in result for leaf in leaves(item)] if isinstance(result, list | tuple) else [result]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", HALVES)
def test_sixteen_bit_floats_round_once(name: str, dtype: str) -> None:
    """Equal within one unit in the last place: PyTorch sums in a different order."""
    call = HALVES[name]
    ours = leaves(call(tl, tl.tensor(X).to(getattr(tl, dtype))))
    theirs = leaves(call(torch, torch.tensor(X).to(getattr(torch, dtype))))
    unit = 2.0 ** (-7 if dtype == "bfloat16" else -10)
    for y, expected in zip(ours, theirs, strict=True):
        assert str(y.dtype).removeprefix("tallow.") == str(expected.dtype).removeprefix("torch.")
        np.testing.assert_allclose(y.double().numpy(), expected.double().numpy(), rtol=unit, atol=unit / 64)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("rows", [1, 2, 6])
@pytest.mark.parametrize("product", ["x @ y", "x @ y[:, 0]", "x[0] @ y", "z @ y", "m.mm(x, x.mT)", "m.bmm(z, z.mT)"])
def test_sixteen_bit_gradients_of_products(product: str, rows: int, dtype: str) -> None:
    gradients = []
    for m in (tl, torch):
        leaves = [m.tensor(a).to(getattr(m, dtype)).requires_grad_() for a in (X[:rows], Y, Z[:, :rows])]
        (eval(product, {"m": m}, dict(zip("xyz", leaves, strict=True))).float() ** 2).sum().backward()
        gradients.append([leaf.grad.float().numpy() for leaf in leaves if leaf.grad is not None])
    for ours, theirs in zip(*gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.02, atol=0.01 * abs(theirs).max())


def test_sixteen_bit_gradients_keep_the_dtype() -> None:
    for m in (tl, torch):
        x = m.tensor(X).to(m.bfloat16).requires_grad_()
        x.amax(1).sum().backward()
        x.sort(1).values.mean().backward()
        assert str(x.grad.dtype).endswith("bfloat16")


REFUSED: dict[str, Callable[..., Any]] = {
    "matmul of other lengths": lambda m, x, y, z: x @ x,
    "matmul of other batches": lambda m, x, y, z: m.ones(3, 2, 2) @ m.ones(2, 2, 2),
    "matmul of a number": lambda m, x, y, z: m.tensor(1.0) @ x,
    "matmul of other dtypes": lambda m, x, y, z: x @ y.double(),
    "matmul of booleans": lambda m, x, y, z: x.bool() @ y.bool(),
    "matmul with a float": lambda m, x, y, z: x @ 2.0,
    "mm of a batch": lambda m, x, y, z: m.mm(z, y),
    "bmm of matrices": lambda m, x, y, z: m.bmm(x, y),
    "bmm of other batches": lambda m, x, y, z: m.bmm(z, m.ones(3, 40, 2)),
    "mv of matrices": lambda m, x, y, z: m.mv(x, y),
    "dot of matrices": lambda m, x, y, z: m.dot(x, x),
    "dot of other lengths": lambda m, x, y, z: m.dot(x[0], y[:, 0][:-1]),
    "outer of matrices": lambda m, x, y, z: m.outer(x, x),
    "addmm to a wrong shape": lambda m, x, y, z: m.addmm(m.ones(4), x, y),
    "addmm to a larger shape": lambda m, x, y, z: m.addmm(m.ones(2, 6, 5), x, y),
    "sum over a dim out of range": lambda m, x, y, z: x.sum(2),
    "sum over a dim twice": lambda m, x, y, z: x.sum((0, 0)),
    "mean of integers": lambda m, x, y, z: x.int().mean(),
    "mean as integers": lambda m, x, y, z: x.mean(dtype=m.int64),
    "var of integers": lambda m, x, y, z: x.int().var(),
    "var both ways": lambda m, x, y, z: x.var(0, unbiased=True, correction=1),
    "amax of nothing": lambda m, x, y, z: m.ones(0, 3).amax(0),
    "amax of nothing at all": lambda m, x, y, z: m.ones(0).amax(),
    "max of nothing": lambda m, x, y, z: m.ones(0).max(),
    "max over an empty dim": lambda m, x, y, z: m.ones(0, 3).max(0),
    "argmax of nothing": lambda m, x, y, z: m.ones(0).argmax(),
    "argmax of booleans": lambda m, x, y, z: x.bool().argmax(),
    "median over an empty dim": lambda m, x, y, z: m.ones(2, 0).median(1),
    "mode over an empty dim": lambda m, x, y, z: m.ones(2, 0).mode(1),
    "topk of too many": lambda m, x, y, z: x.topk(41),
    "topk of fewer than none": lambda m, x, y, z: x.topk(-1),
    "topk of booleans": lambda m, x, y, z: x.bool().topk(1),
    "kthvalue 0": lambda m, x, y, z: x.kthvalue(0),
    "kthvalue beyond": lambda m, x, y, z: x.kthvalue(41),
    "sort along a dim out of range": lambda m, x, y, z: x.sort(2),
    "quantile out of range": lambda m, x, y, z: x.quantile(1.5),
    "quantile of integers": lambda m, x, y, z: x.int().quantile(0.5),
    "quantile of nothing": lambda m, x, y, z: m.ones(0).quantile(0.5),
    "quantile with a strange interpolation": lambda m, x, y, z: x.quantile(0.5, interpolation="cubic"),
    "cumsum without a dim": lambda m, x, y, z: x.cumsum(),
    "bincount of a negative": lambda m, x, y, z: m.bincount(m.tensor([-1, 2])),
    "bincount of floats": lambda m, x, y, z: m.bincount(m.ones(3)),
    "bincount with other weights": lambda m, x, y, z: m.bincount(m.tensor([1, 2]), m.ones(3)),
    "histc of no bins": lambda m, x, y, z: x.histc(0),
    "histc of NaN": lambda m, x, y, z: (x / 0 - x / 0).histc(3),
    "histc upside down": lambda m, x, y, z: x.histc(3, 2, 1),
    "searchsorted in other rows": lambda m, x, y, z: m.searchsorted(x, y),
    "searchsorted both ways": lambda m, x, y, z: m.searchsorted(x[0], y, right=True, side="left"),
    "bucketize in a matrix": lambda m, x, y, z: m.bucketize(y, x),
    "trace of a batch": lambda m, x, y, z: m.trace(z),
    "diff of a number": lambda m, x, y, z: m.diff(m.tensor(1.0)),
    "einsum with too few dims": lambda m, x, y, z: m.einsum("ijk,jk->i", x, y),
    "einsum with too many dims": lambda m, x, y, z: m.einsum("i->i", x),
    "einsum with other sizes": lambda m, x, y, z: m.einsum("ij,ij->ij", x, y),
    "einsum to an unknown letter": lambda m, x, y, z: m.einsum("ij->k", x),
    "einsum to a letter twice": lambda m, x, y, z: m.einsum("ij->ii", x),
    "einsum of too many operands": lambda m, x, y, z: m.einsum("ij,jk", x, y, y),
    "einsum with a strange letter": lambda m, x, y, z: m.einsum("i$->i", x),
    "einsum along a diagonal of no square": lambda m, x, y, z: m.einsum("ii", x),
    "tensordot of other sizes": lambda m, x, y, z: m.tensordot(x, y, 2),
    "cdist of other widths": lambda m, x, y, z: m.cdist(x, y),
    "cdist of integers": lambda m, x, y, z: m.cdist(x.int(), x.int()),
    "cross of other widths": lambda m, x, y, z: m.cross(x, x, dim=1),
    "inv of no square": lambda m, x, y, z: m.linalg.inv(x),
    "inv of a vector": lambda m, x, y, z: m.linalg.inv(x[0]),
    "inv of integers": lambda m, x, y, z: m.linalg.inv(m.ones(2, 2, dtype=m.int64)),
    "inv of a singular matrix": lambda m, x, y, z: m.linalg.inv(m.zeros(2, 2)),
    "solve of a singular matrix": lambda m, x, y, z: m.linalg.solve(m.zeros(2, 2), m.ones(2)),
    "solve of other sizes": lambda m, x, y, z: m.linalg.solve(m.ones(2, 2), m.ones(3, 2)),
    "cholesky of an indefinite matrix": lambda m, x, y, z: m.linalg.cholesky(-m.eye(2)),
    "qr in a strange mode": lambda m, x, y, z: m.linalg.qr(x, mode="full"),
    "eigh of a strange triangle": lambda m, x, y, z: m.linalg.eigh(m.eye(2), UPLO="X"),
    "svd of NaN": lambda m, x, y, z: m.linalg.svd(m.full((2, 2), float("nan"))),
    "matrix_power of no square": lambda m, x, y, z: m.matrix_power(x, 2),
    "multi_dot of one": lambda m, x, y, z: m.linalg.multi_dot([x]),
    "multi_dot of a batch": lambda m, x, y, z: m.linalg.multi_dot([x, z, y]),
    "matrix_norm of a strange order": lambda m, x, y, z: m.linalg.matrix_norm(x, 3),
    "matrix_norm of a vector": lambda m, x, y, z: m.linalg.matrix_norm(x[0]),
    "norm of integers": lambda m, x, y, z: x.int().norm(),
    "lstsq of other heights": lambda m, x, y, z: m.linalg.lstsq(x, y),
    "lstsq by a strange driver": lambda m, x, y, z: m.linalg.lstsq(x, x, driver="qr"),
    "sum of a string": lambda m, x, y, z: m.sum("x"),
    "backward through a complete QR": lambda m, x, y, z: (
        m.linalg.qr(y.clone().requires_grad_(), mode="complete").Q.sum().backward()
    ),
}

# Raised by PyTorch for a kernel that it does not have.
LOOSER = {NotImplementedError: RuntimeError}


@pytest.mark.parametrize("name", REFUSED)
def test_errors_as_in_pytorch(name: str) -> None:
    call = REFUSED[name]
    with pytest.raises(Exception) as theirs:
        call(torch, *(torch.tensor(a) for a in (X, Y, Z)))
    with pytest.raises(TallowError) as ours:
        call(tl, *(tl.tensor(a) for a in (X, Y, Z)))
    kind = next(k for k in type(theirs.value).__mro__ if k.__module__ == "builtins")
    assert isinstance(ours.value, LOOSER.get(kind, kind)), f"PyTorch: {theirs.value!r}\nours: {ours.value!r}"
