"""Kernels on several threads: natively Python's, in the tab workers. Any number of them gives the same bits."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support.quantized_blocks import random_matrix

import tallow as tl
from tallow import kernels
from tallow.dtypes import cast, float16, float32
from tallow.errors import WorkerError
from tallow.kernels import library
from tallow.kernels import threads as setting
from tallow.kernels.blocks import cross_decode_block as cross
from tallow.kernels.blocks.affine import Affine
from tallow.kernels.blocks.encoder_block import NORMS, PARTS, EncoderBlock

Array = np.ndarray[Any, Any]

LIBRARY = kernels.info()
pytestmark = [
    pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}"),
    pytest.mark.threads,
]
in_the_tab = pytest.mark.skipif(not library.IN_BROWSER, reason="workers are for WASM")
OPTIONS = (0.9, 0.999, 1e-3, 0.5, 1e-8, 0.1, 1.0, False)


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def run(name: str, *args: Any) -> Any:
    """Run the compiled kernel, whatever the table would choose."""
    return kernels.KERNELS[name, library.BACKEND].fn(*args)


def adam(n: int) -> list[Array]:
    arrays = [abs(normal(n, seed=seed)) for seed in range(5)]
    run("adam_step", *arrays, *OPTIONS)
    return arrays


def sgd(n: int) -> list[Array]:
    arrays = [normal(n, seed=seed) for seed in range(3)]
    run("sgd_step", *arrays, 0.1, 0.9, 0.1, 0.01, True, False)
    return arrays


def added_along(x: Array, index: Array, axis: int) -> Array:
    shape = index.shape if index.ndim == x.ndim else (*x.shape[:axis], index.size, *x.shape[axis + 1 :])
    run("add_along", x, index, normal(*shape, seed=1), axis)
    return x


def heads(batch: int) -> tuple[Array, Array, Array]:
    return normal(batch, 6, 1, 16), normal(batch, 3, 21, 16, seed=1), normal(batch, 3, 21, 16, seed=2)


def places(count: int, rows: int) -> Array:
    return np.random.default_rng(3).integers(0, rows, count)


def matmul(a: Array, b: Array) -> Array:
    from tallow.kernels.bindings.matmul import matmul as compiled  # natively only some sizes are in the table

    product: Array = compiled(a, b)
    return product


def encoder(quantized: str | None) -> Array:
    width, hidden = 64, 96
    shapes = dict.fromkeys(PARTS, (width, width)) | dict.fromkeys(NORMS, (width,))
    shapes |= {"up": (hidden, width), "down": (width, hidden)}
    rng = np.random.default_rng(4)
    parts = {
        name: Affine(
            random_matrix(quantized, *shape, rng, 0.01) if quantized and name not in NORMS else normal(*shape),
            normal(shape[0]),
        )
        for name, shape in shapes.items()
    }
    block = EncoderBlock(**parts, heads=4, eps=1e-5, activation="gelu")
    return run("encoder_blocks", normal(150, width), [block], np.array([0, 70, 150]), None)


def sparse(name: str, dtype: Any, *options: int) -> Array:
    """Call a product of a matrix (21, 30) with 90 entries."""
    rows, cols, x = np.sort(places(90, 21)), places(90, 30), normal(30, 50).astype(dtype)
    crow, of_rows = np.searchsorted(rows, np.arange(22)), normal(21, 50, seed=1).astype(dtype)
    values = normal(90, seed=2).astype(dtype)
    first, second = {"csr_sampled": (of_rows, x), "csr_matmul_transposed": (values, of_rows)}.get(name, (values, x))
    return run(name, first, second, crow, cols, *options)


CALLS: dict[str, Callable[[], Any]] = {
    "csr_matmul": lambda: sparse("csr_matmul", np.float32),
    "csr_matmul transposed": lambda: sparse("csr_matmul_transposed", np.float64, 30),
    "csr_sampled": lambda: sparse("csr_sampled", np.float32),
    "softmax": lambda: run("softmax", normal(7, 33)),
    "softmax backward": lambda: run("softmax_backward", normal(7, 33), normal(7, 33, seed=1)),
    "log_softmax": lambda: run("log_softmax", normal(7, 33)),
    "log_softmax backward": lambda: run("log_softmax_backward", normal(7, 33), normal(7, 33, seed=1)),
    "cross_entropy": lambda: run("cross_entropy", normal(7, 33), np.arange(7, dtype=np.int64), None, -100, 0.0),
    "cross_entropy backward": lambda: run(
        "cross_entropy_backward",
        normal(7),
        normal(7, 33),
        places(7, 33).astype(np.int64),
        None,
        2,
        0.0,
        normal(7) + 5,
        normal(7) + 9,
        np.dtype(np.float32),
    ),
    "sum_exp": lambda: run("sum_exp", normal(7, 33)),
    "row_sums": lambda: run("row_sums", normal(7, 33)),
    "scaled_exp": lambda: run("scaled_exp", normal(7, 33), normal(7) + 5, normal(7)),
    "layer_norm": lambda: run("layer_norm", normal(7, 33), normal(33), normal(33), 1e-5),
    "layer_norm backward": lambda: run(
        "layer_norm_backward", normal(19, 61), normal(19, 61, seed=1), normal(61, seed=2), 1e-5
    ),
    "attention_decode": lambda: run("attention_decode", *heads(1), 0.3),
    "attention_decode, sequences": lambda: run("attention_decode", *heads(5), 0.3),
    "relu": lambda: run("relu", normal(101)),
    "relu backward": lambda: run("relu_backward", normal(101), normal(101, seed=1)),
    "add": lambda: run("add", normal(1 << 20), normal(1 << 20, seed=1)),
    "div": lambda: run("div", normal(1 << 20), 3.5),
    "embedding": lambda: run("take_rows", normal(9, 40), places(31, 9)),
    "embedding backward": lambda: run("add_rows", normal(31, 40), places(31, 9), 9, 2),
    "take_along": lambda: run("take_along", normal(70, 80, 3), places(70 * 31 * 3, 80).reshape(70, 31, 3), 1),
    "take_along, first axis": lambda: run("take_along", normal(9, 400), places(31, 9), 0),
    "add_along": lambda: added_along(normal(70, 80, 3), places(70 * 31 * 3, 80).reshape(70, 31, 3), 1),
    "add_along, first axis": lambda: added_along(normal(9, 400), places(31, 9), 0),
    "clamp_max": lambda: run("clamp_max", normal(70_000), 0.5),
    "select": lambda: run("select", places(70_000, 2).astype(bool), normal(70_000), 0.5),
    "halves": lambda: cast(cast(normal(70_000), float16), float32),
    "leaky_relu_backward": lambda: run("leaky_relu_backward", normal(70_000), normal(70_000, seed=1), 0.1),
    "running_sum": lambda: run("running_sum", normal(70, 80, 3), 1, True),
    "fft_complex": lambda: run("fft_complex", normal(37, 60).view(np.complex64), (1,), "ortho", True),
    "fft_of_real": lambda: run("fft_of_real", normal(37, 60), 1, "backward"),
    "fft_to_real": lambda: run("fft_to_real", normal(37, 62).view(np.complex64), 60, 1, "backward"),
    "fft_complex, long rows": lambda: run("fft_complex", normal(3, 512).view(np.complex64), (1,), "ortho", True),
    "spectra_of_frames": lambda: run("spectra_of_frames", normal(3, 300), normal(60), 17, "backward"),
    "rms_norm": lambda: run("rms_norm", normal(7, 33), normal(33), 1e-5),
    "gelu": lambda: run("gelu", normal(101), "none"),
    "gelu backward": lambda: run("gelu_backward", normal(101), normal(101, seed=1), "tanh"),
    "sigmoid": lambda: run("sigmoid", normal(101)),
    "silu": lambda: run("silu", normal(101)),
    "silu_mul": lambda: run("silu_mul", normal(101), normal(101, seed=1)),
    "adam": lambda: adam(101),
    "sgd": lambda: sgd(20_001),
    "encoder": lambda: encoder(None),
    "quantised encoder": lambda: encoder("Q8_0"),
    "matmul": lambda: matmul(normal(37, 50), normal(50, 41)),
    "matmul, few rows": lambda: matmul(normal(21, 50), normal(50, 141)),
    "matmul, few rows, transposed": lambda: matmul(normal(50, 21).T, normal(141, 50).T),
    "matmul, transposed": lambda: matmul(normal(50, 64).T, normal(41, 50).T),
    "matmul, batch": lambda: matmul(normal(5, 6, 9), normal(5, 9, 7)),
    "matmul, broadcast": lambda: matmul(normal(3, 1, 6, 9), normal(4, 9, 7)),
    "matmul, one column": lambda: matmul(normal(37, 50), normal(50, 1)),
}
for rows in (1, 2, 3, 4, 9, 40):
    for dtype in (np.float32, np.float16):
        CALLS[f"linear, {rows} rows, {np.dtype(dtype)}"] = lambda rows=rows, dtype=dtype: run(  # type: ignore[misc]
            "linear", normal(rows, 300), normal(290, 300).astype(dtype), normal(290)
        )


def arrays(result: Any) -> list[Array]:
    return [*result] if isinstance(result, tuple | list) else [result]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that sets the number of threads, for the smallest work too."""
    from tallow.kernels.bindings import threads

    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    return lambda count: monkeypatch.setattr(threads, "thread_count", lambda: count)


