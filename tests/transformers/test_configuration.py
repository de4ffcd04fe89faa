"""Configs: defaults, attributes, older entries and files, as in transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.transformers.both import both
from tests.transformers.folders import Folders

from tallow.errors import CheckpointError
from tallow.transformers.configuration_defaults import DEFAULTS, NAMES

# Follow from other settings; and names of stages, which no model here reads.
LEFT_OUT = {"layer_types", "full_attn_idxs", "stage_names", "out_features", "out_indices", "transformers_version"}


# Mamba's follow from its width; of a backbone of timm, tallow keeps the entries of its file.
FOLLOWING = {"mamba": {"intermediate_size", "time_step_rank"}, "detr": {"backbone_config"}}
FOLLOWING["depth_anything"] = {"backbone_config"}  # which test_backbones_of_depths compares


def settings(config: Any) -> dict[str, Any]:
    entries = {name: value for name, value in config.to_dict().items() if name[0] != "_"}
    entries = {name: value for name, value in entries.items() if name not in LEFT_OUT}
    for name in FOLLOWING.get(config.model_type, ()):
        entries.pop(name, None)
    entries["dtype"] = str(entries.get("dtype"))
    return dict(sorted(json.loads(json.dumps(entries)).items()))


@pytest.mark.parametrize("kind", [kind for kind in DEFAULTS if kind not in ("blip", "clip")])
def test_defaults(kind: str) -> None:
    both(lambda tf, torch: settings(getattr(tf, NAMES[kind])()))


def test_parts_of_clip() -> None:
    def program(tf: Any, torch: Any) -> Any:
        config = tf.CLIPConfig(text_config={"hidden_size": 32}, projection_dim=16)
        return [config.text_config.hidden_size, config.vision_config.hidden_size, config.projection_dim]

    both(program)


@pytest.mark.parametrize("entries", [{}, {"use_timm_backbone": True, "backbone": "resnet18"}])
def test_backbones_of_timm(entries: dict[str, Any]) -> None:
    def program(tf: Any, torch: Any) -> Any:
        entries_ = json.loads(tf.DetrConfig(**entries).to_json_string())["backbone_config"]
        return [entries_[name] for name in ("model_type", "backbone", "num_channels", "out_indices")]

    both(program)


def test_backbones_of_depths() -> None:
    def program(tf: Any, torch: Any) -> Any:
        own = tf.DepthAnythingConfig().backbone_config
        return [settings(own), list(own.out_indices), settings(tf.DepthAnythingConfig(backbone_config=own))]

    both(program)


def test_attributes() -> None:
    def program(tf: Any, torch: Any) -> Any:
        gpt2 = tf.GPT2Config(n_embd=32, num_hidden_layers=3)
        gpt2.hidden_size = 48
        bert = tf.BertConfig(num_labels=3, hidden_size=24, num_attention_heads=2)
        names = tf.BertConfig(id2label={"0": "bad", "1": "good"}, label2id={"bad": 0, "good": 1})
        t5 = tf.T5Config(num_layers=4)
        return [
            [gpt2.n_embd, gpt2.n_layer, gpt2.num_attention_heads, gpt2.max_position_embeddings],
            [bert.num_labels, bert.id2label, bert.label2id, bert.use_cache, bert.model_type],
            [names.num_labels, names.id2label],
            [t5.num_decoder_layers, t5.hidden_size, t5.is_encoder_decoder],
            tf.LlamaConfig(num_attention_heads=8).num_key_value_heads,
        ]

    both(program)


@pytest.mark.parametrize(
    "entries",
    [
        {"rope_theta": 500.0},
        {"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_theta": 100.0},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 7.0}},
    ],
)
def test_rotary_settings_of_all_versions(entries: dict[str, Any]) -> None:
    def program(tf: Any, torch: Any) -> Any:
        rope = tf.LlamaConfig(**entries).rope_parameters
        return [rope["rope_theta"], rope["rope_type"], rope.get("factor")]

    both(program)


def test_files_of_one_library_are_read_by_the_other(folders: Folders, tmp_path: Path) -> None:
    import transformers

    import tallow.transformers

    ours = tallow.transformers.BertConfig(hidden_size=24, num_attention_heads=2, num_labels=4)
    ours.save_pretrained(tmp_path)
    assert settings(transformers.AutoConfig.from_pretrained(tmp_path)) == settings(ours)
    folder = folders("LlamaForCausalLM")
    both(lambda tf, torch: settings(tf.AutoConfig.from_pretrained(folder)))


def test_arguments_of_from_pretrained(folders: Folders) -> None:
    folder = folders("BertForSequenceClassification")

    def program(tf: Any, torch: Any) -> Any:
        config, unused = tf.AutoConfig.from_pretrained(
            folder, num_labels=5, output_attentions=True, foo=1, return_unused_kwargs=True
        )
        again = tf.BertConfig.from_dict({"hidden_size": 24}, hidden_size=36)
        return [config.num_labels, config.output_attentions, unused, again.hidden_size, type(config).__name__]

    both(program)


def test_own_configs_are_registered(tmp_path: Path) -> None:
    def program(tf: Any, torch: Any) -> Any:
        class TinyConfig(tf.PretrainedConfig):  # type: ignore[misc, name-defined]
            model_type = "tiny-mlp"

            def __init__(self, width: int = 4, **kwargs: Any) -> None:
                super().__init__(**kwargs)
                self.width = width

        class TinyModel(tf.PreTrainedModel):  # type: ignore[misc, name-defined]
            config_class = TinyConfig

            def __init__(self, config: Any) -> None:
                super().__init__(config)
                self.layer = torch.nn.Linear(config.width, 2)
                self.post_init()

            def forward(self, x: Any) -> Any:
                return self.layer(x)

        tf.AutoConfig.register("tiny-mlp", TinyConfig, exist_ok=True)
        tf.AutoModel.register(TinyConfig, TinyModel, exist_ok=True)
        model = TinyModel(TinyConfig(width=3))
        folder = tmp_path / tf.__name__
        model.save_pretrained(folder)
        again = tf.AutoModel.from_pretrained(folder)
        same = torch.equal(again(torch.ones(1, 3)), model.eval()(torch.ones(1, 3)))
        return [type(again).__name__, again.config.width, bool(same), again.num_parameters()]

    both(program)


@pytest.mark.parametrize(
    "entries",
    [
        {"model_type": "bert", "id2label": {"first": "a"}},
        {"model_type": "bert", "num_labels": "two"},
        {"model_type": "llama", "num_attention_heads": 0},
        {"model_type": "llama", "rope_scaling": 8},
        {"model_type": "clip", "text_config": 1},
    ],
    ids=str,
)
def test_entries_of_another_type_are_damage(entries: dict[str, Any], tmp_path: Path) -> None:
    import tallow.transformers

    (tmp_path / "config.json").write_text(json.dumps(entries))
    with pytest.raises(CheckpointError, match=f"config of {tmp_path}: "):
        tallow.transformers.AutoConfig.from_pretrained(tmp_path)


@pytest.mark.filterwarnings("ignore:.*rope_scaling:FutureWarning")
def test_the_older_name_of_rotary_settings_may_be_set() -> None:
    both(lambda tf, torch: tf.BertConfig(rope_scaling=None).rope_scaling)


def test_unknown_models_name_the_way(tmp_path: Path) -> None:
    import tallow.transformers

    (tmp_path / "config.json").write_text('{"model_type": "mamba9"}')
    with pytest.raises(CheckpointError, match=r"mamba9.*\n.*install transformers.*tallow\.compat"):
        tallow.transformers.AutoConfig.from_pretrained(tmp_path)


def test_widths_of_latents_in_other_models() -> None:
    both(lambda tf, torch: tf.LlamaConfig(head_dim=8, qk_rope_head_dim=2).head_dim)
    both(lambda tf, torch: tf.DeepseekV2Config(head_dim=8, qk_rope_head_dim=2).head_dim)
