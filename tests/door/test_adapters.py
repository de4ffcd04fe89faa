"""Adapters as peft writes them: of the head and the embedding, with base weights beside them; and the Hub's configs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from support.hub_files import HUB, records
from support.outputs import outputs_of

import tallow as tl
from tallow.errors import CheckpointError, UnsupportedError
from tallow.generation import generate
from tallow.models import AutoModel, BertForMaskedLM, T5Config, T5ForConditionalGeneration
from tallow.peft import LoraConfig, PeftModel, get_peft_model

ATOL = 1e-4  # sums in float32, in another order
V, D, RANK, ALPHA = 50, 32, 2, 6
SIZES = {
    "vocab_size": V,
    "hidden_size": D,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
}
PREFIX = "base_model.model."
EMBEDDING, HEAD = "model.embed_tokens", "lm_head"
QUERIES = tuple(f"model.layers.{layer}.self_attn.q_proj" for layer in range(2))
TARGETS = [(HEAD,), (EMBEDDING,), (*QUERIES, HEAD), (*QUERIES, EMBEDDING), (*QUERIES, HEAD, EMBEDDING)]
IDS = np.random.default_rng(0).integers(0, V, (2, 9))


def save_base(folder: Path, tied: bool) -> Any:
    """Write a random Llama, and return transformers' model of it."""
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, tie_word_embeddings=tied)).eval()
    model.save_pretrained(folder)
    return model


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))) / 3


def lora_tensors(path: str) -> dict[str, torch.Tensor]:
    """Return random tensors of an adapter of a layer, with peft's names and shapes."""
    if path == EMBEDDING:
        return {f"{path}.lora_embedding_A": random(RANK, V), f"{path}.lora_embedding_B": random(D, RANK)}
    outputs = V if path == HEAD else D
    return {f"{path}.lora_A.weight": random(RANK, D), f"{path}.lora_B.weight": random(outputs, RANK)}


def delta(path: str) -> torch.Tensor:
    """Return what that adapter adds to the weight of the layer."""
    first, second = lora_tensors(path).values()
    product = second @ first * ALPHA / RANK
    return product.T if path == EMBEDDING else product


def write_adapter(folder: Path, tensors: dict[str, torch.Tensor], **settings: Any) -> Path:
    """Write an adapter's folder as peft does."""
    folder.mkdir()
    entries = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": ALPHA, "lora_dropout": 0.5}
    (folder / "adapter_config.json").write_text(json.dumps(entries | settings))
    save_file({PREFIX + name: each for name, each in tensors.items()}, folder / "adapter_model.safetensors")
    return folder


def of_all(paths: tuple[str, ...]) -> dict[str, torch.Tensor]:
    """Return the tensors of adapters of several layers."""
    return {name: each for path in paths for name, each in lora_tensors(path).items()}


def with_deltas(model: Any, paths: tuple[str, ...]) -> dict[str, torch.Tensor]:
    """Return the weights of the layers with what adapters add."""
    return {path: model.state_dict()[f"{path}.weight"] + delta(path) for path in paths}


def changed_logits(
    model: Any, weights: dict[str, torch.Tensor], ids: npt.NDArray[np.int64] = IDS
) -> npt.NDArray[np.float32]:
    """Return the logits of transformers' model with other weights, where head and embedding are two."""
    config = transformers.LlamaConfig(**SIZES, tie_word_embeddings=False)
    untied = transformers.LlamaForCausalLM(config).eval()
    untied.load_state_dict(model.state_dict() | {f"{path}.weight": weight for path, weight in weights.items()})
    with torch.no_grad():
        return untied(torch.tensor(ids)).logits.numpy()


