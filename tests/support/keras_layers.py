"""Layers of Keras and of tallow.keras with equal weights: do they give equal results and gradients?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import tallow as tl

TOLERANCE = {"rtol": 2e-4, "atol": 2e-5}  # float32 sums in another order


def values(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


def agree(
    theirs: Any, mine: Any, arrays: list[np.ndarray[Any, Any]], call: Callable[..., Any], training: bool = False
) -> None:
    """Give both layers equal weights, call both by `call(layer, tensors)`, and compare results and gradients."""
    xs = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    call(theirs, xs)  # builds
    for index, weight in enumerate(theirs.weights):
        weight.assign(0.5 * values(tuple(weight.shape), 100 + index) + (1.0 if "variance" in weight.path else 0.0))
        if "variance" in weight.path:
            weight.assign(np.abs(weight.numpy()) + 0.1)
    ys = [tl.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    call(mine, ys)
    assert [tuple(w.shape) for w in mine.weights] == [tuple(w.shape) for w in theirs.weights]
    assert [w.name for w in mine.weights] == [w.name for w in theirs.weights]
    assert len(mine.trainable_weights) == len(theirs.trainable_weights)
    mine.set_weights(theirs.get_weights())
    expected, found = as_list(call(theirs, xs)), as_list(call(mine, ys))
    assert len(expected) == len(found)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other.numpy(force=True), one.detach().numpy(), **TOLERANCE)
    cotangents = [values(tuple(one.shape), 7 + i) for i, one in enumerate(expected)]
    sum((one * torch.tensor(c)).sum() for one, c in zip(expected, cotangents, strict=True)).backward()
    total: Any = sum((other * tl.tensor(c)).sum() for other, c in zip(found, cotangents, strict=True))
    total.backward()
    pairs = [(x.grad, y.grad) for x, y in zip(xs, ys, strict=True) if x.requires_grad]
    pairs += [(w.value.grad, m.grad) for w, m in zip(theirs.trainable_weights, mine.trainable_weights, strict=True)]
    for one, other in pairs:
        if one is None:
            assert other is None or not other.numpy(force=True).any()
            continue
        np.testing.assert_allclose(other.numpy(force=True), one.numpy(), rtol=1e-3, atol=2e-4)


def plain_call(layer: Any, tensors: list[Any]) -> Any:
    return layer(tensors if len(tensors) > 1 else tensors[0])
