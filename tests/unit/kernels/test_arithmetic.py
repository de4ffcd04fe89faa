"""Elementwise kernels give NumPy's bits, and embeddings those of sums in order."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support.guarded_arrays import GuardedArray

import tallow as tl
from tallow import kernels
from tallow.errors import DimensionError, ShapeError
from tallow.kernels import library

Array = np.ndarray[Any, Any]

LIBRARY = kernels.info()
pytestmark = pytest.mark.skipif(LIBRARY.library == "none", reason=f"no compiled kernels: {LIBRARY.reason}")
OPERATORS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, 1.5], np.float32)


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let small arrays reach the kernels."""
    from tallow.kernels.bindings import activation, arithmetic, embedding, losses, selection

    monkeypatch.setattr(arithmetic, "thread_count", lambda: 2)
    for module in (activation, arithmetic, embedding, losses, selection):
        monkeypatch.setattr(module, "LEAST", 1)
    for predicate in (arithmetic.large_float32, activation.float32_elements, selection.float32_and_two_numbers):
        monkeypatch.setattr(predicate, "minimum", 1)
    kernels.table.forget_choices()
    yield
    monkeypatch.undo()
    kernels.table.forget_choices()


def run(name: str, *args: Any) -> Any:
    """Run the compiled kernel, whatever the table would choose."""
    return kernels.KERNELS[name, library.BACKEND].fn(*args)


