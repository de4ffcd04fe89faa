"""transformers' defaults of configs of decoders that differ from Llama's in some terms, by `model_type`.

The values are those of transformers 5.23, as in `configuration_defaults.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The names of the classes.
DECODERS: dict[str, str] = {
    "arcee": "ArceeConfig",
    "cohere": "CohereConfig",
    "cohere2": "Cohere2Config",
    "deepseek_v2": "DeepseekV2Config",
    "deepseek_v3": "DeepseekV3Config",
    "ernie4_5": "Ernie4_5Config",
    "exaone4": "Exaone4Config",
    "gemma4_text": "Gemma4TextConfig",
    "glm": "GlmConfig",
    "glm4": "Glm4Config",
    "gpt_neox": "GPTNeoXConfig",
    "gpt_oss": "GptOssConfig",
    "granite": "GraniteConfig",
    "granitemoehybrid": "GraniteMoeHybridConfig",
    "helium": "HeliumConfig",
    "hunyuan_v1_dense": "HunYuanDenseV1Config",
    "ministral": "MinistralConfig",
    "ministral3": "Ministral3Config",
    "nanochat": "NanoChatConfig",
    "olmo": "OlmoConfig",
    "olmo2": "Olmo2Config",
    "olmo3": "Olmo3Config",
    "opt": "OPTConfig",
    "phi": "PhiConfig",
    "seed_oss": "SeedOssConfig",
    "smollm3": "SmolLM3Config",
    "stablelm": "StableLmConfig",
    "starcoder2": "Starcoder2Config",
}


def changed(llama: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of each model, from those of Llama."""
    return {
        kind: {name: value for name, value in llama.items() if name not in gone.split()} | settings
        for kind, (gone, settings) in _CHANGES.items()
    }


