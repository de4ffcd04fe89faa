"""Models of quantised GGUF files on `cuda`: their weights as codes and scales, and the logits of the widened model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.generation import generate
from tallow.kernels.quantized.grouped_matrix import GroupedMatrix
from tallow.models.auto import AutoModel
from tallow.models.decoders.gpt2 import GPT2, GPT2Config
from tallow.models.decoders.qwen import Qwen3, Qwen3Config
from tallow.models.gguf.export import save_gguf
from tallow.nn.block_layers import BlockConv1D, BlockEmbedding, BlockLayer, BlockLinear
from tallow.nn.quantization import Int4WeightOnlyConfig, quantize_

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
SIZES: dict[str, Any] = {
    "vocab_size": 31,
    "hidden_size": 256,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 80,
    "initializer_range": 0.1,
}


def layers(model: tl.nn.Module) -> list[BlockLayer]:
    return [module for module in model.modules() if isinstance(module, BlockLayer)]


def saved(model: Any, path: Path, recipe: str) -> Path:
    save_gguf(model.eval(), path, recipe)
    return path


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "head"])
@pytest.mark.parametrize("recipe", ["Q8_0", "Q4_0", "Q4_K_M", "Q5_K_M", "Q3_K_M", "Q2_K"])
def test_logits_are_those_of_the_widened_model(cuda: str, tmp_path: Path, recipe: str, tied: bool) -> None:
    tl.manual_seed(0)
    model = Qwen3(Qwen3Config(**SIZES, tie_word_embeddings=tied))
    path = saved(model, tmp_path / "model.gguf", recipe)
    widened, stored = AutoModel.from_pretrained(path, dtype=tl.float32), AutoModel.from_pretrained(path, device=cuda)
    kinds = {type(module) for module in stored.modules()}
    assert {BlockLinear, BlockEmbedding} <= kinds
    assert all(isinstance(layer.matrix, GroupedMatrix) for layer in layers(stored))
    with tl.no_grad():
        expected = widened(tl.tensor([TOKENS])).numpy()
        logits = stored(tl.tensor([TOKENS], device=cuda)).cpu().numpy()
    np.testing.assert_allclose(logits, expected, atol=1e-4 * np.abs(expected).max())
    assert list(generate(stored, TOKENS[:3], max_tokens=8)) == list(generate(widened, TOKENS[:3], max_tokens=8))


@pytest.mark.parametrize("quant", ["int8", "q4_0", "q6_k"])
def test_quantised_in_place(cuda: str, quant: str) -> None:
    config = Qwen3Config(**SIZES, tie_word_embeddings=True)
    blocks, codes = Qwen3(config).eval(), Qwen3(config)
    codes.load_state_dict(blocks.state_dict())
    blocks.quantize(quant)
    codes.to(cuda).quantize(quant)
    assert {type(module) for module in codes.modules()} >= {BlockLinear, BlockEmbedding}
    assert codes.num_parameters() == blocks.num_parameters()
    for ours, theirs in zip(layers(codes), layers(blocks), strict=True):
        assert isinstance(ours.matrix, GroupedMatrix)
        np.testing.assert_array_equal(ours.weight.cpu().numpy(), theirs.weight.numpy())
        np.testing.assert_array_equal(ours.blocks.cpu().numpy(), theirs.blocks.numpy())
    assert len(list(generate(codes, TOKENS, max_tokens=4))) == 4


def test_layers_that_move_and_are_saved(cuda: str, tmp_path: Path) -> None:
    """State dicts and GGUF files hold the blocks, wherever the model is; a move back gives the same layer."""
    tl.manual_seed(0)
    model = Qwen3(Qwen3Config(**SIZES, tie_word_embeddings=True)).eval()
    quantize_(model, Int4WeightOnlyConfig())
    expected = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    path = saved(model, tmp_path / "cpu.gguf", "Q8_0")
    x = tl.randn(3, 256)
    before = model.model.layers[0].mlp.up_proj(x).detach()
    model.to(cuda)
    on_card = model.model.layers[0].mlp.up_proj(x.to(cuda)).detach().cpu()
    np.testing.assert_allclose(on_card.numpy(), before.numpy(), atol=0.02 * np.abs(before.numpy()).max())
    assert len(list(generate(model, TOKENS, max_tokens=2))) == 2
    for name, tensor in model.state_dict().items():
        assert tensor.device.type == "cuda"
        np.testing.assert_array_equal(tensor.cpu().numpy(), expected[name])
    assert saved(model, tmp_path / "cuda.gguf", "Q8_0").read_bytes() == path.read_bytes()
    model.to("cpu")
    np.testing.assert_array_equal(model.model.layers[0].mlp.up_proj(x).detach().numpy(), before.numpy())


def test_transposed_matrices(cuda: str, tmp_path: Path) -> None:
    tl.manual_seed(0)
    config = GPT2Config(vocab_size=31, n_positions=80, n_embd=64, n_layer=2, n_head=4, initializer_range=0.2)
    path = saved(GPT2(config), tmp_path / "model.gguf", "Q8_0")
    widened, stored = AutoModel.from_pretrained(path, dtype=tl.float32), AutoModel.from_pretrained(path, device=cuda)
    assert any(type(layer) is BlockConv1D for layer in layers(stored))
    assert list(generate(stored, TOKENS, max_tokens=8)) == list(generate(widened, TOKENS, max_tokens=8))
