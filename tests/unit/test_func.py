"""func and autograd.functional: what has no gradient says so. tests/parity compares values."""

from __future__ import annotations

from typing import Any

import pytest

import tallow as tl
from tallow.autograd import functional
from tallow.errors import ArgumentError, ArgumentTypeError, GraphError, ShapeError, UnsupportedError
from tallow.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap


def cube(x: Any) -> Any:
    return (x**3).sum()


# Each is the second derivative of x³, 6x, or its sum or diagonal.
SECOND: dict[str, Any] = {
    "grad of grad": lambda x: grad(lambda y: grad(cube)(y).sum())(x),
    "jacobian of grad": lambda x: jacrev(grad(cube))(x).diagonal(),
    "grad of vjp": lambda x: grad(lambda y: vjp(cube, y)[1](tl.tensor(1.0))[0].sum())(x),
    "grad of jvp": lambda x: grad(lambda y: jvp(cube, (y,), (tl.ones(3),))[1])(x),
    "grad of jacrev": lambda x: grad(lambda y: jacrev(cube)(y).sum())(x),
    "hessian": lambda x: hessian(cube)(x).diagonal(),
    "functional.hessian": lambda x: functional.hessian(cube, x).diagonal(),
    "functional.hvp": lambda x: functional.hvp(cube, x, tl.ones(3))[1],
    "functional.vhp": lambda x: functional.vhp(cube, x, tl.ones(3))[1],
}  # fmt: skip


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name: str) -> None:
    assert SECOND[name](tl.tensor([1.0, 2.0, 3.0])).tolist() == [6, 12, 18]


def test_backward_of_a_gradient() -> None:
    x = tl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    grad(cube)(x).sum().backward()
    assert x.grad.tolist() == [6, 12, 18]
    jacobian = functional.jacobian(lambda x: x**3, x, create_graph=True)
    jacobian.sum().backward()
    assert x.grad.tolist() == [12, 24, 36]


def test_backward_by_a_captured_tensor() -> None:
    w = tl.ones(3, requires_grad=True)
    grad(lambda y: cube(y * w))(tl.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert w.grad.tolist() == [9, 36, 81]  # of 3 w³ y²


@pytest.mark.usefixtures("forget_new_ops")
def test_an_op_without_second_derivative_raises_an_error_in_place_of_zeros() -> None:
    @tl.op
    def square_of_all(x):
        return x**2, lambda g: (2 * x * g,)

    def total(y: tl.Tensor) -> tl.Tensor:
        return square_of_all(y).sum()

    x = tl.tensor([1.0, 2.0], requires_grad=True)
    gradient = grad(total)(x)  # the numbers can be used
    assert gradient.numpy(force=True) == pytest.approx([2, 4])
    with pytest.raises(UnsupportedError, match="SquareOfAllBackward0"):
        gradient.sum().backward()
    with pytest.raises(UnsupportedError, match="SquareOfAllBackward0"):
        functional.hessian(total, x)


def test_a_hessian_is_of_one_number() -> None:
    with pytest.raises(ShapeError, match="one element"):
        functional.hessian(lambda x: x**3, tl.ones(2))


def test_a_gradient_of_what_requires_grad_can_be_used_as_numbers() -> None:
    x = tl.tensor([1.0, 2.0], requires_grad=True)
    gradient, value = grad_and_value(cube)(x)
    assert gradient.requires_grad
    assert gradient.tolist() == [3, 12]
    value.backward()  # the value itself is a part of the outer graph
    assert x.grad.tolist() == [3, 12]
    with tl.no_grad():
        assert not grad(cube)(x).requires_grad
    assert not grad(cube)(x.detach()).requires_grad
    assert x.grad.tolist() == [3, 12]


def test_random_numbers_in_a_batch() -> None:
    tl.manual_seed(0)
    x = tl.zeros(3, 2)
    same = vmap(lambda row: row + tl.rand(2), randomness="same")(x)
    different = vmap(lambda row: row + tl.rand(2), randomness="different")(x)
    assert same[0].tolist() == same[2].tolist()
    assert different[0].tolist() != different[2].tolist()
    with pytest.raises(ArgumentError, match="random numbers"):
        vmap(lambda row: row + tl.rand(2))(x)
    with pytest.raises(ArgumentError, match="randomness"):
        vmap(cube, randomness="other")


def test_a_call_with_other_parameters_leaves_the_module_as_it_was() -> None:
    layer = tl.nn.Linear(2, 2)
    weight = layer.weight
    with pytest.raises(RuntimeError):
        functional_call(layer, {"weight": tl.ones(2, 2)}, tl.ones(3))
    assert layer.weight is weight


@pytest.mark.cpu("plans are for the CPU")
def test_a_plan_sees_the_other_parameters() -> None:
    compiled, x = tl.compile(tl.nn.Linear(2, 2)), tl.ones(1, 2)
    before = [compiled(x) for _ in range(2)][1]
    assert functional_call(compiled, {"_orig_mod.weight": tl.zeros(2, 2)}, x).equal(compiled.bias[None])
    assert compiled(x).equal(before)


def test_arguments_are_checked() -> None:
    x = tl.ones(2)
    with pytest.raises(ShapeError, match="without dims"):
        grad(lambda y: y)(x)
    with pytest.raises(ArgumentTypeError, match="a pair"):
        grad(cube, has_aux=True)(x)
    with pytest.raises(ArgumentTypeError, match="floating"):
        grad(cube)(tl.arange(3))
    with pytest.raises(ArgumentError, match="argnums"):
        jacfwd(cube, argnums=2)(x)
    with pytest.raises(ArgumentError, match="one size"):
        vmap(tl.add)(tl.ones(3, 2), tl.ones(2, 2))
    with pytest.raises(ArgumentError, match="nested"):
        vmap(lambda a, b: a, in_dims=(0,))(x, x)
    with pytest.raises(GraphError, match="strict"):
        functional.jacobian(lambda a, b: a, (x, x), strict=True)
    with pytest.raises(ShapeError, match=r"\[\(3,\)\] and \[\(2,\)\]"):
        functional.vjp(lambda y: y, x, tl.ones(3))


def test_gradient_through_linearize() -> None:
    """PyTorch 2.13 returns memory that nobody has written."""
    x, v = tl.tensor([1.0, -2.0]), tl.tensor([3.0, 0.5])
    gradient = tl.func.grad(lambda x: tl.func.linearize(lambda x: x**3, x)[1](v).sum())(x)
    assert gradient.tolist() == (6 * x * v).tolist()


def test_a_jacobian_by_rows_is_of_real_results() -> None:
    x, z = tl.tensor([1.0, 2.0]), tl.tensor([1 + 2j, 3 - 1j])
    with pytest.raises(UnsupportedError, match="Expected all outputs to be real"):
        jacrev(lambda x: x * z)(x)
    assert jacfwd(lambda x: x * z)(x).diagonal().tolist() == z.tolist()
