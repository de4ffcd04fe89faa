"""First and second derivatives where a function has none, or has several sides: PyTorch's choice is ours.

The inputs have ties, zeros and integers, and are of float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

X = [[0.0, 0, 1, -1], [1, 1, -1, 2], [0, 2, 2, -1]]
Y = [[0.0, 1, 1, -1], [1, 0, 2, 2], [0, 2, -2, 0.5]]
INF = float("inf")
ORDERS = (0.5, 1, 1.5, 2, 3, INF)

FIRST: dict[str, Callable[[Any, Any, Any], Any]] = {
    "entr": lambda m, x, y: m.special.entr(x),
    "nextafter": lambda m, x, y: m.nextafter(x, y),
    "matrix_power": lambda m, x, y: m.matrix_power(x[:, :3], 0),
    "cholesky_inverse": lambda m, x, y: m.cholesky_inverse(x[:, :3] + 4 * m.eye(3)),
    "cholesky_inverse, upper": lambda m, x, y: m.cholesky_inverse(x[:, :3] + 4 * m.eye(3), upper=True),
    "cholesky_solve": lambda m, x, y: m.cholesky_solve(y, x[:, :3] + 4 * m.eye(3)),
    "cholesky_solve, upper": lambda m, x, y: m.cholesky_solve(y, x[:, :3] + 4 * m.eye(3), upper=True),
    "eigh": lambda m, x, y: m.linalg.eigh(y[:, :3])[1] ** 2,
    "eigh, U": lambda m, x, y: m.linalg.eigh(y[:, :3], UPLO="U")[1] ** 2,
    "exponential by eigh": lambda m, x, y: exponential(*m.linalg.eigh(y[:, :3])),
    "eigvalsh": lambda m, x, y: m.linalg.eigvalsh(y[:, :3]),
    **{f"cdist, {p}": lambda m, x, y, p=p: m.cdist(x, y, p) for p in ORDERS},
    **{f"cdist of itself, {p}": lambda m, x, y, p=p: m.cdist(x, x, p) for p in ORDERS},
    **{f"pdist, {p}": lambda m, x, y, p=p: m.pdist(x, p) for p in ORDERS},
    **{f"lp_pool1d, {p}": lambda m, x, y, p=p: m.nn.functional.lp_pool1d(x.abs(), p, 2) for p in ORDERS[1:]},
    **{f"lp_pool2d, {p}": lambda m, x, y, p=p: m.nn.functional.lp_pool2d(x.abs()[None], p, 2, 1) for p in ORDERS[1:]},
    "lp_pool3d": lambda m, x, y: m.nn.functional.lp_pool3d(x.relu()[None, None], 3, (1, 2, 2)),
}

SECOND: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{f"{name}": lambda m, x, y, f=name: getattr(m.nn.functional, f)(x) for name in ("elu", "celu", "selu")},
    "prelu": lambda m, x, y: m.nn.functional.prelu(x, y[0, :1]),
    "smooth_l1_loss": lambda m, x, y: m.nn.functional.smooth_l1_loss(x, y),
    "huber_loss": lambda m, x, y: m.nn.functional.huber_loss(x, y, delta=2.0),
    "atan2": lambda m, x, y: m.atan2(x, y),
    "logit": lambda m, x, y: m.logit(x),
    "normalize": lambda m, x, y: m.nn.functional.normalize(x),
    "cosine_similarity": lambda m, x, y: m.nn.functional.cosine_similarity(x, y),
    "renorm": lambda m, x, y: m.renorm(x, 2, 0, 1.0),
    "norm of zeros": lambda m, x, y: (x * 0).norm(3, 1),
    **{f"norm, {p}": lambda m, x, y, p=p: x.norm(p, 1) for p in (0, *ORDERS[1:])},
    "det": lambda m, x, y: m.linalg.det(x[:, :3]),
    "det, singular": lambda m, x, y: m.linalg.det(x[:2, :2] * 0 + 1),
    "abs of an infinite slope": lambda m, x, y: x.abs().sqrt(),
    "relu of an infinite slope": lambda m, x, y: x.relu().sqrt(),
    "median": lambda m, x, y: x.median(1)[0] + y.median(1)[0],
    "eigvalsh": FIRST["eigvalsh"],
    "exponential by eigh": FIRST["exponential by eigh"],
    "cholesky_solve": FIRST["cholesky_solve"],
    "cholesky_inverse, upper": FIRST["cholesky_inverse, upper"],
    "lp_pool1d": FIRST["lp_pool1d, 3"],
}


def exponential(w: Any, v: Any) -> Any:
    return (v * w.exp()) @ v.mT


def derivatives(m: Any, function: Callable[[Any, Any, Any], Any], order: int) -> list[Any]:
    """Return a function's value and its derivatives up to the order, as arrays; zeros for None."""
    inputs = [m.tensor(values, dtype=m.float64, requires_grad=True) for values in (X, Y)]
    total = function(m, *inputs)
    results = [total]
    for i in range(order):
        if not total.requires_grad:
            results += [m.zeros(3, 4), m.zeros(3, 4)]
            continue
        weights = m.arange(1, total.numel() + 1, dtype=m.float64).reshape(total.shape)
        slopes = m.autograd.grad((total * weights).sum(), inputs, create_graph=i < order - 1, allow_unused=True)
        slopes = [m.zeros(3, 4) if slope is None else slope for slope in slopes]
        results += slopes
        total = sum(slope * slope for slope in slopes)
    return [result.numpy(force=True) for result in results]


def compare(function: Callable[[Any, Any, Any], Any], order: int) -> None:
    for ours, theirs in zip(derivatives(tl, function, order), derivatives(torch, function, order), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", FIRST)
def test_first_derivatives(name: str) -> None:
    compare(FIRST[name], 1)


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name: str) -> None:
    compare(SECOND[name], 2)
