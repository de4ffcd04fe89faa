"""Every op: its gradient against finite differences, for contiguous and strided inputs; every op has cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, load_all

import tallow as tl
from tallow.ops import OPS

CASES = load_all()
STEP = 1e-6
# float64: the error is truncation of about STEP² plus rounding of about 1e-16 / STEP, times the op's curvature
RTOL = 1e-5
ATOL = 1e-7


def tensors_of(result: Any) -> list[tl.Tensor]:
    """Return the differentiable tensors of a result, which may be a tensor, a sequence or a Python value."""
    if isinstance(result, tl.Tensor):
        return [result] if result.requires_grad else []
    return [t for item in result for t in tensors_of(item)] if isinstance(result, list | tuple) else []


def contiguous(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.array(array, order="C")


def make_strided(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the same values at every second position of a larger array whose axes are reversed in memory."""
    if array.ndim == 0:
        return array
    wide = np.zeros([2 * n for n in array.shape[::-1]], array.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in array.shape)].T
    view[...] = array
    return view


def run(case: Case, arrays: list[np.ndarray[Any, Any]], record: bool) -> tuple[list[tl.Tensor], list[tl.Tensor]]:
    inputs = [tl.as_tensor(np.asarray(a)) for a in arrays]
    for t in inputs if record else ():
        if t.is_floating_point():
            t.requires_grad_()
    tl.manual_seed(0)
    return inputs, tensors_of(case.call(tl, *inputs))


@pytest.mark.parametrize("layout", [contiguous, make_strided], ids=["contiguous", "strided"])
@pytest.mark.parametrize("case", [c for c in CASES if c.grad], ids=lambda c: c.id)
def test_gradient_matches_differences(case: Case, layout: Any) -> None:
    """⟨backward(g), v⟩ = ⟨g, (f(x + εv) - f(x - εv)) / 2ε⟩ for a random direction v."""
    rng = np.random.default_rng(0)
    arrays = [layout(a.astype(np.float64)) if a.dtype.kind == "f" else layout(a) for a in case.inputs]
    inputs, outputs = run(case, arrays, record=True)
    assert outputs, f"{case.id}: no output requires grad; set grad=False if this is right"
    gs = [rng.standard_normal(y.array.shape) for y in outputs]
    tl.autograd.backward(outputs, [tl.tensor(g) for g in gs])
    vs = [rng.standard_normal(a.shape) if a.dtype.kind == "f" else None for a in arrays]
    sides = []
    for step in (STEP, -STEP):
        moved = [a if v is None else a + step * v for a, v in zip(arrays, vs, strict=True)]
        _, ys = run(case, moved, record=True)
        sides.append([y.detach().numpy() for y in ys])
    numeric = sum(float((g * (up - down)).sum()) for g, up, down in zip(gs, *sides, strict=True)) / (2 * STEP)
    analytic = sum(
        float((t.grad.numpy() * v).sum())
        for t, v in zip(inputs, vs, strict=True)
        if v is not None and t.grad is not None
    )
    np.testing.assert_allclose(
        analytic, numeric, rtol=RTOL, atol=ATOL * max(1.0, sum(float(np.abs(g).sum()) for g in gs))
    )


def test_every_op_has_a_case() -> None:
    own = {name for name, op in OPS.items() if op.function.__module__.startswith("tallow.")}  # tests register ops too
    missing = sorted(own - {c.op for c in CASES})
    assert not missing, f"no case in tests/cases for: {', '.join(missing)}"


def test_every_differentiable_op_has_a_gradient_case() -> None:
    """If all cases of an op have grad=False, the op must return no backward."""
    differentiable = {c.op for c in CASES if c.grad}
    for case in CASES:
        if case.op not in differentiable:
            _, outputs = run(
                case, [a.astype(np.float64) if a.dtype.kind == "f" else a for a in case.inputs], record=True
            )
            assert not outputs, f"{case.id}: the op has a gradient, but no case checks it"
