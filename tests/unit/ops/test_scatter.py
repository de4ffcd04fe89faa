"""Gathering and scattering beyond what PyTorch differentiates or checks."""

from __future__ import annotations

import numpy as np
import pytest

import tallow as tl
from tallow.ops.accumulate import add_at, combine_at

rng = np.random.default_rng(0)


def leaf(*shape: int) -> tl.Tensor:
    return tl.tensor(rng.standard_normal(shape), requires_grad=True)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce_is_differentiable_by_the_part_of_a_larger_source(reduce: str, include_self: bool) -> None:
    index = tl.tensor([[0, 3, 3], [1, 0, 2]])

    def f(x: tl.Tensor, src: tl.Tensor) -> tl.Tensor:
        return x.scatter_reduce(1, index, src, reduce, include_self=include_self)

    assert tl.autograd.gradcheck(f, (leaf(3, 4), leaf(4, 5)))


def test_scatter_and_scatter_add_are_differentiable_by_the_part_of_a_larger_source() -> None:
    index = tl.tensor([[0, 2, 1], [1, 0, 2]])
    assert tl.autograd.gradcheck(lambda x, s: x.scatter(0, index, s), (leaf(3, 4), leaf(2, 5)))
    assert tl.autograd.gradcheck(lambda x, s: x.scatter_add(0, index, s), (leaf(3, 4), leaf(3, 3)))


@pytest.mark.parametrize("word", ["add", "multiply"])
def test_scatter_with_a_reduction_is_differentiable(word: str) -> None:
    index = tl.tensor([[0, 2, 0], [1, 0, 2]])
    assert tl.autograd.gradcheck(lambda x, s: x.scatter(0, index, s, reduce=word), (leaf(3, 4), leaf(2, 3)))
    assert tl.autograd.gradcheck(lambda x: x.scatter(0, index, 3.0, reduce=word), (leaf(3, 4),))


def test_equal_extremes_share_the_gradient() -> None:
    x = tl.tensor([1.0, 5.0], requires_grad=True)
    src = tl.tensor([5.0, 5.0, 2.0], requires_grad=True)
    x.scatter_reduce(0, tl.tensor([1, 1, 1]), src, "amax").sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [1, 1 / 3])
    np.testing.assert_allclose(src.grad.tolist(), [1 / 3, 1 / 3, 0])


def test_index_fill_counts_each_place_once() -> None:
    value = tl.tensor(2.0, requires_grad=True)
    tl.zeros(3, 2).index_fill(0, tl.tensor([-1, 2, 0]), value).sum().backward()
    assert value.grad.item() == 4


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(5, 1, 1), (4, 5, 2), (5, 7, 6)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("places_shape", [(40,), (4, 10), (0,)])
def test_add_at_adds_as_a_loop_does(
    axis: int, shape: tuple[int, ...], dtype: type, places_shape: tuple[int, ...]
) -> None:
    n = shape[axis]
    places = rng.integers(-n, n, places_shape)
    values = rng.integers(0, 100, shape[:axis] + places_shape + shape[axis + 1 :]).astype(dtype)
    index = (slice(None),) * axis + (places,) + (slice(None),) * (1 if axis < 2 else 0)
    for order in ("C", "F"):
        target, expected = np.zeros(shape, dtype, order), np.zeros(shape, dtype)
        for at in np.ndindex(places_shape):
            expected[(slice(None),) * axis + (places[at],)] += values[(slice(None),) * axis + at]
        add_at(target, index, values)
        np.testing.assert_array_equal(target, expected)
    target, expected = np.zeros(shape, dtype), np.zeros(shape, dtype)
    for at in np.ndindex(places_shape):
        expected[(slice(None),) * axis + (places[at],)] += 2
    add_at(target, index, np.asarray(2, dtype))  # broadcast
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize(("reduction", "of_two"), [("prod", np.multiply), ("amax", np.maximum), ("amin", np.minimum)])
def test_combine_at_combines_as_a_loop_does(reduction: str, of_two: np.ufunc) -> None:
    places, values = rng.integers(0, 5, 30), rng.standard_normal(30)
    expected = np.ones(5)
    for i, v in zip(places, values, strict=True):
        expected[i] = of_two(expected[i], v)
    target = np.ones(5)
    combine_at(reduction, target, places, values)
    np.testing.assert_allclose(target, expected, rtol=1e-12)


def test_index_put_adds_sixteen_bit_floats_in_float32() -> None:
    ones = tl.ones(1000, dtype=tl.bfloat16)
    total = tl.zeros(1, dtype=tl.bfloat16).index_put((tl.zeros(1000, dtype=tl.int64),), ones, accumulate=True)
    assert total.item() == 1000  # in bfloat16 the sum would stop at 256


@pytest.mark.cpu("elsewhere, looking at places would wait for the device")
def test_take_along_dim_refuses_indices_out_of_range() -> None:
    with pytest.raises(tl.errors.TallowError, match="5 is out of bounds for dimension 0 with size 3"):
        tl.take_along_dim(tl.zeros(3, 2), tl.tensor([[5]]), 0)
