"""Gradients with create_graph=True. tests/parity/test_second_derivatives.py compares the ops with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.functions import Cube

import tallow as tl
from tallow.autograd import grad
from tallow.errors import GraphError, UnsupportedError
from tallow.nn import functional as F
from tallow.ops.second_order import Derived, Unread
from tallow.ops.table import OPS
from tallow.tape import engine


def leaf(*values: float) -> Any:
    return tl.tensor(values, dtype=tl.float64, requires_grad=True)


def test_derivatives_of_every_order() -> None:
    x = leaf(0.5)
    y = (2 * x).sin().sum()
    for order in range(1, 6):
        (y,) = grad(y, x, create_graph=True)
        expected = 2**order * np.sin(1 + order * np.pi / 2)
        assert y.item() == pytest.approx(expected)
        y = y.sum()


def test_linear_ops_of_every_order() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = (x.reshape(2, 2).transpose(0, 1).cumsum(1).flip(0)[:, 1] ** 4).sum()
    for _ in range(3):
        (g,) = grad(y, x, create_graph=True)
        y = g.sum()
    # Each of 3 and 7 is a sum of two elements; the fourth derivative of s^4 by s, in all directions, is 24 · 2^4.
    assert grad(y, x)[0].tolist() == [192, 192, 192, 192]


def test_backward_fills_gradients_with_a_graph() -> None:
    x = leaf(1.0, 2.0)
    (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    assert x.grad.tolist() == [3, 12]
    (second,) = grad(x.grad.sum(), x)
    assert second.tolist() == [6, 12]
    (x**2).sum().backward(create_graph=True)  # gradients add up
    assert x.grad.tolist() == [5, 16]


def test_backward_fills_the_inputs_that_are_given() -> None:
    x, y = leaf(2.0), leaf(3.0)
    (x * x * y).sum().backward(create_graph=True, inputs=[y])
    assert x.grad is None
    assert grad(y.grad.sum(), x)[0].tolist() == [4]


def test_gradients_by_what_is_no_leaf() -> None:
    x = leaf(2.0)
    h = x * x
    (g,) = grad((h**3).sum(), h, create_graph=True)
    assert g.item() == 48
    assert grad(g.sum(), x)[0].item() == 96  # of 3 x⁴


def test_gradient_penalty_trains_a_critic() -> None:
    """The gradient of (|∂f/∂x| - 1)², f = w x, by w is 2 (|w| - 1) sign(w)."""
    w, x = leaf(-3.0), leaf(5.0)
    (slope,) = grad((w * x).sum(), x, create_graph=True)
    ((slope.norm() - 1) ** 2).backward()
    assert w.grad.tolist() == [-4]


def test_outputs_with_several_parts() -> None:
    x = leaf(1.0, 4.0, 2.0)
    values, indices = x.topk(2)
    (g,) = grad((values**3).sum(), x, create_graph=True)
    assert g.tolist() == [0, 48, 12]
    assert grad(g.sum(), x)[0].tolist() == [0, 24, 12]
    assert indices.tolist() == [1, 2]


def test_halves_arrive_as_halves() -> None:
    x = tl.tensor([1.0, 2.0], dtype=tl.bfloat16, requires_grad=True)
    (g,) = grad((x * x * x).sum(), x, create_graph=True)
    assert g.dtype is tl.bfloat16
    assert grad(g.sum(), x)[0].tolist() == [6, 12]


def test_hooks_are_called_and_may_replace_gradients() -> None:
    x, seen = leaf(2.0), []
    h = x * x
    h.register_hook(lambda g: seen.append(g.item()))
    assert grad((h * 3).sum(), x, create_graph=True)[0].item() == 12
    assert seen == [3]
    h.register_hook(lambda g: g * x)
    (g,) = grad((h * 3).sum(), x, create_graph=True)  # 3 x · 2 x
    assert (g.item(), grad(g, x)[0].item()) == (24, 24)
    x.register_hook(lambda g: g * 10)
    assert grad((x * x).sum(), x, create_graph=True)[0].item() == 40


def test_infinite_gradients_stop_at_what_is_not_selected() -> None:
    x = tl.tensor([-1.0, 4.0], requires_grad=True)
    assert grad(x.clamp(min=0).sqrt().sum(), x, create_graph=True)[0].tolist() == [0, 0.25]


def test_slopes_in_steps_leave_no_gradient_behind() -> None:
    x = leaf(2.0)
    (slope,) = grad(x.relu().sum(), x, create_graph=True)
    slope.sum().backward(create_graph=True, inputs=[x])
    assert x.grad is None
    with pytest.raises(GraphError, match="not have been used"):
        grad(slope.sum(), leaf(1.0))


@pytest.mark.usefixtures("forget_new_ops")
def test_what_has_no_rule_is_named() -> None:
    @tl.op
    def cube(x):
        return x**3, lambda g: (3 * x * x * g,)

    x = leaf(1.5)
    with pytest.raises(UnsupportedError, match=r"CubeBackward0: its gradient cannot be differentiated"):
        grad(cube(x), x, create_graph=True)
    by_uses = F.embedding(tl.tensor([0, 0]), x.reshape(1, 1), scale_grad_by_freq=True)
    with pytest.raises(UnsupportedError, match="scale_grad_by_freq"):
        grad(by_uses.sum(), x, create_graph=True)
    h = (x * 2).expand(2).clone()
    h[0].mul_(x[0])  # reads what it overwrites
    with pytest.raises(UnsupportedError, match="it has written into a view"):
        grad(h.sum(), x, create_graph=True)


def test_what_was_overwritten_or_freed_raises() -> None:
    x = leaf(2.0)
    h = x * 1
    y = (h * h).sum()
    h.mul_(3)
    with pytest.raises(GraphError, match="modified by an inplace operation"):
        grad(y, x, create_graph=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(GraphError, match="second time"):
        grad(y, x, create_graph=True)


@pytest.mark.parametrize("op", [tl.mul, tl.div, tl.matmul, tl.outer, F.linear], ids=lambda op: op.__name__)
def test_what_only_a_constants_gradient_reads_may_be_overwritten(op: Any) -> None:
    x, constant = leaf(1.0, 2.0), tl.tensor([3.0, 4.0], dtype=tl.float64)
    h = x * 1
    y = op(h, constant).sum()
    expected = grad(y, x, create_graph=True)[0].tolist()
    h.mul_(2)
    assert grad(y, x, create_graph=True)[0].tolist() == expected
    constant.mul_(2)
    with pytest.raises(GraphError, match="modified by an inplace operation"):
        grad(y, x, create_graph=True)


def test_the_graph_is_kept() -> None:
    x = leaf(2.0)
    y = (x**3).sum()
    grad(y, x, create_graph=True)
    assert grad(y, x)[0].item() == 12


def cubed(input: np.ndarray) -> tuple[Any, Any]:
    square = input * input
    return square * input, lambda g: (3 * g * square,)


def test_ops_of_users_have_rules() -> None:
    op = tl.op(name="cubed_with_rule")(cubed)
    OPS["cubed_with_rule"].second(lambda g, *, square: [g * square * 3])
    x = leaf(2.0)
    assert grad(op(x).sum(), x, create_graph=True)[0].item() == 12
    OPS["cubed_with_rule"].second(lambda g, *, input: [g * 3 * input * input])
    with pytest.raises(UnsupportedError, match="its closure has no input"):
        grad(op(x).sum(), x, create_graph=True)
    OPS["cubed_with_rule"].second(lambda g: [g])
    with pytest.raises(UnsupportedError, match="its rule does not know square"):
        grad(op(x).sum(), x, create_graph=True)


def test_a_definition_reads_operands_without_their_elements() -> None:
    def scaled(input: np.ndarray, bias: np.ndarray) -> tuple[Any, Any]:
        return input * input + bias, lambda g: (2 * g * input, g)

    def by_ops(*, input: Derived, bias: Unread) -> Derived:
        y = input * input
        return y if bias is None else y + bias

    op = tl.op(name="scaled_with_rule")(scaled)
    OPS["scaled_with_rule"].definition(by_ops)
    x, bias = leaf(3.0), leaf(1.0)
    g, h = grad(op(x, bias).sum(), [x, bias], create_graph=True)
    assert (g.item(), h.item()) == (6, 1)
    assert grad(g, x)[0].item() == 2
    assert grad(op(x, bias.detach()).sum(), x, create_graph=True)[0].item() == 6


def test_a_variable_of_two_closures_is_ambiguous() -> None:
    def both(input: np.ndarray) -> tuple[Any, Any]:
        def times(factor: np.ndarray) -> Any:
            return lambda g: g * factor

        first, second = times(input), times(input + 1)
        return input * (input + 1), lambda g: (first(g) + second(g),)

    op = tl.op(name="both_with_rule")(both)
    OPS["both_with_rule"].second(lambda g, *, factor: [g * factor])
    x = leaf(2.0)
    with pytest.raises(UnsupportedError, match="several variables factor"):
        grad(op(x).sum(), x, create_graph=True)


def test_definitions_plan_their_own_ops_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the work for a chain is proportional to its length."""
    planned = []

    class Counting(engine.Plan):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            planned.append(len(self.order))

    def chain(length: int) -> int:
        x = y = leaf(1.0, 2.0)
        for _ in range(length):
            y = F.layer_norm(y, (2,))
        planned.clear()
        grad(y.sum(), x, create_graph=True)
        return sum(planned)

    monkeypatch.setattr(engine, "Plan", Counting)
    assert chain(9) - chain(6) == chain(6) - chain(3)


