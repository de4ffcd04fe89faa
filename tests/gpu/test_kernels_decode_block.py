"""A token through a block by CUDA kernels, compared with the array code, which has its own test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.card import Card

import tallow.ops.quantized_linear  # noqa: F401 - array code of a kernel that is called
from tallow import dtypes, kernels
from tallow.dtypes import cast, dtype
from tallow.kernels.blocks.decode_block import CACHES, MATRICES, OPTIONAL, DecodeBlock
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.kernels.quantized.grouped_matrix import GroupedMatrix

D, H, G, K, F, S = 32, 4, 2, 8, 64, 6


def arrays(weights: dtype, cache: dtype, additions: tuple[str, ...] = ()) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    shapes = {"query": (H * K, D), "key": (G * K, D), "value": (G * K, D), "output": (D, H * K)}
    shapes |= {"gate": (F, D), "up": (F, D), "down": (D, F)}
    parameters = {n: cast(rng.standard_normal(s).astype(np.float32) / 6, weights) for n, s in shapes.items()}
    angles = np.outer(np.arange(S + 3), 0.7 ** np.arange(K // 2)).astype(np.float32)
    parameters |= {"cos": np.cos(angles), "sin": np.sin(angles)}
    parameters |= {name: rng.uniform(0.5, 1.5, D).astype(np.float32) for name in ("attention_norm", "mlp_norm")}
    sizes = {"query_bias": H * K, "key_bias": G * K, "value_bias": G * K, "query_norm": K, "key_norm": K}
    parameters |= {name: rng.uniform(0.5, 1.5, sizes[name]).astype(np.float32) for name in additions}
    return parameters | {name: cast(np.full((1, G, S, K), 7, np.float32), cache) for name in CACHES}


def block_of(parameters: dict[str, Any], interleaved: bool) -> DecodeBlock:
    return DecodeBlock(**parameters, eps=1e-5, interleaved=interleaved)


def to_device(card: Card, value: Any) -> Any:
    return GroupedMatrix(*map(card.put, value.arrays)) if isinstance(value, GroupedMatrix) else card.put(value)


def quantized(weights: Any, format: str) -> GroupedMatrix:
    return GroupedMatrix.of(BlockMatrix.quantized(weights, format))


@pytest.mark.parametrize(
    ("weights", "cache", "interleaved", "additions"),
    [
        (dtypes.float32, dtypes.float32, True, ()),
        (dtypes.bfloat16, dtypes.bfloat16, False, ()),
        (dtypes.float32, dtypes.float32, False, ("query_bias", "key_bias", "value_bias")),
        (dtypes.bfloat16, dtypes.bfloat16, False, ("query_norm", "key_norm")),
        (dtypes.float32, dtypes.float32, True, OPTIONAL),
    ],
    ids=["float32 interleaved", "bfloat16", "biases", "norms of heads", "both"],
)
def test_consecutive_tokens(
    card: Card, weights: dtype, cache: dtype, interleaved: bool, additions: tuple[str, ...]
) -> None:
    """The first positions are passed as integers, the last is read from device memory."""
    host_arrays = arrays(weights, cache, additions)
    if weights is dtypes.float32:
        host_arrays |= {name: quantized(host_arrays[name], "Q4_0") for name in ("gate", "up")}
    if cache is dtypes.float32 and interleaved:  # unlike query and key, which are read together otherwise
        host_arrays |= {"value": quantized(host_arrays["value"], "Q8_0")}
    device_arrays = {name: to_device(card, array) for name, array in host_arrays.items()}
    reference, block = block_of(host_arrays, interleaved), block_of(device_arrays, interleaved)
    rng = np.random.default_rng(5)
    for position in range(5):
        x = rng.standard_normal((1, D)).astype(np.float32)
        with kernels.require("array"):
            expected = kernels.run("decode_block", x, reference, position)
        where = position if position < 3 else card.put(np.array([[0, position, 0]]))
        y = card.run("decode_block", card.put(x), block, where)
        # A key halfway between two bfloat16s may be rounded to either.
        tolerance = 1e-5 if cache is dtypes.float32 else 2e-3
        np.testing.assert_allclose(card.get(y), expected, rtol=tolerance, atol=tolerance)
    for name in CACHES:
        device_cache = card.get(getattr(block, name))
        rtol = 1e-5 if cache is dtypes.float32 else 2**-7
        np.testing.assert_allclose(device_cache, dtypes.widen(host_arrays[name]), rtol=rtol, atol=1e-6)
        assert (device_cache[:, :, 5] == 7).all()


@pytest.mark.parametrize("rows", [2, 3, 8])
def test_a_token_of_each_text(card: Card, rows: int) -> None:
    """Texts of different lengths, not in the order of the cache; the last row occurs twice."""
    host_arrays = arrays(dtypes.float32, dtypes.float32, OPTIONAL)
    rng = np.random.default_rng(rows)
    host_arrays |= {name: rng.standard_normal((8, G, S, K)).astype(np.float32) for name in CACHES}
    device_arrays = {name: card.put(array) for name, array in host_arrays.items()}
    reference, block = block_of(host_arrays, False), block_of(device_arrays, False)
    places = np.array([(7 - row, row % S, 0) for row in range(rows - 1)])
    places = np.concatenate([places, places[-1:]])
    x = rng.standard_normal((rows, D)).astype(np.float32)
    x[-1] = x[-2]
    with kernels.require("array"):
        expected = kernels.run("decode_block", x, reference, places)
    y = card.run("decode_block", card.put(x), block, card.put(places))
    np.testing.assert_allclose(card.get(y), expected, rtol=1e-5, atol=1e-5)
    for name in CACHES:
        np.testing.assert_allclose(card.get(getattr(block, name)), host_arrays[name], rtol=1e-5, atol=1e-6)


def test_a_position_outside_the_cache_writes_nothing(card: Card) -> None:
    device_arrays = {name: card.put(array) for name, array in arrays(dtypes.float32, dtypes.float32).items()}
    block = block_of(device_arrays, True)
    for position in (-1, S):
        card.run("decode_block", card.put(np.ones((1, D))), block, card.put(np.array([[0, position, 0]])))
    assert (card.get(block.key_cache) == 7).all()
    assert (card.get(block.value_cache) == 7).all()


def test_arrays_the_kernel_cannot_read_use_the_array_code(card: Card) -> None:
    device_arrays = {name: card.put(array) for name, array in arrays(dtypes.float32, dtypes.float32).items()}
    assert set(MATRICES) <= set(device_arrays)
    one_quantized = {
        **device_arrays,
        "up": to_device(card, quantized(arrays(dtypes.float32, dtypes.float32)["up"], "Q4_0")),
    }
    rotated = {
        **device_arrays,
        "key_cache": device_arrays["key_cache"].transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2),
    }
    x = card.put(np.ones((1, D)))
    for parameters, backend in ((device_arrays, "cuda"), (one_quantized, "array"), (rotated, "array")):
        assert kernels.pick("decode_block", "cuda", x, block_of(parameters, True), 0).backend == backend
