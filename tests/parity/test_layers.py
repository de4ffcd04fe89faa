"""Layers where PyTorch's gradient is not the derivative, or a choice among several; halves; and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import functional, integers, normal

import tallow as tl

torch = pytest.importorskip("torch", reason="PyTorch, the reference of these tests, is not installed")

Call = Callable[..., Any]
TIED = integers(2, 3, 6, 6, high=3).astype(np.float64)
WORDS = integers(3, 7, high=4)
TABLE = normal(4, 3)

CONVENTIONS: list[tuple[str, Call, tuple[Any, ...]]] = [
    ("max_pool2d-ties", functional("max_pool2d", kernel_size=3, stride=2, padding=1), (TIED,)),
    ("max_pool2d-ties-dilated", functional("max_pool2d", kernel_size=2, stride=1, dilation=2), (TIED,)),
    ("max_pool3d-ties", functional("max_pool3d", kernel_size=2, stride=1), (TIED,)),
    ("adaptive_max_pool2d-ties", functional("adaptive_max_pool2d", output_size=4), (TIED,)),
    ("embedding-padding", lambda m, w, i: m.nn.functional.embedding(i, w, padding_idx=1), (TABLE, WORDS)),
    ("embedding-negative-padding", lambda m, w, i: m.nn.functional.embedding(i, w, padding_idx=-4), (TABLE, WORDS)),
    ("embedding_bag-padding", lambda m, w, i: m.nn.functional.embedding_bag(i, w, padding_idx=2), (TABLE, WORDS)),
    ("embedding_bag-max-ties", lambda m, w, i: m.nn.functional.embedding_bag(i, w.round(), mode="max"), (TABLE, WORDS)),
    ("embedding-freq", lambda m, w, i: m.nn.functional.embedding(i, w, scale_grad_by_freq=True), (TABLE, WORDS)),
]


def value_and_gradients(module: Any, call: Call, arrays: tuple[Any, ...]) -> list[Any]:
    inputs = [module.from_numpy(a.copy()) for a in arrays]
    leaves = [t.requires_grad_() for t in inputs if t.is_floating_point()]
    y = call(module, *inputs)
    g = np.random.default_rng(0).standard_normal(tuple(y.shape))
    y.backward(module.from_numpy(g))
    return [y.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)]


@pytest.mark.parametrize(("call", "arrays"), [c[1:] for c in CONVENTIONS], ids=[c[0] for c in CONVENTIONS])
def test_gradient_is_pytorchs(call: Call, arrays: tuple[Any, ...]) -> None:
    for mine, theirs in zip(
        value_and_gradients(tl, call, arrays), value_and_gradients(torch, call, arrays), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-10)
