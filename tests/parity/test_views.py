"""Results that share memory with their inputs: exactly those that are views in PyTorch."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cases import Case, Input, load_all

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

BY_OP: dict[str, list[Case]] = defaultdict(list)
for _case in load_all():
    BY_OP[_case.op].append(_case)


def tensors(m: Any, result: Any) -> Iterator[Any]:
    if isinstance(result, list | tuple):
        for item in result:
            yield from tensors(m, item)
    elif isinstance(result, m.Tensor):
        yield result


def single(a: Input) -> Input:
    """One element in as many dimensions: with nothing to repeat or move, a copy is easily forgotten."""
    return np.full((1,) * a.ndim, a.reshape(-1)[0] if a.size else 1, a.dtype)


def sharing(m: Any, case: Case, arrays: list[Input]) -> list[list[bool]]:
    """Return, for each non-empty output, the inputs it shares memory with."""
    inputs = [m.tensor(np.array(a, order="C")) for a in arrays]
    m.manual_seed(0)
    with warnings.catch_warnings(), m.no_grad():
        warnings.simplefilter("ignore")
        outputs = list(tensors(m, case.call(m, *inputs)))
    return [[shares(m, y, x) for x in inputs] for y in outputs if y.numel()]


def shares(m: Any, y: Any, x: Any) -> bool:
    if m is tl:
        return bool(np.may_share_memory(y.array, x.array))
    return bool(y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr())


@pytest.mark.parametrize("op", sorted(BY_OP))
def test_results_share_memory_where_pytorchs_do(op: str) -> None:
    for case in BY_OP[op]:
        assert sharing(tl, case, list(case.inputs)) == sharing(torch, case, list(case.inputs)), case.id
        arrays = [single(a) for a in case.inputs]
        try:
            expected, result = sharing(torch, case, arrays), sharing(tl, case, arrays)
        except Exception:
            continue  # not every call accepts these; tests/parity/test_mutated_cases.py compares errors
        assert result == expected, f"{case.id} of single elements"


@pytest.mark.parametrize("offset", [0, 1, 3, 6])
def test_as_strided_counts_from_the_start_of_the_memory(offset: int) -> None:
    """Also of a tensor that is no view any more; elements outside of it are constants."""
    results = []
    for m in (tl, torch):
        part = m.arange(10.0)[3:8].detach().requires_grad_()
        result = part.as_strided((2, 2), (1, 2), offset)
        results.append([result, *m.autograd.grad(result, part, m.tensor([[1.0, 2.0], [3.0, 4.0]]))])
        memory = m.arange(10.0)
        memory[3:8].detach().as_strided((2, 2), (1, 2), offset).fill_(-1)
        results[-1].append(memory)
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours.detach().numpy(), theirs.detach().numpy())
