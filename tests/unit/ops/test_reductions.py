"""Reductions, scans, sorting and counting: ties, NaN, names of results, and identities that hold for any input."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallow as tl
from tallow import kernels, return_types
from tallow.errors import ArgumentTypeError, DtypeError, GraphError, ShapeError

NAN = float("nan")
numbers = st.lists(st.integers(-5, 5), min_size=1, max_size=30)


def gradient(function: Any, values: list[float]) -> list[float]:
    x = tl.tensor(values, requires_grad=True)
    function(x).backward()
    assert x.grad is not None
    return x.grad.tolist()  # type: ignore[no-any-return]


def test_amax_shares_its_gradient_and_max_along_a_dim_gives_it_to_the_first() -> None:
    tied = [3.0, 1.0, 3.0, 2.0]
    assert gradient(lambda x: x.amax(), tied) == [0.5, 0, 0.5, 0]
    assert gradient(lambda x: x.max(), tied) == [0.5, 0, 0.5, 0]
    assert gradient(lambda x: x.max(0).values, tied) == [1, 0, 0, 0]
    assert gradient(lambda x: x.min(0)[0], [1.0, 2.0, 1.0]) == [1, 0, 0]
    assert gradient(lambda x: x.median(), [1.0, 2.0, 2.0, 3.0]) == [0, 0.5, 0.5, 0]


def test_std_of_equal_elements_has_no_gradient_rather_than_nan() -> None:
    assert gradient(lambda x: x.std(), [2.0, 2.0, 2.0]) == [0, 0, 0]
    assert gradient(lambda x: x.norm(), [0.0, 0.0]) == [0, 0]


def test_logsumexp_survives_large_and_infinite_elements() -> None:
    inf = float("inf")
    assert tl.tensor([1000.0, 1000.0]).logsumexp(0).item() == pytest.approx(1000 + np.log(2))
    assert tl.tensor([-inf, -inf]).logsumexp(0).item() == -inf
    assert tl.tensor([inf, 0.0]).logsumexp(0).item() == inf


def test_nan_sorts_last_and_propagates_in_extremes() -> None:
    x = tl.tensor([2.0, NAN, 1.0, NAN])
    assert x.argsort().tolist() == [2, 0, 1, 3]
    assert x.argsort(descending=True).tolist() == [1, 3, 0, 2]
    assert x.max(0).indices.item() == x.argmin().item() == x.argmax().item() == 1
    assert np.isnan(x.amin().item())
    assert x.topk(1).indices.item() in (1, 3)
    assert x.nanmedian().item() == 1
    assert x.median(0).indices.item() == 1


def test_sums_of_small_integers_do_not_wrap_around() -> None:
    x = tl.full((100,), 100, dtype=tl.int8)
    assert (x.sum().item(), x.sum().dtype) == (10_000, tl.int64)
    assert x.sum(dtype=tl.int8).item() == 10_000 % 256 - 256 * (10_000 % 256 > 127)
    assert x.cumsum(0)[-1].item() == 10_000


@pytest.mark.cpu("elsewhere the device is printed too")
def test_results_have_names_and_survive_pickling() -> None:
    result = tl.tensor([[1.0, 3.0], [2.0, 0.0]]).max(dim=1)
    assert isinstance(result, return_types.max)
    assert isinstance(result, tuple)
    assert result._fields == ("values", "indices")
    assert repr(result) == "tallow.return_types.max(\nvalues=tensor([3., 2.]),\nindices=tensor([1, 0]))"
    values, _ = pickle.loads(pickle.dumps(result))
    assert values.tolist() == [3, 2]


def test_out_receives_the_result() -> None:
    x = tl.tensor([[1.0, 3.0], [2.0, 0.0]])
    total = tl.zeros(2)
    assert tl.sum(x, 0, out=total) is total
    assert total.tolist() == [3, 3]
    empty = tl.empty(0)
    tl.matmul(x, x, out=empty)
    assert empty.tolist() == (x @ x).tolist()
    values, indices = tl.empty(2), tl.empty(2, dtype=tl.int64)
    tl.topk(x, 1, 0, out=(values[None], indices[None]))
    assert (values.tolist(), indices.tolist()) == ([2, 3], [1, 0])
    with pytest.warns(UserWarning, match="was resized since it had shape"):
        tl.sum(x, out=total)
    assert total.tolist() == 6
    with pytest.raises(DtypeError, match="can't be cast"):
        tl.sum(x, 0, out=tl.zeros(2, dtype=tl.int64))
    with pytest.raises(ArgumentTypeError, match="2 tensors"):
        tl.sort(x, out=total)
    with pytest.raises(GraphError, match="automatic differentiation"):
        tl.sum(x.requires_grad_(), 0, out=total)


def test_out_of_functions_that_choose_their_op() -> None:
    x = tl.tensor([[1.0, 3.0], [2.0, 0.0]])
    values, indices = tl.empty(0), tl.empty(0, dtype=tl.int64)
    for function, at_last in ((tl.max, [1, 0]), (tl.min, [0, 1]), (tl.median, [0, 1]), (tl.nanmedian, [0, 1])):
        result = function(x, dim=1, out=(values, indices))
        assert (result[0] is values, result[1] is indices) == (True, True)
        assert indices.tolist() == at_last
        assert values.tolist() == x.gather(1, indices[:, None])[:, 0].tolist()
    total = tl.empty(2)
    assert tl.max(x, x.mT, out=tl.empty(0)).tolist() == [[1, 3], [3, 0]]
    assert tl.where(x[0] > 1, x[0], x[1], out=total) is total
    assert total.tolist() == [2, 3]
    assert tl.var(x, axis=0, out=total).tolist() == [0.5, 4.5]
    with pytest.warns(UserWarning, match="was resized since it had shape"):
        tl.std(x, out=total)
    assert total.shape == ()


def test_matmul_errors_name_both_shapes() -> None:
    with pytest.raises(ShapeError, match=r"matmul: shapes cannot be multiplied: \(2, 3\) @ \(4, 5\)"):
        tl.ones(2, 3) @ tl.ones(4, 5)
    with pytest.raises(ShapeError, match=r"batch dimensions do not broadcast: \(2, 2, 3\) @ \(3, 3, 2\)"):
        tl.ones(2, 2, 3) @ tl.ones(3, 3, 2)


def test_addmm_ignores_its_input_for_beta_zero() -> None:
    assert tl.addmm(tl.full((2, 2), NAN), tl.eye(2), tl.eye(2), beta=0).tolist() == [[1, 0], [0, 1]]


@pytest.mark.cpu("its kernel is NumPy's")
def test_matmul_goes_through_the_kernel_table() -> None:
    seen = []

    def spy(a: Any, b: Any) -> Any:
        seen.append((a.shape, b.shape))
        return np.matmul(a, b)

    before = kernels.KERNELS["matmul", "array"].fn
    kernels.kernel("matmul", "array")(spy)
    try:
        with kernels.off():
            a, b = tl.ones(5, 2, 3, requires_grad=True), tl.ones(3, 4, requires_grad=True)
            (a @ b).sum().backward()
    finally:
        kernels.kernel("matmul", "array")(before)
    # Forward; then g bᵀ; then one product of aᵀ g for the whole batch.
    # With --compiled each of them runs more than once.
    assert list(dict.fromkeys(seen)) == [((5, 2, 3), (3, 4)), ((5, 2, 4), (4, 3)), ((3, 10), (10, 4))]


@given(numbers, st.booleans())
def test_sorting_is_a_stable_permutation(values: list[int], descending: bool) -> None:
    ordered, indices = tl.tensor(values).sort(descending=descending, stable=True)
    sign = -1 if descending else 1
    assert indices.tolist() == sorted(range(len(values)), key=lambda i: sign * values[i])
    assert ordered.tolist() == [values[i] for i in indices.tolist()]


@given(numbers, st.data())
def test_topk_is_the_head_of_the_sorted(values: list[int], data: st.DataObject) -> None:
    k = data.draw(st.integers(0, len(values)))
    largest = data.draw(st.booleans())
    result = tl.tensor(values).topk(k, largest=largest)
    assert result.values.tolist() == sorted(values, reverse=largest)[:k]
    assert [values[i] for i in result.indices.tolist()] == result.values.tolist()
    assert len(set(result.indices.tolist())) == k


@given(numbers)
def test_unique_and_its_inverse_rebuild_the_input(values: list[int]) -> None:
    unique, inverse, counts = tl.tensor(values).unique(return_inverse=True, return_counts=True)
    assert unique.tolist() == sorted(set(values))
    assert [unique.tolist()[i] for i in inverse.tolist()] == values
    assert counts.tolist() == [values.count(v) for v in sorted(set(values))]
    runs, inverse = tl.tensor(values).unique_consecutive(return_inverse=True)
    assert [runs.tolist()[i] for i in inverse.tolist()] == values
    assert all(a != b for a, b in zip(runs.tolist(), runs.tolist()[1:], strict=False))


@given(st.lists(numbers, min_size=1, max_size=4), st.booleans())
def test_searchsorted_in_rows_is_numpy_in_each(rows: list[list[int]], right: bool) -> None:
    width = min(map(len, rows))
    sequences = np.sort(np.array([row[:width] for row in rows]), axis=1)
    queries = np.array([row[-width:] for row in rows])
    result = tl.searchsorted(tl.as_tensor(sequences), tl.as_tensor(queries), right=right)
    side: Any = "right" if right else "left"
    assert result.tolist() == [np.searchsorted(s, v, side).tolist() for s, v in zip(sequences, queries, strict=True)]


@given(numbers)
def test_diff_undoes_cumsum(values: list[int]) -> None:
    x = tl.tensor(values)
    assert x.cumsum(0).diff(prepend=tl.zeros(1, dtype=tl.int64)).tolist() == values


@given(numbers, st.floats(0, 1))
def test_quantiles_equal_those_of_numpy(values: list[int], q: float) -> None:
    x = np.array(values, np.float64)
    for how in ("linear", "lower", "higher", "midpoint"):
        expected = np.quantile(x, q, method=how)
        np.testing.assert_allclose(tl.as_tensor(x).quantile(q, interpolation=how).item(), expected, atol=1e-9)
