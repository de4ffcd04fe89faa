"""Cases: one call of one op each, written once and used everywhere.

`tests/unit/test_ops.py` checks the gradient of each by differences, on NumPy alone, so it runs in Pyodide too;
`tests/parity/test_ops.py` runs the same call through PyTorch and compares values, dtypes and gradients; `tests/gpu`
runs them on a GPU. A case is a function of the module, `tallow` or `torch`, and of its tensors:

    case("softmax", lambda m, x: m.softmax(x, dim=1), normal(3, 4))

A tensor that a call makes itself goes where its inputs are: `m.ones(3, device=x.device)`.
Adding an op without a case fails `tests/unit/test_ops.py`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Input = np.ndarray[Any, Any]
_rng = np.random.default_rng(2026)


@dataclass(frozen=True)
class Case:
    """One call.

    Attributes:
        op: the name in the table of ops, or of the composed function.
        call: takes the module and one tensor for each input; returns a tensor, a tuple of them, or a plain value.
        inputs: arrays; those of floating point require grad.
        grad: whether the gradient is compared. False for ops that have none, or none at these inputs.
        rtol, atol: for float32 against PyTorch; raise them only with a reason beside the case.
        rtol64: the same for float64.
        number: which of the cases of its op.
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


def case(op: str, call: Callable[..., Any], *inputs: Input, **options: Any) -> None:
    """File a case. Integers of NumPy's default type, which is int32 in Pyodide, become int64 as in PyTorch."""
    inputs = tuple(x.astype(np.int64) if x.dtype == np.int_ else x for x in inputs)
    CASES.append(Case(op, call, inputs, number=sum(c.op == op for c in CASES), **options))


def functional(name: str, **options: Any) -> Callable[..., Any]:
    """The call of a function of nn.functional with all inputs, and these options."""
    return lambda m, *inputs: getattr(m.nn.functional, name)(*inputs, **options)


def normal(*shape: int) -> Input:
    """Standard normal numbers, in float64; tests narrow them."""
    return _rng.standard_normal(shape)


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Input:
    """Numbers in [low, high): for ops with a limited domain."""
    return _rng.uniform(low, high, shape)


def away_from(points: tuple[float, ...], *shape: int, margin: float = 0.1) -> Input:
    """Normal numbers kept off the kinks of an op, where differences mean nothing."""
    x = _rng.standard_normal(shape)
    for p in points:
        x = np.where(np.abs(x - p) < margin, p + margin * np.where(x < p, -2.0, 2.0), x)
    return x


def distinct(*shape: int) -> Input:
    """Numbers without ties, well apart: for sorting, maxima, medians."""
    n = int(np.prod(shape))
    return _rng.permutation(n).reshape(shape) * 0.5 - n / 4


def integers(*shape: int, low: int = 0, high: int = 10) -> Input:
    return _rng.integers(low, high, shape, dtype=np.int64)


def booleans(*shape: int) -> Input:
    return _rng.random(shape) < 0.5


def load_all() -> list[Case]:
    """Every case of every family, whose numbers depend on no other family."""
    global _rng
    outside = _rng  # what test files draw from
    for module in pkgutil.iter_modules(__path__):
        _rng = np.random.default_rng(2026)
        importlib.import_module(f"{__name__}.{module.name}")
    _rng = outside
    return CASES
