"""The configs in GGUF files of decoders whose layers have states.

Source:  what llama.cpp's converters write, `conversion/lfm2.py`, `conversion/mamba.py` and
         `conversion/qwen.py`
"""

from __future__ import annotations

from collections.abc import Callable

from tallow.models.gguf.metadata import Design, Metadata, decoder_settings, llama_settings, share
from tallow.models.gguf.state_names import STATE_NAMES

LFM2 = {"lfm2": "Lfm2", "lfm2moe": "Lfm2Moe"}  # architecture -> model
DELTA = {"qwen35": "Qwen3_5", "qwen35moe": "Qwen3_5Moe"}
SIGMOID = 2  # the `expert_gating_func` that weighs experts by sigmoids


def _lfm2(metadata: Metadata) -> Design:
    """Layers without heads of keys and values have a convolution."""
    model = LFM2[metadata.architecture]
    names = STATE_NAMES[model]
    settings = llama_settings(metadata, names)
    counts = settings["num_key_value_heads"]
    if isinstance(counts, list):
        settings["num_key_value_heads"] = max(counts, default=0)
        settings["layer_types"] = ["full_attention" if count else "conv" for count in counts]
    if model == "Lfm2":
        settings["block_auto_adjust_ff_dim"] = False  # the file has the adjusted width
    else:
        metadata.require("expert_gating_func", (SIGMOID,))
        settings["use_expert_bias"] = any(name.endswith(".exp_probs_b.bias") for name in metadata.file)
        settings["num_dense_layers"] = settings["num_dense_layers"] or 0
    return Design(model, names, metadata.config(model, settings))


def _delta(metadata: Metadata) -> Design:
    """Value heads have another order than in checkpoints, and layers that predict further tokens may follow."""
    model = DELTA[metadata.architecture]
    names = STATE_NAMES[model]
    settings = llama_settings(metadata, names, partial=True) | {"tiled_value_heads": True}
    settings["attention_bias"] = any(name.endswith(".attn_q.bias") for name in metadata.file)
    further = metadata.get("nextn_predict_layers") or 0
    for unused in ("rope.dimension_sections", "feed_forward_length"):  # of images, and of models without experts
        metadata.get(unused)
    heads, features = settings["linear_num_value_heads"], metadata.get("ssm.inner_size")
    if type(heads) is type(features) is int and heads > 0:
        settings["linear_value_head_dim"] = features // heads
    if type(settings["num_hidden_layers"]) is type(further) is int:
        settings["num_hidden_layers"] -= further
    return Design(model, names, metadata.config(model, settings), further=further)


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


STATE_READERS: dict[str, Callable[[Metadata], Design]] = {
    **dict.fromkeys(LFM2, _lfm2),
    **dict.fromkeys(DELTA, _delta),
    **dict.fromkeys(("mamba", "mamba2"), _mamba),
}
