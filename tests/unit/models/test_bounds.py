"""Sizes in config.json are checked against the tensors, so a small file cannot cause a large allocation."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from support.memory_limit import limit_peak_memory
from support.small_models import ENTRIES

from tallow import models
from tallow.errors import TallowError
from tallow.generation import generate
from tallow.io import safetensors
from tallow.models import AutoModel
from tallow.models.architectures import MODEL_TYPES
from tallow.models.config import Config
from tallow.models.pretrained import PretrainedModel
from tallow.models.seq2seq.model import Seq2SeqLM

MIB = 2**20


def small_folder(name: str, folder: Path) -> tuple[Path, type[PretrainedModel]]:
    """Return a small saved model of a class."""
    model_class = getattr(models, name)
    model = model_class(model_class.config_class.from_entries(ENTRIES[name], "entries"))
    safetensors.save(model.state_dict(), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(ENTRIES[name]))
    assert isinstance(AutoModel.from_pretrained(folder), model_class)
    return folder, model_class


WITHOUT_TENSORS = (
    "projection_dim",
    "position",
    "window",
    "local_attention",
    "every_n_layers",
    "full_attention_interval",
    "no_rope_layer_interval",
    "num_global_key_value_heads",  # which a model without attention_k_eq_v does not read
    "max_distance",
    "bucket_distance",
    *("mamba_expand", "attn_layer_period", "expert_layer_period"),  # other fields give what they do
    *("adapter_attn_dim", "classifier_proj_size", "xvector_output_dim"),  # of other variants and heads
    *("mask_time_length", "mask_feature_length"),
    "semantic_loss_ignore_index",
    *("sampling_rate", "wavenet_dilation_rate", "duration_predictor_filter_channels"),
)  # in names of fields


# Types of configs that another type stands for, or that hold another one.
SAME = {"xlm-roberta", "camembert", "qwen3_5", "qwen3_5_moe"}


def integers(config: type[Config]) -> list[str]:
    names = [field.name for field in fields(config) if str(field.type).startswith("int")]
    return [name for name in names if "token" not in name and name not in config.unread]


def test_every_model_is_covered() -> None:
    assert {entries["model_type"] for entries in ENTRIES.values()} == {*MODEL_TYPES} - SAME


@pytest.mark.parametrize("name", ENTRIES)
def test_huge_sizes_in_a_config_take_no_memory(name: str, tmp_path: Path) -> None:
    """The config must be refused, unless no tensor depends on the number."""
    folder, model_class = small_folder(name, tmp_path)
    for field in integers(model_class.config_class):
        for value in (10**7, 2**30, 2**62):
            (folder / "config.json").write_text(json.dumps(ENTRIES[name] | {field: value}))
            with limit_peak_memory(4 * MIB):
                try:
                    model = model_class.from_pretrained(folder)
                    if isinstance(model, models.causal_lm.CausalLM):
                        list(generate(model, [1, 3], max_tokens=3))
                    if isinstance(model, Seq2SeqLM):
                        list(model.generate_ids([1, 3], max_tokens=3))
                except TallowError:
                    pass
                else:
                    assert any(word in field for word in WITHOUT_TENSORS), f"{field}={value}"
