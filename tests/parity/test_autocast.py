"""Under autocast on the CPU, results have PyTorch's dtypes, except where PyTorch mixes dtypes within an op."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl

# `a` is float32, `b` bfloat16, both (4, 4) and positive; `x` float32 (2, 3, 4, 4), `w` (3, 3, 1, 1)
EXPRESSIONS = """
a @ a; a @ b; b @ b; m.mm(a, b); m.bmm(x[0], x[0]); m.addmm(a, a, a); m.baddbmm(x[0], x[0], x[0])
a.double() @ a.double()
F.linear(a, a, a[0]); F.conv2d(x, w); F.conv_transpose2d(x, w); m.einsum("ij,jk->ik", a, a); m.outer(a[0], a[0])
F.scaled_dot_product_attention(x, x, x); m.mv(a, a[0]); m.dot(a[0], a[0]); a @ a[0]
b.softmax(0); b.log_softmax(0); b.exp(); b.sum(); b.mean(); b.norm(); b.pow(2); b.cumsum(0); F.gelu(b); b + b; b * 2; -b
a + b; a * b; m.cat([a, b]); m.stack([a, b]); m.where(a > 0, a, b); m.addcmul(a, b, b)
b.prod(); F.cross_entropy(b, y); F.nll_loss(b, y); F.mse_loss(b, b); F.l1_loss(b, b); F.smooth_l1_loss(b, b)
F.huber_loss(b, b); F.kl_div(b, b); F.binary_cross_entropy_with_logits(b, b); F.binary_cross_entropy(b, b)
m.cdist(b, b); m.quantile(b, 0.5); F.embedding(y, a); F.relu(b); F.max_pool2d(x.bfloat16(), 2)
b.masked_fill(b > 0, 0.0)
"""


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("expression", [e.strip() for e in EXPRESSIONS.replace("\n", ";").split(";") if e.strip()])
def test_dtype_and_value(expression: str) -> None:
    results = []
    for m in (tl, torch):
        rng = np.random.RandomState(0)
        names = {"m": m, "F": m.nn.functional, "y": m.tensor([0, 1, 2, 3])}
        a = m.from_numpy(rng.rand(4, 4).astype(np.float32) * 0.8 + 0.1)
        names |= {"a": a, "b": a.bfloat16(), "x": m.from_numpy(rng.rand(2, 3, 4, 4).astype(np.float32))}
        names["w"] = m.from_numpy(rng.rand(3, 3, 1, 1).astype(np.float32))
        with m.autocast("cpu"):
            results.append(eval(expression, names))
    ours, theirs = results
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    np.testing.assert_allclose(ours.float().numpy(), theirs.float().numpy(), rtol=0.02, atol=0.01)


@pytest.mark.parametrize("cast_inputs", [None, "float32"])
@pytest.mark.parametrize("enabled", [True, False])
def test_functions_with_custom_fwd_and_custom_bwd(cast_inputs: str | None, enabled: bool) -> None:
    def dtypes_seen(lib: Any) -> list[Any]:
        seen: list[Any] = []
        cast_to = cast_inputs and getattr(lib, cast_inputs)

        class Product(lib.autograd.Function):  # type: ignore[misc, name-defined]
            @staticmethod
            @lib.amp.custom_fwd(device_type="cpu", cast_inputs=cast_to)
            def forward(ctx: Any, a: Any, b: Any) -> Any:
                ctx.save_for_backward(a, b)
                seen.extend([a.dtype, lib.is_autocast_enabled("cpu"), (a @ b).dtype])
                return a @ b

            @staticmethod
            @lib.amp.custom_bwd(device_type="cpu")
            def backward(ctx: Any, g: Any) -> Any:
                a, b = ctx.saved_tensors
                seen.extend([g.dtype, lib.is_autocast_enabled("cpu"), (a @ b).dtype])
                return g.to(a.dtype) @ b.t(), a.t() @ g.to(a.dtype)

        a, b = (lib.ones(2, 2, requires_grad=True) for _ in range(2))
        with lib.autocast("cpu", enabled=enabled):
            y = Product.apply(a.bfloat16(), b.bfloat16())
        y.sum().backward()
        return [str(item).split(".")[-1] for item in (*seen, y.dtype, a.grad.dtype)]

    assert dtypes_seen(tl) == dtypes_seen(torch)
