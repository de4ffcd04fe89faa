"""Entries of config.json that a model does not read: reported once, or refused if they are known to change the output.

Names of entries: as in public repositories, and as in transformers' configs of other models.
"""

from __future__ import annotations

import contextlib
import json
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_models import ENTRIES

import tallow as tl
from tallow import models
from tallow.cli import main
from tallow.errors import CheckpointError, TallowError, TallowWarning
from tallow.io import safetensors
from tallow.models import config as config_module
from tallow.models.config import Config
from tallow.models.decoders.decoder import DecoderConfig
from tallow.models.vision.dinov2 import DropPath

# By model: entries of public files that neither transformers nor tallow reads.
UNREAD: dict[str, dict[str, Any]] = {
    "GPT2": {"n_special": 0, "predict_special_tokens": True, "author": "a", "created_date": "2021-04-28"},
    "BertModel": {
        "padding": "max_length",
        "loss_type": "ForSequenceClassification",
        "eos_token_idx": 2,
        "add_pooling_layer": True,
        "emb_size": 312,
        "embedding_size": 768,
        "best_metric": 0.9,
        "adapters": {"adapters": {}, "config_map": {}},
        "custom_pipelines": {},
        "base_model": "bert",
        "uniem_embedding_strategy": "last_mean",
    },
    "RobertaModel": {"name": "Roberta", "export_model_type": "transformer"},
    "Llama": {
        "loss_type": "ForCausalLM",
        "use_flash_attn": True,
        "padding_side": "left",
        "use_sliding_window": False,
        "tokenizer_model_max_length": 4096,
        "max_window_layers": 28,
        "my_own_note": "x",
        "layer_types": ["full_attention", "full_attention"],
    },
    "Qwen3Moe": {"use_qk_norm": True, "qkv_bias": False, "shared_expert_intermediate_size": 0},
    "MarianMTModel": {"do_blenderbot_90_layernorm": False},
    "T5ForConditionalGeneration": {"gradient_accumulation": 4},
    "ViTModel": {"qkv_note": "x", "num_experts": 0, "logit_scale": 1.0},
}
# Entries of other models that change the output of these.
MECHANISMS: dict[str, dict[str, Any]] = {
    "GPT2": {
        "is_causal": False,
        "rotary_dim": 8,
        "use_parallel_residual": True,
        "alibi": True,
        "rope_scaling": {"type": "linear"},
    },
    "BertModel": {"rope_theta": 10000.0, "attention_window": [64], "use_alibi": True},
    "RobertaModel": {"position_embedding_type": "relative_key"},
    "Llama": {
        "use_sliding_window": True,
        "logit_scale": 0.0625,
        "num_experts": 8,
        "num_local_experts": 4,
        "residual_multiplier": 0.22,
        "embedding_multiplier": 12.0,
        "logits_scaling": 8.0,
        "scale_emb": 12,
        "attn_logit_softcapping": 50.0,
        "query_pre_attn_scalar": 256,
        "quantization_config": {"bits": 4},
        "quantization": {"bits": 4},
        "no_rope_layers": [1, 0],
        "n_routed_experts": 64,
        "use_mup": True,
        "use_bidirectional_attention": True,
        "parallel_attn": True,
        "moe_layer_freq": 2,
        "layer_types": ["full_attention", "sliding_attention"],
        "clip_qkv": 8.0,
        "local_attention": 128,
    },
    "Qwen2": {"use_mrope": True},
    "Falcon": {"is_causal": False},
    "MarianMTModel": {"use_moe": True},
    "ViTModel": {"quantization_config": {"load_in_8bit": True}, "scale_embedding": True},
}


def each(cases: dict[str, dict[str, Any]]) -> Any:
    pairs = [(model, name, value) for model, entries in cases.items() for name, value in entries.items()]
    return pytest.mark.parametrize(("model", "name", "value"), pairs)


def reader(model: str) -> tuple[type[Config], dict[str, Any]]:
    return getattr(models, model).config_class, ENTRIES[model]


@pytest.fixture(autouse=True)
def _nothing_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_module, "_reported", set())


@each(UNREAD)
def test_an_unknown_entry_is_reported_and_has_no_effect(model: str, name: str, value: Any) -> None:
    config, entries = reader(model)
    with pytest.warns(TallowWarning, match=f"the file: {config.__name__} does not know.*'{name}'"):
        read = config.from_entries(entries | {name: value}, "the file")
    assert read == config.from_entries(entries, "the file")
    assert config.from_entries(entries | {name: value}, "another file") == read  # it warns once
    with pytest.raises(CheckpointError, match=f"{name} is .*unknown entry"):
        config.from_entries(entries | {name: value}, "the file", strict=True)


