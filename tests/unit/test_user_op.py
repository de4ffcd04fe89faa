"""Ops of one's own: the decorator that the built-in ones are made by."""

from __future__ import annotations

import numpy as np
import pytest

import tallow as tl
from tallow.dtypes import Array, Scalar
from tallow.errors import ArgumentError, ArgumentTypeError, DtypeError, ShapeError
from tallow.ops.table import OPS, op

pytestmark = pytest.mark.usefixtures("forget_new_ops")


def test_a_function_without_annotations_takes_its_positional_arguments_as_operands():
    @tl.op
    def scaled_cube(x, *, scale=1.0):
        def backward(g):
            return (3 * scale * x * x * g,)

        return scale * x**3, backward

    x = tl.tensor([1.0, 2.0], dtype=tl.float64, requires_grad=True)
    y = scaled_cube(x, scale=2.0)
    assert y.tolist() == [2.0, 16.0]
    assert y.grad_fn.name() == "ScaledCubeBackward0"
    assert tl.autograd.gradcheck(lambda t: scaled_cube(t, scale=2.0), (x,))


def test_a_wrong_gradient_is_found_by_gradcheck():
    @tl.op
    def wrong_square(x):
        return x * x, lambda g: (3 * x * g,)

    x = tl.tensor([1.0, 2.0], dtype=tl.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="differs by up to"):
        tl.autograd.gradcheck(wrong_square, (x,))
    assert not tl.autograd.gradcheck(wrong_square, (x,), raise_exception=False)


def test_operands_are_broadcast_and_their_gradients_reduced():
    @tl.op(dtypes="promote")
    def weighted(x: Array, w: Array | Scalar):
        return x * w, lambda g: (lambda: g * w, lambda: g * x)

    x = tl.ones(2, 3, requires_grad=True)
    w = tl.tensor([[2.0], [3.0]], dtype=tl.float64, requires_grad=True)
    y = weighted(x, w)
    assert y.dtype is tl.float64
    y.sum().backward()
    assert x.grad.dtype is tl.float32
    assert x.grad.tolist() == [[2.0] * 3, [3.0] * 3]
    assert w.grad.tolist() == [[3.0], [3.0]]


def test_a_gradient_that_nobody_needs_is_not_computed():
    asked = []

    @tl.op
    def product(x, y):
        def backward(g):
            def dx():
                asked.append("x")
                return g * y

            def dy():
                asked.append("y")
                return g * x

            return dx, dy

        return x * y, backward

    product(tl.ones(2, requires_grad=True), tl.ones(2)).sum().backward()
    assert asked == ["x"]


@pytest.mark.parametrize("half", [tl.float16, tl.bfloat16], ids=str)
def test_sixteen_bit_operands_arrive_in_float32(half):
    seen = []

    @tl.op
    def doubled(x):
        seen.append(x.dtype)
        return x + x, lambda g: (seen.append(g.dtype) or g + g,)

    x = tl.tensor([1.5, 2.0], dtype=half, requires_grad=True)
    y = doubled(x)
    y.backward(tl.ones(2, dtype=half))
    assert seen == [np.float32, np.float32]
    assert y.dtype is half
    assert x.grad.dtype is half
    assert x.grad.tolist() == [2.0, 2.0]


def test_an_op_can_be_a_method():
    @tl.op("Tensor Tensor_")
    def plus_one_for_test(x: Array):
        return x + 1, lambda g: (g,)

    x = tl.zeros(2)
    assert x.plus_one_for_test().tolist() == [1.0, 1.0]
    assert x.plus_one_for_test_() is x
    assert x.tolist() == [1.0, 1.0]
    del tl.Tensor.plus_one_for_test, tl.Tensor.plus_one_for_test_


def test_an_op_without_backward_has_outputs_that_need_no_gradient():
    @tl.op
    def rounded_for_test(x):
        return np.round(x), None

    assert not rounded_for_test(tl.ones(2, requires_grad=True)).requires_grad


def test_what_goes_wrong_is_told_with_the_op_and_its_operands():
    @tl.op
    def stacked(x, y):
        return np.concatenate([x, y], axis=1), None

    with pytest.raises(ShapeError, match=r"stacked: .*operands: \(2, 3\) float32, \(4, 4\) float32"):
        stacked(tl.ones(2, 3), tl.ones(4, 4))
    with pytest.raises(DtypeError, match="stacked: expected operands of one dtype"):
        stacked(tl.ones(2, 3), tl.ones(2, 3, dtype=tl.float64))
    with pytest.raises(ArgumentTypeError, match="stacked: y must be a Tensor or a number, not list"):
        stacked(tl.ones(2, 3), [1.0])
    with pytest.raises(ArgumentTypeError, match="stacked: missing argument 'y'"):
        stacked(tl.ones(2, 3))


def test_a_name_is_taken_once():
    with pytest.raises(ArgumentError, match="op 'softmax' exists already"):
        op("", name="softmax")(lambda x: (x, None))


def test_a_place_or_a_rule_that_does_not_exist_is_refused():
    with pytest.raises(ArgumentError, match="places="):
        op("nowhere", name="made_for_test")(lambda x: (x, None))
    with pytest.raises(ArgumentError, match="dtypes="):
        op("", name="made_for_test", dtypes="loose")(lambda x: (x, None))
    assert "made_for_test" not in OPS