def logits(model: Any) -> npt.NDArray[np.float32]:
    return outputs_of(model, {"input_ids": IDS})[0]


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
@pytest.mark.parametrize("targets", TARGETS, ids=" ".join)
def test_adapters_of_the_head_and_the_embedding(targets: tuple[str, ...], tied: bool, tmp_path: Path) -> None:
    base = save_base(tmp_path / "base", tied)
    held = {f"{path}.weight": base.state_dict()[f"{path}.weight"] for path in targets if path not in QUERIES}
    tensors = of_all(targets) | {
        name.replace("weight", "base_layer.weight"): each.clone() for name, each in held.items()
    }
    adapter = write_adapter(tmp_path / "adapter", tensors, target_modules=[path.split(".")[-1] for path in targets])
    model = PeftModel.from_pretrained(AutoModel.from_pretrained(tmp_path / "base"), adapter)
    expected = changed_logits(base, with_deltas(base, targets))
    np.testing.assert_allclose(logits(model), expected, atol=ATOL)
    with model.disable_adapter():
        np.testing.assert_allclose(logits(model), changed_logits(base, {}), atol=ATOL)

    model.save_pretrained(tmp_path / "saved")
    saved = load_file(tmp_path / "saved" / "adapter_model.safetensors")
    assert saved.keys() == {PREFIX + name for name in tensors}
    for name, tensor in tensors.items():
        torch.testing.assert_close(saved[PREFIX + name], tensor)

    merged = model.merge_and_unload()
    np.testing.assert_allclose(logits(merged), expected, atol=ATOL)
    following = changed_logits(base, with_deltas(base, targets), np.array([[1]]))[0, -1].argmax()
    assert list(generate(merged, [1], max_tokens=1)) == [following]


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
def test_base_weights_in_the_file_replace_those_of_the_model(tied: bool, tmp_path: Path) -> None:
    base = save_base(tmp_path / "base", tied)
    tensors = lora_tensors(HEAD) | {f"{HEAD}.base_layer.weight": random(V, D)}
    adapter = write_adapter(tmp_path / "adapter", tensors, target_modules=["lm_head"])
    model = PeftModel.from_pretrained(AutoModel.from_pretrained(tmp_path / "base"), adapter)
    np.testing.assert_allclose(logits(model), changed_logits(base, {HEAD: random(V, D) + delta(HEAD)}), atol=ATOL)


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
def test_embedding_layers_that_were_saved_without_an_adapter(tied: bool, tmp_path: Path) -> None:
    """As with save_embedding_layers=True, or after new tokens were added."""
    base = save_base(tmp_path / "base", tied)
    weights = {EMBEDDING: random(V, D), HEAD: random(V, D).flip(0)}
    tensors = {f"{path}.weight": weight for path, weight in weights.items()}
    tensors |= of_all(QUERIES)
    weights |= with_deltas(base, QUERIES)
    adapter = write_adapter(tmp_path / "adapter", tensors, target_modules=["q_proj"])
    model = PeftModel.from_pretrained(AutoModel.from_pretrained(tmp_path / "base"), adapter)
    np.testing.assert_allclose(logits(model), changed_logits(base, weights), atol=ATOL)
    model.save_pretrained(tmp_path / "saved")
    again = PeftModel.from_pretrained(AutoModel.from_pretrained(tmp_path / "base"), tmp_path / "saved")
    np.testing.assert_allclose(logits(again), logits(model), atol=ATOL)
    tensors[f"{EMBEDDING}.weight"] = random(V + 1, D)
    wider = write_adapter(tmp_path / "wider", tensors, target_modules=["q_proj"])
    with pytest.raises(CheckpointError, match=r"wrong shape  model\.embed_tokens\.weight: file \(51, 32\)"):
        PeftModel.from_pretrained(AutoModel.from_pretrained(tmp_path / "base"), wider)


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
@pytest.mark.parametrize("saved", [(HEAD,), (EMBEDDING,), (HEAD, EMBEDDING)], ids=" ".join)
def test_heads_and_embeddings_that_are_trained_as_a_whole(saved: tuple[str, ...], tied: bool, tmp_path: Path) -> None:
    base = save_base(tmp_path / "base", tied)
    weights = {path: random(V, D).roll(saved.index(path), 0) for path in saved}
    tensors = {f"{path}.weight": weight.clone() for path, weight in weights.items()}
    names = [path.split(".")[-1] for path in saved]
    tensors |= of_all(QUERIES)
    weights |= with_deltas(base, QUERIES)
    adapter = write_adapter(tmp_path / "adapter", tensors, target_modules=["q_proj"], modules_to_save=names)
    model = PeftModel.from_pretrained(AutoModel.from_pretrained(tmp_path / "base"), adapter)
    np.testing.assert_allclose(logits(model), changed_logits(base, weights), atol=ATOL)
    np.testing.assert_allclose(logits(model.merge_and_unload()), changed_logits(base, weights), atol=ATOL)


