"""Row-wise and elementwise ops on bfloat16 by CUDA kernels only: values and gradients are close to float32's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import kernels
from tallow.core.apply import apply
from tallow.nn import functional as F
from tallow.ops.table import OPS

rng = np.random.default_rng(0)
WIDTH = 12
ANGLES = rng.standard_normal((5, WIDTH // 2)).astype(np.float32)
KEEP = rng.random((3, 5, WIDTH)) < 0.7


def rotary(x: tl.Tensor, interleaved: bool) -> tl.Tensor:
    cos, sin = (tl.tensor(f(ANGLES), device=x.device) for f in (np.cos, np.sin))
    return apply(OPS["rotary"], x, cos, sin, interleaved)


CALLS: dict[str, Callable[..., tl.Tensor]] = {
    "rms_norm": lambda x, y, w, b: F.rms_norm(x, (WIDTH,), w),
    "layer_norm": lambda x, y, w, b: F.layer_norm(x, (WIDTH,), w, b),
    "softmax": lambda x, y, w, b: F.softmax(x, dim=-1),
    "softmax of another dim": lambda x, y, w, b: F.softmax(x, dim=1),
    "log_softmax": lambda x, y, w, b: F.log_softmax(x, dim=-1),
    "gelu": lambda x, y, w, b: F.gelu(x),
    "gelu by tanh": lambda x, y, w, b: F.gelu(x, approximate="tanh"),
    "silu": lambda x, y, w, b: F.silu(x),
    "silu_mul": lambda x, y, w, b: apply(OPS["silu_mul"], x, y),
    "gelu_mul": lambda x, y, w, b: apply(OPS["gelu_mul"], x, y),
    "rotary": lambda x, y, w, b: rotary(x, False),
    "rotary of neighbours": lambda x, y, w, b: rotary(x, True),
    "scaled_mask": lambda x, y, w, b: apply(OPS["scaled_mask"], x, tl.tensor(KEEP, device=x.device), 1.25),
}


def run(call: Callable[..., tl.Tensor], device: str, dtype: tl.dtype, backend: str | None = None) -> list[Any]:
    """Return the value and the gradients of x, y, a weight and a bias, for inputs exact in bfloat16.

    Args:
        backend: the one that computes the call and its gradients.
    """
    draw = np.random.default_rng(1)
    shapes = (3, 5, WIDTH), (3, 5, WIDTH), (WIDTH,), (WIDTH,)
    numbers = [tl.tensor(draw.standard_normal(s).astype(np.float32)).bfloat16().float() for s in shapes]
    leaves = [x.to(device).to(dtype).requires_grad_() for x in numbers]
    g = tl.tensor(draw.standard_normal(shapes[0]).astype(np.float32)).bfloat16().to(device).to(dtype)
    with nullcontext() if backend is None else kernels.require(backend):
        value = call(*leaves)
        value.backward(g)
    return [value.detach(), *(x.grad for x in leaves)]


@pytest.mark.parametrize("name", CALLS)
def test_bfloat16(name: str, cuda: str) -> None:
    expected = run(CALLS[name], "cpu", tl.float32)
    results = run(CALLS[name], cuda, tl.bfloat16, "cuda")
    for ours, theirs in zip(results, expected, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours.dtype == tl.bfloat16
            a, b = ours.float().cpu().numpy(), theirs.numpy()
            np.testing.assert_allclose(a, b, rtol=0.02, atol=0.01 * np.abs(b).max())