@pytest.mark.parametrize("name", CALLS)
def test_any_number_of_threads_gives_the_same(name: str, use: Callable[[int], None]) -> None:
    use(1)
    alone = CALLS[name]()
    for count in (2, 3, 7):
        use(count)
        for a, b in zip(arrays(CALLS[name]()), arrays(alone), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.native
def test_an_error_in_a_part_comes_after_all_have_ended() -> None:
    from tallow.kernels.bindings import native_threads

    ended = []

    def call(part: int) -> None:
        if part == 1:
            raise KeyboardInterrupt
        ended.append(part)

    with pytest.raises(KeyboardInterrupt):
        native_threads.run(call, [(0,), (1,), (2,)])
    assert 0 in ended
    assert ended.count(2) <= 1


@pytest.mark.native
def test_a_thread_that_does_not_wake_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from tallow.kernels.bindings import native_threads

    team = native_threads._Team()
    monkeypatch.setattr(team, "start", lambda: team.threads.append(threading.current_thread()))
    monkeypatch.setattr(native_threads, "_team", lambda: team)
    ended: list[int] = []
    native_threads.run(ended.append, [(part,) for part in range(9)])
    assert sorted(ended) == [*range(9)]


@pytest.mark.native
def test_threads_that_sleep_wake_up() -> None:
    from tallow.kernels.bindings import native_threads

    seen: set[int] = set()

    def call(part: int) -> None:
        seen.add(threading.get_ident())
        time.sleep(0.02)

    native_threads.run(call, [(0,), (1,), (2,)])
    assert until(lambda: time.sleep(0.001) or native_threads._team().asleep() >= 2)
    seen.clear()
    native_threads.run(call, [(0,), (1,), (2,)])
    assert len(seen) == 3


@pytest.mark.native
def test_an_error_of_another_thread_is_raised_and_the_next_call_works(use: Callable[[int], None]) -> None:
    from tallow.kernels.bindings import native_threads

    use(2)
    caller = threading.get_ident()

    def call(part: int) -> None:
        if threading.get_ident() != caller:
            raise ZeroDivisionError
        time.sleep(0.05)

    with pytest.raises(ZeroDivisionError):
        native_threads.run(call, [(0,), (1,)])
    np.testing.assert_array_equal(run("relu", normal(101)), np.maximum(normal(101), 0))


@pytest.mark.native
def test_kernels_of_several_callers_and_within_a_part(use: Callable[[int], None]) -> None:
    from tallow.kernels.bindings import native_threads

    use(3)
    x = normal(400, 33)
    expected = np.maximum(x, 0)

    def many(count: int) -> bool:
        return all(np.array_equal(run("relu", x), expected) for _ in range(count))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(many, [100] * 4))
    results: list[bool] = []
    native_threads.run(lambda part: results.append(many(3)), [(0,), (1,), (2,)])
    assert results == [True] * 3