def test_gradients_of_an_embedding_adapter(tmp_path: Path) -> None:
    base = save_base(tmp_path / "base", tied=True)
    config = LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=["embed_tokens"])
    model = get_peft_model(AutoModel.from_pretrained(tmp_path / "base"), config)
    np.testing.assert_allclose(logits(model), changed_logits(base, {}), atol=ATOL)  # changes nothing at first
    trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
    assert [name.split(".")[-2] for name in trained] == ["lora_embedding_A", "lora_embedding_B"]
    ours = dict(zip(("A", "B"), trained.values(), strict=True))
    first, second = (tensor.requires_grad_() for tensor in lora_tensors(EMBEDDING).values())
    with tl.no_grad():
        ours["A"].copy_(tl.tensor(first.detach().numpy()))
        ours["B"].copy_(tl.tensor(second.detach().numpy()))
    model(tl.tensor(IDS)).square().sum().backward()
    table = base.state_dict()["model.embed_tokens.weight"] + (second @ first).T * ALPHA / RANK
    base(inputs_embeds=table[torch.tensor(IDS)]).logits.square().sum().backward()
    for name, theirs in (("A", first), ("B", second)):
        np.testing.assert_allclose(ours[name].grad.numpy(), theirs.grad.numpy(), rtol=1e-3, atol=1e-2)


def test_adapters_of_a_quantised_vocabulary(tmp_path: Path) -> None:
    base = save_base(tmp_path / "base", tied=True)
    paths = (HEAD, EMBEDDING)
    tensors = of_all(paths)
    own = base.state_dict()["model.embed_tokens.weight"]
    names = ["lm_head", "embed_tokens"]
    held = tensors | {f"{path}.base_layer.weight": own.clone() for path in paths}
    adapter = write_adapter(tmp_path / "adapter", held, target_modules=names)
    model = PeftModel.from_pretrained(AutoModel.from_pretrained(tmp_path / "base", quant="int8"), adapter)
    expected = changed_logits(base, with_deltas(base, paths))
    assert np.abs(logits(model) - expected).mean() < 0.05 * np.abs(expected).mean()
    merged = model.merge_and_unload()
    assert np.abs(logits(merged) - expected).mean() < 0.05 * np.abs(expected).mean()
    other = write_adapter(tmp_path / "other", held | {f"{HEAD}.base_layer.weight": own.flip(0)}, target_modules=names)
    with pytest.raises(CheckpointError, match=r"lm_head\.base_layer\.weight is not what the model has quantised"):
        PeftModel.from_pretrained(AutoModel.from_pretrained(tmp_path / "base", quant="int8"), other)


def test_embeddings_that_other_parts_read_are_refused() -> None:
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16, "num_hidden_layers": 1}
    model = BertForMaskedLM(BertForMaskedLM.config_class(vocab_size=9, **sizes))
    with pytest.raises(UnsupportedError, match=r"word_embeddings, which shares its weight with cls\.predictions"):
        get_peft_model(model, LoraConfig(target_modules=["word_embeddings"]))
    config = T5Config(vocab_size=9, d_model=8, d_kv=4, d_ff=16, num_layers=1, num_heads=2)
    model = T5ForConditionalGeneration(config)
    for settings in ({"target_modules": ["shared"]}, {"target_modules": ["q"], "modules_to_save": ["shared"]}):
        with pytest.raises(UnsupportedError, match=r"shared, which shares its weight with encoder\.embed_tokens"):
            get_peft_model(model, LoraConfig(**settings))
    adapted = get_peft_model(model, LoraConfig(target_modules=["relative_attention_bias"]))
    with pytest.raises(UnsupportedError, match="whose table the model reads"):
        adapted(tl.tensor([[1, 2]]), decoder_input_ids=tl.tensor([[1]]))


