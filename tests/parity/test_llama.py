"""Llama compared with transformers: equal weights give equal logits, gradients and texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tallow as tl
from tallow import models
from tallow.generation import generate
from tallow.models.decoders.llama import Llama
from tallow.models.decoders.llama_formats import save_hugging_face

transformers = pytest.importorskip("transformers")

# Both compute in float32; sums of up to 128 terms are taken in a different order.
ATOL = 1e-4
SIZES = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.2,
    "eos_token_id": None,
    "bos_token_id": 1,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
VARIANTS: dict[str, dict[str, Any]] = {
    "grouped": {},
    "multi-head": {"num_key_value_heads": 8},
    "tied": {"tie_word_embeddings": True},
    "wide heads": {"head_dim": 20},
    "biased": {"attention_bias": True, "mlp_bias": True},
    "llama 3": {"rope_parameters": LLAMA3_ROPE | {"rope_theta": 500000.0}, "rms_norm_eps": 1e-5},
    "linear": {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}},
}


@pytest.fixture(params=VARIANTS.values(), ids=list(VARIANTS))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Any]]:
    """Return a folder saved by transformers, and its model."""
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES | request.param)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:  # norms are initialized to ones, biases to zeros: make them affect the output
                parameter.add_(torch.randn_like(parameter) / 4)
    model.save_pretrained(tmp_path, max_shard_size="100KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    return tmp_path, model


def tokens(length: int, batch: int = 2) -> list[list[int]]:
    return np.random.default_rng(0).integers(0, SIZES["vocab_size"], (batch, length)).tolist()


def test_logits(folder: tuple[Path, Any]) -> None:
    path, reference = folder
    model = Llama.from_pretrained(path)
    batch = tokens(100)
    with torch.no_grad():
        expected = reference(torch.tensor(batch)).logits.numpy()
    with tl.no_grad():
        np.testing.assert_allclose(model(tl.tensor(batch)).numpy(), expected, atol=ATOL)
    cache = model.new_cache()
    one_by_one = [model.next_logits([token], cache) for token in batch[0]]
    np.testing.assert_allclose(one_by_one, expected[0], atol=ATOL)


def test_greedy_text(folder: tuple[Path, Any]) -> None:
    path, reference = folder
    (prompt,) = tokens(5, batch=1)
    expected = reference.generate(torch.tensor([prompt]), max_new_tokens=60, do_sample=False)[0, 5:].tolist()
    assert list(generate(Llama.from_pretrained(path), prompt, max_tokens=60)) == expected


def test_gradients(folder: tuple[Path, Any]) -> None:
    path, reference = folder
    batch = tokens(20)
    reference(torch.tensor(batch), labels=torch.tensor(batch)).loss.backward()
    expected = {name: p.grad.numpy() for name, p in reference.named_parameters()}

    model = Llama.from_pretrained(path).train()
    logits_NV = model(tl.tensor(batch))[:, :-1].reshape(-1, SIZES["vocab_size"])
    tl.nn.functional.cross_entropy(logits_NV, tl.tensor(batch)[:, 1:].reshape(-1)).backward()
    actual = {name: p.grad.numpy() for name, p in model.named_parameters() if p.grad is not None}
    assert actual.keys() == expected.keys()
    for name, grad in expected.items():
        np.testing.assert_allclose(actual[name], grad, atol=ATOL * max(1, np.abs(grad).max()), err_msg=name)


def test_bfloat16_weights(tmp_path: Path) -> None:
    """The reference computes in float32 with the rounded weights; transformers' own rounding is not the reference."""
    torch.manual_seed(0)
    reference = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).eval()
    (batch,) = tokens(20, batch=1)
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.copy_(parameter.bfloat16())
        exact = reference(torch.tensor([batch])).logits.numpy()[0]
    reference.to(torch.bfloat16).save_pretrained(tmp_path)
    model = Llama.from_pretrained(tmp_path)
    assert {p.dtype for p in model.parameters()} == {tl.bfloat16}
    cache = model.new_cache()
    one_by_one = [model.next_logits([token], cache) for token in batch]
    # The kernel rounds weights only, which are the same here; the modules round every activation.
    np.testing.assert_allclose(one_by_one, exact, atol=ATOL)
    with tl.no_grad():
        np.testing.assert_allclose(
            model(tl.tensor([batch])).float().numpy()[0], exact, atol=2**-4 * np.abs(exact).max()
        )


def test_transformers_loads_a_converted_llama2c_file(data_dir: Path, tmp_path: Path) -> None:
    model = Llama.from_llama2c(data_dir / "stories260K.bin")
    save_hugging_face(model, tmp_path)
    reference = transformers.LlamaForCausalLM.from_pretrained(tmp_path).eval()
    batch = tl.tensor([[1, 403, 407, 261, 378]])
    with torch.no_grad():
        expected = reference(torch.tensor(batch.tolist())).logits.numpy()
    np.testing.assert_allclose(model(batch).detach().numpy(), expected, atol=ATOL)


@pytest.mark.parametrize("kind", ["Llama", "Qwen2", "Qwen3"])
def test_transformers_loads_converted_files(kind: str, tmp_path: Path) -> None:
    tl.manual_seed(0)
    sizes = {name: value for name, value in SIZES.items() if value is not None}
    window = {"sliding_window": 4} if kind == "Llama" else {"use_sliding_window": True, "sliding_window": 4}
    window |= {} if kind == "Llama" else {"layer_types": ("full_attention", "sliding_attention", "full_attention")}
    model = getattr(models, kind)(getattr(models, f"{kind}Config")(**sizes | window)).eval()
    save_hugging_face(model, tmp_path)
    reference = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    batch = tl.tensor(tokens(20))
    with torch.no_grad():
        expected = reference(torch.tensor(batch.tolist())).logits.numpy()
    np.testing.assert_allclose(model(batch).detach().numpy(), expected, atol=ATOL)
    np.testing.assert_allclose(models.AutoModel.from_pretrained(tmp_path)(batch).detach().numpy(), expected, atol=ATOL)
