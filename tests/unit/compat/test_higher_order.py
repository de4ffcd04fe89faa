"""torch._higher_order_ops: functions of functions."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

import tallow as tl
from tallow.compat import install_torch
from tallow.errors import ArgumentError


@pytest.fixture
def associative_scan() -> Iterator[Any]:
    with install_torch(replace=True):
        yield importlib.import_module("torch._higher_order_ops.associative_scan").associative_scan


@pytest.mark.parametrize(("dim", "reverse"), [(0, False), (-1, False), (1, True)])
def test_a_scan_of_sums_is_cumsum(associative_scan: Any, dim: int, reverse: bool) -> None:
    x = tl.arange(12.0).reshape(3, 4).requires_grad_()
    found = associative_scan(lambda a, b: a + b, x, dim, reverse=reverse)
    expected = x.flip([dim]).cumsum(dim).flip([dim]) if reverse else x.cumsum(dim)
    assert found.tolist() == expected.tolist()
    found.square().sum().backward()
    gradient, x.grad = x.grad, None
    expected.square().sum().backward()
    assert gradient is not None
    assert x.grad is not None
    assert gradient.tolist() == x.grad.tolist()


def test_a_scan_of_pairs_is_a_linear_recurrence(associative_scan: Any) -> None:
    decay, x = tl.rand(5, 2), tl.rand(5, 2)
    _, states = associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (decay, x), 0, combine_mode="generic")
    state = tl.zeros(2)
    for i in range(5):
        state = decay[i] * state + x[i]
        tl.testing.assert_close(states[i], state)


@pytest.mark.parametrize("xs", [(tl.ones(2), tl.ones(3)), tl.ones(0), ()])
def test_lengths_differ_or_are_empty(associative_scan: Any, xs: Any) -> None:
    with pytest.raises(ArgumentError, match="length"):
        associative_scan(lambda a, b: a, xs, 0)


def test_refusals(associative_scan: Any) -> None:
    with pytest.raises(ArgumentError, match="combine_mode"):
        associative_scan(lambda a, b: a, tl.ones(2), 0, combine_mode="tree")
    with pytest.raises(ArgumentError, match="returned 2 tensors for 1"):
        associative_scan(lambda a, b: (a, b), tl.ones(2), 0)
