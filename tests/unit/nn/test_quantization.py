"""Weights of eight and four bits: rounding errors, and models that compute with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.errors import ArgumentError, ShapeError
from tallow.generation import generate
from tallow.kernels.quantized import QuantizedMatrix, quantize_int4, quantize_int8
from tallow.models.llama import Llama, LlamaConfig
from tallow.nn.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig, WeightOnlyLinear, quantize_

CONFIGS = [Int8WeightOnlyConfig(), Int8WeightOnlyConfig(group_size=32), Int4WeightOnlyConfig(group_size=32)]


def test_codes_by_hand() -> None:
    """Q8_0: the largest magnitude is 127. Q4_0: the largest magnitude is -8, and its negative does not fit."""
    row = np.array([[0.5, -1.27, 1.27, 0.004, 0, 0, 0, 0]], np.float32)
    eight = quantize_int8(row, 4)
    assert eight.codes.tolist() == [[50, -127, 127, 0, 0, 0, 0, 0]]
    np.testing.assert_allclose(eight.scales, [[0.01, 0]])
    four = quantize_int4(np.array([[4, -4, 1, 0.2, -8, 3, 7.9, 0]], np.float32), 4)
    np.testing.assert_array_equal(four.scales, [[-0.5, 1]])
    # -8 and 7 (for 8), -2 and 0;  -8 and 3, 7 (for 7.9) and 0; each plus 8, the first in the lower half
    assert four.codes.tolist() == [[0 + 16 * 15, 6 + 16 * 8, 0 + 16 * 11, 15 + 16 * 8]]
    np.testing.assert_array_equal(four.widen(), [[4, -3.5, 1, 0, -8, 3, 7, 0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("group", [32, 96])
def test_errors_are_within_a_step(group: int, dtype: Any) -> None:
    matrix = np.random.default_rng(0).standard_normal((7, 96)).astype(dtype)
    groups = matrix.astype(np.float32).reshape(7, -1, group)
    largest = abs(groups).max(axis=-1, keepdims=True)
    eight = abs(quantize_int8(matrix, group).widen().reshape(groups.shape) - groups)
    assert (eight <= largest / 254 * 1.0001).all()
    four = abs(quantize_int4(matrix, group).widen().reshape(groups.shape) - groups)
    assert (four <= largest / 8 * 1.0001).all()
    # except for those that equal the largest magnitude with the opposite sign
    assert (four <= largest / 16 * 1.0001).mean() > 0.97


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_a_layer_equals_one_with_the_dequantized_weight(config: Any) -> None:
    tl.manual_seed(0)
    model = tl.nn.Sequential(tl.nn.Linear(64, 5), tl.nn.ReLU(), tl.nn.Linear(5, 3, bias=False))
    original = model[0].weight.detach().numpy().copy()
    quantize_(model, config, lambda module, name: name == "0")
    layer = model[0]
    assert isinstance(layer, WeightOnlyLinear)
    assert isinstance(model[2], tl.nn.Linear)
    x = tl.randn(2, 64, requires_grad=True)
    weight, bias = layer.weight, layer.bias
    assert 0 < abs(weight.numpy() - original).max() < abs(original).max() / 7
    y = layer(x)
    np.testing.assert_allclose(y.detach().numpy(), (x @ weight.T + bias).detach().numpy(), rtol=1e-5, atol=1e-6)
    y.sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), np.broadcast_to(weight.numpy().sum(0), (2, 64)), rtol=1e-5, atol=1e-6)
    assert set(layer.state_dict()) == {"codes", "scales", "bias"}
    assert f"bits={4 if isinstance(config, Int4WeightOnlyConfig) else 8}" in repr(layer)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_llama_equals_one_with_dequantized_weights(config: Any) -> None:
    """Token by token, from a cache: the same as a float model with the dequantized weights."""
    sizes = LlamaConfig(
        vocab_size=40,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.4,
        max_position_embeddings=24,
    )
    tl.manual_seed(0)
    quantized, plain = Llama(sizes).eval(), Llama(sizes).eval()
    quantize_(quantized, config)
    assert isinstance(quantized.model.layers[1].mlp.down_proj, WeightOnlyLinear)
    assert isinstance(quantized.lm_head, tl.nn.Linear)
    state = {name: quantized.get_submodule(name.rpartition(".")[0]).weight for name in plain.state_dict()}
    plain.load_state_dict(state)
    prompt = [3, 1, 4]
    assert list(generate(quantized, prompt, max_tokens=15)) == list(generate(plain, prompt, max_tokens=15))


def test_a_saved_state_comes_back() -> None:
    tl.manual_seed(0)
    first, second = (tl.nn.Sequential(tl.nn.Linear(32, 4)) for _ in range(2))
    for model in (first, second):
        quantize_(model, Int4WeightOnlyConfig(group_size=32))
    second.load_state_dict(first.state_dict())
    x = tl.randn(3, 32)
    assert tl.equal(first(x), second(x))
    half = first.to(tl.bfloat16)
    assert half[0].codes.dtype is tl.uint8
    assert half(x.to(tl.bfloat16)).dtype is tl.bfloat16


def test_mismatches_are_refused() -> None:
    model = tl.nn.Sequential(tl.nn.Linear(48, 4))
    with pytest.raises(ArgumentError, match=r"quantize_: 0: groups of 32 do not divide rows of 48"):
        quantize_(model, Int4WeightOnlyConfig(group_size=32))
    with pytest.raises(ArgumentError, match=r"group_size=7"):
        Int8WeightOnlyConfig(group_size=7)
    with pytest.raises(ShapeError, match="do not fit"):
        QuantizedMatrix(np.zeros((3, 4), np.int8), np.ones((2, 1), np.float32))
    with pytest.raises(ShapeError, match="do not divide"):
        QuantizedMatrix(np.zeros((3, 4), np.int8), np.ones((3, 3), np.float32))
    quantize_(model, Int8WeightOnlyConfig())
    with pytest.raises(ShapeError, match="does not fit a weight"):
        model(tl.zeros(2, 5))
