"""Activations that configs name, compared with their formulas."""

from __future__ import annotations

import math

import numpy as np

import tallow as tl
from tallow.models.activations import ACTIVATIONS, gated


def test_activations_by_their_formulas() -> None:
    x = np.linspace(-12, 12, 49)
    erf = np.vectorize(math.erf)
    gelu, tanh_gelu = (
        0.5 * x * (1 + inner) for inner in (erf(x / 2**0.5), np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    )
    softplus = np.log1p(np.exp(x))
    expected = {
        **dict.fromkeys(("gelu", "gelu_python"), gelu),
        **dict.fromkeys(("gelu_accurate", "gelu_fast", "gelu_new", "gelu_python_tanh", "gelu_pytorch_tanh"), tanh_gelu),
        "gelu_10": np.clip(gelu, -10, 10),
        "hardswish": x * np.clip(x + 3, 0, 6) / 6,
        "laplace": 0.5 * (1 + erf((x - 0.5**0.5) * (2 * np.pi) ** 0.5)),
        "leaky_relu": np.where(x > 0, x, 0.01 * x),
        "linear": x,
        "mish": x * np.tanh(softplus),
        "quick_gelu": x / (1 + np.exp(-1.702 * x)),
        "relu": np.maximum(x, 0),
        "relu2": np.maximum(x, 0) ** 2,
        "relu6": np.clip(x, 0, 6),
        "sigmoid": 1 / (1 + np.exp(-x)),
        **dict.fromkeys(("silu", "swish"), x / (1 + np.exp(-x))),
        "sqrtsoftplus": np.sqrt(softplus),
        "tanh": np.tanh(x),
    }
    assert expected.keys() == ACTIVATIONS.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(ACTIVATIONS[name](tl.tensor(x)).numpy(), values, atol=1e-6, err_msg=name)


def test_gated_activations() -> None:
    gate, up = (tl.tensor(np.random.default_rng(seed).standard_normal((3, 4)).astype(np.float32)) for seed in (0, 1))
    for name, activation in ACTIVATIONS.items():
        expected = (activation(gate) * up).numpy()
        np.testing.assert_allclose(gated(activation, gate, up).numpy(), expected, atol=1e-6, err_msg=name)
