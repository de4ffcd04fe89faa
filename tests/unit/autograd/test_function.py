"""`autograd.Function`: ops in PyTorch's class form."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import tallow as tl
from tallow.errors import ArgumentTypeError, GraphError, ShapeError


class Scale(tl.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, factor: float) -> Any:
        ctx.save_for_backward(x, w)
        ctx.factor = factor
        return x * w * factor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, w = ctx.saved_tensors
        return (
            grad * w * ctx.factor if ctx.needs_input_grad[0] else None,
            (grad * x * ctx.factor).sum() if ctx.needs_input_grad[1] else None,
            None,
        )


class MinMax(tl.autograd.Function):
    """Two outputs, with setup_context; the third is the number of elements."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x.min(), x.max(), x.numel()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        (x,) = inputs
        low, high, _ = output
        ctx.save_for_backward(x, low, high)

    @staticmethod
    def backward(ctx: Any, grad_low: Any, grad_high: Any, _: Any) -> Any:
        x, low, high = ctx.saved_tensors
        return (x == low) * grad_low + (x == high) * grad_high


def leaf(*values: float) -> tl.Tensor:
    return tl.tensor(values, dtype=tl.float64, requires_grad=True)


def test_gradients_equal_differences() -> None:
    assert tl.autograd.gradcheck(lambda x, w: Scale.apply(x, w, 3.0), (leaf(1, 2), leaf(5)))
    assert tl.autograd.gradcheck(lambda x: MinMax.apply(x)[:2], (leaf(3, 1, 2),))


def test_only_needed_gradients_are_computed() -> None:
    x = leaf(1, 2)
    Scale.apply(x, tl.tensor([2.0], dtype=tl.float64), 3.0).sum().backward()
    assert x.grad.tolist() == [6, 6]


def test_an_output_may_be_anything_and_get_no_gradient() -> None:
    x = leaf(3, 1, 2)
    _, high, count = MinMax.apply(x)
    assert count == 3
    (high * 2).backward()
    assert x.grad.tolist() == [2, 0, 0]


def test_nothing_is_recorded_where_nothing_needs_it() -> None:
    y = Scale.apply(tl.ones(2), tl.ones(1), 3.0)
    assert not y.requires_grad
    with tl.no_grad():
        assert not Scale.apply(leaf(1), leaf(1), 3.0).requires_grad


def test_the_node_is_named_after_the_class() -> None:
    assert Scale.apply(leaf(1), leaf(1), 1.0).grad_fn.name() == "ScaleBackward"


def test_instances_are_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="apply"):
        Scale()


def test_a_saved_tensor_that_is_overwritten_is_noticed() -> None:
    w = leaf(5)
    x = leaf(1, 2) * 1
    y = Scale.apply(x, w, 2.0)
    x.mul_(2)
    with pytest.raises(GraphError, match="modified by an inplace operation"):
        y.sum().backward()


def test_backward_twice_needs_retain_graph() -> None:
    x = leaf(1, 2)
    y = Scale.apply(x, leaf(5), 2.0).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [20, 20]
    with pytest.raises(GraphError, match="second time"):
        y.backward()


def test_saving_an_output_makes_no_cycle() -> None:
    class Exp(tl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    assert tl.autograd.gradcheck(Exp.apply, (leaf(1, 2),))
    y = Exp.apply(leaf(1, 2))
    gone = weakref.ref(y)
    gc.disable()
    try:
        del y
        assert gone() is None
    finally:
        gc.enable()


def test_outputs_marked_non_differentiable_need_no_gradient() -> None:
    class SortedWithOrder(tl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            values, order = x.sort()
            half = values * 0.5
            ctx.mark_non_differentiable(order, half)
            ctx.save_for_backward(order)
            return values, order, half

        @staticmethod
        def backward(ctx: Any, grad: Any, no_order: Any, no_half: Any) -> Any:
            assert no_order.dtype is tl.int64
            assert not no_order.any()
            assert no_half.tolist() == [0, 0, 0]
            (order,) = ctx.saved_tensors
            return tl.zeros_like(grad).scatter(0, order, grad)

    x = leaf(3, 1, 2)
    values, order, half = SortedWithOrder.apply(x)
    assert (values.requires_grad, order.requires_grad, half.requires_grad) == (True, False, False)
    (values * tl.tensor([1.0, 2.0, 3.0], dtype=tl.float64)).sum().backward()
    assert x.grad.tolist() == [3, 1, 2]


@pytest.mark.parametrize("materialize", [True, False])
def test_missing_gradients_are_zeros_or_none(materialize: bool) -> None:
    class Two(tl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3, x.argmax()

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any, index: Any) -> Any:
            assert (b.tolist() == [0, 0]) if materialize else (b is None)
            assert (index.dtype is tl.int64 and index.item() == 0) if materialize else (index is None)
            return a * 2

    x = leaf(1, 2)
    Two.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_dirty_input_is_written_in_place() -> None:
    class Double(tl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = leaf(1, 2)
    y = x * 3
    z = Double.apply(y)
    assert z is y
    (y * y).sum().backward()
    assert x.grad.tolist() == [72, 144]
    with pytest.raises(GraphError, match="leaf"):
        Double.apply(leaf(1))
    with pytest.raises(GraphError, match="view"):
        Double.apply((x * 3)[:1])


def test_an_argument_returned_as_it_came_gets_a_history_of_its_own() -> None:
    class Straight(tl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 10

    x = leaf(1, 2)
    y = Straight.apply(x)
    assert y is not x
    y.sum().backward()
    assert x.grad.tolist() == [10, 10]
    assert y.data_ptr() == x.data_ptr()


def test_a_wrong_number_of_gradients_raises() -> None:
    class Short(tl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    with pytest.raises(GraphError, match="returned 1 gradient for 2 arguments"):
        Short.apply(leaf(1), leaf(2)).backward()


def test_sixteen_bit_gradients_come_and_go_in_their_dtype() -> None:
    class Same(tl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            assert grad.dtype is tl.bfloat16
            return grad * 2

    x = tl.ones(2, dtype=tl.bfloat16, requires_grad=True)
    Same.apply(x).sum().backward()
    assert x.grad.dtype is tl.bfloat16
    assert x.grad.tolist() == [2, 2]


def test_it_is_importable_as_in_pytorch() -> None:
    from tallow.autograd import Function
    from tallow.autograd.function import FunctionCtx, once_differentiable

    assert Function is tl.autograd.Function
    assert once_differentiable(Scale.backward) is Scale.backward
    assert FunctionCtx().saved_tensors == ()


def test_a_gradient_of_a_wrong_shape_names_the_function_and_the_argument() -> None:
    class Wrong(tl.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, tl.ones(2, 4)

    words = r"Function WrongBackward returned an invalid gradient at index 1 - got \[2, 4\] but expected .* \[3\]"
    with pytest.raises(ShapeError, match=words):
        Wrong.apply(leaf(1, 2, 3), leaf(1, 2, 3)).sum().backward()
