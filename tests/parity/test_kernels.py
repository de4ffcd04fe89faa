"""Layers at sizes that use the compiled kernels: values and gradients equal PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl

Shapes = tuple[tuple[int, ...], ...]
HEADS = ((2, 4, 19, 8), (2, 4, 23, 8), (2, 4, 23, 8))
TOLERANCE = 1e-5  # relative to the largest element
rng = np.random.default_rng(17)
SEEN = np.arange(23) < np.array([23, 9])[:, None, None, None]
BIAS = rng.standard_normal((4, 19, 23)).astype(np.float32)


def attention(mask: Any) -> Callable[..., Any]:
    return lambda m, q, k, v: m.nn.functional.scaled_dot_product_attention(q, k, v, m.from_numpy(mask))


CASES: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "softmax": (lambda m, x: m.softmax(x, -1), ((5, 37),)),
    "log_softmax": (lambda m, x: m.log_softmax(x, -1), ((5, 37),)),
    "log_softmax of another dim": (lambda m, x: m.log_softmax(x, 1), ((3, 11, 5),)),
    "batch_norm": (
        lambda m, x, w, b: m.nn.functional.batch_norm(x, None, None, w, b, True),
        ((3, 6, 5, 7), (6,), (6,)),
    ),
    "group_norm": (lambda m, x, w, b: m.nn.functional.group_norm(x, 3, w, b), ((3, 6, 5, 7), (6,), (6,))),
    "instance_norm": (lambda m, x: m.nn.functional.instance_norm(x), ((3, 6, 5, 7),)),
    "depthwise": (
        lambda m, x, w, b: m.nn.functional.conv2d(x, w, b, padding=1, groups=6),
        ((2, 6, 9, 21), (6, 1, 3, 3), (6,)),
    ),
    "depthwise with steps, two outputs each": (
        lambda m, x, w: m.nn.functional.conv2d(x, w, stride=(2, 3), padding=2, dilation=(1, 2), groups=3),
        ((2, 3, 12, 20), (6, 1, 3, 4)),
    ),
    "depthwise, transposed": (
        lambda m, x, w: m.nn.functional.conv_transpose1d(x, w, stride=2, padding=1, groups=5),
        ((2, 5, 13), (5, 1, 4)),
    ),
    "attention with a padding mask": (attention(SEEN), HEADS),
    "attention with a bias": (attention(BIAS), HEADS),
}


@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name: str) -> None:
    call, shapes = CASES[name]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    ours, theirs = (values_and_gradients(m, call, arrays) for m in (tl, torch))
    for mine, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=TOLERANCE, atol=TOLERANCE * max(1.0, np.abs(expected).max()))


def values_and_gradients(m: Any, call: Callable[..., Any], arrays: list[Any]) -> list[Any]:
    inputs = [m.from_numpy(array.copy()).requires_grad_() for array in arrays]
    y = call(m, *inputs)
    (y * m.cos(y)).sum().backward()
    return [y.detach().numpy(), *(x.grad.numpy() for x in inputs)]
