"""Folders of sentence-transformers in public repositories, with small random models: vectors equal transformers'."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from support import hub_files, hub_tokenizers
from support.hub_files import HUB
from support.hub_tokenizers import HubFolder

from tallow.errors import CheckpointError
from tallow.models import SentenceEncoder

WIDTH = 32
SIZES = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
GEMMA = {"num_key_value_heads": 2, "head_dim": 8, "layer_types": ["sliding_attention", "full_attention"]}
T5 = {"d_model": WIDTH, "d_ff": 48, "d_kv": 8, "num_heads": 4, "num_layers": 2, "num_decoder_layers": 2}
VOCABULARY = 60_000  # more than the ids of most added tokens
# Folders that are refused -> what the error names.
REFUSED = {
    "Griffin-McCauley/lodestone-base-4096-v1:": "alibi_starting_size",  # code of its own
    "Revanth-shivakumar/LLM-Chatbot:": "JinaBertModel",  # code of its own
}
# Where the collection lacks the file of a Dense module: that of hkunlp/instructor-large.
DENSE = {"bias": False, "activation_function": "torch.nn.modules.linear.Identity"}
TEXTS = ["The cat is not on the token 12.", "UN.café 你好", "the ing er is not cat on " * 400]


@cache
def encoders() -> list[HubFolder]:
    files = hub_files.folders("sentence_transformers")
    plain = {folder.name: folder.files for folder in hub_tokenizers.folders()}
    found = []
    for name, own in sorted(files.items()):
        if "modules.json" in own and "config.json" in plain.get(name, {}):
            parts = {
                f"{module['path']}/config.json": files.get(_sub(name, module["path"]), {}).get("config.json")
                for module in own["modules.json"]
                if module["path"]
            }
            parts = {path: content for path, content in parts.items() if content is not None}
            found.append(HubFolder(name, own | parts | _whole(plain[name])))
    return found


def _whole(files: dict[str, Any]) -> dict[str, Any]:
    """Return files with the whole list of T5's extra tokens, which the collection cuts."""
    extra = {"additional_special_tokens": [f"<extra_id_{i}>" for i in range(100)]}
    return {name: entries | extra if "<extra_id_0>" in _listed(entries) else entries for name, entries in files.items()}


def _listed(entries: dict[str, Any]) -> list[Any]:
    return entries.get("additional_special_tokens") or []


def _sub(folder: str, part: str) -> str:
    return folder + part if folder.endswith(":") else f"{folder}/{part}"


@pytest.mark.filterwarnings("ignore::tallow.errors.TallowWarning")  # entries of configs that nothing reads
@pytest.mark.parametrize("folder", encoders(), ids=lambda folder: folder.name)
def test_vectors(folder: HubFolder, tmp_path: Path) -> None:
    form = hub_tokenizers.form_for(folder, hub_tokenizers.forms(hub_tokenizers.folders()))
    for module in folder.files["modules.json"]:
        (tmp_path / module["path"]).mkdir(exist_ok=True)
    hub_tokenizers.write(folder, tmp_path, form)
    model = random_model(folder, tmp_path)
    write_modules(folder, tmp_path)
    if folder.name in REFUSED:
        with pytest.raises(CheckpointError, match=REFUSED[folder.name]):
            SentenceEncoder.from_pretrained(tmp_path)
        return
    expected = vectors(folder, tmp_path, model)
    np.testing.assert_allclose(SentenceEncoder.from_pretrained(tmp_path).encode(TEXTS), expected, atol=1e-5)


def random_model(folder: HubFolder, place: Path) -> Any:
    """Save a model with small sizes and random weights, and the folder's other settings."""
    entries = folder.files["config.json"]
    sizes = T5 if entries["model_type"] == "t5" else SIZES
    sizes = sizes | GEMMA if entries["model_type"] == "gemma3_text" else sizes
    small = entries | sizes | {"vocab_size": max(VOCABULARY, entries["vocab_size"])}
    (place / "config.json").write_text(json.dumps(small))
    config = transformers.AutoConfig.from_pretrained(place)
    torch.manual_seed(0)
    kind = transformers.T5EncoderModel if sizes is T5 else transformers.AutoModel.from_config
    model = kind(config).float().eval()
    model.save_pretrained(place)
    (place / "config.json").write_text(json.dumps(small | {"torch_dtype": "float32"}))
    return model


def write_modules(folder: HubFolder, place: Path) -> None:
    """Write the files of poolings, and of dense modules with random weights: of each format of files."""
    width = WIDTH
    for i, (kind, path) in enumerate(modules(folder)):
        entries = folder.files.get(f"{path}/config.json", {})
        if kind == "Pooling":
            entries = (entries or {"pooling_mode_mean_tokens": True}) | {"word_embedding_dimension": WIDTH}
        elif kind == "Dense":
            entries = (entries or DENSE) | {"in_features": width, "out_features": width + i}
            linear = torch.nn.Linear(width, width + i, bias=entries["bias"])
            weights = {f"linear.{name}": weight.detach() for name, weight in linear.named_parameters()}
            width += i
            if i % 2:
                save_file(weights, place / path / "model.safetensors")
            else:
                torch.save(weights, place / path / "pytorch_model.bin")
        else:
            continue
        (place / path / "config.json").write_text(json.dumps(entries))


def modules(folder: HubFolder) -> list[tuple[str, str]]:
    return [(module["type"].rpartition(".")[2], module["path"]) for module in folder.files["modules.json"]]


def vectors(folder: HubFolder, place: Path, model: Any) -> np.ndarray:
    """Return the vectors of TEXTS by transformers and the rules of sentence-transformers."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    settings = folder.files.get("sentence_bert_config.json", {})
    positions = getattr(model.config, "max_position_embeddings", 1 << 30)
    positions -= 2 if model.config.model_type == "xlm-roberta" else 0
    limit = min(settings.get("max_seq_length") or tokenizer.model_max_length, positions)
    rows = []
    for text in TEXTS:
        text = text.lower() if settings.get("do_lower_case") else text
        inputs = tokenizer(text, truncation=True, max_length=limit, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**inputs).last_hidden_state[0]
            row = hidden
            for kind, path in modules(folder)[1:]:
                row = after_module(kind, place / path, hidden, row)
        rows.append(row)
    return torch.stack(rows).numpy()


def after_module(kind: str, place: Path, hidden: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
    """Return a text's vector after a module."""
    if kind == "Normalize":
        return torch.nn.functional.normalize(row, dim=-1)
    entries = json.loads((place / "config.json").read_text())
    if kind == "Pooling":
        if entries.get("output_key", "sentence_embedding") != "sentence_embedding":
            return row  # NoInstruct's second vector, for queries
        return hidden[0] if entries.get("pooling_mode_cls_token") else hidden.mean(0)
    assert (kind, entries["activation_function"]) == ("Dense", "torch.nn.modules.linear.Identity")
    is_new = (place / "model.safetensors").exists()
    weights = load_file(place / "model.safetensors") if is_new else torch.load(place / "pytorch_model.bin")
    return torch.nn.functional.linear(row, weights["linear.weight"], weights.get("linear.bias"))


@pytest.mark.skipif(not HUB.exists(), reason=f"{HUB} does not exist")
def test_all_folders_are_compared() -> None:
    names = {folder.name for folder in encoders()}
    assert names > set(REFUSED)
    assert len(names) >= 20
