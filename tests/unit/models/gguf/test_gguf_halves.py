"""Matrices in half precision of GGUF files stay as in the file, and compute as in float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow import kernels, nn
from tallow.dtypes import BF16, F16
from tallow.errors import ArgumentError, ShapeError
from tallow.kernels.quantized.block_matrix import BlockMatrix
from tallow.models import AutoModel
from tallow.models.decoders.llama import Llama, LlamaConfig
from tallow.models.gguf.export import save_gguf
from tallow.nn.block_layers import BlockEmbedding, BlockLinear
from tallow.nn.quantization import BlockConfig

STAY = [
    pytest.mark.cpu("elsewhere, all weights are converted"),
    pytest.mark.skipif(kernels.info().library == "none", reason="no library: halves are widened"),
    pytest.mark.skipif(not kernels.info().enabled, reason="kernels are switched off: halves are widened"),
]
TYPES = pytest.mark.parametrize("file_type", ["F16", "BF16"])
SIZES = {"vocab_size": 40, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 600}
TOKENS = np.random.default_rng(0).integers(0, 40, 520).tolist()
ATOL = 1e-4  # logits reach 10


def written(folder: Path, file_type: str, tied: bool = False) -> Path:
    tl.manual_seed(0)
    path = folder / "model.gguf"
    config = LlamaConfig(**SIZES, tie_word_embeddings=tied, initializer_range=0.3)
    save_gguf(Llama(config).eval(), path, file_type)
    return path


def layers(model: nn.Module) -> list[BlockLinear | BlockEmbedding]:
    return [module for module in model.modules() if isinstance(module, BlockLinear | BlockEmbedding)]


class TestKept:
    pytestmark = STAY

    @TYPES
    @pytest.mark.parametrize("tied", [True, False])
    def test_logits_are_those_of_float32(self, file_type: str, tied: bool, tmp_path: Path) -> None:
        """One token, some, and a prompt for which the modules run; the weights are widened exactly."""
        path = written(tmp_path, file_type, tied)
        model, widened = AutoModel.from_pretrained(path), AutoModel.from_pretrained(path, dtype=tl.float32)
        assert {layer.format for layer in layers(model)} == {file_type}
        assert len(layers(model)) == 2 * 7 + 1 + (not tied)
        assert {parameter.dtype for parameter in model.parameters()} == {tl.float32}
        assert not layers(widened)
        caches = [each.new_cache() for each in (model, widened)]
        start = 0
        for count in (1, 3, 1, 14, 300, 1):
            chunk = TOKENS[start : start + count]
            start += count
            ours, theirs = (each.next_logits(chunk, c) for each, c in zip((model, widened), caches, strict=True))
            np.testing.assert_allclose(ours, theirs, atol=ATOL)
        with kernels.require_fused():
            model.next_logits([1], caches[0])

    @TYPES
    def test_matrices_are_views_of_the_file(self, file_type: str, tmp_path: Path) -> None:
        path = written(tmp_path, file_type)
        model = AutoModel.from_pretrained(path)
        new = 0
        for name, tensor in model.state_dict().items():
            base = tensor.array
            while isinstance(base.base, np.ndarray):
                base = base.base
            if base.nbytes < path.stat().st_size // 2:
                assert tensor.ndim == 1, name
                new += tensor.nbytes
        assert new < 0.05 * path.stat().st_size

    def test_quantising_a_model_in_halves(self, tmp_path: Path) -> None:
        path = written(tmp_path, "F16", tied=True)
        model = AutoModel.from_pretrained(path, quant="int8")
        assert {layer.format for layer in layers(model)} == {"Q8_0"}
        expected = AutoModel.from_pretrained(path, dtype=tl.float32).quantize("int8")
        ours, theirs = (each.next_logits(TOKENS[:5], each.new_cache()) for each in (model, expected))
        np.testing.assert_array_equal(ours, theirs)

    def test_explain_names_the_format(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        AutoModel.from_pretrained(written(tmp_path, "BF16")).explain()
        out = capsys.readouterr().out
        assert "BF16  16 matrices, multiplied as stored: quantized_linear" in out
        assert "modules:" not in out


def test_without_kernels_halves_are_widened(tmp_path: Path) -> None:
    path = written(tmp_path, "F16")
    with kernels.off():
        model = AutoModel.from_pretrained(path)
    assert not layers(model)
    assert {parameter.dtype for parameter in model.parameters()} == {tl.float32}


@pytest.mark.parametrize(("file_type", "dtype"), [("F16", F16), ("BF16", BF16)])
def test_a_matrix_of_halves(file_type: str, dtype: Any) -> None:
    weights = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    halves = weights.astype(np.float16) if dtype == F16 else (weights.view(np.uint32) >> 16).astype(np.uint16)
    matrix = BlockMatrix(halves.view(np.uint8), file_type)
    expected = halves.astype(np.float32) if dtype == F16 else (halves.astype(np.uint32) << 16).view(np.float32)
    assert matrix.shape == (5, 7)
    assert matrix.is_half
    np.testing.assert_array_equal(matrix.widen(), expected)
    np.testing.assert_array_equal(matrix.rows(np.array([[4, 0]])), expected[[[4, 0]]])
    x = np.random.default_rng(1).standard_normal((3, 7)).astype(np.float32)
    y = matrix.product(x)
    np.testing.assert_allclose(y, x.astype(np.float64) @ expected.T, rtol=1e-5, atol=1e-5)
    with kernels.off():
        np.testing.assert_allclose(matrix.product(x), y, atol=1e-5)
    with pytest.raises(ShapeError, match=f"rows of whole {file_type} blocks of 2 bytes"):
        BlockMatrix(np.zeros((2, 3), np.uint8), file_type)
    assert not BlockMatrix(np.zeros((2, 34), np.uint8), "Q8_0").is_half


def test_halves_are_not_a_way_to_quantise() -> None:
    with pytest.raises(ArgumentError, match="format='F16'"):
        BlockConfig("F16")
