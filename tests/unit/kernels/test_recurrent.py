"""The compiled steps of LSTM and GRU, and the gradients of the former, fulfil the contracts of their C files.

Expected values are the formulas in float64. Outputs and scratch memory lie between guards and are poisoned first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.guarded_arrays import GuardedArray

from tallow import kernels
from tallow.errors import ShapeError
from tallow.kernels import library
from tallow.ops.recurrent import gru_array

Array = np.ndarray[Any, Any]
Steps = list[tuple[slice, int]]

LIBRARY = kernels.info()
pytestmark = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")

TOLERANCE = 2e-5  # relative to the largest element: a few steps, sums of up to 200 products
SIZES = [  # batch sizes of the steps, hidden size
    ((1,), 1),
    ((3, 3, 3), 4),
    ((5, 4, 4, 1), 7),
    ((9, 9), 8),
    ((2, 2, 1), 33),
    ((17,), 50),
]
rng = np.random.default_rng(9)


def normal(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def steps_of(batch_sizes: tuple[int, ...], reverse: bool) -> Steps:
    ends = np.cumsum(batch_sizes).tolist()
    steps = [(slice(end - n, end), n) for n, end in zip(batch_sizes, ends, strict=True)]
    return steps[::-1] if reverse else steps


def operands(batch_sizes: tuple[int, ...], n: int) -> list[Array]:
    """Return gates, h0, c0, the weight, and the gradients of y and of the final states."""
    rows, sequences = sum(batch_sizes), max(batch_sizes)
    states = [normal(sequences, n) for _ in range(4)]
    return [normal(rows, 4 * n), *states[:2], normal(4 * n, n) / np.float32(n**0.5), normal(rows, n), *states[2:]]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def expected(inputs: list[Array], steps: Steps) -> list[Array]:
    """Compute y, h, c, and the gradients of the gates, h0 and c0, the latter by the chain rule step by step."""
    gates, h, c, w, g_y, d_h, d_c = (x.astype(np.float64) for x in inputs)
    n = h.shape[1]
    y = np.zeros((len(gates), n))
    saved_steps = []
    for rows, count in steps:
        i, f, g, o = (gates[rows] + h[:count] @ w.T).reshape(count, 4, n).transpose(1, 0, 2)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        before = c[:count].copy()
        c[:count] = f * before + i * g
        h[:count] = o * np.tanh(c[:count])
        y[rows] = h[:count]
        saved_steps.append((rows, count, i, f, g, o, before, np.tanh(c[:count])))
    last_h, last_c = h.copy(), c.copy()
    d_gates = np.zeros(gates.shape)
    for rows, count, i, f, g, o, before, t in reversed(saved_steps):
        d_out = d_h[:count] + g_y[rows]
        d = d_c[:count] + d_out * o * (1 - t * t)
        parts = [d * g * i * (1 - i), d * before * f * (1 - f), d * i * (1 - g * g), d_out * t * o * (1 - o)]
        d_gates[rows] = np.concatenate(parts, axis=1)
        d_c[:count] = d * f
        d_h[:count] = d_gates[rows] @ w
    return [y, last_h, last_c, d_gates, d_h, d_c]


def compiled(name: str, *args: Any) -> Any:
    return kernels.KERNELS[name, library.BACKEND].fn(*args)


def forward_and_backward(inputs: list[Array], steps: Steps) -> list[Array]:
    gates, h0, c0, w, g_y, g_h, g_c = inputs
    y, h, c, active, _, last_c, tanh_c = compiled("lstm", gates, h0, c0, w, None, steps)
    backward = compiled("lstm_backward", g_y, g_h, g_c, active, last_c, tanh_c, w, None, steps)
    assert backward[3] is None
    return [y, h, c, *backward[:3]]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("batch_sizes", "n"), SIZES)
def test_forward_and_backward(
    batch_sizes: tuple[int, ...], n: int, reverse: bool, poisoned_empty: list[GuardedArray]
) -> None:
    inputs, steps = operands(batch_sizes, n), steps_of(batch_sizes, reverse)
    before = [x.copy() for x in inputs]
    got = forward_and_backward(inputs, steps)
    for mine, value in zip(got, expected(inputs, steps), strict=True):
        np.testing.assert_allclose(mine, value, rtol=TOLERANCE, atol=TOLERANCE * np.abs(value).max())
    for array in poisoned_empty:
        array.check_outside()
    for x, y in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize(("batch_sizes", "n"), SIZES)
def test_gru(batch_sizes: tuple[int, ...], n: int, has_bias: bool, poisoned_empty: list[GuardedArray]) -> None:
    inputs, steps = gru_operands(batch_sizes, n, has_bias), steps_of(batch_sizes, has_bias)
    got = compiled("gru", *inputs, steps)
    with kernels.off():
        gates, h0, weight, bias = (x if x is None else x.astype(np.float64) for x in inputs)
        expected = gru_array(gates, h0, weight, bias, tuple(steps))
    for mine, value in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine, value, rtol=TOLERANCE, atol=TOLERANCE * np.abs(value).max())
    for array in poisoned_empty:
        array.check_outside()


def gru_operands(batch_sizes: tuple[int, ...], n: int, has_bias: bool) -> list[Any]:
    """Return gates, h0, the weight and the bias."""
    gates, h0, weight = normal(sum(batch_sizes), 3 * n), normal(max(batch_sizes), n), normal(3 * n, n)
    return [gates, h0, weight / np.float32(n**0.5), normal(3 * n) if has_bias else None]


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_nothing_is_saved_without_a_backward_pass(name: str) -> None:
    inputs, steps = operands((9, 7, 2), 20), steps_of((9, 7, 2), True)
    arguments = [*inputs[:4], None] if name == "lstm" else gru_operands((9, 7, 2), 20, True)
    recorded, plain = compiled(name, *arguments, steps), compiled(name, *arguments, steps, False)
    assert len(plain) == len(recorded) - (4 if name == "lstm" else 3)
    for a, b in zip(plain, recorded, strict=False):
        np.testing.assert_array_equal(a, b)


def test_any_layout() -> None:
    inputs, steps = operands((3, 3), 5), steps_of((3, 3), False)
    for other in ([np.asfortranarray(x) for x in inputs], [x[::-1].copy()[::-1] for x in inputs]):
        for a, b in zip(forward_and_backward(other, steps), forward_and_backward(inputs, steps), strict=True):
            np.testing.assert_array_equal(a, b)


def test_gates_at_the_ends_of_float32() -> None:
    gates = np.array([[-3e38, 3e38, -100, 100]], np.float32)  # i = 0, f = 1, g = -1, o = 1
    zero, two = np.zeros((1, 1), np.float32), np.full((1, 1), 2, np.float32)
    y, _, c, *_ = compiled("lstm", gates, zero, two, np.zeros((4, 1), np.float32), None, steps_of((1,), False))
    assert c[0, 0] == 2
    np.testing.assert_allclose(y, np.tanh(2.0), rtol=1e-6)


def test_tanh_keeps_its_relative_accuracy_near_zero() -> None:
    small = np.geomspace(1e-30, 20, 4001, dtype=np.float32)
    n = len(small)  # each a separate sequence with one feature
    gates, state = np.zeros((n, 4), np.float32), np.zeros((n, 1), np.float32)
    gates[:, 2] = np.where(np.arange(n) % 2, small, -small)
    weight, steps = np.zeros((4, 1), np.float32), steps_of((n,), False)
    active = compiled("lstm", gates, state, state, weight, None, steps)[3]
    np.testing.assert_allclose(active[:, 2, 0], np.tanh(gates[:, 2].astype(np.float64)), rtol=4e-7)


def test_mismatched_shapes_are_refused() -> None:
    inputs, steps = operands((3, 2), 4), steps_of((3, 2), False)
    gates, h0, c0, w, *_ = inputs
    for args, bad_steps in [
        ((gates[:4], h0, c0, w), steps),
        ((gates, h0[:2], c0, w), steps),
        ((gates, h0, c0[:, :3], w), steps),
        ((gates, h0, c0, w[:, :3]), steps),
        ((gates, h0, c0, w), [(slice(0, 3), 3), (slice(4, 6), 2)]),
        ((gates, h0, c0, w), [(slice(0, 3), 3), (slice(3, 4), 2)]),
    ]:
        with pytest.raises(ShapeError):
            compiled("lstm", *args, None, bad_steps)
    gates, h0, w, bias = gru_operands((3, 2), 4, True)
    for arguments in (
        (gates[:4], h0, w, bias),
        (gates, h0[:2], w, bias),
        (gates, h0, w[:, :3], bias),
        (gates, h0, w, bias[1:]),
    ):
        with pytest.raises(ShapeError):
            compiled("gru", *arguments, steps)


@pytest.mark.threads
def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from tallow.kernels.bindings import threads

    inputs, steps = operands((9, 7, 2), 20), steps_of((9, 7, 2), True)
    gru_inputs = gru_operands((9, 7, 2), 20, True)
    alone = [*forward_and_backward(inputs, steps), *compiled("gru", *gru_inputs, steps)]
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    divided = [*forward_and_backward(inputs, steps), *compiled("gru", *gru_inputs, steps)]
    for a, b in zip(divided, alone, strict=True):
        np.testing.assert_array_equal(a, b)