@each(MECHANISMS)
def test_an_entry_that_changes_the_output_of_other_models_is_refused(model: str, name: str, value: Any) -> None:
    config, entries = reader(model)
    with pytest.raises(CheckpointError, match=f"the file: {config.__name__} does not support\n  {name} is "):
        config.from_entries(entries | {name: value}, "the file")


@pytest.mark.parametrize("name", [name for name in ENTRIES if issubclass(reader(name)[0], DecoderConfig)])
def test_a_decoder_sees_both_sides_or_refuses_to(name: str) -> None:
    config, entries = reader(name)
    try:
        read = config.from_entries(entries | {"is_causal": False}, "the file")
    except CheckpointError as error:
        assert "is_causal" in str(error)  # noqa: PT017
        return
    kind = getattr(models, name)
    model = getattr(kind, "model_class", kind)(read).eval()
    with tl.no_grad():
        one, other = (model(tl.tensor([[1, 2, last]])) for last in (3, 4))
    assert not tl.equal(one[0, 0], other[0, 0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_name_or_path", "x"),
        ("_my_private_name", 1),
        ("image_token_id", 5),
        ("eos_token_ids", [1, 2]),
        ("transformers_version", "4.41.0"),
        ("top_p", 0.9),
        ("my_own_note", None),
    ],
)
def test_what_is_common_in_files_is_not_reported(name: str, value: Any) -> None:
    config, entries = reader("Llama")
    for strict in (False, True):
        assert config.from_entries(entries | {name: value}, "a", strict=strict) == config.from_entries(entries, "a")


def test_one_warning_names_all_entries_and_escapes_them() -> None:
    config, entries = reader("Llama")
    with pytest.warns(TallowWarning) as caught:
        config.from_entries(entries | {"\x1b[2J": 1, **{f"note{i}": "x" * 999 for i in range(99)}}, "the file")
    (warning,) = caught
    assert "'\\x1b[2J' (1), 'note0'" in str(warning.message)
    assert str(warning.message).endswith(" and 80 more")
    assert len(str(warning.message)) < 2000


def test_the_hint_for_quantised_weights() -> None:
    config, entries = reader("Llama")
    with pytest.raises(CheckpointError, match="hint: use the model before it was quantised"):
        config.from_entries(entries | {"quantization_config": {"quant_method": "gptq"}}, "the file")


ODD: tuple[Any, ...] = (
    *(5, -1, 0, 1.5, float("inf"), 10**30, 10**400, "x", "", True, False, [], [1], ["x"], [[1]], [None], {}, {"a": 1}),
    *({"rope_type": 5}, {"type": [1]}, {"factor": "x", "type": "linear"}, {"full_attention": 5}),
)
OTHER_NAMES = (
    *("rope_parameters", "id2label", "num_labels", "architectures", "_sliding_window_pattern", "text_config_dict"),
    *("num_local_experts", "init_std", "decoder_vocab_size", "n_head_kv", "rope_theta", "partial_rotary_factor"),
)


@pytest.mark.filterwarnings("ignore::tallow.errors.TallowWarning")
@pytest.mark.parametrize("model", ENTRIES)
def test_values_of_wrong_types_are_refused_or_read(model: str) -> None:
    """No value may raise another error."""
    config, entries = reader(model)
    names = {*entries, *OTHER_NAMES, *config.computed, *config.neutral, *(field.name for field in fields(config))}
    for name in sorted(names):
        for value in ODD:
            with contextlib.suppress(TallowError):
                config.from_entries(entries | {name: value}, f"the file with {name}={value!r}")


@pytest.mark.parametrize(
    ("model", "entry"),
    [
        ("HunYuanDenseV1", {"rope_scaling": {"type": "dynamic", "alpha": 1e300}}),
        ("HunYuanDenseV1", {"rope_scaling": {"type": "dynamic", "alpha": 10**400}}),
        ("GteModel", {"rope_scaling": {"type": "ntk", "factor": 10**400}}),
        ("GteModel", {"rope_theta": "x", "rope_scaling": {"type": "ntk", "factor": 2.0}}),
    ],
)
@pytest.mark.filterwarnings("ignore::tallow.errors.TallowWarning")
def test_numbers_of_a_scaling_that_overflow_are_refused(model: str, entry: dict[str, Any]) -> None:
    config, entries = reader(model)
    with pytest.raises(CheckpointError, match="the file: "):
        config.from_entries(entries | entry, "the file")


