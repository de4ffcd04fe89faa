"""The compiled Adam step fulfils the contract of its C file, and the optimizer uses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import kernels
from tallow.errors import KernelUnavailable
from tallow.kernels import library

Array = np.ndarray[Any, Any]

LIBRARY = kernels.info()
pytestmark = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")

GUARD = np.float32(-7.25e30)
RTOL = 1e-6  # relative to the magnitudes of the summands
OPTIONS = [
    (0.9, 0.999, 1e-3, 0.5, 1e-8, 0.0, 1.0, False),
    (0.8, 0.95, 0.1, 0.9, 1e-3, 0.1, 1.0, True),
    (0.0, 0.5, 0.01, 1.0, 1e-8, 0.0, 0.99, False),
]


class Arrays:
    """param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq between guards, offset by `shift` elements from alignment."""

    def __init__(self, n: int, shift: int = 0, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.all = np.full((5, n + 16 + shift), GUARD, np.float32)
        self.parts = [row[8 + shift : 8 + shift + n] for row in self.all]
        for i, part in enumerate(self.parts):
            values = rng.standard_normal(n)
            part[...] = values if i < 3 else values**2
        self.outside = [np.concatenate([row[: 8 + shift], row[8 + shift + n :]]) for row in self.all]

    def check(self) -> None:
        assert all((part == GUARD).all() for part in self.outside), "written outside the arrays"


def compiled(*args: Any) -> None:
    kernels.KERNELS["adam_step", library.BACKEND].fn(*args)


def expected(arrays: list[Array], options: tuple[Any, ...], amsgrad: bool) -> tuple[list[Array], list[Array]]:
    """Return the arrays after the step, in float64, and the magnitudes of the summands of each."""
    beta1, beta2, step, scale, eps, decay, shrink, maximize = options
    p, g, m, v, top = (a.astype(np.float64) for a in arrays)
    p = p * shrink
    size = abs(g) + decay * abs(p)
    g = (-g if maximize else g) + decay * p
    new_m = beta1 * m + (1 - beta1) * g
    new_v = beta2 * v + (1 - beta2) * g * g
    new_top = np.maximum(top, new_v) if amsgrad else top
    denominator = np.sqrt(new_top if amsgrad else new_v) / scale + eps
    size_m = abs(m) + (1 - beta1) * (size + abs(m))
    size_v = new_v + (1 - beta2) * size * size
    size_p = abs(p) + step * size_m / denominator * (1 + size_v / np.maximum(new_v, 1e-30))
    return [p - step * new_m / denominator, new_m, new_v, new_top], [size_p, size_m, size_v, size_v + new_top]


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_any_length_and_alignment(options: tuple[Any, ...], amsgrad: bool) -> None:
    for n in [*range(20), 31, 64, 257]:
        for shift in range(4):
            arrays = Arrays(n, shift, seed=n)
            values, sizes = expected(arrays.parts, options, amsgrad)
            p, g, m, v, top = arrays.parts
            grad_before = g.copy()
            compiled(p, g, m, v, top if amsgrad else None, *options)
            arrays.check()
            np.testing.assert_array_equal(g, grad_before)
            for got, value, size in zip((p, m, v, top), values, sizes, strict=True):
                assert (abs(got - value) <= RTOL * size).all()


@pytest.mark.parametrize("n", [3, 8, 21])
def test_the_gradient_may_be_the_parameter(n: int) -> None:
    arrays = Arrays(n)
    p, _, m, v, top = arrays.parts
    values, sizes = expected([p, p, m, v, top], OPTIONS[1], True)
    compiled(p, p, m, v, top, *OPTIONS[1])
    for got, value, size in zip((p, m, v, top), values, sizes, strict=True):
        assert (abs(got - value) <= RTOL * size).all()


@pytest.mark.parametrize("n", [5, 8, 19])
def test_nan_reaches_the_parameter_and_nothing_else(n: int) -> None:
    for place in range(n):
        arrays = Arrays(n)
        p, g, m, v, top = arrays.parts
        g[place] = np.nan
        compiled(p, g, m, v, top, *OPTIONS[0])
        assert np.isnan([p, m, v]).sum(axis=1).tolist() == [1, 1, 1]
        assert np.isnan(p[place])


def test_unsupported_arrays_are_refused() -> None:
    good = [np.zeros((2, 3), np.float32) for _ in range(4)]
    read_only = np.zeros((2, 3), np.float32)
    read_only.flags.writeable = False
    for bad in (np.zeros((2, 3)), np.zeros((3, 2), np.float32).T, np.zeros(6, np.float32), read_only):
        for place in range(4):
            arrays: list[Any] = [*good, None]
            arrays[place] = bad
            if place == 1 and bad is read_only:
                continue
            with pytest.raises(KernelUnavailable):
                compiled(*arrays, *OPTIONS[0])


@pytest.mark.parametrize("kind", ["Adam", "AdamW"])
@pytest.mark.parametrize("amsgrad", [False, True])
def test_the_optimizer_steps_the_same_with_kernels_on_and_off(kind: str, amsgrad: bool) -> None:
    def run() -> Array:
        p = tl.from_numpy(np.linspace(-1, 1, 70, dtype=np.float32).reshape(7, 10)).requires_grad_()
        optimizer = getattr(tl.optim, kind)([p], lr=0.05, weight_decay=0.1, amsgrad=amsgrad)
        for _ in range(10):
            optimizer.backward_step((p.sin() * 3).square().sum())
        return p.detach().numpy()

    with kernels.off():
        plain = run()
    np.testing.assert_allclose(run(), plain, rtol=1e-5, atol=1e-5)
