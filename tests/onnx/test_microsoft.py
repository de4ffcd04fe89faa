"""Operators of com.microsoft give what onnxruntime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.onnx_nodes import check_node

pytestmark = pytest.mark.native

RANDOM = np.random.default_rng(3)
B, T, S, H, G, K, D = 2, 5, 7, 4, 2, 16, 64


def floats(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return RANDOM.standard_normal(shape).astype(np.float32)


def bytes_of(*shape: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return RANDOM.integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize(
    ("name", "inputs", "attributes"),
    [
        ("Gelu", [floats(3, 8)], {}),
        ("BiasGelu", [floats(3, 8), floats(8)], {}),
        ("FastGelu", [floats(3, 8)], {}),
        ("FastGelu", [floats(3, 8), floats(8)], {}),
        ("QuickGelu", [floats(3, 8)], {"alpha": 1.5}),
        ("SkipLayerNormalization", [floats(B, T, D), floats(B, T, D), floats(D), floats(D), floats(D)], {}),
        ("SkipSimplifiedLayerNormalization", [floats(B, T, D), floats(B, T, D), floats(D)], {"epsilon": 1e-5}),
        ("FusedMatMul", [floats(3, 4), floats(5, 4)], {"alpha": 0.5, "transB": 1}),
        ("FusedConv", [floats(1, 3, 8, 8), floats(4, 3, 3, 3), floats(4)], {"activation": "Relu", "pads": [1] * 4}),
    ],
)
def test_fused_layers(name: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    check_node(name, inputs, **attributes)


def test_skip_normalization_returns_the_sum() -> None:
    content = [floats(B, T, D), floats(B, T, D), floats(D)]
    check_node("SkipSimplifiedLayerNormalization", content, outputs=4, compared=(0, 3))  # the others are for training


def test_simplified_layer_normalization() -> None:
    check_node("SimplifiedLayerNormalization", [floats(B, T, D), floats(D)], domain="")


def test_embed_layer_normalization() -> None:
    ids = RANDOM.integers(0, 9, (B, T)).astype(np.int32)
    kinds = RANDOM.integers(0, 2, (B, T)).astype(np.int32)
    mask = np.ones((B, T), np.int32)
    tables = [floats(9, D), floats(T, D), floats(2, D), floats(D), floats(D)]
    check_node("EmbedLayerNormalization", [ids, kinds, *tables, mask], outputs=2)


@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention_with_projection(unidirectional: int) -> None:
    mask = np.array([[1] * T, [1] * (T - 2) + [0] * 2], np.int32)
    inputs = [floats(B, T, D), floats(D, 3 * D) / 8, floats(3 * D), mask]
    check_node("Attention", inputs, num_heads=H, unidirectional=unidirectional, weights=(1, 2))


def test_attention_takes_lengths_and_a_past() -> None:
    lengths = np.array([T, T - 2], np.int32)
    check_node("Attention", [floats(B, T, D), floats(D, 3 * D) / 8, floats(3 * D), lengths], num_heads=H)
    past = floats(2, B, H, 3, K)
    inputs = [floats(B, T, D), floats(D, 3 * D) / 8, floats(3 * D), None, past]
    check_node("Attention", inputs, num_heads=H, unidirectional=1, outputs=2)


def test_multi_head_attention() -> None:
    query, key, value = floats(B, T, D), floats(B, S, D), floats(B, S, D)
    check_node("MultiHeadAttention", [query, key, value], num_heads=H)
    check_node("MultiHeadAttention", [query, key, value, floats(3 * D)], num_heads=H)
    mask = np.array([[1] * S, [1] * 4 + [0] * 3], np.int32)
    check_node("MultiHeadAttention", [query, key, value, None, mask], num_heads=H)
    check_node("MultiHeadAttention", [query, key, value, None, None, floats(B, H, T, S)], num_heads=H)
    check_node("MultiHeadAttention", [query, floats(B, H, S, K), floats(B, H, S, K)], num_heads=H)


def test_multi_head_attention_grows_its_past() -> None:
    inputs = [
        floats(B, T, D),
        floats(B, T, D),
        floats(B, T, D),
        None,
        None,
        None,
        floats(B, H, 3, K),
        floats(B, H, 3, K),
    ]
    check_node("MultiHeadAttention", inputs, num_heads=H, outputs=3)


def rotary_tables(length: int = 32) -> list[np.ndarray[Any, Any]]:
    angles = np.arange(length)[:, None] / 100 ** (np.arange(K // 2) / (K // 2))
    return [np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)]


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("options", [{}, {"local_window_size": 3}, {"softcap": 2.0}])
def test_group_query_attention_of_a_text_and_of_the_next_token(rotary: bool, options: dict[str, Any]) -> None:
    tables = rotary_tables() if rotary else []
    options = options | {"num_heads": H, "kv_num_heads": G, "do_rotary": int(rotary)}
    empty = np.zeros((B, G, 0, K), np.float32)
    lengths, total = np.array([T - 1] * B, np.int32), np.array(T, np.int32)
    text = [floats(B, T, H * K), floats(B, T, G * K), floats(B, T, G * K), empty, empty, lengths, total, *tables]
    check_node("GroupQueryAttention", text, outputs=3, **options)
    past = [floats(B, G, T, K), floats(B, G, T, K)]
    token = [
        floats(B, 1, H * K),
        floats(B, 1, G * K),
        floats(B, 1, G * K),
        *past,
        lengths + 1,
        np.array(T + 1, np.int32),
        *tables,
    ]
    check_node("GroupQueryAttention", token, outputs=3, **options)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved: int) -> None:
    places = np.array([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]], np.int64)
    check_node("RotaryEmbedding", [floats(B, T, D), places, *rotary_tables()], interleaved=interleaved)
    check_node("RotaryEmbedding", [floats(B, H, T, K), np.array([2], np.int64), *rotary_tables()])


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("block_size", [16, 32, 128])
@pytest.mark.parametrize("zero_points", [False, True])
def test_matmul_of_blocks(bits: int, block_size: int, zero_points: bool) -> None:
    rows, columns = 24, 192
    blocks = -(-columns // block_size)
    weights = [bytes_of(rows, blocks, block_size * bits // 8), np.abs(floats(rows * blocks)) / 50]
    if zero_points:
        weights.append(bytes_of(rows * -(-blocks * bits // 8)))
    inputs = [floats(3, columns), *weights]
    options = {"K": columns, "N": rows, "bits": bits, "block_size": block_size}
    check_node("MatMulNBits", inputs, accuracy_level=1, rtol=1e-4, atol=1e-3, **options)
    constant = range(1, len(inputs))
    check_node("MatMulNBits", inputs, weights=constant, accuracy_level=1, rtol=1e-4, atol=1e-3, **options)
    check_node("MatMulNBits", inputs, weights=constant, accuracy_level=4, distance=0.01, **options)


@pytest.mark.parametrize("zero_points", [False, True])
def test_gather_of_blocks(zero_points: bool) -> None:
    data, scales = bytes_of(10, 32), np.abs(floats(10, 4)) / 20
    indices = np.array([[1, 9], [0, 3]], np.int64)
    inputs = [data, indices, scales, *([bytes_of(10, 2)] if zero_points else [])]
    check_node("GatherBlockQuantized", inputs, bits=4, block_size=16, weights=[i for i in range(len(inputs)) if i != 1])


def test_dynamic_products_of_bytes() -> None:
    weight, scale = bytes_of(D, 24), np.array(0.02, np.float32)
    inputs = [floats(3, D), weight, scale, np.array(120, np.uint8), floats(24)]
    check_node("DynamicQuantizeMatMul", inputs, rtol=1e-4, atol=1e-3)
    check_node("DynamicQuantizeMatMul", inputs, weights=(1, 2, 3, 4), rtol=1e-4, atol=1e-3)
    check_node("DynamicQuantizeMatMul", inputs, weights=(1, 2, 3, 4), approximate=True, distance=0.01)
    zero = np.array(7, np.uint8)
    inputs = [bytes_of(3, D), weight, scale, np.float32([0.01]).reshape(()), zero, zero]
    check_node("MatMulIntegerToFloat", inputs, rtol=1e-4, atol=1e-3)


ONE, ZERO = np.array(0.1, np.float32), np.array(128, np.uint8)


@pytest.mark.parametrize(
    ("name", "inputs", "attributes"),
    [
        ("QLinearAdd", [bytes_of(3, 8), ONE, ZERO, bytes_of(3, 8), ONE / 2, ZERO, ONE * 2, ZERO], {}),
        ("QLinearMul", [bytes_of(3, 8), ONE, ZERO, bytes_of(3, 8), ONE / 2, ZERO, ONE * 9, ZERO], {}),
        ("QLinearSigmoid", [bytes_of(3, 8), ONE, ZERO, ONE / 20, np.array(0, np.uint8)], {}),
        ("QLinearLeakyRelu", [bytes_of(3, 8), ONE, ZERO, ONE, ZERO], {"alpha": 0.2}),
        ("QLinearGlobalAveragePool", [bytes_of(2, 3, 4, 4), ONE, ZERO, ONE, ZERO], {}),
        ("QLinearAveragePool", [bytes_of(2, 3, 4, 4), ONE, ZERO, ONE, ZERO], {"kernel_shape": [2, 2]}),
        ("QLinearConcat", [ONE, ZERO, bytes_of(2, 3), ONE, ZERO, bytes_of(2, 3), ONE / 2, ZERO], {"axis": 1}),
        ("QGemm", [bytes_of(3, 8), ONE, ZERO, bytes_of(8, 4), ONE, ZERO, None, ONE * 40, ZERO], {}),
    ],
)
def test_operators_on_quantized_tensors(name: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    scalars = [i for i, each in enumerate(inputs) if each is not None and each.ndim == 0]
    check_node(name, inputs, weights=scalars, rtol=0, atol=1.01, **attributes)  # ties round either way


@pytest.mark.parametrize("name", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("scales", [(0.1, 0.1, 0.2), (0.05, 0.1, 0.2), (1.3, 0.02, 0.11)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_sums_and_products_of_all_codes_are_exact(name: str, scales: tuple[float, ...], dtype: Any) -> None:
    """Halves between two codes come out as onnxruntime rounds them."""
    codes = np.arange(256, dtype=np.uint8).view(dtype)
    a, b, c = (np.array(each, np.float32) for each in scales)
    zeros = [np.array(each, np.uint8).view(dtype) for each in (3, 120, 77)]
    operands = [codes[:, None], a, zeros[0], codes[None], b, zeros[1], c, zeros[2]]
    check_node(name, operands, weights=[1, 2, 4, 5, 6, 7], rtol=0, atol=0)
