"""Names in GGUF files of the decoders whose layers have states, by class in tallow.models; as names.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


STATE_NAMES: dict[str, GGUFNames] = {
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
