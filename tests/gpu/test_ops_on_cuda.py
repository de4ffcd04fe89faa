"""Every case of every op on `cuda` gives what it gives on the CPU: values, dtypes and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, load_all

import tallow as tl

MOVES = {"to_device", "to_dtype"}  # their cases name the device they go to


def tensors_of(result: Any) -> list[tl.Tensor]:
    if isinstance(result, tl.Tensor):
        return [result]
    return [t for item in result for t in tensors_of(item)] if isinstance(result, list | tuple) else []


def run(case: Case, device: str) -> tuple[list[tl.Tensor], list[tl.Tensor]]:
    """The inputs, with their gradients where they have one, and the outputs, which `device` must hold."""
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
    there, outputs_there = run(case, cuda)
    here, outputs_here = run(case, "cpu")
    grads_there, grads_here = ([x.grad for x in inputs] for inputs in (there, here))
    for mine, expected in zip([*outputs_there, *grads_there], [*outputs_here, *grads_here], strict=True):
        assert (mine is None) == (expected is None)
        if mine is not None:
            assert mine.dtype == expected.dtype
            actual, desired = mine.detach().cpu().numpy(), expected.detach().numpy()
            np.testing.assert_allclose(actual, desired, rtol=case.rtol, atol=case.atol)