class SavesItsResult(Cube):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x**3
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * 3 * y ** (2 / 3)


def test_functions_are_differentiated_through_their_backward() -> None:
    x = leaf(2.0)
    (g,) = grad(Cube.apply(x).sum(), x, create_graph=True)
    assert grad(g.sum(), x)[0].item() == 12
    (g,) = grad(SavesItsResult.apply(x).sum(), x, create_graph=True)
    assert grad(g.sum(), x)[0].item() == pytest.approx(12)


def test_autocast_does_not_lower_the_gradients() -> None:
    x = tl.tensor([[1.0, 1 / 3]], requires_grad=True)
    y = F.gelu(x @ x.T).sum()
    expected = grad(y, x, create_graph=True)[0]
    with tl.autocast("cpu", dtype=tl.bfloat16):
        assert grad(y, x, create_graph=True)[0].tolist() == expected.tolist()


@pytest.mark.cpu("plans are for the CPU")
def test_a_compiled_step_runs_eagerly() -> None:
    w = leaf(3.0)

    @tl.compile
    def penalty(x: Any) -> Any:
        (w * x).sum().backward(create_graph=True, inputs=[x])
        return ((x.grad.norm() - 1) ** 2).sum()

    with pytest.warns(UserWarning, match="create_graph=True"):
        penalty(leaf(1.0))
    penalty(leaf(1.0)).backward()
    assert w.grad.tolist() == [4]


def test_a_recorded_gradient_outlives_the_graph_it_came_from() -> None:
    x, w = leaf(2.0), leaf(3.0)
    y = x.reshape(1).cumsum(0)
    (slope,) = grad(y, x, w.reshape(1) ** 2, create_graph=True)
    (by_w,) = grad((slope * w).sum(), w, create_graph=True)
    y.sum().backward()  # frees the nodes of y
    assert grad(by_w, w)[0].item() == 18  # of w³, twice


@pytest.mark.parametrize("include_self", [True, False])
def test_products_of_scattered_elements_of_which_several_are_zero(include_self: bool) -> None:
    x, src = leaf(2.0, 0.0, 3.0), leaf(0.0, 5.0, 0.0, 7.0, 11.0)  # PyTorch refuses two zeros, and a longer src
    index = tl.tensor([0, 0, 0, 1])

    def product(x: Any, src: Any) -> Any:
        return x.scatter_reduce(0, index, src, "prod", include_self=include_self)

    assert tl.autograd.gradgradcheck(product, (x, src))
