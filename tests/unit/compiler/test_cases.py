"""Every case of every op with its backward pass, compiled: the same values and gradients, bit for bit.

`pytest --compiled` repeats the other tests of ops with each op from a plan, and the backward pass outside of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import Case, load_all

import tallow as tl

pytestmark = [pytest.mark.cpu("plans are for the CPU"), pytest.mark.early]
CASES = load_all()
CALLS = 3  # the first is recorded, some are recorded again, the last comes from a plan if there is one


def inputs_of(case: Case) -> list[tl.Tensor]:
    arrays = [a.astype(np.float32) if a.dtype.kind == "f" else a.copy() for a in case.inputs]
    inputs = [tl.as_tensor(a) for a in arrays]
    for t in inputs if case.grad else ():
        if t.is_floating_point():
            t.requires_grad_()
    return inputs


def step(case: Case, call: Callable[..., Any]) -> list[Any]:
    """Return the results of a call that runs its own backward pass, the gradients, and its inputs."""
    inputs = inputs_of(case)
    tl.manual_seed(0)
    return [*call(*inputs), *(t.grad for t in inputs), *inputs]


def leaves_of(result: Any) -> list[Any]:
    return [leaf for item in result for leaf in leaves_of(item)] if isinstance(result, list | tuple) else [result]


def assert_same(a: Any, b: Any) -> None:
    if not isinstance(a, tl.Tensor):
        assert a == b or str(a) == str(b)
        return
    assert a.dtype is b.dtype
    assert tuple(a.shape) == tuple(b.shape)
    assert a.requires_grad == b.requires_grad
    np.testing.assert_array_equal(a.numpy(force=True), b.numpy(force=True))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_equals_the_eager_step(case: Case) -> None:
    def with_backward(*inputs: Any) -> Any:
        leaves = leaves_of(case.call(tl, *inputs))
        terms = [y.sum() for y in leaves if isinstance(y, tl.Tensor) and y.requires_grad]
        if terms:
            sum(terms[1:], terms[0]).backward()
        return [y.detach() if isinstance(y, tl.Tensor) else y for y in leaves]

    compiled = tl.compile(with_backward)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = step(case, with_backward)
        for _ in range(CALLS):
            for a, b in zip(step(case, compiled), expected, strict=True):
                assert_same(a, b)
