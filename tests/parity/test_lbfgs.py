"""L-BFGS compared with PyTorch: the same path, with and without the line search, and as many evaluations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

RTOL = 1e-9  # dot products are summed in a different order, and each step starts from the last
OPTIONS: list[dict[str, Any]] = [
    {},
    {"lr": 0.5, "max_iter": 4},
    {"lr": 0.1, "max_iter": 3, "history_size": 2},
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "max_iter": 3, "history_size": 3},
    {"line_search_fn": "strong_wolfe", "lr": 8.0, "max_iter": 2, "max_eval": 12},
    {"line_search_fn": "strong_wolfe", "lr": 0.01, "max_iter": 2, "max_eval": 3},
]
IDS = ["-".join(f"{k}={v}" for k, v in options.items()) or "defaults" for options in OPTIONS]


class Regression:
    """Logistic regression with a ridge: smooth, convex, and not quadratic."""

    def __init__(self, module: Any, options: dict[str, Any], dtype: str) -> None:
        rng = np.random.default_rng(0)
        x, y = rng.standard_normal((40, 6)), rng.integers(0, 2, 40).astype(np.float64)
        self.module = module
        self.x, self.y = (module.from_numpy(a).to(getattr(module, dtype)) for a in (x, y))
        self.w = module.zeros(6, 1, dtype=self.x.dtype).requires_grad_()
        self.b = module.ones((), dtype=self.x.dtype).requires_grad_()
        self.optimizer = module.optim.LBFGS([self.w, self.b], **options)
        self.evaluations = 0

    def loss(self) -> Any:
        self.evaluations += 1
        self.optimizer.zero_grad()
        z = (self.x @ self.w).reshape(-1) + self.b
        loss = (self.module.log1p(self.module.exp(-z.abs())) + z.clamp(min=0) - z * self.y).mean()
        loss = loss + 0.05 * (self.w * self.w).sum()
        loss.backward()
        return loss

    def values(self) -> list[np.ndarray[Any, Any]]:
        return [p.detach().double().numpy().copy() for p in (self.w, self.b)]


@pytest.mark.parametrize("options", OPTIONS, ids=IDS)
def test_path_equals_pytorchs(options: dict[str, Any]) -> None:
    mine, theirs = Regression(tl, options, "float64"), Regression(torch, options, "float64")
    for step in range(20):
        losses = [run.optimizer.step(run.loss).item() for run in (mine, theirs)]
        np.testing.assert_allclose(*losses, rtol=RTOL, err_msg=f"step {step}")
        for a, b in zip(mine.values(), theirs.values(), strict=True):
            np.testing.assert_allclose(a, b, rtol=RTOL, atol=RTOL, err_msg=f"step {step}")
        assert mine.evaluations == theirs.evaluations


@pytest.mark.parametrize("options", OPTIONS, ids=IDS)
def test_float32_ends_as_low(options: dict[str, Any]) -> None:
    """The paths differ: the search interpolates differences of losses, which in float32 are mostly rounding errors."""
    mine, theirs = Regression(tl, options, "float32"), Regression(torch, options, "float32")
    for run in (mine, theirs):
        for _ in range(30):
            run.optimizer.step(run.loss)
    assert mine.w.dtype is tl.float32
    # Options that have not converged by then end at a point that depends on rounding, which varies with BLAS threads.
    np.testing.assert_allclose(mine.loss().item(), theirs.loss().item(), rtol=1e-5)


class SmallNetwork(Regression):
    """Two layers of tanh. The loss is not convex: a difference in rounding grows several hundredfold every two steps.

    In float32 the paths diverge within five steps. Changing the initial weights by half a unit in the last place moves
    PyTorch's own loss as far from its float64 loss as tallow's is, so the tests compare in float64.
    """

    def __init__(self, module: Any, options: dict[str, Any], dtype: str) -> None:
        rng = np.random.default_rng(0)
        x = rng.standard_normal((32, 4))
        weights = [0.5 * rng.standard_normal(shape) for shape in ((8, 4), (8,), (1, 8), (1,))]
        arrays = [x, np.sin(2 * x.sum(1, keepdims=True)), *weights]
        self.x, self.y, *self.weights = (module.from_numpy(a).to(getattr(module, dtype)) for a in arrays)
        self.module = module
        self.optimizer = module.optim.LBFGS([w.requires_grad_() for w in self.weights], **options)
        self.evaluations = 0

    def loss(self) -> Any:
        self.evaluations += 1
        self.optimizer.zero_grad()
        w1, b1, w2, b2 = self.weights
        loss = ((self.module.tanh(self.x @ w1.T + b1) @ w2.T + b2 - self.y) ** 2).mean()
        loss.backward()
        return loss


@pytest.mark.parametrize("options", [{}, {"line_search_fn": "strong_wolfe"}], ids=["defaults", "strong_wolfe"])
def test_path_of_a_network_equals_pytorchs(options: dict[str, Any]) -> None:
    mine, theirs = (SmallNetwork(module, options, "float64") for module in (tl, torch))
    for step in range(6):
        losses = [run.optimizer.step(run.loss).item() for run in (mine, theirs)]
        np.testing.assert_allclose(*losses, rtol=1e-6, err_msg=f"step {step}")
    assert mine.evaluations == theirs.evaluations


def test_rosenbrock_with_line_search() -> None:
    results = []
    for module in (tl, torch):
        p = module.tensor([-1.5, 2.0], dtype=module.float64, requires_grad=True)
        optimizer = module.optim.LBFGS([p], line_search_fn="strong_wolfe", max_iter=10)

        def loss(p: Any = p, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            value = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
            value.backward()
            return value

        way = []
        for _ in range(6):
            optimizer.step(loss)
            way.append(p.detach().numpy().copy())
        results.append(np.stack(way))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-7)
    np.testing.assert_allclose(results[0][-1], [1, 1], rtol=1e-5)


@pytest.mark.parametrize("line_search_fn", [None, "strong_wolfe"])
def test_round_trip_is_bit_equal(line_search_fn: str | None) -> None:
    options = {"line_search_fn": line_search_fn, "max_iter": 3, "lr": 0.5}
    uninterrupted, interrupted = Regression(tl, options, "float32"), Regression(tl, options, "float32")
    for _ in range(6):
        uninterrupted.optimizer.step(uninterrupted.loss)
    for _ in range(3):
        interrupted.optimizer.step(interrupted.loss)
    resumed = Regression(tl, {}, "float32")
    resumed.optimizer.load_state_dict(interrupted.optimizer.state_dict())
    resumed.w.data, resumed.b.data = (tl.from_numpy(p.detach().numpy().copy()) for p in (interrupted.w, interrupted.b))
    for _ in range(3):
        resumed.optimizer.step(resumed.loss)
    for a, b in zip(resumed.values(), uninterrupted.values(), strict=True):
        np.testing.assert_array_equal(a, b)


def as_tallow(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tl.from_numpy(value.detach().numpy().copy())
    if isinstance(value, dict):
        return {k: as_tallow(v) for k, v in value.items()}
    return [as_tallow(v) for v in value] if isinstance(value, list) else value


def test_continues_from_pytorchs_state() -> None:
    mine, theirs = (Regression(m, {"line_search_fn": "strong_wolfe", "max_iter": 2}, "float64") for m in (tl, torch))
    for _ in range(2):
        theirs.optimizer.step(theirs.loss)
    mine.optimizer.load_state_dict(as_tallow(theirs.optimizer.state_dict()))
    mine.w.data, mine.b.data = as_tallow(theirs.w.detach()), as_tallow(theirs.b.detach())
    for run in (mine, theirs):
        run.optimizer.step(run.loss)
    for a, b in zip(mine.values(), theirs.values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
