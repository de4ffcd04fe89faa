"""utils.checkpoint: the same gradients with less memory."""

from __future__ import annotations

import contextlib

import pytest

import tallow as tl
from tallow import nn
from tallow.errors import ArgumentError, GraphError
from tallow.utils.checkpoint import checkpoint, checkpoint_sequential


def model() -> nn.Sequential:
    tl.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 4), nn.Tanh())


def gradients(forward, needs_input: bool = True):  # type: ignore[no-untyped-def]
    net, x = model(), tl.arange(12.0).view(3, 4).requires_grad_(needs_input)
    tl.manual_seed(1)
    y = forward(net, x)
    assert y.requires_grad
    (y**2).sum().backward()
    after = tl.rand(1).item()
    return [p.grad.tolist() for p in net.parameters()], None if x.grad is None else x.grad.tolist(), after


@pytest.mark.parametrize("needs_input", [True, False])
@pytest.mark.parametrize(
    "forward",
    [
        lambda net, x: checkpoint(net, x, use_reentrant=False),
        lambda net, x: checkpoint(lambda a, *, b: net(a) * b, x, b=1.0),
        lambda net, x: checkpoint_sequential(net, 2, x, use_reentrant=False),
        lambda net, x: net[3:](checkpoint(net[:3], x)),
    ],
)
def test_gradients_are_those_of_the_plain_call(forward, needs_input: bool) -> None:  # type: ignore[no-untyped-def]
    assert gradients(forward, needs_input) == gradients(lambda net, x: net(x), needs_input)


def test_the_function_runs_again_in_backward() -> None:
    calls = []

    def square(x: tl.Tensor) -> tl.Tensor:
        calls.append(tl.is_grad_enabled())
        return x * x

    y = checkpoint(square, tl.ones(2, requires_grad=True))
    assert len(calls) == 1
    y.sum().backward()
    assert calls == [True, True]
    with tl.no_grad():
        assert not checkpoint(square, tl.ones(2)).requires_grad
    assert len(calls) == 3


def test_autograd_grad_reaches_the_parameters() -> None:
    net, x = model().eval(), tl.ones(1, 4)
    (gradient,) = tl.autograd.grad(checkpoint(net, x).sum(), [net[0].weight])
    (expected,) = tl.autograd.grad(net(x).sum(), [net[0].weight])
    assert gradient.tolist() == expected.tolist()  # type: ignore[union-attr]
    assert net[0].weight.grad is None


def test_several_outputs_and_arguments_that_are_not_tensors() -> None:
    a, b = tl.ones(2, requires_grad=True), tl.ones(2)
    first, none, second = checkpoint(lambda x, n, y: (x * n, None, y * x.sum()), a, 3, b)
    assert none is None
    (first.sum() + 2 * second.sum()).backward()
    assert a.grad is not None
    assert a.grad.tolist() == [7, 7]


def test_overwriting_an_argument_before_backward_is_an_error() -> None:
    w = tl.ones(2, requires_grad=True)
    x = w * 2
    y = checkpoint(lambda x: x * x, x)
    x.mul_(2)
    with pytest.raises(GraphError):
        y.sum().backward()


def test_segments_are_counted() -> None:
    with pytest.raises(ArgumentError, match="9 segments of 5 modules"):
        checkpoint_sequential(model(), 9, tl.ones(1, 4))


def test_each_call_runs_in_its_own_context() -> None:
    seen = []

    @contextlib.contextmanager
    def inside(name: str):  # type: ignore[no-untyped-def]
        seen.append(f"into {name}")
        yield
        seen.append(f"out of {name}")

    def twice(x: tl.Tensor) -> tl.Tensor:
        seen.append("call")
        return x * 2

    x = tl.ones(2, requires_grad=True)
    options = {"use_reentrant": False, "context_fn": lambda: (inside("first"), inside("second"))}
    y = checkpoint(twice, x, **options)
    assert seen == ["into first", "call", "out of first"]
    y.sum().backward()
    assert seen[3:] == ["into second", "call", "out of second"]
    with tl.no_grad():
        checkpoint(twice, x, **options)
    assert seen[6:] == ["into first", "call", "out of first"]


def test_a_segment_may_write_its_buffers_and_be_called_twice() -> None:
    norm, x = nn.BatchNorm1d(3), tl.arange(12.0).view(4, 3).requires_grad_()
    checkpoint(norm, checkpoint(norm, x, use_reentrant=False)).square().sum().backward()
    plain, expected = nn.BatchNorm1d(3), tl.arange(12.0).view(4, 3).requires_grad_()
    plain(plain(expected)).square().sum().backward()
    assert tl.allclose(x.grad, expected.grad)


def test_the_output_may_be_overwritten() -> None:
    x = tl.tensor([1.0, 2.0], requires_grad=True)
    y = checkpoint(lambda a: a * a, x, use_reentrant=False)
    y += 1
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_overwriting_what_the_function_refers_to_is_an_error() -> None:
    x, factor = tl.tensor([1.0, 2.0], requires_grad=True), tl.tensor([3.0, 4.0])
    y = checkpoint(lambda a: a * factor, x, use_reentrant=False)
    factor.add_(1)
    with pytest.raises(GraphError, match="modified by an inplace operation"):
        y.sum().backward()
