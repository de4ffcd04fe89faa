"""LoRA compared with the formula in PyTorch, on models of transformers; and adapters of quantised GGUF files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.chats import save_tokenizer
from support.gguf_files import add_bytes, write_model
from support.small_models import ENTRIES

import tallow as tl
from tallow.cli import main
from tallow.models import AutoModel
from tallow.nn.block_layers import BlockLinear
from tallow.peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict
from tallow.testing import assert_close

transformers = pytest.importorskip("transformers")

SIZES = {"vocab_size": 300, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.2, "max_position_embeddings": 128}
TOKENS = np.random.default_rng(0).integers(0, 20, (2, 8))
RANK, ALPHA = 3, 7
SCALE = ALPHA / RANK
PREFIX = "base_model.model."


def add_formula(model: Any, state: dict[str, torch.Tensor], scale: float) -> None:
    """Freeze a model of transformers, and let its layers add scale · x Aᵀ Bᵀ."""
    model.requires_grad_(False)

    def adding(a: torch.Tensor, b: torch.Tensor) -> Callable[..., torch.Tensor]:
        return lambda module, args, result: result + scale * (args[0] @ a.T @ b.T)

    for name, a in state.items():
        if name.endswith("lora_A.weight"):
            path = name.removeprefix(PREFIX).removesuffix(".lora_A.weight")
            b = state[name.replace("lora_A", "lora_B")]
            model.get_submodule(path).register_forward_hook(adding(a, b))


@pytest.mark.parametrize("name", ["Llama", "Qwen3", "GPT2", "Falcon", "Phi3", "Gemma2"])
def test_training_steps_equal_those_of_the_formula(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    entries = {key: value for key, value in ENTRIES[name].items() if key not in ("model_type", "eos_token_id")}
    dropouts = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0} if name == "GPT2" else {}
    config = getattr(transformers, f"{name}Config")(**entries, **dropouts, pad_token_id=0, eos_token_id=2)
    kind = "GPT2LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM"
    theirs = getattr(transformers, kind)(config)
    theirs.save_pretrained(tmp_path)
    settings = LoraConfig(r=RANK, lora_alpha=ALPHA, init_lora_weights=False)
    model = get_peft_model(AutoModel.from_pretrained(tmp_path), settings).train()
    ours = [each for each in model.parameters() if each.requires_grad]
    initial = {key: each.numpy().copy() for key, each in get_peft_model_state_dict(model).items()}
    state = {key: torch.tensor(each, requires_grad=True) for key, each in initial.items()}
    add_formula(theirs.train(), state, SCALE)
    optimizers = tl.optim.AdamW(ours, lr=0.01), torch.optim.AdamW(state.values(), lr=0.01)
    for _ in range(4):
        logits = model(tl.tensor(TOKENS))
        expected = theirs(torch.tensor(TOKENS)).logits
        assert_close(logits.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-4)
        for optimizer in optimizers:
            optimizer.zero_grad()
        logits.square().mean().backward()
        expected.square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()
    for key, each in get_peft_model_state_dict(model).items():
        assert_close(each.numpy(), state[key].detach().numpy(), rtol=1e-3, atol=1e-4)
        assert abs(each.numpy() - initial[key]).max() > 0.01


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A GGUF file in Q8_0, and the model of transformers with the rounded weights."""
    package = pytest.importorskip("gguf")
    folder = tmp_path_factory.mktemp("gguf")
    save_tokenizer(folder)
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).eval()
    kind = package.GGMLQuantizationType.Q8_0
    tokenizer = (folder / "tokenizer.json").read_text(encoding="utf-8")
    write_model(model, folder / "model.gguf", kind, lambda writer: add_bytes(writer, tokenizer, None))
    state = {
        name: torch.tensor(package.quants.dequantize(package.quants.quantize(each.numpy(), kind), kind))
        for name, each in model.state_dict().items()
        if each.ndim == 2
    }
    model.load_state_dict(state, strict=False)
    return folder / "model.gguf", model


def test_an_adapter_fits_the_folder_and_the_gguf_file(gguf: tuple[Path, Any], tmp_path: Path) -> None:
    """llama.cpp permutes the rows of the query and key matrices; the adapter's file does not."""
    tl.manual_seed(0)
    path, theirs = gguf
    theirs.save_pretrained(tmp_path)
    quantised = AutoModel.from_pretrained(path)
    assert isinstance(quantised.model.layers[0].self_attn.q_proj, BlockLinear)
    settings = LoraConfig(
        r=RANK, lora_alpha=ALPHA, init_lora_weights=False, target_modules=["q_proj", "k_proj", "down_proj"]
    )
    adapted = get_peft_model(quantised, settings)
    adapted.save_pretrained(tmp_path / "adapter")
    state = {key: torch.tensor(each.numpy()) for key, each in get_peft_model_state_dict(adapted).items()}
    folder = PeftModel.from_pretrained(AutoModel.from_pretrained(tmp_path), tmp_path / "adapter")
    model = transformers.LlamaForCausalLM.from_pretrained(tmp_path)
    add_formula(model, state, SCALE)
    with torch.no_grad(), tl.no_grad():
        expected = model(torch.tensor(TOKENS)).logits.numpy()
        assert_close(folder(tl.tensor(TOKENS)).numpy(), expected, rtol=1e-4, atol=1e-4)
        # Compiled kernels round the inputs of products to int8.
        similar = adapted(tl.tensor(TOKENS)).numpy()
        merged = adapted.merge_and_unload()(tl.tensor(TOKENS)).numpy()
    for logits in (similar, merged):
        cosines = (logits * expected).sum(-1) / np.linalg.norm(logits, axis=-1) / np.linalg.norm(expected, axis=-1)
        assert cosines.min() > 0.998


def test_the_command_tunes_a_gguf_file(
    gguf: tuple[Path, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = gguf
    text = tmp_path / "text.txt"
    text.write_text("The cat sat on the mat. " * 40)
    options = ["--context", "16", "--batch-size", "4", "--steps", "30", "--learning-rate", "0.02", "--log-every", "1"]
    tuned = ["--out", str(tmp_path / "adapter"), "--model", str(path), "--lora", "--lora-targets", "all-linear"]
    assert main(["train", str(text), *tuned, *options]) == 0
    first, last = capsys.readouterr().err.partition("; loss ")[2].split()[0:3:2]
    assert float(last) < 0.5 * float(first)
    base = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())["base_model_name_or_path"]
    assert base == str(path)
    generate = ["generate", "The cat", "--model", str(path), "--temperature", "0", "--steps", "24"]
    assert main([*generate, "--adapter", str(tmp_path / "adapter")]) == 0
    adapted = capsys.readouterr().out
    assert "sat on the mat" in adapted
    assert main(["convert", str(path), str(tmp_path / "merged"), "--adapter", str(tmp_path / "adapter")]) == 0
    assert main([*generate[:2], "--model", str(tmp_path / "merged"), *generate[4:]]) == 0
    assert capsys.readouterr().out == adapted
    assert main(["train", str(text), "--out", str(tmp_path / "whole"), "--model", str(path), *options]) == 2
    assert "train an adapter with --lora" in capsys.readouterr().err
