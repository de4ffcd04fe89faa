"""Compare layers of Keras and tallow.keras with equal weights: results and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import tallow as tl

TOLERANCE = {"rtol": 2e-4, "atol": 2e-5}  # float32 sums in a different order


def values(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


def agree(
    theirs: Any, mine: Any, arrays: list[np.ndarray[Any, Any]], call: Callable[..., Any], training: bool = False
) -> None:
    """Give both layers equal weights, call each by `call(layer, tensors)`, and compare results and gradients."""
    xs = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    call(theirs, xs)  # builds the layer
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
    expected, results = as_list(call(theirs, xs)), as_list(call(mine, ys))
    assert len(expected) == len(results)
    for theirs_value, our_value in zip(expected, results, strict=True):
        np.testing.assert_allclose(our_value.numpy(force=True), theirs_value.detach().numpy(), **TOLERANCE)
    cotangents = [values(tuple(theirs_value.shape), 7 + i) for i, theirs_value in enumerate(expected)]
    sum((theirs_value * torch.tensor(c)).sum() for theirs_value, c in zip(expected, cotangents, strict=True)).backward()
    total: Any = sum((our_value * tl.tensor(c)).sum() for our_value, c in zip(results, cotangents, strict=True))
    total.backward()
    pairs = [(x.grad, y.grad) for x, y in zip(xs, ys, strict=True) if x.requires_grad]
    pairs += [(w.value.grad, m.grad) for w, m in zip(theirs.trainable_weights, mine.trainable_weights, strict=True)]
    for theirs_value, our_value in pairs:
        if theirs_value is None:
            assert our_value is None or not our_value.numpy(force=True).any()
            continue
        np.testing.assert_allclose(our_value.numpy(force=True), theirs_value.numpy(), rtol=1e-3, atol=2e-4)


def plain_call(layer: Any, tensors: list[Any]) -> Any:
    return layer(tensors if len(tensors) > 1 else tensors[0])
