"""Models out of GGUF files, which the `gguf` package writes: the logits of transformers on the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.gguf_files import write_model

import tallow as tl
from tallow.cli import main
from tallow.errors import CheckpointError
from tallow.models import gguf_llama
from tallow.models.llama import Llama

transformers = pytest.importorskip("transformers")
gguf = pytest.importorskip("gguf")

SIZES = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
    "rms_norm_eps": 1e-5,
    "pad_token_id": None,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
    "rope_theta": 500000.0,
}
TOKENS = [[1, 5, 9, 2, 7, 33, 60, 8]]


def reference(name: str, **changes: Any) -> Any:
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**SIZES | changes)
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) / 4)
    return model


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("Llama", {}),
        ("Llama", {"tie_word_embeddings": True}),
        ("Llama", {"rope_parameters": LLAMA3}),
        ("Qwen2", {}),
        ("Qwen3", {"head_dim": 16}),
    ],
    ids=["llama", "tied", "llama 3", "qwen2", "qwen3"],
)
def test_logits(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    model = reference(name, **changes)
    write_model(model, tmp_path / "model.gguf")
    with torch.no_grad():
        expected = model(torch.tensor(TOKENS)).logits.numpy()
    ours = gguf_llama.load(tmp_path / "model.gguf")
    assert ours.config.bos_token_id == 1
    with tl.no_grad():
        np.testing.assert_allclose(ours(tl.tensor(TOKENS)).numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("name", ["Llama", "Qwen2", "Qwen3"])
def test_heads_that_a_file_says_nothing_of(name: str, tmp_path: Path) -> None:
    """As many of keys and values as of queries, together as wide as the model; as in llama.cpp."""
    model = reference(name, num_key_value_heads=4, head_dim=16)
    write_model(model, tmp_path / "model.gguf", implied_heads=True)
    with torch.no_grad():
        expected = model(torch.tensor(TOKENS)).logits.numpy()
    with tl.no_grad():
        got = gguf_llama.load(tmp_path / "model.gguf")(tl.tensor(TOKENS)).numpy()
    np.testing.assert_allclose(got, expected, atol=1e-4)


def test_values_of_another_width_than_keys(tmp_path: Path) -> None:
    write_model(reference("Llama"), tmp_path / "model.gguf", add=lambda writer: writer.add_value_length(8))
    with pytest.raises(CheckpointError, match="16 elements for keys and 8 for values"):
        gguf_llama.load(tmp_path / "model.gguf")


def test_quantised_weights_are_those_of_the_gguf_package(tmp_path: Path) -> None:
    model = reference("Llama")
    kind = gguf.GGMLQuantizationType.Q8_0
    write_model(model, tmp_path / "model.gguf", kind)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            array = parameter.detach().numpy()
            if heads := 4 * ("q_proj" in name) + 2 * ("k_proj" in name):
                woven = np.ascontiguousarray(array.reshape(heads, 2, -1, 64).swapaxes(1, 2)).reshape(array.shape)
                rounded = gguf.quants.dequantize(gguf.quants.quantize(woven, kind), kind)
                rounded = np.ascontiguousarray(rounded.reshape(heads, -1, 2, 64).swapaxes(1, 2)).reshape(array.shape)
            else:
                rounded = gguf.quants.dequantize(gguf.quants.quantize(array, kind), kind)
            with torch.no_grad():
                parameter.copy_(torch.tensor(rounded))
    with torch.no_grad():
        expected = model(torch.tensor(TOKENS)).logits.numpy()
    ours = gguf_llama.load(tmp_path / "model.gguf", dtype=tl.float32)
    with tl.no_grad():
        np.testing.assert_allclose(ours(tl.tensor(TOKENS)).numpy(), expected, atol=1e-4)


def test_shards_are_one_model(tmp_path: Path) -> None:
    model = reference("Llama")
    write_model(model, tmp_path / "whole.gguf")
    write_model(model, tmp_path / "model.gguf", split_max_tensors=8)
    first = min(tmp_path.glob("model-00001-of-*.gguf"))
    assert len(list(tmp_path.glob("model-*.gguf"))) > 2
    expected = gguf_llama.load(tmp_path / "whole.gguf").state_dict()
    got = gguf_llama.load(first).state_dict()
    assert got.keys() == expected.keys()
    assert all(tl.equal(got[name], expected[name]) for name in expected)


def test_halves_take_half_the_memory(tmp_path: Path) -> None:
    write_model(reference("Llama"), tmp_path / "model.gguf")
    model = gguf_llama.load(tmp_path / "model.gguf", dtype=tl.bfloat16)
    assert {parameter.dtype for parameter in model.parameters()} == {tl.bfloat16}


@pytest.mark.parametrize("architecture", ["mamba", "clip"])
def test_another_architecture(architecture: str, tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", architecture)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(CheckpointError, match=f"its architecture is '{architecture}'"):
        gguf_llama.load(tmp_path / "model.gguf")


def test_convert_reads_gguf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(reference("Llama"), tmp_path / "model.gguf")
    assert main(["convert", str(tmp_path / "model.gguf"), str(tmp_path / "folder")]) == 0
    assert "folder has no tokenizer; to add one: --tokenizer FILE --force" in capsys.readouterr().err
    expected = gguf_llama.load(tmp_path / "model.gguf")(tl.tensor(TOKENS))
    np.testing.assert_allclose(
        Llama.from_pretrained(tmp_path / "folder")(tl.tensor(TOKENS)).detach().numpy(),
        expected.detach().numpy(),
        atol=1e-5,
    )
