"""Gemma 4: folders of models of images and sounds, of which the texts' part loads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from support.model_pairs import GEMMA4, LLAMA_SIZES, reference_model, tokens

import tallow as tl
from tallow.errors import CheckpointError
from tallow.models import AutoModel
from tallow.models.decoders.gemma4 import Gemma4Config
from tallow.text.gguf_tokenizer import tokenizer_entries


def test_the_part_of_texts_loads(tmp_path: Path) -> None:
    """The other tensors are left out, and so are keys of layers that read those of others."""
    reference = reference_model("gemma4")
    reference.save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    state = {name.replace("model.", "model.language_model."): tensor for name, tensor in state.items()}
    state["model.language_model.layers.5.self_attn.k_proj.weight"] = torch.zeros(8, 32)
    state["model.vision_tower.patch_embedder.weight"] = torch.zeros(3)
    save_file(state, tmp_path / "model.safetensors", {"format": "pt"})
    texts = json.loads((tmp_path / "config.json").read_text())
    config = {"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "text_config": texts}
    (tmp_path / "config.json").write_text(json.dumps(config | {"vision_config": {}}))
    batch = tokens(20)
    with torch.no_grad():
        expected = reference(torch.tensor(batch)).logits.numpy()
    with tl.no_grad():
        np.testing.assert_allclose(AutoModel.from_pretrained(tmp_path)(tl.tensor(batch)).numpy(), expected, atol=1e-4)


def test_entries_beside_those_of_texts_count(tmp_path: Path) -> None:
    """The head of a model of images is tied if its own entry says so, and it may be quantised."""
    reference_model("gemma4").save_pretrained(tmp_path)
    texts = json.loads((tmp_path / "config.json").read_text())
    whole = {"model_type": "gemma4", "text_config": texts, "eoa_token_index": 5, "boa_token_id": 6}
    read = Gemma4Config.from_entries(whole | {"tie_word_embeddings": False}, "the file", strict=True)
    assert (read.tie_word_embeddings, texts["tie_word_embeddings"]) == (False, True)
    with pytest.raises(CheckpointError, match="quantization_config is"):
        Gemma4Config.from_entries(whole | {"quantization_config": {"bits": 4}}, "the file")


@pytest.mark.parametrize("sizes", [{}, {"attention_k_eq_v": True, "num_global_key_value_heads": 4}])
def test_heads_of_one_width(sizes: dict[str, int], tmp_path: Path) -> None:
    """A file has the sizes of layers that see all positions only where they differ from the others'."""
    reference = transformers.Gemma4ForCausalLM(
        transformers.Gemma4TextConfig(**LLAMA_SIZES | GEMMA4 | sizes | {"global_head_dim": GEMMA4["head_dim"]})
    ).eval()
    reference.save_pretrained(tmp_path)
    batch = tokens(20)
    with torch.no_grad():
        expected = reference(torch.tensor(batch)).logits.numpy()
    with tl.no_grad():
        np.testing.assert_allclose(AutoModel.from_pretrained(tmp_path)(tl.tensor(batch)).numpy(), expected, atol=1e-4)


def test_experts_are_refused(tmp_path: Path) -> None:
    reference_model("gemma4").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | {"enable_moe_block": True}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="enable_moe_block is True"):
        AutoModel.from_pretrained(tmp_path)


def test_tokenizer_of_gguf_files() -> None:
    """Merges are in the file, scores mean nothing."""
    tokenizers = pytest.importorskip("tokenizers")
    special = ["<pad>", "<eos>", "<bos>", "<unk>"]
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    pieces = ["▁", "a", "b", "c", "ab", "▁ab", "bc", "▁▁"]
    merges = [("a", "b"), ("▁", "ab"), ("b", "c"), ("▁", "▁")]
    tokens = [*special, *bytes_, *pieces]
    metadata = {
        "tokenizer.ggml.model": "gemma4",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [-1000.0] * len(tokens),
        "tokenizer.ggml.token_type": [3, 3, 3, 3, *([6] * 256), *([1] * len(pieces))],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in merges],
        "tokenizer.ggml.bos_token_id": 2,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.ggml.unknown_token_id": 3,
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.ggml.add_bos_token": True,
    }
    entries, _ = tokenizer_entries(metadata, "model.gguf")
    ours = tokenizers.Tokenizer.from_str(json.dumps(entries))
    vocabulary = {token: i for i, token in enumerate(tokens)}
    theirs = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    theirs.normalizer = tokenizers.normalizers.Replace(" ", "▁")
    for text in ("abc  ab é", " bcab", "c"):
        assert ours.encode(text).ids == [2, *theirs.encode(text).ids]
        assert ours.decode(ours.encode(text).ids) == text
