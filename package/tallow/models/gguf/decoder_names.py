"""Names in GGUF files of the decoders that differ from Llama in some terms, by class in tallow.models; as names.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tallow.models.gguf.names import (
    EXPERT_FIELDS,
    EXPERT_WIDTH,
    HEAD_NORMS,
    LLAMA_FIELDS,
    LLAMA_INNER,
    ROTATED,
    GGUFNames,
    llama_names,
)

_ATTENTION = {ours: theirs for ours, theirs in LLAMA_INNER.items() if ours.startswith("self_attn.")}
_GATED = {ours: theirs for ours, theirs in LLAMA_INNER.items() if ours.startswith("mlp.")}
_AFTER = {"post_attention_layernorm": "post_attention_norm", "post_feedforward_layernorm": "post_ffw_norm"}
_NORMS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
_PARALLEL = {"input_layernorm": "attn_norm", **_ATTENTION}
_LAYER_NORM_EPS = "attention.layer_norm_epsilon"


def _without(fields: Mapping[str, str], *names: str) -> dict[str, str]:
    return {ours: theirs for ours, theirs in fields.items() if ours not in names}


def _fields(eps: str, *gone: str, **more: str) -> dict[str, str]:
    """Return the fields of models with layer norms, whose config calls the number in them `eps`."""
    return _without(LLAMA_FIELDS, "rms_norm_eps", *gone) | {eps: _LAYER_NORM_EPS, **more}


def _plain(first: str, second: str) -> dict[str, str]:
    return {f"mlp.{first}": "ffn_up", f"mlp.{second}": "ffn_down"}


_WINDOWLESS = _without(LLAMA_FIELDS, "sliding_window")
_FACTORS = {
    "embedding_multiplier": "embedding_scale",
    "residual_multiplier": "residual_scale",
    "attention_multiplier": "attention.scale",
    "logits_scaling": "logit_scale",
}
_EXPERTS = {
    "mlp.gate": "ffn_gate_inp",
    "mlp.experts.*.gate_proj": "ffn_gate_exps",
    "mlp.experts.*.up_proj": "ffn_up_exps",
    "mlp.experts.*.down_proj": "ffn_down_exps",
}

DECODER_NAMES: dict[str, GGUFNames] = {
    "Arcee": llama_names(
        "arcee", {**_NORMS, **_ATTENTION, **_plain("up_proj", "down_proj")}, fields=_WINDOWLESS, interleaved=ROTATED
    ),
    "Cohere": llama_names(
        "command-r",
        {**_PARALLEL, **_GATED},
        fields=_fields("layer_norm_eps", "sliding_window", logit_scale="logit_scale"),
    ),
    "Cohere2": llama_names(
        "cohere2",
        {**_PARALLEL, **_GATED},
        fields=_fields("layer_norm_eps", logit_scale="logit_scale"),
    ),
    "Ernie4_5": llama_names("ernie4_5", LLAMA_INNER, fields=_WINDOWLESS),
    "Exaone4": llama_names("exaone4", {**_ATTENTION, **HEAD_NORMS, **_AFTER, **_GATED}),
    "GPTNeoX": GGUFNames(
        architecture="gptneox",
        layers="gpt_neox.layers",
        outer={
            "gpt_neox.embed_in": "token_embd",
            "gpt_neox.final_layer_norm": "output_norm",
            "lm_head": "output",
        },
        inner={
            **_NORMS,
            "attention.query_key_value": "attn_qkv",
            "attention.dense": "attn_output",
            **_plain("dense_h_to_4h", "dense_4h_to_h"),
        },
        fields=_fields("layer_norm_eps", "sliding_window", use_parallel_residual="use_parallel_residual"),
        grouped=frozenset({"attention.query_key_value"}),
    ),
    "Glm4": llama_names(
        "glm4",
        {
            "input_layernorm": "attn_norm",
            "post_self_attn_layernorm": "post_attention_norm",
            "post_attention_layernorm": "ffn_norm",
            "post_mlp_layernorm": "post_ffw_norm",
            **_ATTENTION,
            **_plain("gate_up_proj", "down_proj"),
        },
        fields=_WINDOWLESS,
    ),
    "GptOss": llama_names(
        "gpt-oss",
        {
            "input_layernorm": "attn_norm",
            "post_attention_layernorm": "post_attention_norm",
            **_ATTENTION,
            **_EXPERTS,
        },
        fields={**_without(LLAMA_FIELDS, "intermediate_size"), **EXPERT_FIELDS}
        | {"intermediate_size": "expert_feed_forward_length"},
        parameters={"self_attn.sinks": "attn_sinks.weight"},
    ),
    "Granite": llama_names("granite", LLAMA_INNER, fields=_WINDOWLESS | _FACTORS, interleaved=ROTATED),
    "HunYuanDenseV1": llama_names(
        "hunyuan-dense",
        {**LLAMA_INNER, "self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm"},
        fields=_WINDOWLESS,
    ),
    "Ministral3": llama_names(
        "mistral3",
        LLAMA_INNER,
        fields=LLAMA_FIELDS
        | {
            "llama_4_scaling_beta": "attention.temperature_scale",
            "original_max_position_embeddings": "rope.scaling.original_context_length",
        },
        interleaved=ROTATED,
    ),
    "Olmo": llama_names(
        "olmo",
        {**_ATTENTION, **_GATED},
        fields=_without(_WINDOWLESS, "rms_norm_eps") | {"clip_qkv": "attention.clamp_kqv"},
        outer={"model.embed_tokens": "token_embd", "lm_head": "output"},
        interleaved=ROTATED,
    ),
    "Olmo2": llama_names("olmo2", {**_ATTENTION, **HEAD_NORMS, **_AFTER, **_GATED}, fields=_WINDOWLESS),
    "Olmo3": llama_names("olmo2", {**_ATTENTION, **HEAD_NORMS, **_AFTER, **_GATED}),
    "Phi": llama_names(
        "phi2",
        {
            "input_layernorm": "attn_norm",
            **{ours: theirs for ours, theirs in _ATTENTION.items() if theirs != "attn_output"},
            "self_attn.dense": "attn_output",
            **_plain("fc1", "fc2"),
        },
        fields=_fields("layer_norm_eps", "sliding_window"),
        outer={"model.embed_tokens": "token_embd", "model.final_layernorm": "output_norm", "lm_head": "output"},
    ),
    "SeedOss": llama_names(
        "seed_oss", LLAMA_INNER | {"post_attention_layernorm": "post_attention_norm"}, fields=_WINDOWLESS
    ),
    "SmolLM3": llama_names("smollm3", LLAMA_INNER, fields=_WINDOWLESS, interleaved=ROTATED),
    "StableLm": llama_names(
        "stablelm",
        LLAMA_INNER,
        fields=_fields("layer_norm_eps", "sliding_window", use_parallel_residual="use_parallel_residual"),
    ),
    "Starcoder2": llama_names(
        "starcoder2",
        {**_NORMS, **_ATTENTION, **_plain("c_fc", "c_proj")},
        fields=_fields("norm_epsilon"),
    ),
}
_FOUR_NORMS = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
DECODER_NAMES["Gemma4"] = llama_names(
    "gemma4",
    {
        **_FOUR_NORMS,
        **_ATTENTION,
        **HEAD_NORMS,
        **_GATED,
        "per_layer_input_gate": "inp_gate",
        "per_layer_projection": "proj",
        "post_per_layer_input_norm": "post_norm",
    },
    outer={
        "model.embed_tokens": "token_embd",
        "model.embed_tokens_per_layer": "per_layer_token_embd",
        "model.per_layer_model_projection": "per_layer_model_proj",
        "model.per_layer_projection_norm": "per_layer_proj_norm",
        "model.norm": "output_norm",
        "lm_head": "output",
    },
    fields=_without(LLAMA_FIELDS, "head_dim", "intermediate_size", "num_key_value_heads")
    | {
        "head_dim": "attention.key_length_swa",
        "global_head_dim": "attention.key_length",
        "hidden_size_per_layer_input": "embedding_length_per_layer_input",
        "num_kv_shared_layers": "attention.shared_kv_layers",
        "rope_local_base_freq": "rope.freq_base_swa",
        "final_logit_softcapping": "final_logit_softcapping",
    },
    parameters={"layer_scalar": "layer_output_scale.weight"},
)
DECODER_NAMES["DeepseekV2"] = llama_names(
    "deepseek2",
    {
        **_NORMS,
        "self_attn.q_proj": "attn_q",
        "self_attn.q_a_proj": "attn_q_a",
        "self_attn.q_a_layernorm": "attn_q_a_norm",
        "self_attn.q_b_proj": "attn_q_b",
        "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
        "self_attn.kv_a_layernorm": "attn_kv_a_norm",
        "self_attn.kv_b_proj": "attn_kv_b",
        "self_attn.o_proj": "attn_output",
        **_GATED,
        **_EXPERTS,
        "mlp.shared_experts.gate_proj": "ffn_gate_shexp",
        "mlp.shared_experts.up_proj": "ffn_up_shexp",
        "mlp.shared_experts.down_proj": "ffn_down_shexp",
    },
    fields=_without(_WINDOWLESS, "head_dim", "num_key_value_heads")
    | EXPERT_FIELDS
    | EXPERT_WIDTH
    | {
        "q_lora_rank": "attention.q_lora_rank",
        "kv_lora_rank": "attention.kv_lora_rank",
        "qk_rope_head_dim": "rope.dimension_count",
        "n_shared_experts": "expert_shared_count",
        "first_k_dense_replace": "leading_dense_block_count",
        "n_group": "expert_group_count",
        "topk_group": "expert_group_used_count",
    },
)
DECODER_NAMES["DeepseekV3"] = replace(
    DECODER_NAMES["DeepseekV2"], parameters={"mlp.gate.e_score_correction_bias": "exp_probs_b.bias"}
)
