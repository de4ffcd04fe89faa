"""transformers' defaults of configs of decoders whose layers have states, by `model_type`.

The values are those of transformers 5.23, as in `configuration_defaults.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The names of the classes.
STATES: dict[str, str] = {
    "falcon_h1": "FalconH1Config",
    "jamba": "JambaConfig",
    "lfm2": "Lfm2Config",
    "lfm2_moe": "Lfm2MoeConfig",
    "mamba": "MambaConfig",
    "mamba2": "Mamba2Config",
    "qwen3_5_moe_text": "Qwen3_5MoeTextConfig",
    "qwen3_5_text": "Qwen3_5TextConfig",
    "qwen3_next": "Qwen3NextConfig",
}


def without(settings: Mapping[str, Any], names: str) -> dict[str, Any]:
    """Return settings without some of their names."""
    return {name: value for name, value in settings.items() if name not in names.split()}


def settings_of_states(llama: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of each model.  Args: llama: those of Llama"""
    return _of_convolutions(llama) | _of_scans(llama) | _of_delta_rules(llama)


# fmt: off
def _of_convolutions(llama: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of models whose layers are short convolutions."""
    settings: dict[str, dict[str, Any]] = {}
    settings["lfm2"] = without(
        llama,
        "rms_norm_eps hidden_act pretraining_tp attention_bias attention_dropout mlp_bias head_dim",
    ) | {
        "vocab_size": 65536, "hidden_size": 2560, "intermediate_size": 12288, "num_key_value_heads": 8,
        "max_position_embeddings": 128000, "norm_eps": 1e-05, "pad_token_id": 0, "tie_word_embeddings": True,
        "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"}, "conv_bias": False, "conv_L_cache": 3,
        "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0, "block_auto_adjust_ff_dim": True,
    }
    settings["lfm2_moe"] = without(
        settings["lfm2"],
        "block_multiple_of block_ffn_dim_multiplier block_auto_adjust_ff_dim",
    ) | {
        "hidden_size": 2048, "intermediate_size": 7168, "moe_intermediate_size": 1792, "num_dense_layers": 2,
        "num_experts_per_tok": 4, "output_router_logits": False, "num_experts": 32, "use_expert_bias": True,
        "routed_scaling_factor": 1.0, "norm_topk_prob": True,
    }
    return settings


def _of_scans(llama: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of Mambas, and of models that have their layers."""
    settings: dict[str, dict[str, Any]] = {}
    settings["mamba"] = {
        "vocab_size": 50280, "hidden_size": 768, "state_size": 16, "num_hidden_layers": 32,
        "layer_norm_epsilon": 1e-05, "pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0, "expand": 2,
        "conv_kernel": 4, "use_bias": False,
        "use_conv_bias": True, "hidden_act": "silu", "initializer_range": 0.1, "residual_in_fp32": True,
        "time_step_rank": "auto", "time_step_scale": 1.0, "time_step_min": 0.001, "time_step_max": 0.1,
        "time_step_init_scheme": "random", "time_step_floor": 0.0001, "rescale_prenorm_residual": False,
        "use_cache": True, "use_mambapy": False, "use_associative_scan": True, "tie_word_embeddings": True,
    }
    settings["mamba2"] = without(
        settings["mamba"],
        "time_step_scale time_step_init_scheme use_mambapy use_associative_scan",
    ) | {
        "num_heads": 128, "head_dim": 64, "vocab_size": 32768, "hidden_size": 4096, "state_size": 128,
        "num_hidden_layers": 64, "pad_token_id": 1, "eos_token_id": 2, "n_groups": 8, "time_step_rank": 256,
        "time_step_limit": [0.0, float("inf")], "chunk_size": 256, "tie_word_embeddings": False,
    }
    scan = {
        "mamba_d_conv": 4, "mamba_expand": 2, "mamba_conv_bias": True, "mamba_proj_bias": False, "pad_token_id": 0,
        "num_key_value_heads": 8,
    }
    settings["falcon_h1"] = without(
        llama,
        "pretraining_tp head_dim",
    ) | scan | {
        "vocab_size": 128000, "intermediate_size": 14336, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05,
        "num_logits_to_keep": 1, "mamba_d_ssm": 1024, "mamba_n_heads": 128, "mamba_d_head": 8, "mamba_n_groups": 1,
        "mamba_d_state": 256, "mamba_chunk_size": 256, "mamba_norm_before_gate": True, "mamba_rms_norm": False,
        "time_step_limit": [0.0, float("inf")], "projectors_bias": False, "lm_head_multiplier": 1.0,
        "embedding_multiplier": 1.0, "mlp_multipliers": [1.0] * 2, "key_multiplier": 1.0,
        "attention_out_multiplier": 1.0, "attention_in_multiplier": 1.0, "ssm_multipliers": [1.0] * 5,
        "ssm_in_multiplier": 1.0, "ssm_out_multiplier": 1.0,
    }
    settings["jamba"] = without(
        llama,
        "pretraining_tp head_dim attention_bias mlp_bias rope_parameters",
    ) | scan | {
        "vocab_size": 65536, "intermediate_size": 14336, "max_position_embeddings": 262144,
        "output_router_logits": False, "router_aux_loss_coef": 0.001, "num_experts_per_tok": 2, "num_experts": 16,
        "expert_layer_period": 2, "expert_layer_offset": 1, "attn_layer_period": 8, "attn_layer_offset": 4,
        "use_mamba_kernels": True, "mamba_d_state": 16, "mamba_dt_rank": 256, "use_mambapy": False,
        "use_associative_scan": True,
    }
    return settings


def _of_delta_rules(llama: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of models whose layers are gated delta rules."""
    settings: dict[str, dict[str, Any]] = {}
    settings["qwen3_next"] = without(
        llama,
        "pretraining_tp mlp_bias",
    ) | {
        "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 48,
        "num_attention_heads": 16, "num_key_value_heads": 2, "max_position_embeddings": 32768, "bos_token_id": None,
        "eos_token_id": None, "head_dim": 256, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
        "rope_parameters": {"rope_theta": 10000.0, "partial_rotary_factor": 0.25, "rope_type": "default"},
        "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
        "decoder_sparse_step": 1,
        "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts_per_tok": 10,
        "num_experts": 512, "norm_topk_prob": True, "output_router_logits": False, "router_aux_loss_coef": 0.001,
        "mlp_only_layers": [],
    }
    settings["qwen3_5_moe_text"] = without(
        settings["qwen3_next"],
        "intermediate_size decoder_sparse_step norm_topk_prob mlp_only_layers",
    ) | {
        "vocab_size": 248320, "num_hidden_layers": 40, "num_experts_per_tok": 8, "num_experts": 256,
    }
    settings["qwen3_5_text"] = without(
        settings["qwen3_5_moe_text"],
        "moe_intermediate_size shared_expert_intermediate_size num_experts_per_tok num_experts output_router_logits "
        "router_aux_loss_coef",
    ) | {
        "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 32, "num_key_value_heads": 4,
    }
    return settings
# fmt: on
