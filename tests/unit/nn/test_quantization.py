"""Weights of eight and four bits: rounding errors, models that compute with them, and files of earlier versions."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import kernels
from tallow.devices import to_host
from tallow.errors import ArgumentError, CheckpointError, DtypeError, ShapeError
from tallow.generation import generate
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.grouped_matrix import GroupedMatrix
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.nn.block_layers import BlockLinear
from tallow.nn.quantization import (
    BlockConfig,
    Int4WeightOnlyConfig,
    Int8WeightOnlyConfig,
    WeightOnlyLinear,
    count_weights,
    quantize_,
)

CONFIGS = [Int8WeightOnlyConfig(), Int4WeightOnlyConfig(), BlockConfig("Q4_K")]
FORMATS = dict(zip(CONFIGS, ("Q8_0", "Q4_0", "Q4_K"), strict=True))


def block_of(*first: float) -> np.ndarray[Any, Any]:
    row = np.zeros((1, 32), np.float32)
    row[0, : len(first)] = first
    return row


def test_codes_by_hand() -> None:
    """Q8_0: the largest magnitude is 127. Q4_0: the largest magnitude is -8, and its negative does not fit."""
    eight = GroupedMatrix.of(BlockMatrix.quantized(block_of(0.5, -1.27, 1.27, 0.004), "Q8_0"))
    assert eight.codes.tolist() == [[50, -127, 127, *[0] * 29]]
    np.testing.assert_allclose(eight.scales, [[0.01]], rtol=1e-3)
    four = GroupedMatrix.of(BlockMatrix.quantized(block_of(-8, 3, 7.9, 1, -4, 0.2), "Q4_0"))
    np.testing.assert_array_equal(four.scales, [[1]])
    # -8 and 3, 7 (for 7.9) and 1, -4 and 0, then zeros; each plus 8, the first in the lower half
    assert four.codes.tolist() == [[0 + 16 * 11, 15 + 16 * 9, 4 + 16 * 8, *[8 + 16 * 8] * 13]]
    np.testing.assert_array_equal(four.widen(), block_of(-8, 3, 7, 1, -4))
    assert (eight.format, eight.bits, four.format, four.bits) == ("int8 by 32", 8.5, "int4 by 32", 4.5)


def test_a_matrix_of_codes_by_hand() -> None:
    scales, shifts = np.array([[1, 0.5]], np.float32), np.array([[0, 10]], np.float32)
    eight = GroupedMatrix(np.array([[1, -2, 3, -128]], np.int8), scales, shifts)
    np.testing.assert_array_equal(eight.widen(), [[1, -2, 11.5, -54]])
    four = GroupedMatrix(np.array([[0x0F, 0x98]], np.uint8), scales.astype(np.float16))
    np.testing.assert_array_equal(four.rows(np.array([0, 0])), [[7, -8, 0, 0.5]] * 2)
    assert four.product(np.array([[1, 10, 100, 1000]], np.float32), np.ones(1, np.float32)).tolist() == [[428]]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("config", CONFIGS[:2], ids=str)
def test_errors_are_within_a_step(config: Any, dtype: Any) -> None:
    linear = tl.nn.Linear(96, 7)
    linear.weight = tl.nn.Parameter(tl.tensor(np.random.default_rng(0).standard_normal((7, 96)).astype(dtype)))
    groups = linear.weight.detach().float().numpy().reshape(7, 3, 32)
    largest = abs(groups).max(axis=-1, keepdims=True)
    errors = abs(config.layer(linear).weight.numpy().reshape(groups.shape) - groups)
    if FORMATS[config] == "Q8_0":
        assert (errors <= largest / 254 * 1.002 + largest * 2**-11).all()  # scales are float16
    else:
        assert (errors <= largest / 8 * 1.002).all()
        # except for those that equal the largest magnitude with the opposite sign
        assert (errors <= largest / 16 * 1.01).mean() > 0.97


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_a_layer_equals_one_with_the_dequantized_weight(config: Any) -> None:
    tl.manual_seed(0)
    model = tl.nn.Sequential(tl.nn.Linear(256, 5), tl.nn.ReLU(), tl.nn.Linear(5, 3, bias=False))
    original = model[0].weight.detach().numpy().copy()
    quantize_(model, config, lambda module, name: name == "0")
    layer = model[0]
    assert isinstance(layer, BlockLinear)
    assert WeightOnlyLinear is BlockLinear
    assert isinstance(model[2], tl.nn.Linear)
    x = tl.randn(2, 256, requires_grad=True)
    weight, bias = layer.weight, layer.bias
    assert 0 < abs(weight.numpy() - original).max() < abs(original).max() / 7
    y, expected = layer(x), (x @ weight.T + bias).detach().numpy()
    np.testing.assert_allclose(y.detach().numpy(), expected, atol=0.02 * abs(expected).max())  # x is rounded to int8
    with kernels.off():
        np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-4, atol=1e-6)
    y.sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), np.broadcast_to(weight.numpy().sum(0), (2, 256)), rtol=1e-5, atol=1e-6)
    assert set(layer.state_dict()) == {"blocks", "bias"}
    assert f"format={FORMATS[config]}" in repr(layer)


@pytest.mark.parametrize("config", CONFIGS[:2], ids=str)
def test_rows_of_any_length(config: Any) -> None:
    """The last block of a row ends with zeros, which meet zeros of the input."""
    tl.manual_seed(0)
    model = tl.nn.Sequential(tl.nn.Linear(20, 37), tl.nn.Tanh(), tl.nn.Linear(37, 3))
    plain = tl.nn.Sequential(tl.nn.Linear(20, 37), tl.nn.Tanh(), tl.nn.Linear(37, 3))
    before = count_weights(model)
    quantize_(model, config)
    assert count_weights(model) == before
    plain.load_state_dict({f"{i}.{name}": getattr(model[i], name) for i in (0, 2) for name in ("weight", "bias")})
    x = tl.randn(4, 20, requires_grad=True)
    with kernels.off():
        y, expected = model(x), plain(x)
        np.testing.assert_allclose(y.detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-6)
        (gradient,) = tl.autograd.grad(y.sum(), x)
        np.testing.assert_allclose(gradient.numpy(), tl.autograd.grad(expected.sum(), x)[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(model(x).detach().numpy(), expected.detach().numpy(), atol=0.05)
    with pytest.raises(ShapeError, match="does not fit a weight"):
        model(tl.zeros(2, 5))


@pytest.mark.parametrize("config", CONFIGS[:2], ids=str)
@pytest.mark.parametrize("width", [32, 40])
def test_llama_equals_one_with_dequantized_weights(config: Any, width: int) -> None:
    """Token by token, from a cache: the same as a float model with the dequantized weights. Rows of 40 are extended."""
    sizes = LlamaConfig(
        vocab_size=40,
        hidden_size=width,
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
    assert isinstance(quantized.model.layers[1].mlp.down_proj, BlockLinear)
    assert isinstance(quantized.lm_head, tl.nn.Linear)
    state = {name: quantized.get_submodule(name.rpartition(".")[0]).weight for name in plain.state_dict()}
    plain.load_state_dict(state)
    prompt = [3, 1, 4]
    with kernels.off():
        assert list(generate(quantized, prompt, max_tokens=15)) == list(generate(plain, prompt, max_tokens=15))
    ours, theirs = (to_host(model.next_logits(prompt, model.new_cache())) for model in (quantized, plain))
    assert ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs) > 0.998  # with inputs rounded to int8


def test_a_saved_state_comes_back() -> None:
    tl.manual_seed(0)
    first, second = (tl.nn.Sequential(tl.nn.Linear(32, 4)) for _ in range(2))
    for model in (first, second):
        quantize_(model, Int4WeightOnlyConfig(group_size=32))
    second.load_state_dict(first.state_dict())
    x = tl.randn(3, 32)
    assert tl.equal(first(x), second(x))
    half = first.to(tl.bfloat16)
    assert half[0].blocks.dtype is tl.uint8
    assert half(x.to(tl.bfloat16)).dtype is tl.bfloat16


def test_mismatches_are_refused() -> None:
    model = tl.nn.Sequential(tl.nn.Linear(48, 4))
    with pytest.raises(ArgumentError, match=r"quantize_: 0: .*not rows of whole Q4_0 blocks of 32 weights"):
        quantize_(model, BlockConfig("Q4_0"))
    with pytest.raises(ArgumentError, match=r"group_size=7"):
        Int8WeightOnlyConfig(group_size=7)
    with pytest.raises(ShapeError, match="do not fit"):
        GroupedMatrix(np.zeros((3, 4), np.int8), np.ones((2, 1), np.float32))
    with pytest.raises(ShapeError, match="do not divide"):
        GroupedMatrix(np.zeros((3, 4), np.int8), np.ones((3, 3), np.float32))
    with pytest.raises(DtypeError, match="not codes and scales"):
        GroupedMatrix(np.zeros((3, 4), np.int16), np.ones((3, 1), np.float32))


# ------------------------------------------------------------------------------------- state dicts of earlier versions


# Linear(20, 4) with a scale for each row, and Linear(64, 2, bias=False) in four bits with a scale for each 64 elements,
# as version 0.2 saved them with `tl.save`.
OLD_FILE = """
QAEAAAAAAAB7IjAuYmlhcyI6eyJkdHlwZSI6IkYzMiIsInNoYXBlIjpbNF0sImRhdGFfb2Zmc2V0cyI6WzAsMTZdfSwiMC5zY2FsZXMiOnsi
ZHR5cGUiOiJGMzIiLCJzaGFwZSI6WzQsMV0sImRhdGFfb2Zmc2V0cyI6WzE2LDMyXX0sIjIuc2NhbGVzIjp7ImR0eXBlIjoiRjMyIiwic2hh
cGUiOlsyLDFdLCJkYXRhX29mZnNldHMiOlszMiw0MF19LCIwLmNvZGVzIjp7ImR0eXBlIjoiSTgiLCJzaGFwZSI6WzQsMjBdLCJkYXRhX29m
ZnNldHMiOls0MCwxMjBdfSwiMi5jb2RlcyI6eyJkdHlwZSI6IlU4Iiwic2hhcGUiOlsyLDMyXSwiZGF0YV9vZmZzZXRzIjpbMTIwLDE4NF19
fSAgIFoN7D0HE5e6R8ZWPOffAj4og+U6EX3lOgfEzjpag+Q60319PORCe7wjxYuFUGkbOwtvUYFbiTutXQvN7IigLCYd4n97LyYw5KM5BtD8
Y2/cFM4b0uFvsyOKXlG2a4PSnfJUtIHos5cVzCyzcd2bIW7xdQDtH39z9rCsGpT2L7lS60WdSAE5L2fEymF4MT/edr3N+z0cZ/MBCzx9QXAw
I6bI03dFbml1hLlc1VAniOwlpXehLfJtY+0=
"""
OLD_OUTPUT = [[-0.4813607931137085, 0.34909889101982117]]  # of that version


def old_state(tmp_path: Path) -> dict[str, tl.Tensor]:
    path = tmp_path / "old.safetensors"
    path.write_bytes(base64.b64decode(OLD_FILE))
    state = tl.load(path)
    assert set(state) == {"0.bias", "0.codes", "0.scales", "2.codes", "2.scales"}
    return dict(state) | {"1.weight": tl.cat([tl.eye(4)] * 16)}


def new_model() -> tl.nn.Sequential:
    model = tl.nn.Sequential(tl.nn.Linear(20, 4), tl.nn.Linear(4, 64, bias=False), tl.nn.Linear(64, 2, bias=False))
    quantize_(model, Int8WeightOnlyConfig(), lambda module, name: name == "0")
    quantize_(model, Int4WeightOnlyConfig(group_size=64), lambda module, name: name == "2")
    return model


def test_codes_and_scales_of_earlier_versions_load(tmp_path: Path) -> None:
    model, state = new_model(), old_state(tmp_path)
    codes = {name: tensor.numpy() for name, tensor in state.items()}
    model.load_state_dict(state)
    scale = np.float16(codes["0.scales"]).astype(np.float32)  # of blocks
    np.testing.assert_array_equal(model[0].weight.numpy(), codes["0.codes"] * scale)
    pairs = np.stack([codes["2.codes"] & 15, codes["2.codes"] >> 4], axis=-1).reshape(2, 64).astype(np.float32) - 8
    np.testing.assert_array_equal(model[2].weight.numpy(), pairs * np.float16(codes["2.scales"]).astype(np.float32))
    with kernels.off():
        y = model(tl.tensor(np.linspace(-1, 1, 20, dtype=np.float32)[None]))
    np.testing.assert_allclose(y.detach().numpy(), OLD_OUTPUT, atol=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"0.codes": tl.zeros(4, 24, dtype=tl.int8)}, r"0.codes: file Q8_0 \(4, 24\), model Q8_0 \(4, 20\)"),
        ({"0.codes": tl.zeros(4, 10, dtype=tl.uint8)}, r"0.codes: file Q4_0 \(4, 20\), model Q8_0 \(4, 20\)"),
        ({"0.codes": tl.zeros(4, 20)}, "0.codes: GroupedMatrix: float32, float32 are not codes and scales"),
        ({"0.scales": tl.zeros(4, 4)}, "0.codes: codes of int8 by 5 do not fit blocks of 32"),
        ({"0.scales": tl.full((4, 1), 1e5)}, "0.codes: scales of int8 by 20 exceed the range of float16"),
        ({"0.shifts": tl.zeros(4, 1)}, "0.codes: codes of int8 by 20 with shifts do not fit blocks of 32"),
    ],
)
def test_codes_that_do_not_fit_change_nothing(change: dict[str, tl.Tensor], message: str, tmp_path: Path) -> None:
    model = new_model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(CheckpointError, match=message):
        model.load_state_dict(old_state(tmp_path) | change)
    for name, tensor in model.state_dict().items():
        assert tl.equal(tensor, before[name])
