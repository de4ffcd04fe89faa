"""Layers with quantised blocks of GGUF in place of float weights."""

from __future__ import annotations

import numpy as np
import pytest
from support.quantized_blocks import random_matrix

import tallow as tl
from tallow.errors import DimensionError
from tallow.nn.block_layers import BlockEmbedding, BlockLinear, put_block_layers

pytestmark = pytest.mark.cpu("the blocks stay in NumPy arrays; on a GPU a file's weights are widened")
rng = np.random.default_rng(3)


def test_a_linear_layer() -> None:
    matrix = random_matrix("Q4_0", 5, 64, rng, scale=0.01)
    layer = BlockLinear(matrix, tl.nn.Parameter(tl.randn(5)))
    x = tl.randn(2, 3, 64, requires_grad=True)
    y = layer(x)
    assert layer.weight.shape == (5, 64)
    assert layer.bias is not None
    expected = x @ layer.weight.T + layer.bias
    np.testing.assert_allclose(y.detach().numpy(), expected.detach().numpy(), atol=0.05)
    y.sum().backward()
    assert x.grad is not None
    assert layer.bias.grad is not None
    np.testing.assert_allclose(x.grad.numpy()[0, 0], matrix.widen().sum(axis=0), rtol=1e-4, atol=1e-5)
    assert layer.bias.grad.tolist() == [6.0] * 5
    assert repr(layer) == "BlockLinear(in_features=64, out_features=5, bias=True, format=Q4_0)"
    assert set(layer.state_dict()) == {"blocks", "bias"}


def test_an_embedding() -> None:
    matrix = random_matrix("Q6_K", 5, 256, rng, scale=0.01)
    layer = BlockEmbedding(matrix)
    index = tl.tensor([[4, 0, 4], [1, 2, 3]])
    np.testing.assert_array_equal(layer(index).numpy(), matrix.widen()[index.numpy()])
    with pytest.raises(DimensionError):
        layer(tl.tensor([5]))
    with pytest.raises(DimensionError):
        layer(tl.tensor([-1]))
    hidden = tl.randn(2, 256)
    expected = (hidden @ layer.weight.T).numpy()
    np.testing.assert_allclose(layer.project(hidden).numpy(), expected, atol=0.05 * abs(expected).max())
    assert repr(layer) == "BlockEmbedding(5, 256, format=Q6_K)"


def test_state_dicts_hold_the_blocks() -> None:
    source = BlockLinear(random_matrix("Q8_0", 5, 64, rng))
    target = BlockLinear(random_matrix("Q8_0", 5, 64, rng))
    target.load_state_dict(source.state_dict())
    np.testing.assert_array_equal(target.weight.numpy(), source.weight.numpy())
    half = source.to(dtype=tl.float16)
    assert half.blocks.dtype is tl.uint8


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16, tl.float64])
def test_other_dtypes_by_to(dtype: tl.dtype) -> None:
    matrix = random_matrix("Q8_0", 7, 64, rng, scale=0.01)
    model = tl.nn.Sequential(BlockEmbedding(matrix), tl.nn.RMSNorm(64), BlockLinear(matrix)).to(dtype=dtype)
    y = model(tl.tensor([1, 2]))
    assert y.dtype is dtype
    assert set(model.state_dict()) == {"0.blocks", "1.weight", "2.blocks"}


class Doubled(tl.nn.Linear):
    def forward(self, input: tl.Tensor) -> tl.Tensor:
        return 2 * super().forward(input)


def test_layers_are_replaced_where_the_matrix_fits() -> None:
    model = tl.nn.Sequential(tl.nn.Embedding(7, 64), tl.nn.Linear(64, 5), Doubled(64, 5), tl.nn.Linear(64, 3))
    bias = model[1].bias
    matrices = {f"{i}.weight": random_matrix("Q8_0", n, 64, rng) for i, n in enumerate((7, 5, 5, 5))}
    matrices["other.weight"] = random_matrix("Q8_0", 2, 64, rng)
    state = put_block_layers(model, matrices)
    assert [type(layer) for layer in model] == [BlockEmbedding, BlockLinear, Doubled, tl.nn.Linear]
    assert model[1].bias is bias
    assert list(state) == ["0.blocks", "1.blocks", "2.weight", "3.weight", "other.weight"]
    np.testing.assert_array_equal(state["2.weight"].numpy(), matrices["2.weight"].widen())
    np.testing.assert_array_equal(state["0.blocks"].numpy(), matrices["0.weight"].blocks)