# fmt: off
_LATENTS = {
    "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "head_dim": None, "qk_head_dim": None, "output_router_logits": False,
}
# The settings of Llama that a model does not have, and its own.
_CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "arcee": ("pretraining_tp", {
        "hidden_size": 2560, "intermediate_size": 18432, "num_key_value_heads": 32, "hidden_act": "relu2",
        "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "bos_token_id": 128000, "eos_token_id": 128001,
        "head_dim": 80,
    }),
    "cohere": ("rms_norm_eps pretraining_tp mlp_bias head_dim", {
        "vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "logit_scale": 0.0625,
        "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": 64,
        "max_position_embeddings": 8192, "layer_norm_eps": 1e-05, "pad_token_id": 0, "bos_token_id": 5,
        "eos_token_id": 255001, "tie_word_embeddings": True, "rope_parameters": {"rope_theta": 500000.0,
        "rope_type": "default"}, "use_qk_norm": False,
    }),
    "cohere2": ("rms_norm_eps pretraining_tp mlp_bias", {
        "vocab_size": 256000, "hidden_size": 8192, "intermediate_size": 22528, "logit_scale": 0.0625,
        "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": 64,
        "max_position_embeddings": 8192, "layer_norm_eps": 1e-05, "pad_token_id": 0, "bos_token_id": 5,
        "eos_token_id": 255001, "tie_word_embeddings": True, "sliding_window": 4096, "head_dim": 128,
    }),
    "deepseek_v2": ("", _LATENTS | {
        "vocab_size": 102400, "first_k_dense_replace": 0, "n_group": None, "n_routed_experts": 64,
        "n_shared_experts": 2, "routed_scaling_factor": 1.0, "topk_group": None, "topk_method": "greedy",
        "norm_topk_prob": False, "num_experts_per_tok": None, "moe_intermediate_size": 1407,
    }),
    "deepseek_v3": ("mlp_bias", _LATENTS | {
        "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
        "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "n_shared_experts": 1,
        "n_routed_experts": 256, "routed_scaling_factor": 2.5, "n_group": 8, "topk_group": 4,
        "num_experts_per_tok": 8, "first_k_dense_replace": 3, "norm_topk_prob": True,
        "max_position_embeddings": 4096, "bos_token_id": 0, "eos_token_id": 1, "rope_interleave": True,
        "num_nextn_predict_layers": 1,
    }),
    "ernie4_5": ("pretraining_tp attention_bias attention_dropout mlp_bias", {
        "vocab_size": 103424, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 18,
        "num_attention_heads": 16, "num_key_value_heads": 2, "max_position_embeddings": 131072, "rms_norm_eps":
        1e-05, "pad_token_id": 0, "tie_word_embeddings": True, "rope_parameters": {"rope_theta": 500000.0,
        "rope_type": "default"}, "use_bias": False, "head_dim": 128,
    }),
    "exaone4": ("pretraining_tp attention_bias mlp_bias head_dim", {
        "vocab_size": 102400, "intermediate_size": 16384, "num_key_value_heads": 32, "rms_norm_eps": 1e-05,
        "bos_token_id": 0, "sliding_window": 4096, "sliding_window_pattern": 4,
    }),
    "gemma4_text": ("hidden_act pretraining_tp mlp_bias", {
        "vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 30,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "hidden_activation":
        "gelu_pytorch_tanh", "max_position_embeddings": 131072, "pad_token_id": 0, "eos_token_id": 1,
        "bos_token_id": 2, "tie_word_embeddings": True, "rope_parameters": {"sliding_attention": {"rope_type":
        "default", "rope_theta": 10000.0}, "full_attention": {"rope_type": "proportional",
        "partial_rotary_factor": 0.25, "rope_theta": 1000000.0}}, "sliding_window": 512,
        "final_logit_softcapping": None, "use_bidirectional_attention": None, "vocab_size_per_layer_input":
        262144, "hidden_size_per_layer_input": 256, "attention_k_eq_v": False, "num_kv_shared_layers": 0,
        "enable_moe_block": False, "use_double_wide_mlp": False, "num_experts": None, "top_k_experts": None,
        "moe_intermediate_size": None, "per_layer_config": {"05": {"head_dim": 512}, "11": {"head_dim": 512},
        "17": {"head_dim": 512}, "23": {"head_dim": 512}, "29": {"head_dim": 512}},
    }),
    "glm": ("pretraining_tp mlp_bias", {
        "vocab_size": 151552, "intermediate_size": 13696, "num_hidden_layers": 40, "num_key_value_heads": 2,
        "head_dim": 128, "max_position_embeddings": 131072, "rms_norm_eps": 1.5625e-07, "rope_parameters":
        {"rope_theta": 10000.0, "partial_rotary_factor": 0.5, "rope_type": "default"}, "pad_token_id": 151329,
        "eos_token_id": [151329, 151336, 151338], "bos_token_id": None, "attention_bias": True,
    }),
    "glm4": ("pretraining_tp mlp_bias", {
        "vocab_size": 151552, "intermediate_size": 13696, "num_hidden_layers": 40, "num_key_value_heads": 2,
        "head_dim": 128, "max_position_embeddings": 131072, "rms_norm_eps": 1.5625e-07, "rope_parameters":
        {"rope_theta": 10000.0, "partial_rotary_factor": 0.5, "rope_type": "default"}, "pad_token_id": 151329,
        "eos_token_id": [151329, 151336, 151338], "bos_token_id": None, "attention_bias": True,
    }),
    "gpt_neox": ("num_key_value_heads rms_norm_eps pretraining_tp mlp_bias head_dim", {
        "vocab_size": 50432, "hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64,
        "intermediate_size": 24576, "hidden_act": "gelu", "hidden_dropout": 0.0, "classifier_dropout": 0.1,
        "layer_norm_eps": 1e-05, "bos_token_id": 0, "use_parallel_residual": True, "rope_parameters":
        {"rope_theta": 10000.0, "partial_rotary_factor": 0.25, "rope_type": "default"}, "attention_bias": True,
        "is_decoder": False,
    }),
    "gpt_oss": ("pretraining_tp mlp_bias", {
        "num_hidden_layers": 36, "num_local_experts": 128, "vocab_size": 201088, "hidden_size": 2880,
        "intermediate_size": 2880, "head_dim": 64, "num_attention_heads": 64, "num_key_value_heads": 8,
        "sliding_window": 128, "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_parameters":
        {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 4096, "rope_theta": 150000.0}, "num_experts_per_tok": 4,
        "swiglu_alpha": 1.702, "swiglu_limit": 7.0, "router_aux_loss_coef": 0.001, "output_router_logits":
        False, "bos_token_id": None, "eos_token_id": None, "attention_bias": True,
    }),
    "granite": ("pretraining_tp head_dim", {
        "num_key_value_heads": 32, "embedding_multiplier": 1.0, "logits_scaling": 1.0, "residual_multiplier":
        1.0, "attention_multiplier": 1.0,
    }),
    "granitemoehybrid": ("pretraining_tp mlp_bias head_dim", {
        "num_key_value_heads": 32, "embedding_multiplier": 1.0, "logits_scaling": 1.0, "residual_multiplier":
        1.0, "attention_multiplier": 1.0, "num_local_experts": 8, "num_experts_per_tok": 2,
        "output_router_logits": False, "router_aux_loss_coef": 0.001, "shared_intermediate_size": 1024,
        "position_embedding_type": None, "mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256,
        "mamba_d_head": 64, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 256, "mamba_conv_bias":
        True, "mamba_proj_bias": False, "time_step_limit": [0.0, float("inf")],
    }),
    "helium": ("pretraining_tp", {
        "vocab_size": 48000, "hidden_size": 2560, "intermediate_size": 7040, "num_hidden_layers": 24,
        "num_attention_heads": 20, "num_key_value_heads": 20, "head_dim": 128, "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-08, "rope_parameters": {"rope_theta": 100000.0, "rope_type": "default"},
        "pad_token_id": 3,
    }),
    "hunyuan_v1_dense": ("mlp_bias", {
        "vocab_size": 290943, "num_key_value_heads": 32, "rms_norm_eps": 1e-05, "pad_token_id": 0,
        "eod_token_id": 3,
    }),
    "ministral": ("pretraining_tp attention_bias mlp_bias", {
        "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131072,
        "sliding_window": 4096,
    }),
    "ministral3": ("pretraining_tp attention_bias mlp_bias", {
        "vocab_size": 131072, "intermediate_size": 14336, "num_hidden_layers": 34, "num_key_value_heads": 8,
        "head_dim": 128, "max_position_embeddings": 262144, "rms_norm_eps": 1e-05, "pad_token_id": 11,
        "rope_parameters": {"type": "yarn", "rope_theta": 1000000.0, "factor": 16.0,
        "original_max_position_embeddings": 16384, "max_position_embeddings": 262144, "beta_fast": 32.0,
        "beta_slow": 1.0, "mscale_all_dim": 1.0, "mscale": 1.0, "llama_4_scaling_beta": 0.1, "rope_type":
        "yarn"}, "sliding_window": None,
    }),
    "nanochat": ("pretraining_tp mlp_bias head_dim", {
        "vocab_size": 50304, "hidden_size": 768, "intermediate_size": 8192, "num_hidden_layers": 12,
        "num_attention_heads": 6, "num_key_value_heads": 6, "hidden_act": "relu2", "final_logit_softcapping":
        15.0, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1,
    }),
    "olmo": ("rms_norm_eps pretraining_tp mlp_bias head_dim", {
        "vocab_size": 50304, "num_key_value_heads": 32, "pad_token_id": 1, "bos_token_id": None, "eos_token_id":
        50279, "clip_qkv": None,
    }),
    "olmo2": ("pretraining_tp mlp_bias head_dim", {
        "vocab_size": 50304, "num_key_value_heads": 32, "pad_token_id": 1, "bos_token_id": None, "eos_token_id":
        50279, "rms_norm_eps": 1e-05,
    }),
    "olmo3": ("pretraining_tp mlp_bias head_dim", {
        "vocab_size": 50304, "num_key_value_heads": 32, "pad_token_id": 1, "bos_token_id": None, "eos_token_id":
        50279, "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 500000.0},
        "full_attention": {"rope_type": "default", "rope_theta": 500000.0}}, "rms_norm_eps": 1e-05,
        "sliding_window": 4096,
    }),
    "opt": (
        ("intermediate_size num_key_value_heads hidden_act initializer_range rms_norm_eps pretraining_tp "
         "rope_parameters attention_bias mlp_bias head_dim"), {
        "vocab_size": 50272, "hidden_size": 768, "num_hidden_layers": 12, "ffn_dim": 3072,
        "do_layer_norm_before": True, "word_embed_proj_dim": 768, "dropout": 0.1, "num_attention_heads": 12,
        "activation_function": "relu", "layerdrop": 0.0, "init_std": 0.02, "pad_token_id": 1, "bos_token_id": 2,
        "enable_bias": True, "layer_norm_elementwise_affine": True, "tie_word_embeddings": True,
    }),
    "phi": ("rms_norm_eps pretraining_tp attention_bias mlp_bias head_dim", {
        "vocab_size": 51200, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24,
        "num_key_value_heads": 32, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-05, "rope_parameters": {"rope_theta": 10000.0, "partial_rotary_factor": 0.5,
        "rope_type": "default"}, "qk_layernorm": False,
    }),
    "seed_oss": ("", {
        "vocab_size": 155136, "intermediate_size": 27648, "num_hidden_layers": 64, "num_attention_heads": 80,
        "num_key_value_heads": 8, "max_position_embeddings": 524288, "pad_token_id": 1, "bos_token_id": 0,
        "attention_bias": True, "attention_out_bias": False, "attention_dropout": 0.1, "residual_dropout": 0.1,
        "head_dim": 128,
    }),
    "smollm3": ("pretraining_tp head_dim", {
        "vocab_size": 128256, "hidden_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 16,
        "num_key_value_heads": 4, "max_position_embeddings": 32768, "pad_token_id": 128004, "bos_token_id":
        128000, "eos_token_id": 128001, "rope_parameters": {"rope_theta": 2000000.0, "rope_type": "default"},
        "use_sliding_window": False, "sliding_window": None, "no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1,
        0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0], "no_rope_layer_interval": 4,
        "tie_word_embeddings": True,
    }),
    "stablelm": ("rms_norm_eps pretraining_tp attention_bias mlp_bias head_dim", {
        "vocab_size": 50304, "intermediate_size": 6912, "hidden_size": 2560, "num_key_value_heads": 32,
        "max_position_embeddings": 4096, "layer_norm_eps": 1e-05, "rope_parameters": {"rope_theta": 10000.0,
        "partial_rotary_factor": 0.25, "rope_type": "default"}, "use_qkv_bias": False, "qk_layernorm": False,
        "use_parallel_residual": False, "hidden_dropout": 0.0, "bos_token_id": 0, "eos_token_id": 0,
    }),
    "starcoder2": ("rms_norm_eps pretraining_tp attention_bias mlp_bias head_dim", {
        "vocab_size": 49152, "hidden_size": 3072, "intermediate_size": 12288, "num_hidden_layers": 30,
        "num_attention_heads": 24, "num_key_value_heads": 2, "hidden_act": "gelu_pytorch_tanh",
        "max_position_embeddings": 4096, "initializer_range": 0.018042, "norm_epsilon": 1e-05, "bos_token_id":
        50256, "eos_token_id": 50256, "sliding_window": None, "residual_dropout": 0.0, "embedding_dropout": 0.0,
        "use_bias": True, "tie_word_embeddings": True,
    }),
}
# fmt: on