@pytest.mark.parametrize(
    ("model", "entry"),
    [
        ("Qwen2", {"layer_types": 5}),
        ("ModernBertModel", {"layer_types": 5}),
        ("Qwen3Moe", {"mlp_only_layers": 5}),
        ("Phi3", {"partial_rotary_factor": "x"}),
        ("Llama", {"eos_token_id": ""}),
        ("Olmo3", {"rope_local_scaling": 5}),
    ],
)
def test_the_error_names_the_entry(model: str, entry: dict[str, Any]) -> None:
    config, entries = reader(model)
    with pytest.raises(CheckpointError, match=f"the file: {config.__name__}: {next(iter(entry))}="):
        config.from_entries(entries | entry, "the file")


def test_samples_skip_parts_of_dinov2_in_training() -> None:
    """A part of a layer is skipped by a sample, or scaled. Source: Huang et al. 2016, arXiv:1603.09382"""
    tl.manual_seed(0)
    drop, x = DropPath(0.25), tl.ones(4000, 2, 3)
    y = drop(x).numpy().reshape(4000, -1)
    assert (y == y[:, :1]).all()
    assert {*y[:, 0].tolist()} == {0.0, np.float32(4 / 3)}
    assert abs((y[:, 0] == 0).mean() - 0.25) < 0.03
    assert drop.eval()(x) is x


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a BERT with an entry that nothing reads."""
    kind, entries = models.BertForSequenceClassification, ENTRIES["BertModel"]
    state = kind(kind.config_class.from_entries(entries, "entries")).state_dict()
    safetensors.save(state, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(entries | {"architectures": [kind.__name__], "note": 1}))
    return tmp_path


def test_loading(folder: Path) -> None:
    for kind in (models.AutoModel, models.BertForSequenceClassification):
        with pytest.raises(CheckpointError, match="note is 1; unknown entry"):
            kind.from_pretrained(folder, strict=True)
    with pytest.warns(TallowWarning, match="'note'"):
        models.AutoModel.from_pretrained(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models.AutoModel.from_pretrained(folder)


@pytest.mark.filterwarnings("default::tallow.errors.TallowWarning")
def test_inspect(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(folder)]) == 0
    assert "BertConfig does not know these entries, and ignores them: 'note' (1)" in capsys.readouterr().err
    assert main(["inspect", "--strict", str(folder)]) == 2
    assert "note is 1; unknown entry" in capsys.readouterr().err
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"note"', '"finetuning_task"'))
    assert main(["inspect", "--strict", str(folder)]) == 0


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        ({"finetuned": True}, r"'rope_scaling.finetuned' \(True\)"),
        ({"finetuned": True, "attn_factor": 1.0}, r"'rope_scaling.finetuned' \(True\), 'rope_scaling.attn_factor'"),
    ],
)
def test_entries_of_rotary_scaling_that_nothing_reads(scaling: dict[str, Any], message: str) -> None:
    """transformers warns of them and goes on. Source: `_check_received_keys` in `modeling_rope_utils.py`"""
    config, entries = reader("Mistral")
    entries |= {"rope_scaling": {"type": "yarn", "factor": 2.0, "original_max_position_embeddings": 8}}
    with pytest.warns(TallowWarning, match=message):
        read = config.from_entries(entries | {"rope_scaling": entries["rope_scaling"] | scaling}, "the file")
    assert read == config.from_entries(entries, "the file")
    with pytest.raises(CheckpointError, match=r"rope_scaling\.finetuned is True; unknown entry"):
        config.from_entries(entries | {"rope_scaling": entries["rope_scaling"] | scaling}, "the file", strict=True)


@pytest.mark.parametrize("scaling", [{"mrope_section": [1, 1]}, {"long_factor": [1.0, 1.0]}])
def test_entries_of_rotary_scaling_that_other_types_read(scaling: dict[str, Any]) -> None:
    config, entries = reader("Mistral")
    scaling |= {"type": "linear", "factor": 2.0}
    with pytest.raises(CheckpointError, match=next(iter(scaling))):
        config.from_entries(entries | {"rope_scaling": scaling}, "the file")