def pairs(n: int) -> tuple[Array, Array]:
    """Return n pairs of numbers, the first ones all pairs of special numbers."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, n)).astype(np.float32)
    special = np.stack(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)[:, :n]
    a[: special.shape[1]], b[: special.shape[1]] = special
    return a, b


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("n", [1, 3, 8, 100, 333])
def test_the_bits_of_numpy(name: str, n: int, poisoned_empty: list[GuardedArray]) -> None:
    a, b = pairs(n)
    for other in (b, 0.1, 3, 0):
        np.testing.assert_array_equal(run(name, a, other), OPERATORS[name](a, other))
    for memory in poisoned_empty:
        memory.check_outside()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", OPERATORS)
def test_rows_and_columns_have_the_bits_of_numpy(name: str, poisoned_empty: list[GuardedArray]) -> None:
    for shape in (3, 130), (2, 5, 200), (1, 333):
        a, b = (x.reshape(shape) for x in pairs(math.prod(shape)))
        for other in b[0], b.reshape(-1, shape[-1])[1 % len(b)], b[..., :1], b[:1, ..., ::1][..., -1:][: len(a)]:
            if other.shape == (*shape[:-1], 1) or shape[len(shape) - other.ndim :] == other.shape:
                np.testing.assert_array_equal(run(name, a, other), OPERATORS[name](a, other))
                got = a.copy()
                kernels.table.run_into(name, got, got, other)
                np.testing.assert_array_equal(got, OPERATORS[name](a, other))
        for part in (0,), (..., slice(1)):  # a row and a column of the array that is written
            expected, got = OPERATORS[name](a, a[part]), a.copy()
            kernels.table.run_into(name, got, got, got[part])
            np.testing.assert_array_equal(got, expected)
    for other in np.ones((5, 1), np.float32), np.ones(129, np.float32), np.ones((1, 3, 130), np.float32):
        with pytest.raises(ShapeError, match="with a row or a column"):
            run(name, np.ones((3, 130), np.float32), other)
    for memory in poisoned_empty:
        memory.check_outside()


def by_arrays(name: str, *args: Any) -> Any:
    return kernels.KERNELS[name, "array"].fn(*args)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("n", [1, 5, 17, 100, 333])
def test_bounded_kernels_give_what_arrays_do(n: int, poisoned_empty: list[GuardedArray]) -> None:
    x, g = pairs(n)
    x[: n // 2 : 7], x[1 : n // 2 : 7] = 3, -3  # where the derivatives change
    with kernels.off():
        exact = [by_arrays("clamp", x, *bounds) for bounds in ((-1, 0.5), (2, -2))]
        masked = [by_arrays("clamp_backward", g, x, *bounds) for bounds in ((-3, 3), (0, 6))]
        near = [
            ("hardswish", (x,)),
            ("hardswish_backward", (g, x)),
            ("huber_error", (x, g, 0.7)),
            ("lerp", (x, g, 0.3)),
        ]
        expected = [by_arrays(name, *args) for name, args in near]
    for y, bounds in zip(exact, ((-1, 0.5), (2, -2)), strict=True):
        np.testing.assert_array_equal(run("clamp", x, *bounds), y)
    for y, bounds in zip(masked, ((-3, 3), (0, 6)), strict=True):
        np.testing.assert_array_equal(run("clamp_backward", g, x, *bounds), y)
    for (name, args), y in zip(near, expected, strict=True):
        np.testing.assert_allclose(run(name, *args), y, rtol=2e-6, atol=1e-6, err_msg=name)
    for memory in poisoned_empty:
        memory.check_outside()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("n", [1, 5, 9, 100])
def test_relu_and_its_gradient(n: int) -> None:
    x, g = pairs(n)
    y = run("relu", x)
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    np.testing.assert_array_equal(run("relu_backward", g, y), np.where(y > 0, g, 0))
    for slope in (0.1, -2, 0):
        np.testing.assert_array_equal(
            run("leaky_relu_backward", g, x, slope), np.where(x > 0, g, g * np.float32(slope))
        )


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 41), (2, 5, 9), (2, 3, 40)], ids=str)
def test_running_sums(shape: tuple[int, ...], poisoned_empty: list[GuardedArray]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x.flat[0] = -0.0
    for axis in range(x.ndim):
        flipped = np.flip(x, axis)
        np.testing.assert_array_equal(run("running_sum", x, axis, False), x.cumsum(axis))
        np.testing.assert_array_equal(run("running_sum", x, axis, True), np.flip(flipped.cumsum(axis), axis))
        assert np.signbit(run("running_sum", x, axis, False).flat[0])
    for memory in poisoned_empty:
        memory.check_outside()


@pytest.mark.skipif(library.IN_BROWSER, reason="the libraries for WASM lack it")
def test_erf_is_as_accurate_as_a_float() -> None:
    x = np.concatenate([np.linspace(-5, 5, 200_001), np.logspace(-40, 0, 10_001)]).astype(np.float32)
    exact = np.vectorize(math.erf)(x.astype(np.float64))
    assert (abs(run("erf", x) - exact) <= 1.5 * np.spacing(abs(exact).astype(np.float32))).all()
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(run("erf", special), [0, 0, 1, -1, np.nan])
    assert np.signbit(run("erf", special)[1])


@pytest.mark.parametrize("name", OPERATORS)
def test_tensors_compute_with_the_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not kernels.info().enabled:
        pytest.skip("kernels are switched off")
    calls: list[str] = []
    entry = kernels.KERNELS[name, library.BACKEND]

    def counted(*args: Any) -> Any:
        calls.append(name)
        return entry.fn(*args)

    monkeypatch.setitem(kernels.KERNELS, (name, library.BACKEND), entry._replace(fn=counted))
    kernels.table.forget_choices()
    a, b = (tl.from_numpy(np.abs(x) + 1) for x in np.random.default_rng(0).standard_normal((2, 5, 7), dtype=np.float32))
    got = OPERATORS[name](a, b)
    kernels.table.forget_choices()
    assert set(calls) == {name}  # with --compiled more than once
    np.testing.assert_array_equal(got.numpy(), OPERATORS[name](a.numpy(), b.numpy()))


@pytest.mark.parametrize(
    "change",
    [lambda a: a.astype(np.float64), lambda a: a[:, ::2], lambda a: a.T, lambda a: a[0], lambda a: np.float32(2)],
    ids=["float64", "strided", "transposed", "broadcast", "scalar"],
)
def test_other_operands_use_the_array_code(change: Callable[[Array], Any]) -> None:
    a = np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32)
    other = change(a)
    for name, compute in OPERATORS.items():
        if np.ndim(other) and other.shape != a.shape and other.ndim == 2:
            continue
        with np.errstate(all="ignore"):
            expected = compute(a, other)
        got = kernels.run(name, a, other)
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


def test_an_operand_of_another_shape_is_refused() -> None:
    a = np.ones((4, 4), np.float32)
    with pytest.raises(ShapeError, match="add"):
        run("add", a, a[:2])
    with pytest.raises(ShapeError, match="relu_backward"):
        run("relu_backward", a, a[:2])


@pytest.mark.parametrize(("count", "rows", "width"), [(1, 1, 1), (7, 5, 3), (50, 9, 37), (0, 4, 8)], ids=str)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_embedding(count: int, rows: int, width: int, dtype: type, poisoned_empty: list[GuardedArray]) -> None:
    rng = np.random.default_rng(1)
    table, g = rng.standard_normal((rows, width)), rng.standard_normal((count, width)).astype(np.float32)
    table, index = table.astype(np.float32), rng.integers(0, rows, count).astype(dtype)
    np.testing.assert_array_equal(run("take_rows", table, index), table[index])
    for padding in (None, 0):
        expected = np.zeros((rows, width), np.float32)
        for place, row in zip(index, g, strict=True):
            expected[place] += row
        if padding is not None:
            expected[padding] = 0
        np.testing.assert_array_equal(run("add_rows", g, index, rows, padding), expected)
    for memory in poisoned_empty:
        memory.check_outside()


@pytest.mark.parametrize("place", [-1, 5, 2**40])
def test_a_place_outside_of_the_table_is_an_error(place: int) -> None:
    index = np.array([0, place], np.int64)
    with pytest.raises(DimensionError, match="lies outside the 5 places"):
        run("take_rows", np.ones((5, 2), np.float32), index)
    with pytest.raises(DimensionError, match="lies outside the 5 places"):
        run("add_rows", np.ones((2, 2), np.float32), index, 5, None)
    with pytest.raises(ShapeError, match="add_rows"):
        run("add_rows", np.ones((3, 2), np.float32), np.zeros(2, np.int64), 5, None)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 6, 8, 12, 16, 40, 77])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_products(width: int, dtype: Any, poisoned_empty: list[GuardedArray]) -> None:
    rng = np.random.default_rng(width)
    rows, cols = np.sort(rng.integers(1, 9, 40)), rng.integers(0, 6, 40)
    crow, a = np.searchsorted(rows, np.arange(12)), np.zeros((11, 6), dtype)
    values, x, g = (rng.standard_normal(shape).astype(dtype) for shape in (40, (6, width), (11, width)))
    np.add.at(a, (rows, cols), values)
    error = {"rtol": 1e-4 if dtype is np.float32 else 1e-12, "atol": 1e-5 if dtype is np.float32 else 1e-13}
    np.testing.assert_allclose(run("csr_matmul", values, x, crow, cols), a @ x, **error)
    np.testing.assert_allclose(run("csr_matmul_transposed", values, g, crow, cols, 6), a.T @ g, **error)
    np.testing.assert_allclose(run("csr_sampled", g, x, crow, cols), (g @ x.T)[rows, cols], **error)
    for memory in poisoned_empty:
        memory.check_outside()
    for wrong in ((crow[::-1], cols), (crow, cols + 1), (crow, cols - 1), (crow, cols - 2**62), (crow[:-5], cols)):
        with pytest.raises(ShapeError, match="csr_matmul"):
            run("csr_matmul", values, x, *wrong)


SHAPES = [((5,), 0), ((4, 300), 0), ((4, 300), 1), ((3, 40, 30), 1), ((1, 7, 33), 1), ((2, 3, 0), 1)]


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("is_vector", [False, True], ids=["index for each element", "vector"])
def test_elements_along_an_axis(
    shape: tuple[int, ...], axis: int, is_vector: bool, poisoned_empty: list[GuardedArray]
) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal(shape).astype(np.float32)
    count = 2 * shape[axis] + 3
    of_taken = (*shape[:axis], count, *shape[axis + 1 :])
    index = rng.integers(0, shape[axis], count if is_vector else of_taken)
    full = np.broadcast_to(index.reshape(-1, *[1] * (x.ndim - axis - 1)), of_taken) if is_vector else index
    taken = run("take_along", x, index, axis)
    np.testing.assert_array_equal(taken, np.take_along_axis(x, full, axis))
    expected = x.copy()
    for place in np.ndindex(of_taken):
        expected[(*place[:axis], full[place], *place[axis + 1 :])] += taken[place]
    run("add_along", x, index, taken, axis)
    np.testing.assert_array_equal(x, expected)
    for memory in poisoned_empty:
        memory.check_outside()


@pytest.mark.parametrize("place", [-1, 5, 2**40])
def test_a_place_outside_of_the_axis_is_an_error(place: int) -> None:
    x, index = np.ones((3, 5), np.float32), np.array([0, place], np.int64)
    with pytest.raises(DimensionError, match="lies outside the 5 places"):
        run("take_along", x, index, 1)
    with pytest.raises(DimensionError, match="lies outside the 5 places"):
        run("add_along", x, index, np.ones((3, 2), np.float32), 1)
    with pytest.raises(ShapeError, match="add_along"):
        run("add_along", x, index * 0, np.ones((3, 3), np.float32), 1)


@pytest.mark.parametrize("n", [1, 7, 33, 5000])
def test_select(n: int, poisoned_empty: list[GuardedArray]) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 3, n)).astype(np.float32)
    a[0, 0], b[1, 0] = np.nan, np.inf
    everywhere = np.broadcast_to(np.float32(0.5), a.shape)
    for mask in (rng.random((3, n)) < 0.5, rng.random((3, 1)) < 0.5, rng.random(n) < 0.5, np.array(True)):
        for yes, no in ((a, b), (a, -2.0), (0, b), (a.T.copy().T, b), (everywhere, b), (a, np.array(1, np.float32))):
            expected = np.where(mask, yes, no)
            got = run("select", mask, yes, no)
            assert got.dtype == np.float32
            np.testing.assert_array_equal(got, expected)
    for memory in poisoned_empty:
        memory.check_outside()
