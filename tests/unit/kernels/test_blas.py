"""Products by NumPy's BLAS on several threads: as NumPy's own, whatever is divided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import kernels
from tallow.kernels import threads as setting

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(kernels.info().library == "none", reason=f"no compiled kernels: {kernels.info().reason}"),
]
Array = np.ndarray[Any, Any]


def normal(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@pytest.fixture(autouse=True)
def three_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    if not kernels.info().enabled:
        pytest.skip("kernels are switched off")
    from tallow.kernels.bindings import blas, matmul, threads

    monkeypatch.setattr(matmul, "HAS_LONG_VECTORS", False)  # else most of these would not be BLAS's
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1000)
    for module in (threads, blas):
        monkeypatch.setattr(module, "thread_count", lambda: 3)


class Number:
    """Stands for a BLAS library: its number of threads, and those it has had."""

    divides_columns = True

    def __init__(self) -> None:
        self.number = 8
        self.seen: list[int] = []

    def get_num_threads(self) -> int:
        return self.number

    def set_num_threads(self, number: int) -> None:
        self.number = number
        self.seen.append(number)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Number:
    from tallow.kernels.bindings import blas

    number = Number()
    monkeypatch.setattr(blas, "_libraries", lambda: [number])
    return number


OPERANDS = {
    "long rows": (normal(801, 64), normal(64, 30)),
    "long columns": (normal(30, 64), normal(64, 801)),
    "transposed": (normal(64, 500).T, normal(700, 64).T),
    "fewer than a group": (normal(5, 30_000), normal(30_000, 7)),
    "batch": (normal(7, 64, 50), normal(7, 50, 33)),
    "batch of two": (normal(2, 64, 500), normal(2, 500, 33)),
    "batch of one": (normal(1, 200, 64), normal(1, 64, 70)),
    "broadcast": (normal(4, 1, 64, 50), normal(6, 50, 33)),
    "broadcast, one matrix on the left": (normal(64, 100), normal(6, 100, 63)),
    "rows of a batch": (normal(6, 64, 50), normal(50, 33)),
    "rows of a batch, not contiguous": (normal(64, 6, 50).swapaxes(0, 1), normal(50, 33)),
    "float64": (normal(300, 64, dtype="float64"), normal(64, 70, dtype="float64")),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_products_are_those_of_numpy(name: str, library: Number) -> None:
    a, b = OPERANDS[name]
    assert kernels.pick("matmul", "cpu", a, b).backend == "native"
    c = kernels.run("matmul", a, b)
    assert c.dtype == a.dtype
    np.testing.assert_allclose(c, np.matmul(a, b), rtol=2e-5 if a.dtype == np.float32 else 1e-13, atol=1e-4)
    assert (library.number, library.seen) == (8, [1, 8])


@pytest.mark.parametrize(
    ("rows", "k", "n", "dtype"),
    [(600, 64, 70, "float32"), (600, 64, 70, "float16"), (64, 400, 120, "float32")],
    ids=["many rows", "many rows, half weight", "small weight"],
)
def test_linear_by_blas_is_divided(rows: int, k: int, n: int, dtype: str, library: Number) -> None:
    """Also if the weight is too small for the kernel: threads of BLAS would keep their processors for 30 ms."""
    x, weight, bias = normal(2, rows // 2, k), normal(n, k, dtype=dtype), normal(n)
    assert kernels.pick("linear", "cpu", x, weight, bias).backend == "native"
    expected = x.astype(np.float64) @ weight.astype(np.float64).T + bias
    np.testing.assert_allclose(kernels.run("linear", x, weight, bias), expected, rtol=2e-5, atol=1e-4)
    assert library.seen
    assert library.number == 8


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (normal(8, 8), normal(8, 8)),
        (normal(300, 64), normal(63, 64).T[:63]),
        (normal(600), normal(600, 600)),
        (normal(300, 64), normal(64, 70, dtype="float64")),
        (np.ones((300, 64), int), np.ones((64, 70), int)),
    ],
    ids=["small", "do not fit", "vector", "two dtypes", "integers"],
)
def test_other_products_are_left_to_numpy(a: Array, b: Array, library: Number) -> None:
    assert kernels.pick("matmul", "cpu", a, b).backend == "array"


@pytest.mark.parametrize("is_short", [False, True])
def test_with_long_vectors_products_are_not_for_blas(
    is_short: bool, library: Number, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of moderate size, and nearly all where BLAS has no long vectors."""
    from tallow.kernels.bindings import blas, matmul

    own: list[tuple[int, ...]] = []

    def multiply(a: Array, b: Array, bias: None = None) -> Array:
        own.append(a.shape + b.shape)
        return np.asarray(a @ b)

    monkeypatch.setattr(blas, "has_short_vectors", lambda: is_short)
    monkeypatch.setattr(matmul, "_limits", matmul._limits.__wrapped__)
    monkeypatch.setattr(matmul, "HAS_LONG_VECTORS", True)
    monkeypatch.setattr(matmul, "matmul", multiply)
    a, w = normal(70, 300), normal(301, 300)
    for moderate, b in ((a, w.T), (normal(6, 70, 300), normal(1, 300, 301)), (normal(300, 70).T, w.T)):
        kernels.run("matmul", moderate, b)
    kernels.run("linear", normal(257, 300), w, None)
    assert own == [(70, 300, 300, 301), (6, 70, 300, 1, 300, 301), (70, 300, 300, 301), (257, 300, 300, 301)]
    for few, b in ((a[:60], w.T), (a, normal(300, 3000))):
        kernels.run("matmul", few, b)
    assert own[4:] == [(60, 300, 300, 301), (70, 300, 300, 3000)] * is_short
    for other, b in ((a[:15], w.T), (a, normal(300, 20)), (a.astype(np.float64), w.T.astype(np.float64))):
        kernels.run("matmul", other, b)
    assert len(own) == 4 + 2 * is_short
    assert library.number == 8


