"""The configs in GGUF files of decoders whose layers have states.

Source:  what llama.cpp's converters write, `conversion/lfm2.py`, `conversion/mamba.py` and
         `conversion/qwen.py`
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallow.models.gguf.metadata import Design, Metadata, decoder_settings, llama_settings, share
from tallow.models.gguf.mixes import MixesFile
from tallow.models.gguf.projections import ProjectionsFile
from tallow.models.gguf.state_names import STATE_NAMES

LFM2 = {"lfm2": "Lfm2", "lfm2moe": "Lfm2Moe"}  # architecture -> model
# A Qwen3-Next loads as a Qwen3.5 with experts, which has the projections of files: four, ordered by kind.
DELTA = {"qwen35": "Qwen3_5", "qwen35moe": "Qwen3_5Moe", "qwen3next": "Qwen3_5Moe"}
SIGMOID = 2  # the `expert_gating_func` that weighs experts by sigmoids


def _lfm2(metadata: Metadata) -> Design:
    """Layers without heads of keys and values have a convolution."""
    model = LFM2[metadata.architecture]
    names = STATE_NAMES[model]
    settings = llama_settings(metadata, names)
    _separate_layers(settings, "conv")
    if model == "Lfm2":
        settings["block_auto_adjust_ff_dim"] = False  # the file has the adjusted width
    else:
        metadata.require("expert_gating_func", (SIGMOID,))
        settings["use_expert_bias"] = any(name.endswith(".exp_probs_b.bias") for name in metadata.file)
        settings["num_dense_layers"] = settings["num_dense_layers"] or 0
    return Design(model, names, metadata.config(model, settings))


def _separate_layers(settings: dict[str, Any], other: str) -> None:
    """Name the layers with heads of keys and values, and the others, where the file has a count for each."""
    counts = settings["num_key_value_heads"]
    if isinstance(counts, list):
        settings["num_key_value_heads"] = max(counts, default=0)
        settings["layer_types"] = ["full_attention" if count else other for count in counts]


def _delta(metadata: Metadata) -> Design:
    """Value heads have another order than in checkpoints, and layers that predict further tokens may follow."""
    model, is_next = DELTA[metadata.architecture], metadata.architecture == "qwen3next"
    names = STATE_NAMES["Qwen3Next" if is_next else model]
    settings = llama_settings(metadata, names, partial=True) | {"tiled_value_heads": not is_next}
    settings["attention_bias"] = any(name.endswith(".attn_q.bias") for name in metadata.file)
    further = metadata.get("nextn_predict_layers") or 0
    for unused in ("rope.dimension_sections", "feed_forward_length"):  # of images, and of models without experts
        metadata.get(unused)
    heads, features = settings["linear_num_value_heads"], metadata.get("ssm.inner_size")
    if type(heads) is type(features) is int and heads > 0:
        settings["linear_value_head_dim"] = features // heads
    if type(settings["num_hidden_layers"]) is type(further) is int:
        settings["num_hidden_layers"] -= further
    config: Any = metadata.config(model, settings)
    file = ProjectionsFile(metadata.file, config.linear_num_key_heads) if is_next else None
    return Design(model, names, config, further=further, file=file)


def _mamba(metadata: Metadata) -> Design:
    """Files have entries for attention and feed-forward parts, which are 0 or without effect."""
    model = {"mamba": "Mamba", "mamba2": "Mamba2"}[metadata.architecture]
    names = STATE_NAMES[model]
    settings = decoder_settings(metadata, names)
    for unused in ("context_length", "feed_forward_length", "attention.head_count"):
        metadata.get(unused)
    metadata.require("ssm.dt_b_c_rms", (False,))
    width, channels = settings["hidden_size"], metadata.get("ssm.inner_size")
    if model == "Mamba":
        settings["intermediate_size"] = channels
    elif type(width) is type(channels) is int and width > 0:
        settings["expand"] = share(channels, width)
    convolutions = [name for name in metadata.file if name.endswith(".ssm_conv1d.bias")]
    settings["use_conv_bias"] = bool(convolutions)
    settings["use_bias"] = any(name.endswith(".ssm_in.bias") for name in metadata.file)
    if model == "Mamba2" and type(settings["num_heads"]) is type(channels) is int and settings["num_heads"] > 0:
        settings["head_dim"] = channels // settings["num_heads"]
    return Design(model, names, metadata.config(model, settings))


def _mamba_parts(metadata: Metadata, model: str) -> dict[str, Any]:
    """Return the settings of a model in which a part of some layers is a Mamba."""
    settings = llama_settings(metadata, STATE_NAMES[model])
    for field, end in {"mamba_conv_bias": ".ssm_conv1d.bias", "mamba_proj_bias": ".ssm_in.bias"}.items():
        settings[field] = any(name.endswith(end) for name in metadata.file)
    return settings


def _falcon_h1(metadata: Metadata) -> Design:
    """The file's matrices have the factors of the config."""
    names = STATE_NAMES["FalconH1"]
    settings = _mamba_parts(metadata, "FalconH1")
    settings["mamba_rms_norm"] = "blk.0.ssm_norm.weight" in metadata.file
    settings["mamba_norm_before_gate"] = False
    settings["projectors_bias"] = "blk.0.ssm_out.bias" in metadata.file
    return Design("FalconH1", names, metadata.config("FalconH1", settings))


def _jamba(metadata: Metadata) -> Design:
    """Layers without heads of keys and values have a Mamba; those with a router have experts."""
    names = STATE_NAMES["Jamba"]
    settings = _mamba_parts(metadata, "Jamba")
    _separate_layers(settings, "linear_attention")
    channels, width = metadata.get("ssm.inner_size"), settings["hidden_size"]
    if type(channels) is type(width) is int and width > 0:
        settings["mamba_expand"] = channels // width
    layers = settings["num_hidden_layers"]
    count = min(layers, len(metadata.file)) if type(layers) is int else 0
    sparse = [i for i in range(count) if f"blk.{i}.ffn_gate_inp.weight" in metadata.file]
    settings["num_experts"] = settings["num_experts"] if sparse else 1
    if sparse:
        settings["expert_layer_offset"] = sparse[0]
        settings["expert_layer_period"] = sparse[1] - sparse[0] if len(sparse) > 1 else layers
    return Design("Jamba", names, metadata.config("Jamba", settings))


def _rwkv7(metadata: Metadata) -> Design:
    """Files have entries for attention, which are 0."""
    names = STATE_NAMES["RWKV7"]
    for unused in ("context_length", "attention.head_count", "token_shift_count"):
        metadata.get(unused)
    settings = decoder_settings(metadata, names)
    settings["norm_first"] = "token_embd_norm.weight" in metadata.file
    settings["norm_bias"] = "output_norm.bias" in metadata.file
    config: Any = metadata.config("RWKV7", settings)
    return Design("RWKV7", names, config, file=MixesFile(metadata.file, config.head_dim))


STATE_READERS: dict[str, Callable[[Metadata], Design]] = {
    **dict.fromkeys(LFM2, _lfm2),
    **dict.fromkeys(DELTA, _delta),
    **dict.fromkeys(("mamba", "mamba2"), _mamba),
    "falcon-h1": _falcon_h1,
    "jamba": _jamba,
    "rwkv7": _rwkv7,
}
