"""The layers of tallow.keras on `cuda` give the CPU's results and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.keras import layers

MASK = np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], bool)

CASES: list[tuple[Callable[[], Any], tuple[int, ...], dict[str, Any]]] = [
    (lambda: layers.Dense(3, activation="gelu"), (3, 4), {}),
    (lambda: layers.Conv2D(3, 3, padding="same", strides=2), (2, 6, 5, 4), {}),
    (lambda: layers.Conv2DTranspose(3, 3, strides=2, padding="same"), (2, 6, 5, 4), {}),
    (lambda: layers.MaxPooling2D(2, padding="same"), (2, 5, 5, 4), {}),
    (lambda: layers.AveragePooling2D(2, padding="same"), (2, 5, 5, 4), {}),
    (lambda: layers.BatchNormalization(), (6, 4), {"training": True}),
    (lambda: layers.LayerNormalization(), (6, 4), {}),
    (lambda: layers.Normalization(mean=1.0, variance=2.0), (6, 4), {}),
    (lambda: layers.Rescaling([1.0, 2.0, 3.0, 4.0]), (6, 4), {}),
    (lambda: layers.RandomRotation((0.1, 0.1)), (2, 6, 5, 4), {"training": True}),
    (lambda: layers.RandomTranslation((0.2, 0.2), (0.1, 0.1), "constant"), (2, 6, 5, 4), {"training": True}),
    (lambda: layers.RandomBrightness((0.1, 0.1), (-2, 2)), (2, 6, 5, 4), {"training": True}),
    (lambda: layers.LSTM(3, return_sequences=True), (3, 5, 4), {"mask": MASK}),
    (lambda: layers.GRU(3, activation="relu"), (3, 5, 4), {"mask": MASK}),
    (lambda: layers.Bidirectional(layers.SimpleRNN(3)), (3, 5, 4), {}),
    (lambda: layers.PReLU(), (3, 4), {}),
]


@pytest.mark.parametrize(("make", "shape", "options"), CASES, ids=[type(make()).__name__ for make, _, _ in CASES])
def test_layer(make: Callable[[], Any], shape: tuple[int, ...], options: dict[str, Any], cuda: str) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    cpu_layer = make()
    cpu_layer.build(shape)
    cuda_layer = make()
    cuda_layer.build(shape)
    cuda_layer.set_weights(cpu_layer.get_weights())
    cuda_layer.to(cuda)

    def run(layer: Any, device: str) -> tuple[Any, list[Any]]:
        on = {k: tl.tensor(v, device=device) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        y = layer(tl.tensor(x, device=device), **on)
        assert y.device.type == device
        if y.requires_grad:
            y.square().sum().backward()
        return y.cpu().detach().numpy(), [w.grad.cpu().numpy() for w in layer.trainable_weights]

    y, grads = run(cpu_layer, "cpu")
    results, grads_there = run(cuda_layer, cuda)
    np.testing.assert_allclose(results, y, rtol=1e-4, atol=1e-5)
    for one, other in zip(grads_there, grads, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    for one, other in zip(cuda_layer.get_weights(), cpu_layer.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_attention_and_embedding(cuda: str) -> None:
    embedding, attention = layers.Embedding(9, 4, mask_zero=True), layers.MultiHeadAttention(2, 3)
    indices = tl.tensor([[1, 2, 0], [3, 4, 5]])
    h = embedding(indices)
    y = attention(h, h, use_causal_mask=True)
    embedding.to(cuda)
    attention.to(cuda)
    h = embedding(indices.to(cuda))
    results = attention(h, h, use_causal_mask=True)
    assert results.device.type == "cuda"
    np.testing.assert_allclose(results.cpu().detach().numpy(), y.detach().numpy(), rtol=1e-4, atol=1e-5)
