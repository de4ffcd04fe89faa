"""Names in GGUF files of the decoders whose layers have states, by class in tallow.models; as names.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tallow.models.decoders.rwkv7_formats import MIXES
from tallow.models.gguf.names import (
    EXPERT_FIELDS,
    EXPERT_WIDTH,
    HEAD_NORMS,
    LLAMA_FIELDS,
    LLAMA_INNER,
    SHARED,
    SHARED_WIDTH,
    SPARSE,
    GGUFNames,
    llama_names,
)

_LFM2 = {
    "operator_norm": "attn_norm",
    "ffn_norm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.out_proj": "attn_output",
    "self_attn.q_layernorm": "attn_q_norm",
    "self_attn.k_layernorm": "attn_k_norm",
    "conv.conv": "shortconv.conv",
    "conv.in_proj": "shortconv.in_proj",
    "conv.out_proj": "shortconv.out_proj",
    "feed_forward.w1": "ffn_gate",
    "feed_forward.w3": "ffn_up",
    "feed_forward.w2": "ffn_down",
}
_EXPERTS_OF_LFM2 = {
    "feed_forward.gate": "ffn_gate_inp",
    "feed_forward.experts.*.w1": "ffn_gate_exps",
    "feed_forward.experts.*.w3": "ffn_up_exps",
    "feed_forward.experts.*.w2": "ffn_down_exps",
}
_LFM2_FIELDS = LLAMA_FIELDS | {"conv_L_cache": "shortconv.l_cache"}
_DELTA = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "post_attention_norm",
    **{ours: theirs for ours, theirs in LLAMA_INNER.items() if ours.startswith("self_attn.")},
    **HEAD_NORMS,
    "linear_attn.in_proj_qkv": "attn_qkv",
    "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.in_proj_a": "ssm_alpha",
    "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.norm": "ssm_norm",
    "linear_attn.out_proj": "ssm_out",
}
_MLP = {ours: theirs for ours, theirs in LLAMA_INNER.items() if ours.startswith("mlp.")}
_SPARSE_MLP = {ours: theirs for ours, theirs in SPARSE.items() if ours.startswith("mlp.")} | SHARED
_DELTA_FIELDS = {
    "full_attention_interval": "full_attention_interval",
    "linear_conv_kernel_dim": "ssm.conv_kernel",
    "linear_key_head_dim": "ssm.state_size",
    "linear_num_key_heads": "ssm.group_count",
    "linear_num_value_heads": "ssm.time_step_rank",
}


def _lfm2(architecture: str, inner: Mapping[str, str], fields: Mapping[str, str], **options: object) -> GGUFNames:
    outer = {"model.embed_tokens": "token_embd", "model.embedding_norm": "token_embd_norm", "lm_head": "output"}
    channels = frozenset({"conv.conv"})
    return llama_names(architecture, inner, fields=fields, outer=outer, channels=channels, **options)


def _delta(architecture: str, inner: Mapping[str, str], fields: Mapping[str, str], **options: object) -> GGUFNames:
    return llama_names(
        architecture,
        inner,
        fields={**fields, **_DELTA_FIELDS},
        norm_offset=1.0,
        plain_norms=frozenset({"linear_attn.norm"}),
        parameters={"linear_attn.A_log": "ssm_a", "linear_attn.dt_bias": "ssm_dt.bias"},
        channels=frozenset({"linear_attn.conv1d"}),
        decays=frozenset({"linear_attn.A_log"}),
        **options,
    )


_MAMBA = {
    "norm": "attn_norm",
    "mixer.in_proj": "ssm_in",
    "mixer.conv1d": "ssm_conv1d",
    "mixer.out_proj": "ssm_out",
}
_MAMBA_FIELDS = {
    "num_hidden_layers": "block_count",
    "hidden_size": "embedding_length",
    "layer_norm_epsilon": "attention.layer_norm_rms_epsilon",
    "conv_kernel": "ssm.conv_kernel",
    "state_size": "ssm.state_size",
}


def _mamba(architecture: str, inner: Mapping[str, str], fields: Mapping[str, str], **options: Any) -> GGUFNames:
    return GGUFNames(
        architecture=architecture,
        layers="backbone.layers",
        outer={"backbone.embeddings": "token_embd", "backbone.norm_f": "output_norm", "lm_head": "output"},
        inner={**_MAMBA, **inner},
        fields={**_MAMBA_FIELDS, **fields},
        channels=frozenset({"mixer.conv1d"}),
        decays=frozenset({"mixer.A_log"}),
        **options,
    )


_ATTENTION = {ours: theirs for ours, theirs in LLAMA_INNER.items() if ours.startswith("self_attn.")}
_PARTS_OF_MAMBA = {
    "input_layernorm": "attn_norm",
    "pre_ff_layernorm": "ffn_norm",
    **_ATTENTION,
    **{f"mamba.{part}": f"ssm_{theirs}" for part, theirs in {"in_proj": "in", "out_proj": "out"}.items()},
    "mamba.conv1d": "ssm_conv1d",
    **{ours.replace("mlp.", "feed_forward."): theirs for ours, theirs in _MLP.items()},
}
# llama.cpp's converter writes that norm without ".weight"; other files have the usual name.
_SCAN = {"mamba.A_log": "ssm_a", "mamba.D": "ssm_d", "pre_ff_layernorm.weight": "ffn_norm"}
_MAMBA_PART_FIELDS = {
    **{ours: theirs for ours, theirs in LLAMA_FIELDS.items() if ours != "sliding_window"},
    "mamba_d_conv": "ssm.conv_kernel",
    "mamba_d_state": "ssm.state_size",
}


def _with_mamba(architecture: str, inner: Mapping[str, str], fields: Mapping[str, str], **options: object) -> GGUFNames:
    return llama_names(
        architecture,
        {**_PARTS_OF_MAMBA, **inner},
        fields={**_MAMBA_PART_FIELDS, **fields},
        outer={"model.embed_tokens": "token_embd", "model.final_layernorm": "output_norm", "lm_head": "output"},
        channels=frozenset({"mamba.conv1d"}),
        decays=frozenset({"mamba.A_log"}),
        **options,
    )


STATE_NAMES: dict[str, GGUFNames] = {
    "FalconH1": _with_mamba(
        "falcon-h1",
        {"mamba.norm": "ssm_norm"},
        {"mamba_d_ssm": "ssm.inner_size", "mamba_n_heads": "ssm.time_step_rank", "mamba_n_groups": "ssm.group_count"},
        parameters={**_SCAN, "mamba.dt_bias": "ssm_dt.bias"},
        spread=frozenset({"mamba.A_log", "mamba.D", "mamba.norm.weight"}),
    ),
    "Jamba": _with_mamba(
        "jamba",
        {
            "mamba.x_proj": "ssm_x",
            "mamba.dt_proj": "ssm_dt",
            "mamba.dt_layernorm": "ssm_dt_norm",
            "mamba.b_layernorm": "ssm_b_norm",
            "mamba.c_layernorm": "ssm_c_norm",
            "feed_forward.router": "ffn_gate_inp",
            "feed_forward.experts.*.gate_proj": "ffn_gate_exps",
            "feed_forward.experts.*.up_proj": "ffn_up_exps",
            "feed_forward.experts.*.down_proj": "ffn_down_exps",
        },
        {"mamba_dt_rank": "ssm.time_step_rank", **EXPERT_FIELDS},
        parameters=_SCAN,
    ),
    "Mamba": _mamba(
        "mamba",
        {"mixer.x_proj": "ssm_x", "mixer.dt_proj": "ssm_dt"},
        {"time_step_rank": "ssm.time_step_rank"},
        parameters={"mixer.A_log": "ssm_a", "mixer.D": "ssm_d"},
    ),
    "Mamba2": _mamba(
        "mamba2",
        {"mixer.norm": "ssm_norm"},
        {"num_heads": "ssm.time_step_rank", "n_groups": "ssm.group_count"},
        parameters={"mixer.A_log": "ssm_a", "mixer.D": "ssm_d", "mixer.dt_bias": "ssm_dt.bias"},
        spread=frozenset({"mixer.A_log", "mixer.D", "mixer.norm.weight"}),
    ),
    "RWKV7": GGUFNames(
        architecture="rwkv7",
        layers="model.layers",
        outer={
            "model.embeddings": "token_embd",
            "model.layers.0.pre_norm": "token_embd_norm",
            "model.norm": "output_norm",
            "lm_head": "output",
        },
        inner={
            "attn_norm": "attn_norm",
            "ffn_norm": "attn_norm_2",
            "attn.r_proj": "time_mix_receptance",
            "attn.k_proj": "time_mix_key",
            "attn.v_proj": "time_mix_value",
            "attn.o_proj": "time_mix_output",
            "attn.g_norm": "time_mix_ln",
            "ffn.key": "channel_mix_key",
            "ffn.value": "channel_mix_value",
            **{f"attn.{part}_lora.lora.{at}": f"time_mix_{part}{at // 2 + 1}" for part in "wavg" for at in (0, 2)},
        },
        fields={
            "num_hidden_layers": "block_count",
            "hidden_size": "embedding_length",
            "intermediate_size": "feed_forward_length",
            "head_dim": "wkv.head_size",
            "norm_eps": "attention.layer_norm_epsilon",
            "decay_low_rank_dim": "attention.decay_lora_rank",
            "a_low_rank_dim": "attention.iclr_lora_rank",
            "v_low_rank_dim": "attention.value_residual_mix_lora_rank",
            "gate_low_rank_dim": "attention.gate_lora_rank",
        },
        parameters={
            **{f"attn.{part}_lora.lora.2.bias": f"time_mix_{part}0.weight" for part in "wav"},
            **{f"attn.{name}": f"time_mix_{name}.weight" for name in ("k_k", "k_a", "r_k")},
            **{f"attn.x_{mix}": f"time_mix_lerp_{mix}.weight" for mix in MIXES},
            "ffn.x_k": "channel_mix_lerp_k.weight",
        },
    ),
    "Lfm2": _lfm2("lfm2", _LFM2, _LFM2_FIELDS),
    "Lfm2Moe": _lfm2(
        "lfm2moe",
        _LFM2 | _EXPERTS_OF_LFM2,
        _LFM2_FIELDS | EXPERT_FIELDS | EXPERT_WIDTH | {"num_dense_layers": "leading_dense_block_count"},
        parameters={"feed_forward.expert_bias": "exp_probs_b.bias"},
    ),
    "Qwen3_5": _delta("qwen35", _DELTA | _MLP, LLAMA_FIELDS),
    "Qwen3_5Moe": _delta(
        "qwen35moe",
        _DELTA | _SPARSE_MLP,
        {ours: theirs for ours, theirs in LLAMA_FIELDS.items() if ours != "intermediate_size"}
        | (EXPERT_FIELDS | EXPERT_WIDTH | SHARED_WIDTH),
        vectors=frozenset({"mlp.shared_expert_gate"}),
    ),
}
# As a Qwen3.5 with experts has them, to which such files are read.
STATE_NAMES["Qwen3Next"] = replace(STATE_NAMES["Qwen3_5Moe"], architecture="qwen3next")
