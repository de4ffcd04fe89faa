"""The recurrences of models with states: compiled kernels and array code against the formulas in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.decode_blocks import BACKENDS, LIBRARY
from support.guarded_arrays import GuardedArray

import tallow.nn.decayed_attention
import tallow.nn.selective_scan
import tallow.nn.short_convolution  # noqa: F401 - registers the array code
from tallow import kernels
from tallow.errors import ShapeError
from tallow.kernels import library

Array = np.ndarray[Any, Any]

TOLERANCE = 2e-5  # relative to the largest element
NEEDS_LIBRARY = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no library: {LIBRARY.reason}")


def run(backend: str, name: str, *args: Any) -> tuple[Array, Array]:
    """Run the kernel of one backend, whatever the table would choose; it leaves its arguments as they are."""
    before = [None if each is None else each.copy() for each in args]
    found: tuple[Array, Array] = kernels.KERNELS[name, backend].fn(*args)
    for each, old in zip(args, before, strict=True):
        np.testing.assert_array_equal(each, old)
    return found


def agree(found: tuple[Array, Array], expected: tuple[Array, Array]) -> None:
    for mine, value in zip(found, expected, strict=True):
        assert mine.dtype == np.float32
        np.testing.assert_allclose(mine, value, rtol=TOLERANCE, atol=TOLERANCE * np.abs(value).max(initial=1))


def of_rule(b: int, h: int, t: int, k: int, v: int, corrects: bool) -> list[Any]:
    rng = np.random.default_rng(t + v)
    q, keys, values = (rng.standard_normal((b, h, t, n)) for n in (k, k, v))
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    decay, beta = -rng.exponential(0.3, (b, h, t)), rng.uniform(0, 1, (b, h, t))
    state = rng.standard_normal((b, h, k, v))
    decay[..., ::32] = -20.0  # forgets nearly everything
    found = [each.astype(np.float32) for each in (q, keys, values, decay, beta, state)]
    return found if corrects else [*found[:4], None, found[5]]


def rule(q: Array, k: Array, v: Array, decay: Array, beta: Array | None, state: Array) -> tuple[Array, Array]:
    """Yang, Kautz & Hatamizadeh 2024, equation 10, head by head."""
    y, after = np.zeros(v.shape), state.astype(np.float64)
    for at in np.ndindex(v.shape[:2]):
        for t in range(v.shape[2]):
            s, key = np.exp(np.float64(decay[at][t])) * after[at], k[at][t].astype(np.float64)
            written = v[at][t] if beta is None else beta[at][t] * (v[at][t] - s.T @ key)
            after[at] = s + np.outer(key, written)
            y[at][t] = after[at].T @ q[at][t]
    return y, after


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("corrects", [True, False])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1, 1), (2, 3, 1, 8, 6), (1, 2, 70, 5, 21), (1, 1, 3, 16, 200)], ids=str)
def test_delta_rule(backend: str, corrects: bool, sizes: tuple[int, ...], poisoned_empty: list[GuardedArray]) -> None:
    operands = of_rule(*sizes, corrects)  # type: ignore[arg-type]
    agree(run(backend, "delta_rule", *operands), rule(*operands))
    for array in poisoned_empty:
        array.check_outside()


def of_scan(b: int, t: int, c: int, n: int) -> list[Array]:
    rng = np.random.default_rng(t + c)
    x, step = rng.standard_normal((b, t, c)), rng.exponential(0.4, (b, t, c))
    step[:, ::5] = 300.0
    rates, state = -rng.uniform(0.1, 8, (c, n)), rng.standard_normal((b, c, n))
    read, write = rng.standard_normal((2, b, t, n))
    return [each.astype(np.float32) for each in (x, step, rates, write, read, state)]


def scan(x: Array, step: Array, a: Array, b: Array, c: Array, state: Array) -> tuple[Array, Array]:
    """Gu & Dao 2023, equation 2, with the discretization of their code."""
    y, h = np.zeros(x.shape), state.astype(np.float64)
    for t in range(x.shape[1]):
        size = step[:, t, :, None].astype(np.float64)
        h = np.exp(size * a) * h + size * b[:, t, None] * x[:, t, :, None]
        y[:, t] = np.einsum("bcn,bn->bc", h, c[:, t])
    return y, h


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (2, 1, 9, 5), (1, 66, 21, 16), (2, 3, 130, 2)], ids=str)
def test_selective_scan(backend: str, sizes: tuple[int, ...], poisoned_empty: list[GuardedArray]) -> None:
    operands = of_scan(*sizes)  # type: ignore[arg-type]
    agree(run(backend, "selective_scan", *operands), scan(*operands))
    for array in poisoned_empty:
        array.check_outside()


def of_convolution(b: int, t: int, c: int, w: int, has_bias: bool) -> list[Any]:
    rng = np.random.default_rng(t + c)
    shapes = ((b, t, c), (b, w - 1, c), (c, w), (c,))
    found = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    return found if has_bias else [*found[:3], None]


def convolution(x: Array, past: Array, weight: Array, bias: Array | None) -> tuple[Array, Array]:
    inputs = np.concatenate([past, x], 1).astype(np.float64)
    w = weight.shape[1]
    y = np.stack([(inputs[:, t : t + w] * weight.T).sum(1) for t in range(x.shape[1])], 1)
    return y if bias is None else y + bias, inputs[:, inputs.shape[1] - w + 1 :]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (2, 1, 9, 4), (2, 2, 21, 4), (1, 40, 130, 3), (1, 3, 16, 8)], ids=str)
def test_short_convolution(
    backend: str, has_bias: bool, sizes: tuple[int, ...], poisoned_empty: list[GuardedArray]
) -> None:
    operands = of_convolution(*sizes, has_bias)  # type: ignore[arg-type]
    agree(run(backend, "short_convolution", *operands), convolution(*operands))
    for array in poisoned_empty:
        array.check_outside()


OPERANDS = {
    "delta_rule": of_rule(2, 3, 5, 8, 40, True),
    "selective_scan": of_scan(2, 5, 200, 4),
    "short_convolution": of_convolution(2, 5, 200, 4, True),
}


@NEEDS_LIBRARY
@pytest.mark.threads
@pytest.mark.parametrize("name", OPERANDS)
def test_parts_compute_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(library.BACKEND, name, *OPERANDS[name])
    monkeypatch.setattr("tallow.kernels.bindings.threads.thread_count", lambda: 3)
    monkeypatch.setattr("tallow.kernels.bindings.threads.WORTH_A_THREAD", 1)
    for mine, value in zip(run(library.BACKEND, name, *OPERANDS[name]), expected, strict=True):
        np.testing.assert_array_equal(mine, value)


@NEEDS_LIBRARY
@pytest.mark.parametrize("name", OPERANDS)
def test_sizes_that_do_not_fit_are_refused(name: str) -> None:
    for i, operand in enumerate(OPERANDS[name]):
        others = [*OPERANDS[name][:i], operand[..., :-1].copy(), *OPERANDS[name][i + 1 :]]
        with pytest.raises(ShapeError, match=name):
            kernels.KERNELS[name, library.BACKEND].fn(*others)


@NEEDS_LIBRARY
def test_other_dtypes_and_many_taps_are_left_to_the_array_code() -> None:
    for name, operands in OPERANDS.items():
        accepts = kernels.KERNELS[name, library.BACKEND].accepts
        assert accepts is not None
        assert accepts(*operands)
        assert not accepts(*(each.astype(np.float64) for each in operands))
    accepts = kernels.KERNELS["short_convolution", library.BACKEND].accepts
    assert accepts is not None
    assert not accepts(*of_convolution(1, 2, 4, 9, True))