def test_a_blas_that_cannot_be_set_keeps_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from tallow.kernels.bindings import blas

    monkeypatch.setattr(blas, "_libraries", list)
    assert kernels.pick("matmul", "cpu", normal(801, 64), normal(64, 30)).backend == "array"


def test_threads_of_blas_are_set_again_after_an_error(library: Number) -> None:
    with pytest.raises(ValueError, match="broadcast"):
        kernels.run("matmul", normal(3, 64, 500), normal(2, 500, 33))
    assert library.number == 8


@pytest.mark.parametrize(
    ("divides_columns", "dtype", "starts"),
    [(True, "float32", {0, 24}), (True, "float64", {0}), (False, "float32", {0})],
)
def test_columns_are_divided_only_where_that_changes_no_sum(
    divides_columns: bool, dtype: str, starts: set[int], library: Number, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tallow.kernels.bindings import blas

    monkeypatch.setattr(library, "divides_columns", divides_columns)
    parts: list[Array] = []
    monkeypatch.setattr(blas, "bounds_of_parts", lambda count, work: [*range(count + 1)])
    monkeypatch.setattr(blas.native_threads, "run", lambda _, of_parts: parts.extend(c for _, _, c in of_parts))
    c = np.empty((30, 801), dtype)
    blas._divide(np.ones((30, 64), dtype), np.ones((64, 801), dtype), c)
    first = c.__array_interface__["data"][0]
    assert starts == {(part.__array_interface__["data"][0] - first) // c.itemsize for part in parts[:2]}


@pytest.mark.parametrize("count", [2, 7])
def test_any_number_of_threads_gives_the_same(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from tallow.kernels.bindings import blas, threads

    threadpoolctl = pytest.importorskip("threadpoolctl")
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 500_000)
    for module in (threads, blas):
        monkeypatch.setattr(module, "thread_count", lambda: count)
    rng = np.random.default_rng(count)
    for i in range(60):
        m, k, n = (int(size) for size in rng.integers(20, 600, 3))
        dtype = "float64" if i % 4 == 0 else "float32"
        a, b = normal(m, k, dtype=dtype), normal(n, k, dtype=dtype).T
        with threadpoolctl.threadpool_limits(1, user_api="blas"):
            alone = np.matmul(a, b)
        np.testing.assert_array_equal(kernels.run("matmul", a, b), alone)


def test_numbers_of_threads_are_those_of_threadpoolctl() -> None:
    from tallow.kernels.bindings import blas

    threadpoolctl = pytest.importorskip("threadpoolctl")
    libraries = blas._libraries()
    assert libraries
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        assert [each.get_num_threads() for each in libraries] == [2] * len(libraries)
        for each in libraries:
            each.set_num_threads(1)
        pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
        assert [pool["num_threads"] for pool in pools] == [1] * len(libraries)


def test_threads_of_numpys_blas_are_those_of_before() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")

    def numbers() -> list[int]:
        return [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = numbers()
        a = tl.randn(400, 300, requires_grad=True)
        (a @ a.T).sum().backward()
        assert numbers() == before
    assert setting.thread_count() >= 1
