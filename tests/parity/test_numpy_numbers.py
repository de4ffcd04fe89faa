"""Every case with NumPy's numbers in place of Python's: the same values and dtypes, where PyTorch takes them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cases import Case, load_all

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the judge of what is taken, is not installed")

from support.agreement import assert_same  # noqa: E402 - imports torch

CASES = load_all()


def numpy_numbers(value: Any) -> Any:
    """Replace Python's integers and floats, also in lists."""
    if type(value) in (int, float):
        return np.int64(value) if type(value) is int else np.float64(value)
    return type(value)(map(numpy_numbers, value)) if type(value) in (list, tuple) else value


class WithNumpyNumbers:
    """A module whose functions get NumPy's numbers."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.module, name)
        if isinstance(found, ModuleType):
            return WithNumpyNumbers(found)
        return replacing(found) if callable(found) and not isinstance(found, type) else found


def replacing(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(numpy_numbers, args), **{name: numpy_numbers(x) for name, x in kwargs.items()})

    return call


def run(case: Case, module: Any, numbers: Any) -> Any:
    module.manual_seed(0)
    inputs = [module.tensor(x.astype(np.float32) if x.dtype.kind == "f" else x) for x in case.inputs]
    return case.call(numbers, *inputs)


def is_taken(case: Case) -> bool:
    try:
        run(case, torch, WithNumpyNumbers(torch))
    except Exception:  # whatever its reason is: a case of another place, or numbers that it does not take
        return False
    return True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", sorted({case.op for case in CASES}))
def test_numbers_of_numpy(op: str) -> None:
    for case in CASES:
        if case.op == op and is_taken(case):
            same_values(run(case, tl, WithNumpyNumbers(tl)), run(case, tl, tl))


def same_values(ours: Any, plain: Any) -> None:
    if isinstance(plain, tl.Tensor):
        assert ours.dtype is plain.dtype
        np.testing.assert_allclose(ours.detach().numpy(), plain.detach().numpy(), rtol=1e-6)
    elif isinstance(plain, list | tuple):
        for our, one in zip(ours, plain, strict=True):
            same_values(our, one)
    else:
        assert_same(ours, plain, 1e-6, 1e-7)
