"""Test cases: each is one call of one op, written once and used by several test folders.

`tests/unit/ops/test_ops.py` checks the gradient of each case by finite differences with NumPy alone, so it also runs in
Pyodide; `tests/parity/test_ops.py` runs the same call through PyTorch and compares values, dtypes and gradients;
`tests/gpu` runs the cases on a GPU. A case is a function of the module, `tallow` or `torch`, and of its tensors:

    case("softmax", lambda m, x: m.softmax(x, dim=1), normal(3, 4))

If the call creates a tensor itself, it puts it on the device of its inputs: `m.ones(3, device=x.device)`.
An op without a case fails `tests/unit/ops/test_ops.py`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Input = np.ndarray[Any, Any]
_rng = np.random.default_rng(2026)


@dataclass(frozen=True)
class Case:
    """One call of an op.

    Attributes:
        op: name in the table of ops, or name of the composed function.
        call: takes the module and one tensor per input; returns a tensor, a tuple of tensors, or a Python value.
        inputs: arrays; floating-point inputs require grad.
        grad: whether to compare gradients. False for ops that have none, or none at these inputs.
        rtol, atol: tolerances for float32 against PyTorch; raise them only with a comment that says why.
        rtol64: relative tolerance for float64.
        number: index of this case among the cases of its op.
    """

    op: str
    call: Callable[..., Any]
    inputs: tuple[Input, ...]
    grad: bool = True
    rtol: float = 1e-5
    atol: float = 1e-6
    rtol64: float = 1e-9
    number: int = 0

    @property
    def id(self) -> str:
        return f"{self.op}-{self.number}"


CASES: list[Case] = []
_count_of = Counter[str]()  # by op


def case(op: str, call: Callable[..., Any], *inputs: Input, **options: Any) -> None:
    """Register a case. Convert NumPy's default integers (int32 in Pyodide) to int64, as PyTorch does."""
    inputs = tuple(x.astype(np.int64) if x.dtype == np.int_ else x for x in inputs)
    CASES.append(Case(op, call, inputs, number=_count_of[op], **options))
    _count_of[op] += 1


def functional(name: str, **options: Any) -> Callable[..., Any]:
    """Return a call of the nn.functional function `name` with all inputs and these options."""
    return lambda m, *inputs: getattr(m.nn.functional, name)(*inputs, **options)


def normal(*shape: int) -> Input:
    """Return standard normal float64 values; tests convert them to other dtypes."""
    return _rng.standard_normal(shape)


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Input:
    """Return float64 values drawn uniformly from [low, high), for ops with a limited domain."""
    return _rng.uniform(low, high, shape)


def away_from(points: tuple[float, ...], *shape: int, margin: float = 0.1) -> Input:
    """Return normal values away from the points where an op is not differentiable."""
    x = _rng.standard_normal(shape)
    for p in points:
        x = np.where(np.abs(x - p) < margin, p + margin * np.where(x < p, -2.0, 2.0), x)
    return x


def distinct(*shape: int) -> Input:
    """Return shuffled values without ties and well separated, for sorting, maxima and medians."""
    n = int(np.prod(shape))
    return _rng.permutation(n).reshape(shape) * 0.5 - n / 4


def integers(*shape: int, low: int = 0, high: int = 10) -> Input:
    return _rng.integers(low, high, shape, dtype=np.int64)


def booleans(*shape: int) -> Input:
    return _rng.random(shape) < 0.5


def load_all() -> list[Case]:
    """Return every case of every family. Each family draws its values from its own generator."""
    global _rng
    outside = _rng  # used by the helpers that generate inputs
    for module in pkgutil.iter_modules(__path__):
        _rng = np.random.default_rng(2026)
        importlib.import_module(f"{__name__}.{module.name}")
    _rng = outside
    return CASES
