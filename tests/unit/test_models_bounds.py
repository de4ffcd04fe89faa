"""A config.json asks for no more than the tensors beside it back: models are built within the bounds of their files."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
from support.damage import at_most
from support.small_whisper import small_config

from tallow import models
from tallow.errors import TallowError
from tallow.generation import generate
from tallow.io import safetensors
from tallow.models import AutoModel
from tallow.models.auto import MODEL_TYPES
from tallow.models.config import Config
from tallow.models.pretrained import PretrainedModel
from tallow.text.whisper import OTHER_SPECIALS

MIB = 2**20
ENCODER = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
ENCODER |= {"intermediate_size": 12, "max_position_embeddings": 10}
DECODER = ENCODER | {"num_key_value_heads": 1, "rope_theta": 100.0, "eos_token_id": [2]}
# The config.json of a small model of each class.
ENTRIES: dict[str, dict[str, Any]] = {
    "BertModel": ENCODER | {"model_type": "bert"},
    "RobertaModel": ENCODER | {"model_type": "roberta"},
    "DistilBertModel": {"model_type": "distilbert", "vocab_size": 20, "dim": 8, "n_layers": 2, "n_heads": 2}
    | {"hidden_dim": 12, "max_position_embeddings": 10},
    "GPT2": {"model_type": "gpt2", "vocab_size": 20, "n_positions": 10, "n_embd": 8, "n_layer": 2, "n_head": 2},
    "Llama": DECODER | {"model_type": "llama"},
    "Mistral": DECODER | {"model_type": "mistral"},
    "Qwen2": DECODER | {"model_type": "qwen2"},
    "Qwen3": DECODER | {"model_type": "qwen3", "head_dim": 4},
    "Phi3": DECODER | {"model_type": "phi3"},
    "Gemma": DECODER | {"model_type": "gemma", "head_dim": 4},
    "Gemma2": DECODER | {"model_type": "gemma2", "head_dim": 4},
    "Falcon": {"model_type": "falcon", "alibi": True, "new_decoder_architecture": True, "num_kv_heads": 1} | ENCODER,
    "Whisper": {"model_type": "whisper"} | asdict(small_config(260 + OTHER_SPECIALS)),
}
ENTRIES["Whisper"]["init_std"] = ENTRIES["Whisper"].pop("initializer_range")
del ENTRIES["Falcon"]["intermediate_size"]


def saved(name: str, folder: Path) -> tuple[Path, type[PretrainedModel]]:
    """A small model of a class, in a folder."""
    model_class = getattr(models, name)
    model = model_class(model_class.config_class.from_entries(ENTRIES[name], "entries"))
    safetensors.save(model.state_dict(), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(ENTRIES[name]))
    assert isinstance(AutoModel.from_pretrained(folder), model_class)
    return folder, model_class


def integers(config: type[Config]) -> list[str]:
    return [field.name for field in fields(config) if str(field.type).startswith("int") and "token" not in field.name]


def test_every_model_is_among_them() -> None:
    assert {entries["model_type"] for entries in ENTRIES.values()} == {*MODEL_TYPES} - {"xlm-roberta"}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_config_of_vast_numbers_takes_no_memory(name: str, tmp_path: Path) -> None:
    """It is refused, or the number is one that no tensor has a size of."""
    folder, model_class = saved(name, tmp_path)
    for field in integers(model_class.config_class):
        for value in (10**7, 2**30, 2**62):
            (folder / "config.json").write_text(json.dumps(ENTRIES[name] | {field: value}))
            with at_most(4 * MIB):
                try:
                    model = model_class.from_pretrained(folder)
                    if isinstance(model, models.causal_lm.CausalLM):
                        list(generate(model, [1, 3], max_tokens=3))
                except TallowError:
                    pass
                else:
                    assert "position" in field or "window" in field, f"{field}={value}"
