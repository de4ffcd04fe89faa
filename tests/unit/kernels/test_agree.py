"""Kernels only change speed: ops that have kernels give the same float32 results with kernels on and off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, load_all

import tallow as tl
from tallow import kernels

OPS = {
    *("matmul", "mm", "bmm", "mv", "linear", "softmax", "sigmoid", "silu", "gelu", "layer_norm", "rms_norm"),
    *("scaled_dot_product_attention", "rotary", "silu_mul", "addmm", "baddbmm", "multi_head_attention_forward"),
    *("conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d", "max_pool1d", "max_pool2d"),
    *("lstm_steps", "gru_steps", "cross_entropy", "log_softmax", "batch_norm_in_training", "group_norm"),
    *("instance_norm", "csr_matmul"),
}
# Two float32 computations of one formula in a different order: a few roundings of the largest element.
ROUNDINGS = 2e-5


def outcome(case: Case) -> list[np.ndarray[Any, Any]]:
    """Return the values, and the gradients of the sum of their squares."""
    inputs = [tl.from_numpy(a.astype(np.float32 if a.dtype.kind == "f" else a.dtype)) for a in case.inputs]
    leaves = [x.requires_grad_() for x in inputs if x.is_floating_point() and case.grad]
    tl.manual_seed(0)
    outputs = tensors(case.call(tl, *inputs))
    for y in outputs:
        if y.requires_grad:
            (y * y).sum().backward(retain_graph=True)
    return [t.detach().numpy() for t in [*outputs, *(x.grad for x in leaves if x.grad is not None)]]


def tensors(result: Any) -> list[tl.Tensor]:
    if isinstance(result, tl.Tensor):
        return [result]
    return [t for item in result for t in tensors(item)] if isinstance(result, list | tuple) else []


@pytest.mark.parametrize("case", [case for case in load_all() if case.op in OPS], ids=lambda case: case.id)
def test_same_with_kernels_on_and_off(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    if kernels.info().library.startswith("wasm"):
        monkeypatch.setattr("tallow.kernels.bindings.matmul.WORTH_A_CALL", 0)  # cases are small, but must reach C
    with kernels.off():
        expected = outcome(case)
    for mine, plain in zip(outcome(case), expected, strict=True):
        assert mine.dtype == plain.dtype
        largest = np.abs(plain).max(initial=1.0, where=np.isfinite(plain))
        np.testing.assert_allclose(mine, plain, rtol=ROUNDINGS, atol=ROUNDINGS * largest)