def test_an_embedding_of_positions(tmp_path: Path) -> None:
    torch.manual_seed(0)
    base = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=V, n_embd=D, n_layer=1, n_head=4)).eval()
    base.save_pretrained(tmp_path / "base")
    first, second = random(RANK, 1024), random(D, RANK)
    tensors = {"transformer.wpe.lora_embedding_A": first, "transformer.wpe.lora_embedding_B": second}
    adapter = write_adapter(tmp_path / "adapter", tensors, target_modules=["wpe"])
    model = PeftModel.from_pretrained(AutoModel.from_pretrained(tmp_path / "base"), adapter)
    base.transformer.wpe.weight.data += (second @ first).T * ALPHA / RANK
    with torch.no_grad():
        expected = base(torch.tensor(IDS)).logits.numpy()
    np.testing.assert_allclose(logits(model), expected, atol=ATOL)


# ------------------------------------------------------------------------------------------------- the Hub's configs

CONFIGS = records("adapter_configs")
# Part of the base model's name -> transformers' class, and sizes other than a Llama's. Other bases become a Llama.
BASES: dict[str, tuple[str, dict[str, Any]]] = {
    "mistral": ("MistralForCausalLM", SIZES),
    "gemma-2": ("Gemma2ForCausalLM", SIZES),
    "qwen": ("Qwen2ForCausalLM", SIZES),
    "gpt2": ("GPT2LMHeadModel", {"vocab_size": V, "n_embd": D, "n_layer": 2, "n_head": 4}),
    "t5": ("T5ForConditionalGeneration", {"vocab_size": V, "d_model": D, "d_kv": 8, "d_ff": 64, "num_layers": 2}),
}


@pytest.mark.skipif(not CONFIGS, reason=f"{HUB} has no adapter_configs.jsonl")
@pytest.mark.parametrize("entries", [pytest.param(each["content"], id=each["folder"]) for each in CONFIGS])
def test_adapters_with_configs_of_the_hub(entries: dict[str, Any], tmp_path: Path) -> None:
    name = (entries.get("base_model_name_or_path") or "").lower()
    kind, sizes = next((base for part, base in BASES.items() if part in name), ("LlamaForCausalLM", SIZES))
    torch.manual_seed(0)
    theirs = getattr(transformers, kind)
    theirs = theirs(theirs.config_class(**sizes)).eval()
    theirs.save_pretrained(tmp_path / "base")
    tensors: dict[str, torch.Tensor] = {}
    scale = entries["lora_alpha"] / entries["r"]
    for path, layer in theirs.named_modules():
        if path.split(".")[-1] in entries["target_modules"]:
            transposed = type(layer).__name__ == "Conv1D"
            outputs, inputs = layer.weight.T.shape if transposed else layer.weight.shape
            first, second = random(entries["r"], inputs) / 10, random(outputs, entries["r"]) / 10
            tensors |= {f"{path}.lora_A.weight": first, f"{path}.lora_B.weight": second}
            change = second @ first * scale
            layer.weight.data += change.T if transposed else change
    assert tensors
    adapter = write_adapter(tmp_path / "adapter", tensors, **entries)
    model = PeftModel.from_pretrained(AutoModel.from_pretrained(tmp_path / "base"), adapter)
    inputs = {"input_ids": IDS}
    if kind.startswith("T5"):
        inputs |= {"attention_mask": np.ones_like(IDS), "decoder_input_ids": IDS[:, ::-1].copy()}
    with torch.no_grad():
        expected = theirs(**{name: torch.tensor(array) for name, array in inputs.items()}).logits.numpy()
    np.testing.assert_allclose(outputs_of(model, inputs)[0], expected, atol=ATOL)
