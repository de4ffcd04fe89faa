"""Models of quantised GGUF files on `cuda`: their weights as codes and scales, and the logits of the widened model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.generation import generate
from tallow.models.auto import AutoModel
from tallow.models.gguf_export import save_gguf
from tallow.models.gpt2 import GPT2, GPT2Config
from tallow.models.qwen import Qwen3, Qwen3Config
from tallow.nn.block_layers import BlockEmbedding, BlockLinear
from tallow.nn.quantization import WeightOnlyEmbedding, WeightOnlyLinear

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
    assert {WeightOnlyLinear, WeightOnlyEmbedding} <= kinds
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
    assert {type(module) for module in codes.modules()} >= {WeightOnlyLinear, WeightOnlyEmbedding}
    assert codes.num_parameters() == blocks.num_parameters()
    stored = [module for module in codes.modules() if isinstance(module, WeightOnlyLinear | WeightOnlyEmbedding)]
    expected = [module for module in blocks.modules() if isinstance(module, BlockLinear | BlockEmbedding)]
    for ours, theirs in zip(stored, expected, strict=True):
        np.testing.assert_array_equal(ours.weight.cpu().numpy(), theirs.weight.numpy())
    assert len(list(generate(codes, TOKENS, max_tokens=4))) == 4


def test_transposed_matrices_are_widened(cuda: str, tmp_path: Path) -> None:
    tl.manual_seed(0)
    config = GPT2Config(vocab_size=31, n_positions=80, n_embd=64, n_layer=2, n_head=4, initializer_range=0.2)
    path = saved(GPT2(config), tmp_path / "model.gguf", "Q8_0")
    widened, stored = AutoModel.from_pretrained(path, dtype=tl.float32), AutoModel.from_pretrained(path, device=cuda)
    assert list(generate(stored, TOKENS, max_tokens=8)) == list(generate(widened, TOKENS, max_tokens=8))
