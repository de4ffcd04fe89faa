"""Cross-entropy by CUDA kernels, compared with the formula in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.card import PRECISION, Card, round_to

import tallow as tl
from tallow.dtypes import bfloat16, dtype, float32
from tallow.nn import functional as F

IGNORED = -100


def log_softmax(x: Any) -> Any:
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def expected(x: Any, target: Any, weight: Any, smoothing: float, g: Any) -> tuple[Any, Any]:
    """Return the losses, and the gradient of the sum of g times them."""
    rows, width = x.shape
    valid = target != IGNORED
    classes = np.where(valid, target, 0)
    parts = np.tile(weight * smoothing / width, (rows, 1))  # of each -log p in the loss
    parts[np.arange(rows), classes] += weight[classes] * (1 - smoothing)
    logp = log_softmax(x)
    losses = np.where(valid, -(parts * logp).sum(-1), 0)
    dx = (np.exp(logp) * parts.sum(-1, keepdims=True) - parts) * (g * valid)[:, None]
    return losses, dx


def case(width: int, dtype: dtype) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(width)
    x = round_to(rng.standard_normal((4, width)) * 4 + 90, dtype)
    return x, np.array([0, width - 1, IGNORED, width // 2]), rng.random(width).astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("smoothing", [0.0, 0.125])
@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
@pytest.mark.parametrize("width", [1, 33, 257, 1501])
def test_losses_and_gradients(card: Card, width: int, dtype: dtype, smoothing: float) -> None:
    x, target, weight = case(width, dtype)
    g = np.array([0.5, -2.0, 1.0, 3.0])
    for w in (weight, None):
        losses, dx = expected(x, target, np.ones(width) if w is None else w, smoothing, g)
        arguments = card.put(x, dtype), card.put(target), None if w is None else card.put(w), IGNORED, smoothing
        got, share, *stats = card.run("cross_entropy", *arguments)
        np.testing.assert_allclose(card.get(got), losses, rtol=3e-6, atol=3e-6)
        shares = np.where(target == IGNORED, 0, 1 if w is None else weight[target % width])
        np.testing.assert_array_equal(card.get(share), shares)
        back = card.run("cross_entropy_backward", card.put(g), *arguments, *stats, float32.storage)
        assert back.dtype == np.float32
        np.testing.assert_allclose(card.get(back), dx, rtol=2e-5, atol=1e-6)


def test_one_gradient_for_all_rows_and_rows_off_alignment(card: Card) -> None:
    x, target, _ = case(41, bfloat16)
    rows = card.put(np.hstack([np.zeros((4, 1)), x]).reshape(-1), bfloat16)
    inner = rows[1:][: 4 * 41].reshape(4, 41)  # starts two bytes after a vector boundary; rows have other offsets
    wide = round_to(card.get(inner), bfloat16)
    losses, dx = expected(wide, target, np.ones(41), 0.0, np.full(4, 0.25))
    arguments = inner, card.put(target), None, IGNORED, 0.0
    got, _, *stats = card.run("cross_entropy", *arguments)
    np.testing.assert_allclose(card.get(got), losses, rtol=3e-6, atol=3e-6)
    back = card.run("cross_entropy_backward", card.put(np.float32(0.25)), *arguments, *stats, float32.storage)
    np.testing.assert_allclose(card.get(back), dx, rtol=2e-5, atol=1e-6)


def test_a_gradient_in_bfloat16(card: Card) -> None:
    x, target, _ = case(33, bfloat16)
    g = np.array([0.5, -2.0, 1.0, 3.0])
    arguments = card.put(x, bfloat16), card.put(target), None, IGNORED, 0.0
    _, _, *stats = card.run("cross_entropy", *arguments)
    _, dx = expected(x, target, np.ones(33), 0.0, g)
    for upstream in (card.put(g), card.put(g, bfloat16)):  # values exact in bfloat16
        wide, half = (
            card.run("cross_entropy_backward", upstream, *arguments, *stats, each.storage)
            for each in (float32, bfloat16)
        )
        np.testing.assert_allclose(card.get(half), dx, rtol=PRECISION[bfloat16], atol=1e-6)
        np.testing.assert_array_equal(card.get(half), round_to(card.get(wide), bfloat16))


def test_infinite_logits(card: Card) -> None:
    """-inf does not contribute to a sum; rows of only -inf, and those with +inf or NaN, are NaN."""
    x = np.zeros((4, 40))
    x[0, ::2], x[0, 33] = -np.inf, 7
    x[1], x[2, 3], x[3, 4] = -np.inf, np.inf, np.nan
    target = np.array([33, 0, 1, 1])
    losses, *_ = card.run("cross_entropy", card.put(x), card.put(target), None, IGNORED, 0.0)
    assert np.isnan(card.get(losses)[1:]).all()
    np.testing.assert_allclose(card.get(losses)[0], -log_softmax(x[:1])[0, 33], rtol=2e-6)


@pytest.mark.parametrize("kernels", ["on", "off"])
def test_an_invalid_class_has_a_loss_of_nan(kernels: str, cuda: str) -> None:
    """No check waits for the GPU; the other rows are unaffected."""
    x = tl.zeros(3, 5, device=cuda, requires_grad=True)
    target = tl.tensor([1, 5, -1], device=cuda)
    with tl.kernels.off() if kernels == "off" else tl.no_grad(), tl.enable_grad():
        losses = F.cross_entropy(x, target, reduction="none")
        losses.backward(tl.ones(3, device=cuda))
    assert losses.isnan().tolist() == [False, True, True]
    assert x.grad is not None
    assert x.grad.isnan().all(1).tolist() == [False, True, True]
    assert F.cross_entropy(x, target).isnan().item()


def test_halves_pass_through_the_op(cuda: str) -> None:
    rng = np.random.default_rng(0)
    x = round_to(rng.standard_normal((6, 50, 3)), bfloat16)
    target = rng.integers(0, 50, (6, 3))
    results = []
    for device in ("cpu", cuda):
        logits = tl.tensor(x, dtype=bfloat16, device=device).requires_grad_()
        loss = F.cross_entropy(logits, tl.tensor(target, device=device), label_smoothing=0.1)
        loss.backward()
        assert logits.grad is not None
        assert (loss.dtype, logits.grad.dtype) == (bfloat16, bfloat16)
        results += [loss.item(), logits.grad.to(float32).cpu().numpy()]
    assert results[0] == results[2]
    np.testing.assert_allclose(results[3], results[1], rtol=2**-7, atol=1e-6)
