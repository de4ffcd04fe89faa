"""Every case of every op on `cuda` equals the CPU: values, dtypes and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, load_all

import tallow as tl

MOVES = {"to_device", "to_dtype"}  # their cases name their device


def tensors_of(result: Any) -> list[tl.Tensor]:
    if isinstance(result, tl.Tensor):
        return [result]
    return [t for item in result for t in tensors_of(item)] if isinstance(result, list | tuple) else []


def run(case: Case, device: str) -> tuple[list[tl.Tensor], list[tl.Tensor]]:
    """Return the inputs, with their gradients, and the outputs, which must be on `device`."""
    tl.manual_seed(0)
    arrays = [a.astype(np.float32) if a.dtype.kind == "f" else a for a in case.inputs]
    inputs = [tl.tensor(a, device=device) for a in arrays]
    for x in inputs if case.grad else ():
        if x.is_floating_point():
            x.requires_grad_()
    outputs = tensors_of(case.call(tl, *inputs))
    if inputs and case.op not in MOVES:
        assert {y.device.type for y in outputs} <= {device}, f"{case.id} left {device}"
    recorded = [y for y in outputs if y.requires_grad]
    rng = np.random.default_rng(0)
    gs = [tl.tensor(rng.standard_normal(y.shape).astype(np.float32), dtype=y.dtype, device=device) for y in recorded]
    if recorded:
        tl.autograd.backward(recorded, gs)
    return inputs, outputs


@pytest.mark.parametrize("case", load_all(), ids=lambda c: c.id)
def test_equals_cpu(case: Case, cuda: str) -> None:
    cuda_inputs, outputs_there = run(case, cuda)
    cpu_inputs, outputs_here = run(case, "cpu")
    grads_there, grads_here = ([x.grad for x in inputs] for inputs in (cuda_inputs, cpu_inputs))
    for mine, expected in zip([*outputs_there, *grads_there], [*outputs_here, *grads_here], strict=True):
        assert (mine is None) == (expected is None)
        if mine is not None:
            assert mine.dtype == expected.dtype
            actual, desired = mine.detach().cpu().numpy(), expected.detach().numpy()
            np.testing.assert_allclose(actual, desired, rtol=case.rtol, atol=case.atol)
