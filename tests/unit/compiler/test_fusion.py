"""Elementwise chains of a plan run as one program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.fx.compile.chains import LEAST_ELEMENTS, LOWERINGS
from tallow.ops import OPS

N = LEAST_ELEMENTS
rng = np.random.default_rng(5)


def data(*shape: int) -> tl.Tensor:
    return tl.from_numpy(rng.standard_normal(shape, dtype=np.float32))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "products": lambda x, y: tl.relu(x * y + 1.5) * x - y / 3,
    "several results": lambda x, y: ((x + y) * 2, (x + y).abs().sqrt()),
    "a value used later": lambda x, y: ((x - y).square() + x).sum() + (x - y).neg().max(),
    "bounds": lambda x, y: tl.maximum((x * 3).clamp(-1, 1), y).clamp(min=0.25) ** 3,
    "functions": lambda x, y: (tl.sigmoid(x) * y).tanh() + tl.nn.functional.silu(y).exp(),
    "reciprocals": lambda x, y: 1 / (x.abs() + 1).rsqrt() + y.reciprocal() - (2 - x),
    "a result that nothing reads": lambda x, y: ((x + y).abs() * 2, (x - y).neg().relu())[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_chain_computes_what_its_ops_do(name: str) -> None:
    function = FUNCTIONS[name]
    compiled = tl.compile(function)
    x, y = data(4, N // 4), data(4, N // 4)
    with tl.no_grad():
        expected = function(x, y)
        compiled(x, y)
        got = compiled(x, y)
    assert "chain_" in compiled.plans[0].source
    is_exact = name != "functions"
    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, expected)), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0 if is_exact else 2e-6, atol=0 if is_exact else 1e-6)


def test_rows_and_numbers_are_repeated() -> None:
    def function(x: Any, row: Any, one: Any) -> Any:
        return tl.relu((x + row) * one) - row

    compiled = tl.compile(function)
    arguments = data(3, N), data(N), data()
    with tl.inference_mode():
        compiled(*arguments)
        np.testing.assert_array_equal(compiled(*arguments).numpy(), function(*arguments).numpy())
    assert "chain_add_mul_relu_sub" in compiled.plans[0].source


@pytest.mark.cpu("plans are for the CPU")
def test_columns_integers_and_small_arrays_are_not_fused() -> None:
    with tl.no_grad():
        for arguments in ((data(N, 2), data(N, 1)), (data(8), data(8)), (tl.arange(N), tl.arange(N))):
            compiled = tl.compile(lambda x, y: (x + y) * y)
            compiled(*arguments)
            assert "chain_" not in compiled.plans[0].source
            np.testing.assert_array_equal(
                compiled(*arguments).numpy(), ((arguments[0] + arguments[1]) * arguments[1]).numpy()
            )


def test_a_chain_with_a_gradient_keeps_its_closures() -> None:
    compiled = tl.compile(lambda x: tl.tanh(x * 2) + x)
    x = data(N).requires_grad_()
    for _ in range(2):
        x.grad = None
        compiled(x).sum().backward()
    tanh = np.tanh(2 * x.detach().numpy())
    np.testing.assert_allclose(x.grad.numpy(), 2 * (1 - tanh * tanh) + 1, rtol=1e-5, atol=1e-6)


def test_a_write_between_the_ops_ends_a_chain() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        z = y + 1
        y.mul_(3)
        return (z + y) * y

    compiled = tl.compile(function)
    x = data(N)
    with tl.no_grad():
        compiled(x)
        np.testing.assert_array_equal(compiled(x).numpy(), function(x).numpy())


def test_every_lowering_is_of_an_op() -> None:
    assert LOWERINGS.keys() <= OPS.keys()
