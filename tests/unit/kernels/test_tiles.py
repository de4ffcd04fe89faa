"""Products of halves by the matrix tiles of AMX, or by AVX512-BF16, on a processor that has either."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import numpy as np
import pytest

from tallow import kernels
from tallow.dtypes import BF16, bfloat16, cast, widen

Array = np.ndarray[Any, Any]

pytestmark = pytest.mark.native
rng = np.random.default_rng(8)


@pytest.fixture(autouse=True)
def has_tiles() -> None:
    info = kernels.info()
    if not info.enabled:
        pytest.skip("kernels are switched off")
    if not info.library.endswith(("-amx", "-bf16")):
        pytest.skip(f"{info.library} has no products of halves")


def halves(*shape: int) -> Array:
    return cast(rng.standard_normal(shape).astype(np.float32), bfloat16)


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    backend, product = kernels.pick("linear", "cpu", x, weight, bias)
    assert backend == "native"
    y: Array = product(x, weight, bias)
    return y


def check(y: Array, x: Array, weight: Array, bias: Array | None = None) -> None:
    """A result is one of the two bfloat16 next to the exact one, up to the rounding of float32 sums."""
    a, b = widen(x).astype(np.float64), widen(weight).astype(np.float64)
    exact = a @ b.T + (0 if bias is None else widen(bias).astype(np.float64))
    size = abs(a) @ abs(b).T + abs(exact)
    error = abs(widen(y) - exact)
    assert y.dtype == BF16
    assert (error <= abs(exact) * 2.0**-8 + size * (x.shape[-1] / 2 + 2) * 2.0**-24).all()


@pytest.mark.parametrize("rows", [16, 17, 31, 32, 33, 50, 150])
def test_edges_of_tiles(rows: int) -> None:
    for n, k in (1, 1), (16, 32), (31, 33), (33, 31), (65, 100):
        x, weight, bias = halves(rows, k), halves(n, k), halves(n)
        check(linear(x, weight, bias), x, weight, bias)
        check(linear(x, weight, widen(bias)), x, weight, bias)
        check(linear(x, weight), x, weight)


def test_more_rows_than_are_kept_in_a_cache() -> None:
    x, weight = halves(70, 9000), halves(40, 9000)  # 64 of them
    check(linear(x, weight), x, weight)


def test_batches_and_strides() -> None:
    x, weight = halves(2, 24, 40)[:, ::2, 3:], halves(50, 80)
    for w in weight[:, :37], weight[::3, 5:42], weight[::-1, 1:38], np.asfortranarray(weight[:, :37]):
        y = linear(x, w)
        assert y.shape == (2, 12, len(w))
        check(y.reshape(24, -1), x.reshape(24, 37), w)


def test_a_row_has_the_same_bits_among_any_others() -> None:
    x, weight = halves(100, 300), halves(70, 300)
    together = linear(x, weight)
    for rows in slice(0, 16), slice(5, 38), slice(84, 100), slice(1, 100):
        np.testing.assert_array_equal(linear(x[rows], weight), together[rows])


def test_other_dtypes_and_few_rows_are_left_to_other_kernels() -> None:
    x, weight, bias = halves(16, 32), halves(8, 32), halves(8)
    taken = kernels.KERNELS["linear", "native"].accepts
    assert taken is not None
    assert taken(x, weight, bias)
    wide = widen(bias).astype(np.float64)
    for refused in (x[:15], weight, bias), (x, widen(weight), bias), (x, weight, wide), (x, weight, bias[:7]):
        assert not taken(*refused)


def test_special_numbers_stay_in_their_row_and_column() -> None:
    x, weight = halves(20, 50), halves(40, 50)
    expected = linear(x, weight)
    x[3, 49], weight[39, 0] = 0x7FC0, 0x7F80  # NaN, infinity
    y = widen(linear(x, weight))
    assert np.isnan(y[3]).all()
    assert not np.isfinite(y[:, 39]).any()
    rest = np.delete(np.delete(y, 3, 0), 39, 1)
    np.testing.assert_array_equal(rest, np.delete(np.delete(widen(expected), 3, 0), 39, 1))


def test_explain_says_how_much_memory_is_packed(capsys: pytest.CaptureFixture[str]) -> None:
    for rows in 512, 15:
        kernels.explain("linear", halves(rows, 1024), halves(10, 1024), None)
    many, few = capsys.readouterr().out.split("linear on cpu")[1:]
    unit = "matrix tiles" if kernels.info().library.endswith("amx") else "dot products of bfloat16"
    assert f"native  chosen: by {unit}; 1 MiB of x are packed for the call, nothing of the weight" in many
    assert "native  no: takes" in few


@pytest.mark.threads
def test_threads_compute_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    from tallow.kernels.bindings import threads

    x, weight, bias = halves(130, 70), halves(201, 70), halves(201)
    expected = linear(x, weight, bias)
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    for _ in range(20):
        np.testing.assert_array_equal(linear(x, weight, bias), expected)


@pytest.mark.native
def test_a_forked_process_and_other_threads_have_tiles() -> None:
    x, weight = halves(32, 64), halves(32, 64)
    expected = linear(x, weight)
    found: list[Array] = []
    thread = threading.Thread(target=lambda: found.append(linear(x, weight)))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], expected)
    child = os.fork()
    if not child:
        os._exit(0 if (linear(x, weight) == expected).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.native
def test_a_signal_leaves_tiles_as_they_are() -> None:
    x, weight = halves(256, 512), halves(256, 512)
    expected, count = linear(x, weight), [0]

    def handler(number: int, frame: Any) -> None:
        count[0] += 1
        linear(x[:16], weight[:16])
        signal.setitimer(signal.ITIMER_REAL, 1e-4)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 1e-4)
    try:
        while count[0] < 20:
            np.testing.assert_array_equal(linear(x, weight), expected)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
