"""Small transformers models with random weights, of every architecture and head that tallow has except Whisper."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
import transformers

PROMPT, NEW_TOKENS = 5, 24  # tokens; the sum exceeds the window of models that treat long texts differently
Sizes: TypeAlias = tuple[str, dict[str, Any]]  # name of a transformers class, and arguments of its config

VOCAB = 97
GPT2_SIZES = {
    "vocab_size": VOCAB,
    "n_positions": 64,
    "n_embd": 32,
    "n_layer": 3,
    "n_head": 4,
    "initializer_range": 0.2,
    "bos_token_id": 1,
    "eos_token_id": None,
}
LLAMA_SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
    "bos_token_id": 1,
    "eos_token_id": None,
    "pad_token_id": None,  # transformers gives a padding embedding the gradient 0
}
FALCON_SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
    "bos_token_id": 1,
    "eos_token_id": None,
}
# The caps are so low that most scores and logits are close to them.
GEMMA2 = {
    "head_dim": 16,
    "sliding_window": 7,
    "query_pre_attn_scalar": 24,
    "attn_logit_softcapping": 1.0,
    "final_logit_softcapping": 3.0,
}
GEMMA3 = {
    "head_dim": 16,
    "sliding_window": 7,
    "query_pre_attn_scalar": 24,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 5000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
    },
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0, 1.1, 1.2, 1.3],
    "long_factor": [1.0, 1.5, 2.5, 4.0],
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 100.0,
    "factor": 3.0,
    "beta_fast": 4.0,
    "beta_slow": 0.5,
    "mscale": 0.7,
    "mscale_all_dim": 0.3,
    "truncate": False,
}
FACTORS = {"embedding_multiplier": 3.0, "residual_multiplier": 0.4, "attention_multiplier": 0.2, "logits_scaling": 2.0}
NEOX_SIZES = {name: value for name, value in LLAMA_SIZES.items() if name != "num_key_value_heads"}
NEOX_SIZES["rope_parameters"] = {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}
OPT_SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "ffn_dim": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "word_embed_proj_dim": 32,
    "dropout": 0.0,
    "init_std": 0.2,
    "bos_token_id": 1,
    "eos_token_id": None,
    "pad_token_id": None,
}
GEMMA4 = {
    "num_hidden_layers": 6,
    "head_dim": 8,
    "global_head_dim": 16,
    "sliding_window": 7,
    "layer_types": ["sliding_attention", "full_attention"] * 3,
    "num_kv_shared_layers": 3,
    "use_double_wide_mlp": True,
    "hidden_size_per_layer_input": 6,
    "vocab_size_per_layer_input": 500,
    "final_logit_softcapping": 3.0,
    "tie_word_embeddings": True,
}
SLIDING = {"use_sliding_window": True, "sliding_window": 7}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 24}
LATENTS = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 20,
    "qk_nope_head_dim": 10,
    "qk_rope_head_dim": 6,
    "v_head_dim": 14,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 24,
    "first_k_dense_replace": 1,
}
MAMBA_SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "state_size": 6,
    "num_hidden_layers": 3,
    "initializer_range": 0.2,
    "bos_token_id": 1,
    "eos_token_id": None,
    "pad_token_id": None,
}
FALCON_H1 = {
    "mamba_d_state": 6,
    "mamba_d_ssm": 48,
    "mamba_n_heads": 4,
    "mamba_chunk_size": 16,
    "embedding_multiplier": 3.0,
    "lm_head_multiplier": 0.5,
    "key_multiplier": 0.6,
    "attention_in_multiplier": 0.7,
    "attention_out_multiplier": 0.8,
    "ssm_in_multiplier": 1.2,
    "ssm_out_multiplier": 0.9,
    "mlp_multipliers": [0.7, 1.3],
    "ssm_multipliers": [1.1, 0.9, 1.2, 0.8, 1.3],
}
JAMBA = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "attn_layer_period": 3,
    "attn_layer_offset": 1,
    "mamba_d_state": 6,
}
DELTA = {
    "rms_norm_eps": 1e-3,  # the norm of an output that is close to zero magnifies how sums are rounded
    "head_dim": 16,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5},
}
# transformers class and config sizes
LANGUAGE_MODELS: dict[str, Sizes] = {
    "gpt2": ("GPT2LMHeadModel", GPT2_SIZES),
    "gpt2, other scales": (
        "GPT2LMHeadModel",
        GPT2_SIZES | {"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True, "n_inner": 48},
    ),
    "gpt2, relu": ("GPT2LMHeadModel", GPT2_SIZES | {"activation_function": "relu", "layer_norm_epsilon": 1e-3}),
    "llama": (
        "LlamaForCausalLM",
        LLAMA_SIZES
        | {"rope_parameters": LLAMA3, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    ),
    "mistral": ("MistralForCausalLM", LLAMA_SIZES | {"sliding_window": None}),
    "mistral, sliding": ("MistralForCausalLM", LLAMA_SIZES | {"sliding_window": 7, "head_dim": 12}),
    "qwen2": ("Qwen2ForCausalLM", LLAMA_SIZES | {"tie_word_embeddings": True}),
    "qwen2, sliding": ("Qwen2ForCausalLM", LLAMA_SIZES | SLIDING | {"max_window_layers": 1}),
    "qwen3": ("Qwen3ForCausalLM", LLAMA_SIZES | {"head_dim": 16, "attention_bias": True}),
    "qwen3, by layer": (
        "Qwen3ForCausalLM",
        LLAMA_SIZES | SLIDING | {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    ),
    "gemma": ("GemmaForCausalLM", LLAMA_SIZES | {"head_dim": 16, "num_key_value_heads": 1}),
    "gemma2": ("Gemma2ForCausalLM", LLAMA_SIZES | GEMMA2),
    "gemma2, by layer": (
        "Gemma2ForCausalLM",
        LLAMA_SIZES
        | GEMMA2
        | {"layer_types": ["full_attention", "full_attention", "sliding_attention"], "attention_bias": True}
        | {"attn_logit_softcapping": None, "final_logit_softcapping": None},
    ),
    "gemma3": ("Gemma3ForCausalLM", LLAMA_SIZES | GEMMA3 | {"attn_logit_softcapping": 1.0}),
    "gemma3, by layer": (
        "Gemma3ForCausalLM",
        LLAMA_SIZES
        | GEMMA3
        | {"layer_types": ["full_attention", "sliding_attention", "full_attention"], "attention_bias": True}
        | {"final_logit_softcapping": 3.0},
    ),
    "mixtral": ("MixtralForCausalLM", LLAMA_SIZES | {"num_local_experts": 5, "sliding_window": 7}),
    "olmoe": (
        "OlmoeForCausalLM",
        LLAMA_SIZES | {"num_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": True, "attention_bias": True},
    ),
    "olmoe, clipped": ("OlmoeForCausalLM", LLAMA_SIZES | {"num_experts": 4, "num_experts_per_tok": 1, "clip_qkv": 0.5}),
    "qwen2 moe": (
        "Qwen2MoeForCausalLM",
        LLAMA_SIZES | EXPERTS | SLIDING | {"shared_expert_intermediate_size": 40, "max_window_layers": 2},
    ),
    "qwen3 moe": (
        "Qwen3MoeForCausalLM",
        LLAMA_SIZES | EXPERTS | {"head_dim": 16, "norm_topk_prob": True, "num_experts_per_tok": 8},
    ),
    "qwen3 moe, by layer": (
        "Qwen3MoeForCausalLM",
        LLAMA_SIZES | EXPERTS | SLIDING | {"decoder_sparse_step": 2, "num_hidden_layers": 4, "mlp_only_layers": [3]},
    ),
    "phi3": ("Phi3ForCausalLM", LLAMA_SIZES | {"sliding_window": 9}),
    "lfm2": (
        "Lfm2ForCausalLM",
        LLAMA_SIZES | {"layer_types": ["conv", "full_attention", "conv"], "block_multiple_of": 8},
    ),
    "lfm2 moe": (
        "Lfm2MoeForCausalLM",
        LLAMA_SIZES
        | EXPERTS
        | {"layer_types": ["conv", "full_attention", "conv"], "num_dense_layers": 1, "routed_scaling_factor": 1.7},
    ),
    "lfm2 moe, no bias": (
        "Lfm2MoeForCausalLM",
        LLAMA_SIZES
        | EXPERTS
        | {"layer_types": ["full_attention", "conv", "conv"], "num_dense_layers": 0, "use_expert_bias": False}
        | {"norm_topk_prob": False, "num_experts_per_tok": 1},
    ),
    "qwen3 next": (
        "Qwen3NextForCausalLM",
        LLAMA_SIZES
        | EXPERTS
        | DELTA
        | {"shared_expert_intermediate_size": 20, "mlp_only_layers": [1], "decoder_sparse_step": 1}
        | {"layer_types": ["linear_attention", "full_attention", "linear_attention"], "attention_bias": True},
    ),
    "qwen3.5": ("Qwen3_5ForCausalLM", LLAMA_SIZES | DELTA | {"num_hidden_layers": 4, "tie_word_embeddings": True}),
    "qwen3.5 moe": (
        "Qwen3_5MoeForCausalLM",
        LLAMA_SIZES
        | EXPERTS
        | DELTA
        | {"shared_expert_intermediate_size": 20, "linear_num_value_heads": 2, "linear_key_head_dim": 12}
        | {"layer_types": ["full_attention", "linear_attention", "linear_attention"]},
    ),
    "deepseek v2": ("DeepseekV2ForCausalLM", LLAMA_SIZES | LATENTS | {"q_lora_rank": None, "attention_bias": True}),
    "deepseek v2, groups": (
        "DeepseekV2ForCausalLM",
        LLAMA_SIZES
        | LATENTS
        | {"n_group": 4, "topk_group": 2, "topk_method": "group_limited_greedy", "routed_scaling_factor": 1.7}
        | {"q_lora_rank": 12, "kv_lora_rank": 8, "rope_parameters": YARN},
    ),
    "deepseek v3": (
        "DeepseekV3ForCausalLM",
        LLAMA_SIZES
        | LATENTS
        | {"n_group": 4, "topk_group": 2, "q_lora_rank": 12, "attention_bias": True, "rope_parameters": YARN},
    ),
    "deepseek v3, no groups": (
        "DeepseekV3ForCausalLM",
        LLAMA_SIZES
        | LATENTS
        | {"n_group": 1, "topk_group": 1, "q_lora_rank": None, "norm_topk_prob": False, "first_k_dense_replace": 0},
    ),
    "mamba": ("MambaForCausalLM", MAMBA_SIZES),
    "mamba, biases": (
        "MambaForCausalLM",
        MAMBA_SIZES | {"use_bias": True, "use_conv_bias": False, "time_step_rank": 5, "expand": 3, "conv_kernel": 3},
    ),
    "mamba2": ("Mamba2ForCausalLM", MAMBA_SIZES | {"num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 16}),
    "falcon-h1": ("FalconH1ForCausalLM", LLAMA_SIZES | FALCON_H1),
    "falcon-h1, norms": (
        "FalconH1ForCausalLM",
        LLAMA_SIZES
        | FALCON_H1
        | {"mamba_rms_norm": True, "mamba_n_groups": 2, "mamba_norm_before_gate": True, "mamba_conv_bias": False}
        | {"projectors_bias": True, "mamba_proj_bias": True},
    ),
    "falcon-h1, norms after": (
        "FalconH1ForCausalLM",
        LLAMA_SIZES | FALCON_H1 | {"mamba_rms_norm": True, "mamba_norm_before_gate": False, "attention_bias": True},
    ),
    "jamba": ("JambaForCausalLM", LLAMA_SIZES | JAMBA),
    "jamba, one expert": (
        "JambaForCausalLM",
        LLAMA_SIZES | JAMBA | {"num_experts": 1, "mamba_conv_bias": False, "mamba_dt_rank": 5},
    ),
    "lfm2, biases": (
        "Lfm2ForCausalLM",
        LLAMA_SIZES
        | {"full_attn_idxs": [2], "conv_L_cache": 4, "conv_bias": True, "block_auto_adjust_ff_dim": False}
        | {"tie_word_embeddings": False},
    ),
    "falcon 7b": ("FalconForCausalLM", FALCON_SIZES),
    "falcon 40b": ("FalconForCausalLM", FALCON_SIZES | {"new_decoder_architecture": True, "num_kv_heads": 2}),
    "falcon 11b": (
        "FalconForCausalLM",
        FALCON_SIZES
        | {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1}
        | {"tie_word_embeddings": False, "ffn_hidden_size": 48},
    ),
    "falcon rw": (
        "FalconForCausalLM",
        FALCON_SIZES
        | {"alibi": True, "multi_query": False, "parallel_attn": False, "bias": True}
        | {"num_attention_heads": 6, "hidden_size": 36},
    ),
    "smollm3": ("SmolLM3ForCausalLM", LLAMA_SIZES | {"no_rope_layers": [1, 0, 1], "attention_bias": True}),
    "granite": ("GraniteForCausalLM", LLAMA_SIZES | FACTORS | {"mlp_bias": True}),
    "granite 4": (
        "GraniteMoeHybridForCausalLM",
        LLAMA_SIZES
        | FACTORS
        | {"num_local_experts": 0, "shared_intermediate_size": 40, "layer_types": ["full_attention"] * 3}
        | {"mamba_n_heads": 2, "mamba_d_head": 32},
    ),
    "olmo": ("OlmoForCausalLM", LLAMA_SIZES | {"clip_qkv": 0.5}),
    "olmo2": ("Olmo2ForCausalLM", LLAMA_SIZES),
    "olmo3": (
        "Olmo3ForCausalLM",
        LLAMA_SIZES
        | {"sliding_window": 7, "num_hidden_layers": 4}
        | {
            "rope_parameters": {
                "full_attention": LLAMA3,
                "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
            }
        },
    ),
    "ministral": (
        "MinistralForCausalLM",
        LLAMA_SIZES
        | {"sliding_window": 7, "head_dim": 12}
        | {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    ),
    "ministral3": (
        "Ministral3ForCausalLM",
        LLAMA_SIZES
        | {"head_dim": 12}
        | {
            "rope_parameters": YARN
            | {"llama_4_scaling_beta": 0.5, "original_max_position_embeddings": 16, "truncate": True}
        },
    ),
    "phi": ("PhiForCausalLM", LLAMA_SIZES | {"qk_layernorm": True}),
    "starcoder2": ("Starcoder2ForCausalLM", LLAMA_SIZES | {"sliding_window": 7}),
    "stablelm": ("StableLmForCausalLM", LLAMA_SIZES | {"use_qkv_bias": True, "qk_layernorm": True}),
    "stablelm, parallel": ("StableLmForCausalLM", LLAMA_SIZES | {"use_parallel_residual": True}),
    "ernie 4.5": ("Ernie4_5ForCausalLM", LLAMA_SIZES | {"head_dim": 12, "use_bias": True}),
    "seed oss": (
        "SeedOssForCausalLM",
        LLAMA_SIZES | {"head_dim": 12, "attention_out_bias": True, "residual_dropout": 0.0, "attention_dropout": 0.0},
    ),
    "hunyuan": (
        "HunYuanDenseV1ForCausalLM",
        LLAMA_SIZES
        | {
            "head_dim": 12,
            "rope_parameters": {"rope_type": "dynamic", "factor": 1.0, "alpha": 50.0, "rope_theta": 100.0},
        },
    ),
    "glm": ("GlmForCausalLM", LLAMA_SIZES | {"head_dim": 12, "rms_norm_eps": 1e-4}),
    "glm 4": ("Glm4ForCausalLM", LLAMA_SIZES | {"head_dim": 16, "attention_bias": False}),
    "cohere": ("CohereForCausalLM", LLAMA_SIZES | {"use_qk_norm": True, "logit_scale": 0.5}),
    "cohere2": ("Cohere2ForCausalLM", LLAMA_SIZES | {"sliding_window": 7, "num_hidden_layers": 4}),
    "exaone4": ("Exaone4ForCausalLM", LLAMA_SIZES | {"sliding_window": 7, "sliding_window_pattern": 2}),
    "nanochat": ("NanoChatForCausalLM", LLAMA_SIZES | {"final_logit_softcapping": 3.0}),
    "helium": ("HeliumForCausalLM", LLAMA_SIZES | {"head_dim": 8}),
    "arcee": ("ArceeForCausalLM", LLAMA_SIZES | {"attention_bias": True}),
    "gpt-neox": ("GPTNeoXForCausalLM", NEOX_SIZES | {"attention_bias": False}),
    "gpt-neox, in sequence": ("GPTNeoXForCausalLM", NEOX_SIZES | {"use_parallel_residual": False}),
    "opt": ("OPTForCausalLM", OPT_SIZES | {"word_embed_proj_dim": 20}),
    "opt, norms after": ("OPTForCausalLM", OPT_SIZES | {"do_layer_norm_before": False}),
    "gemma4": ("Gemma4ForCausalLM", LLAMA_SIZES | GEMMA4),
    "gemma4, keys as values": (
        "Gemma4ForCausalLM",
        LLAMA_SIZES
        | GEMMA4
        | {"hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "attention_k_eq_v": True}
        | {"num_global_key_value_heads": 1},
    ),
    "gpt-oss": (
        "GptOssForCausalLM",
        LLAMA_SIZES | {"num_local_experts": 5, "num_experts_per_tok": 2, "sliding_window": 7, "swiglu_limit": 1.0},
    ),
    "llama, dynamic": (
        "LlamaForCausalLM",
        LLAMA_SIZES
        | {"max_position_embeddings": 24}
        | {"rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}},
    ),
    # Texts of more than 24 tokens count as long.
    "phi3, longrope": (
        "Phi3ForCausalLM",
        LLAMA_SIZES | {"original_max_position_embeddings": 24, "rope_parameters": LONGROPE},
    ),
    "phi3, a part of each head": (
        "Phi3ForCausalLM",
        LLAMA_SIZES
        | {"num_attention_heads": 2, "sliding_window": 9, "original_max_position_embeddings": 24}
        | {"rope_parameters": LONGROPE | {"partial_rotary_factor": 0.5}},
    ),
    "llama, longrope": (
        "LlamaForCausalLM",
        LLAMA_SIZES | {"rope_parameters": LONGROPE | {"factor": 3.0, "original_max_position_embeddings": 24}},
    ),
    "qwen2, yarn": (
        "Qwen2ForCausalLM",
        LLAMA_SIZES | {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}},
    ),
    "qwen3, yarn": (
        "Qwen3ForCausalLM",
        LLAMA_SIZES | {"max_position_embeddings": 24, "head_dim": 16} | {"rope_parameters": YARN},
    ),
}

LABELS = {"id2label": {0: "bad", 1: "good", 2: "so so"}, "label2id": {"bad": 0, "good": 1, "so so": 2}}
ENCODER_SIZES = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
    "initializer_range": 0.2,
}
DISTILBERT_SIZES = {
    "vocab_size": ENCODER_SIZES["vocab_size"],
    "max_position_embeddings": 40,
    "n_layers": 3,
    "n_heads": 4,
    "dim": 32,
    "hidden_dim": 64,
    "initializer_range": 0.2,
}
MODERNBERT_SIZES = ENCODER_SIZES | {"local_attention": 8, "global_attn_every_n_layers": 2, "pad_token_id": 1}
HEADS = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
ENCODERS: dict[str, Sizes] = {
    "bert": ("Bert", {"type_vocab_size": 3}),
    "bert, tanh gelu": ("Bert", {"hidden_act": "gelu_new", "layer_norm_eps": 1e-3}),
    "roberta": ("Roberta", {"type_vocab_size": 1, "pad_token_id": 1}),
    "distilbert": ("DistilBert", {"activation": "relu"}),
    "modernbert": ("ModernBert", {"classifier_pooling": "mean", "norm_bias": True, "mlp_bias": True}),
    "modernbert, no bias": ("ModernBert", {"decoder_bias": False}),
    "modernbert, untied": ("ModernBert", {"decoder_bias": False, "tie_word_embeddings": False}),
    "xlm-roberta": ("XLMRoberta", {"type_vocab_size": 1, "hidden_act": "relu"}),
    "camembert": ("Camembert", {"type_vocab_size": 1, "pad_token_id": 1}),
}


IMAGE_SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 24,
    "patch_size": 4,
    "initializer_range": 0.2,
}
DINOV2_SIZES = {name: value for name, value in IMAGE_SIZES.items() if name != "intermediate_size"}
END = ENCODER_SIZES["vocab_size"] - 1  # of a text for CLIP
CLIP_TEXT_SIZES = ENCODER_SIZES | {"eos_token_id": END, "bos_token_id": 1}
CLIP_SIZES = {"text_config": CLIP_TEXT_SIZES, "vision_config": IMAGE_SIZES, "projection_dim": 12}
IMAGE_MODELS: dict[str, Sizes] = {
    "vit": ("ViTModel", IMAGE_SIZES | {"pooler_output_size": 20}),
    "vit, rectangular": ("ViTModel", IMAGE_SIZES | {"image_size": [24, 16], "patch_size": [4, 2]}),
    "vit ForImageClassification": ("ViTForImageClassification", IMAGE_SIZES | LABELS | {"qkv_bias": False}),
    "dinov2": ("Dinov2Model", DINOV2_SIZES | {"use_swiglu_ffn": True}),
    "dinov2 ForImageClassification": (
        "Dinov2ForImageClassification",
        DINOV2_SIZES | LABELS | {"drop_path_rate": 0.3},
    ),
    "clip": ("CLIPModel", CLIP_SIZES),
    "clip, texts": ("CLIPTextModel", CLIP_TEXT_SIZES | {"eos_token_id": 2}),
    "clip, images": ("CLIPVisionModel", IMAGE_SIZES | {"hidden_act": "gelu"}),
    "clip, projected texts": ("CLIPTextModelWithProjection", CLIP_TEXT_SIZES | {"projection_dim": 12}),
    "clip, projected images": ("CLIPVisionModelWithProjection", IMAGE_SIZES | {"projection_dim": 12}),
}


# Some decoders with another head or none: all share these heads.
BASES: dict[str, Sizes] = {
    "gpt2, no head": ("GPT2Model", GPT2_SIZES),
    "falcon, no head": ("FalconModel", FALCON_SIZES),
    "mistral, no head": ("MistralModel", LLAMA_SIZES | {"sliding_window": 7}),
    "qwen3, texts": ("Qwen3ForSequenceClassification", LLAMA_SIZES | {"pad_token_id": 0}),
}


T5_SIZES = {
    "vocab_size": VOCAB,
    "d_model": 32,
    "d_kv": 12,
    "d_ff": 64,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 20,
    "decoder_start_token_id": 0,
}
BART_SIZES = {
    "vocab_size": VOCAB,
    "d_model": 32,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 64,
    "init_std": 0.2,
}
MARIAN_SIZES = BART_SIZES | {
    "pad_token_id": 96,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
    "decoder_start_token_id": 96,
    "scale_embedding": True,
    "activation_function": "swish",
}
SEQ2SEQ: dict[str, Sizes] = {
    "t5": ("T5ForConditionalGeneration", T5_SIZES),
    "t5, gated": (
        "T5ForConditionalGeneration",
        T5_SIZES | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    ),
    "bart": ("BartForConditionalGeneration", BART_SIZES),
    "bart, scaled": (
        "BartForConditionalGeneration",
        BART_SIZES | {"scale_embedding": True, "activation_function": "relu"},
    ),
    "marian": ("MarianMTModel", MARIAN_SIZES),
    "marian, two vocabularies": (
        "MarianMTModel",
        MARIAN_SIZES | {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 110},
    ),
}


def _encoder(name: str, changes: dict[str, Any], head: str) -> Sizes:
    labels = {} if head == "ForQuestionAnswering" else LABELS  # two outputs: start and end logits
    sizes = {"DistilBert": DISTILBERT_SIZES, "ModernBert": MODERNBERT_SIZES}.get(name, ENCODER_SIZES)
    return name + head, sizes | labels | changes


EVERY: dict[str, Sizes] = {
    **LANGUAGE_MODELS,
    **BASES,
    **IMAGE_MODELS,
    **SEQ2SEQ,
    "t5, encoder": ("T5EncoderModel", T5_SIZES),
    **{f"{variant} {head}": _encoder(*ENCODERS[variant], head) for variant in ENCODERS for head in HEADS},
}


def reference_model(variant: str) -> Any:
    """Return the transformers model of a variant in EVERY. All of its weights affect the output."""
    name, sizes = EVERY[variant]
    torch.manual_seed(0)
    model_class = getattr(transformers, name)
    model = model_class(model_class.config_class(**sizes)).eval()
    with torch.no_grad():
        if variant in SEQ2SEQ and sizes.get("tie_word_embeddings") is False:
            model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))  # transformers ties it
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
        for name, buffer in model.named_buffers():
            if name.endswith(("expert_bias", "e_score_correction_bias")):
                buffer.normal_()
        for parameter in model.parameters():
            if parameter.ndim == 1:  # norms are initialized to ones, biases to zeros
                parameter.add_(torch.randn_like(parameter) / 4)
    return model


def tokens(length: int, batch: int = 2) -> list[list[int]]:
    """Return token ids for a language model."""
    return np.random.default_rng(0).integers(0, VOCAB, (batch, length)).tolist()


def inputs_of(variant: str, batch: int = 2) -> dict[str, npt.NDArray[Any]]:
    """Return inputs for a variant in EVERY. Encoders get two text lengths and padding, which is id 1 in most."""
    name, sizes = EVERY[variant]
    if variant in IMAGE_MODELS:
        return _image_inputs(name, batch, sizes.get("image_size"))
    if variant in SEQ2SEQ or name == "T5EncoderModel":
        rng = np.random.default_rng(0)
        ids, mask = rng.integers(3, VOCAB - 1, (batch, 30)), np.ones((batch, 30), np.int64)
        ids[1::2, 20:], mask[1::2, 20:] = sizes.get("pad_token_id", 0), 0
        inputs = {"input_ids": ids, "attention_mask": mask}
        return inputs | ({"decoder_input_ids": rng.integers(3, VOCAB - 1, (batch, 25))} if variant in SEQ2SEQ else {})
    if not name.startswith(tuple(encoder for encoder, _ in ENCODERS.values())):
        return {"input_ids": np.array(tokens(50, batch))}
    rng = np.random.default_rng(0)
    ids = rng.integers(5, ENCODER_SIZES["vocab_size"], (batch, 30))
    ids[1::2, 20:] = 1
    mask = np.ones((batch, 30), np.int64)
    mask[1::2, 20:] = 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    if not name.startswith(("DistilBert", "ModernBert")):
        inputs["token_type_ids"] = rng.integers(0, sizes.get("type_vocab_size", 2), (batch, 30))
    return inputs


def _image_inputs(name: str, batch: int, size: Any) -> dict[str, npt.NDArray[Any]]:
    rng = np.random.default_rng(0)
    sides = size if isinstance(size, list) else 2 * [IMAGE_SIZES["image_size"]]
    pixels = rng.standard_normal((batch, 3, *sides)).astype(np.float32)
    ids, mask = rng.integers(5, END, (batch, 30)), np.ones((batch, 30), np.int64)
    ids[:, -1], ids[1::2, 19:], mask[1::2, 20:] = END, END, 0
    if name == "CLIPModel":
        return {"input_ids": ids, "pixel_values": pixels, "attention_mask": mask}
    return {"input_ids": ids, "attention_mask": mask} if "Text" in name else {"pixel_values": pixels}


def outputs_of(model: Any, inputs: dict[str, npt.NDArray[np.int64]]) -> list[npt.NDArray[np.float32]]:
    """Return the outputs of a transformers model without the caches."""
    with torch.no_grad():
        outputs = model(**{name: torch.tensor(array) for name, array in inputs.items()}).to_tuple()
    return [output.float().numpy() for output in outputs if isinstance(output, torch.Tensor)]


def write_cases(folder: Path) -> None:
    """Write a folder with the saved model and expected.npz for each variant in EVERY.

    expected.npz has the inputs ("in NAME"), the outputs ("out I") and, for a language model, a prompt and the generated
    text.
    """
    for variant in EVERY:
        model, inputs, case = reference_model(variant), inputs_of(variant), folder / variant
        model.save_pretrained(case, max_shard_size="20KB")
        expected = {f"in {name}": array for name, array in inputs.items()}
        expected |= {f"out {i}": output for i, output in enumerate(outputs_of(model, inputs))}
        if variant in LANGUAGE_MODELS:
            prompt = inputs["input_ids"][0, :PROMPT]
            generated = model.generate(torch.tensor(prompt[None]), max_new_tokens=NEW_TOKENS, do_sample=False)[
                0, PROMPT:
            ]
            expected |= {"prompt": prompt, "text": generated.numpy()}
        np.savez(case / "expected.npz", **expected)