@pytest.mark.native
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the operating system has no fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    code = """
import os, warnings
import tallow as tl
warnings.simplefilter("ignore")
tl.set_num_threads(2)
x = tl.ones(3000, 1000)
assert (x @ x.T)[0, 0] == 1000 and x.relu().sum() == 3e6
child = os.fork()
assert (x @ x.T)[-1, -1] == 1000 and x.relu().sum() == 3e6
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_other_threads_take_part(use: Callable[[int], None]) -> None:
    from tallow.kernels.bindings import native_threads, tab_threads

    use(2)
    threads = tab_threads if library.IN_BROWSER else native_threads
    assert until(lambda: matmul(normal(400, 400), normal(400, 400)) is not None and threads.parts_of_others() > 0)


@pytest.mark.native
def test_a_thread_computes_calls_of_c_functions_without_the_gil(
    use: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tallow.kernels.bindings import native_threads

    use(2)
    # A part takes some 10 ms, within which a busy system runs the thread.
    team, started, x = native_threads._Team(), threading.Event(), np.ones(1 << 24, np.float32)
    monkeypatch.setattr(native_threads, "_team", lambda: team)

    def call() -> None:
        started.set()
        run("silu", x)

    def is_helped() -> bool:
        """Keep the GIL from when the caller is in C until another thread has computed a part, or for long."""
        started.clear()
        future = pool.submit(call)
        started.wait()
        helped = until(lambda: native_threads.parts_of_others() > 0)
        future.result()
        return helped

    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # a thread gives up the GIL only if it wants to
    try:
        with ThreadPoolExecutor(1) as pool:
            assert any(is_helped() for _ in range(20)), "the thread waits for the GIL"
    finally:
        sys.setswitchinterval(before)
        team.end()


@pytest.mark.native
def test_a_thread_that_was_woken_for_parts_of_python_leaves_those_of_c() -> None:
    """It may get the GIL late: the caller has computed all parts of Python itself, and has published a call of C."""
    from tallow.kernels.bindings import native_threads

    team, claims = native_threads._Team(), []

    @ctypes.CFUNCTYPE(None, ctypes.c_ssize_t)
    def call(part: int) -> None:
        claims.append((part, team.claim(team.control)))

    call.__name__ = "call"
    plan = (ctypes.cast(call, ctypes.c_void_p).value, 1, 0, 0)
    assert library._builtins is not None
    in_parts = library._builtins.make_in_parts(call, plan)
    in_parts(team.control, 2, team.idle, 2, 1, 2, np.array([[1, 0, 0]], np.intp), 0)
    none_left = -1
    assert claims == [(0, none_left), (1, none_left)]


@in_the_tab
def test_a_trap_ends_decoding_soon(use: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The others do not wait for the chunk that the thread has claimed, and the next call works."""
    from tallow.kernels.bindings import threads

    use(2)
    width, seen = 64, 400
    shapes = dict.fromkeys(cross.PARTS, (width, width)) | dict.fromkeys(cross.NORMS, (width,))
    block = cross.CrossDecodeBlock(**{name: Affine(normal(*s), None) for name, s in shapes.items()}, heads=4, eps=1e-5)
    caches = [normal(8, 4, 4, 16) for _ in range(2)] + [normal(1, 4, seen, 16) for _ in range(2)]

    def outside_of_memory(words: int, scratch: int, steps: Any) -> Array:
        of_words = np.zeros((words + 1, 3), np.intp)
        of_words[-1, 2] = 0x7FFF0000  # the scratch of the other thread; this one computes in that of part 0
        return of_words

    monkeypatch.setattr(threads, "_of_words", outside_of_memory)
    start = time.monotonic()

    def decode_until_trapped() -> None:
        until(lambda: run("cross_decode_block", normal(8, width), block, *caches, 0) is None)

    with pytest.raises(WorkerError, match="tl_cross_decode_block_f32 ended early"):
        decode_until_trapped()
    assert time.monotonic() - start < 50, "that is nearly the limit after which a thread counts as lost"
    monkeypatch.undo()
    np.testing.assert_array_equal(run("relu", normal(1 << 20)), np.maximum(normal(1 << 20), 0))


def until(condition: Callable[[], bool]) -> bool:
    """Return whether a condition holds at last: a busy machine may leave another thread without a processor."""
    return any(condition() for _ in range(100_000))


@pytest.fixture
def same_number() -> Any:
    yield (before := tl.get_num_threads())
    setting.set_thread_count(before)


@pytest.mark.filterwarnings("ignore:set_num_threads")  # without threadpoolctl
def test_the_number_of_threads_is_set(same_number: int) -> None:
    tl.set_num_threads(1)
    assert tl.get_num_threads() == kernels.info().threads == 1
    assert kernels.info().summary.endswith(", 1 thread")
    tl.set_num_threads(same_number)
    assert tl.get_num_threads() == same_number
