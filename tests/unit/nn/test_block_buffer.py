"""A layer's blocks read as those of the file, whatever order products have brought them into."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from support.quantized_blocks import random_matrix

import tallow as tl
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.nn.block_buffer import BlockBuffer
from tallow.nn.block_layers import BlockEmbedding, BlockLinear

pytestmark = pytest.mark.cpu("the blocks stay in NumPy arrays; on a GPU a file's weights are widened")
rng = np.random.default_rng(5)


def used_layer(matrix: BlockMatrix) -> BlockLinear:
    layer = BlockLinear(matrix)
    layer(tl.randn(2, matrix.shape[1]))
    return layer


@pytest.mark.parametrize("name", ["Q8_0", "Q4_K", "Q6_K"])
def test_blocks_after_a_product(name: str) -> None:
    matrix = random_matrix(name, 37, 512, rng, scale=0.01)
    layer, x = used_layer(matrix), tl.randn(3, 512)
    for other in (layer, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), copy.copy(layer).to(tl.float16)):
        np.testing.assert_array_equal(other.blocks.numpy(), matrix.blocks)
        assert tuple(other.blocks.shape) == matrix.blocks.shape
        assert other.blocks.dtype is tl.uint8
        assert other.blocks.device.type == "cpu"
        np.testing.assert_array_equal(other.state_dict()["blocks"].numpy(), matrix.blocks)
        np.testing.assert_array_equal(other.weight.numpy(), matrix.widen())
        np.testing.assert_array_equal(other(x).numpy(), layer(x).numpy())
        assert type(other.blocks) is BlockBuffer


def test_loading_into_a_layer_that_has_multiplied() -> None:
    first, second = (random_matrix("Q4_0", 33, 64, rng, scale=0.01) for _ in range(2))
    x = tl.randn(3, 64)
    for assign in (False, True):
        layer = used_layer(first)
        layer.load_state_dict(used_layer(second).state_dict(), assign=assign)
        np.testing.assert_array_equal(layer(x).numpy(), BlockLinear(second)(x).numpy())
        layer.blocks = tl.nn.Buffer(tl.from_numpy(first.blocks))
        np.testing.assert_allclose(layer(x).numpy(), BlockLinear(first)(x).numpy(), rtol=1e-5, atol=1e-6)


def test_only_one_copy_of_memory_that_numpy_owns() -> None:
    matrix = random_matrix("Q8_0", 32, 64, rng)
    layer = used_layer(matrix)
    held = [value for value in vars(layer.blocks).values() if isinstance(value, np.ndarray)]
    assert len(held) == 1
    assert held[0].nbytes == matrix.nbytes


def test_rows_of_a_mapped_file_are_kept(tmp_path: Path) -> None:
    matrix = random_matrix("Q4_K", 48, 256, rng, scale=0.01)
    path = tmp_path / "blocks"
    path.write_bytes(b"x" * 100 + matrix.blocks.tobytes())
    mapped = np.memmap(path, np.uint8, "c").view(np.ndarray)[100:].reshape(matrix.blocks.shape)
    layer = used_layer(BlockMatrix(mapped, "Q4_K"))
    assert np.shares_memory(layer.blocks.numpy(), mapped)
    np.testing.assert_array_equal(layer.blocks.numpy(), matrix.blocks)
    assert path.read_bytes()[100:] == matrix.blocks.tobytes()


def test_gradients_with_interleaved_blocks() -> None:
    matrix = random_matrix("Q5_K", 40, 256, rng, scale=0.01)
    layer, x = used_layer(matrix), tl.randn(3, 256, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy()[0], matrix.widen().sum(axis=0), rtol=1e-4, atol=1e-5)


def test_a_table_that_is_also_the_head() -> None:
    matrix = random_matrix("Q6_K", 50, 256, rng, scale=0.01)
    layer = BlockEmbedding(matrix)
    index = tl.tensor([[4, 0, 49], [48, 15, 16]])
    before = layer(index).numpy()
    hidden = tl.randn(2, 256)
    logits = layer.project(hidden)
    expected = hidden.numpy() @ matrix.widen().T
    np.testing.assert_allclose(logits.numpy(), expected, atol=0.05 * abs(expected).max())
    np.testing.assert_array_equal(layer(index).numpy(), before)
