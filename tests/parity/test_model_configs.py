"""Configs compared with transformers' classes: each of their fields is read, refused by name, or without effect."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import pytest
import transformers

from tallow import models
from tallow.errors import CheckpointError
from tallow.models.config import Config

# transformers' classes, and the tallow classes that read their files
CONFIGS = {
    **{f"{name}Config": f"{name}Config" for name in ("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Phi3")},
    **{
        f"{name}Config": f"{name}Config"
        for name in ("Falcon", "GPT2", "Bert", "DistilBert", "ModernBert", "Roberta", "Whisper")
    },
    "XLMRobertaConfig": "RobertaConfig",
    "Gemma3TextConfig": "Gemma3Config",
    **{name: name for name in ("ViTConfig", "Dinov2Config", "CLIPTextConfig", "CLIPVisionConfig")},
}
# Another value for fields that are None or whose type does not suggest one.
OTHERS = {
    "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0},
    "layer_types": ["full_attention", "full_attention"],
    "num_key_value_heads": 2,
    "num_kv_heads": 1,
    "num_ln_in_parallel_attn": 1,
    "head_dim": 6,
    "classifier_dropout": 0.5,
    "sliding_window": 3,
    "use_sliding_window": True,
    "use_bidirectional_attention": True,
    "attn_logit_softcapping": 3.0,
    "final_logit_softcapping": 3.0,
    "n_inner": 48,
    "ffn_hidden_size": 48,
    "eos_token_id": [3, 4],
    "pad_token_id": 5,
    "hidden_act": "relu",
    "activation": "relu",
    "activation_function": "relu",
    "hidden_activation": "relu",
    "classifier_activation": "relu",
    "classifier_pooling": "mean",
    "pooler_act": "relu",
    "summary_activation": "tanh",
}
# Small sizes that are consistent.
SIZES = {
    **dict.fromkeys(("vocab_size", "hidden_size", "n_embd", "dim", "d_model"), 64),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_key_value_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers"), 2),
    "pad_token_id": 3,
}


def entries(name: str) -> dict[str, Any]:
    """Return a config.json of transformers with all fields of the class."""
    theirs = getattr(transformers, name)
    sizes = {field.name: SIZES[field.name] for field in fields(theirs) if field.name in SIZES}
    return theirs(**sizes).to_dict()


def another(name: str, value: Any) -> Any:
    if name in OTHERS:
        return OTHERS[name]
    if isinstance(value, bool):
        return not value
    return 0.7 * value + 0.13 if isinstance(value, float) else 2 * value or 1


@pytest.mark.parametrize(("theirs", "ours"), CONFIGS.items(), ids=list(CONFIGS))
def test_every_field_counts_or_is_listed(theirs: str, ours: str) -> None:
    reader: type[Config] = getattr(models, ours)
    # derived from other fields
    values = {name: value for name, value in entries(theirs).items() if name != "layer_types"}
    usual = reader.from_entries(values, "the file", strict=True)
    overlooked = []
    for field in fields(getattr(transformers, theirs)):
        if reader.is_neutral(field.name):
            continue
        try:
            changed = reader.from_entries(
                values | {field.name: another(field.name, values.get(field.name))}, "the file", strict=True
            )
        except CheckpointError as error:
            if field.name not in str(error):
                overlooked.append(f"{field.name}: {error}")
        else:
            if changed == usual:
                overlooked.append(field.name)
    assert not overlooked


@pytest.mark.parametrize(("theirs", "ours"), CONFIGS.items(), ids=list(CONFIGS))
def test_fields_that_a_file_leaves_out_are_as_in_transformers(theirs: str, ours: str) -> None:
    reader: type[Config] = getattr(models, ours)
    default = getattr(transformers, theirs)()
    required = [field.name for field in fields(reader) if field.default is MISSING]
    config = reader.from_entries({name: getattr(default, name) for name in required}, "the file")
    differing = {}
    for field in fields(reader):
        value, usual = getattr(config, field.name), getattr(default, field.name, None)
        usual = () if field.name == "eos_token_id" and usual is None else usual
        usual = (usual,) if isinstance(value, tuple) and isinstance(usual, int) else usual
        usual = () if field.name == "out_features" and usual == [f"stage{config.num_hidden_layers}"] else usual
        if value is None or not hasattr(default, field.name) or field.name == "bos_token_id":
            continue  # derived from other fields if needed; tallow's own; or not read
        if value != usual:
            differing[field.name] = value, usual
    assert not differing


def test_rotary_settings_of_older_gemma3_files() -> None:
    """Before transformers 5 they were three entries."""
    sizes = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 64}
    sizes |= {"num_hidden_layers": 7, "num_attention_heads": 4, "num_key_value_heads": 4}
    older = {"rope_theta": 5e5, "rope_local_base_freq": 500.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    theirs = transformers.Gemma3TextConfig(**sizes, **older)
    saved = models.Gemma3Config.from_entries(theirs.to_dict(), "the file")
    read = models.Gemma3Config.from_entries({**sizes, **older, "sliding_window_pattern": 6}, "the file")
    assert saved.rope_scaling == read.rope_scaling
    for config in (saved, read):
        assert (config.rope_theta, config.rope_local_base_freq) == (5e5, 500.0)
    assert [saved.window_of(i) for i in range(7)] == [read.window_of(i) for i in range(7)]


def test_settings_of_older_modernbert_files() -> None:
    """Before transformers 5 the kinds of layers were a number, and the bases of angles two entries."""
    older = {"global_attn_every_n_layers": 2, "global_rope_theta": 5e5, "local_rope_theta": 500.0}
    sizes = {"vocab_size": 64, "num_hidden_layers": 5, "pad_token_id": 3}
    theirs = transformers.ModernBertConfig(**sizes, **older)
    saved = models.ModernBertConfig.from_entries(theirs.to_dict(), "the file")
    read = models.ModernBertConfig.from_entries({**sizes, **older}, "the file")
    for config in (saved, read):
        assert (config.global_rope_theta, config.local_rope_theta) == (5e5, 500.0)
        assert [config.is_local(i) for i in range(5)] == [False, True, False, True, False]
