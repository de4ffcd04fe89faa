"""transformers' defaults of configs, by `model_type`: those of every config, and of each model.

The values are those of transformers 5.23; `tests/transformers/test_configuration.py` compares all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallow.transformers.configuration_decoders import DECODERS, changed
from tallow.transformers.configuration_pictures import PICTURES, settings_of_pictures
from tallow.transformers.configuration_speech import SPEECH, settings_of_speech
from tallow.transformers.configuration_states import STATES, settings_of_states, without

# The names of the classes.
NAMES: dict[str, str] = {
    "bert": "BertConfig",
    "roberta": "RobertaConfig",
    "camembert": "CamembertConfig",
    "xlm-roberta": "XLMRobertaConfig",
    "distilbert": "DistilBertConfig",
    "modernbert": "ModernBertConfig",
    "albert": "AlbertConfig",
    "electra": "ElectraConfig",
    "ernie": "ErnieConfig",
    "mpnet": "MPNetConfig",
    "deberta-v2": "DebertaV2Config",
    "nomic_bert": "NomicBertConfig",
    "gte": "GteConfig",
    "jina_embeddings_v3": "JinaEmbeddingsV3Config",
    "eurobert": "EuroBertConfig",
    "xlm-roberta-xl": "XLMRobertaXLConfig",
    "mobilebert": "MobileBertConfig",
    "mbart": "MBartConfig",
    "m2m_100": "M2M100Config",
    "pegasus": "PegasusConfig",
    "mt5": "MT5Config",
    "umt5": "UMT5Config",
    "gpt2": "GPT2Config",
    "falcon": "FalconConfig",
    "llama": "LlamaConfig",
    "mistral": "MistralConfig",
    "mixtral": "MixtralConfig",
    "olmoe": "OlmoeConfig",
    "phi3": "Phi3Config",
    "qwen2": "Qwen2Config",
    "qwen3": "Qwen3Config",
    "qwen2_moe": "Qwen2MoeConfig",
    "qwen3_moe": "Qwen3MoeConfig",
    "gemma": "GemmaConfig",
    "gemma2": "Gemma2Config",
    "gemma3_text": "Gemma3TextConfig",
    "t5": "T5Config",
    "bart": "BartConfig",
    "marian": "MarianConfig",
    "whisper": "WhisperConfig",
    "vit": "ViTConfig",
    "dinov2": "Dinov2Config",
    "clip": "CLIPConfig",
    "clip_text_model": "CLIPTextConfig",
    "clip_vision_model": "CLIPVisionConfig",
    **DECODERS,
    **STATES,
    **PICTURES,
    **SPEECH,
}


# fmt: off
# Of every config.
BASE: dict[str, Any] = {
    "architectures": None, "output_hidden_states": False, "return_dict": True, "dtype": None,
    "chunk_size_feed_forward": 0, "is_encoder_decoder": False, "id2label": {0: "LABEL_0", 1: "LABEL_1"},
    "label2id": {"LABEL_0": 0, "LABEL_1": 1}, "problem_type": None, "output_attentions": False,
}

_SETTINGS: dict[str, dict[str, Any]] = {}
_SETTINGS["bert"] = {
    "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
    "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 2,
    "initializer_range": 0.02, "layer_norm_eps": 1e-12, "pad_token_id": 0, "use_cache": True,
    "classifier_dropout": None, "is_decoder": False, "add_cross_attention": False, "bos_token_id": None,
    "eos_token_id": None, "tie_word_embeddings": True,
}
_SETTINGS["roberta"] = _SETTINGS["bert"] | {
    "vocab_size": 50265, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
}
_SETTINGS["camembert"] = _SETTINGS["roberta"] | {
    "vocab_size": 30522,
}
_SETTINGS["xlm-roberta"] = _SETTINGS["roberta"] | {
    "vocab_size": 30522,
}
_SETTINGS["distilbert"] = {
    "vocab_size": 30522, "max_position_embeddings": 512, "sinusoidal_pos_embds": False, "n_layers": 6,
    "n_heads": 12, "dim": 768, "hidden_dim": 3072, "dropout": 0.1, "attention_dropout": 0.1, "activation": "gelu",
    "initializer_range": 0.02, "qa_dropout": 0.1, "seq_classif_dropout": 0.2, "pad_token_id": 0,
    "eos_token_id": None, "bos_token_id": None, "tie_word_embeddings": True,
}
_SETTINGS["modernbert"] = {
    "vocab_size": 50368, "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22,
    "num_attention_heads": 12, "hidden_activation": "gelu", "max_position_embeddings": 8192,
    "initializer_range": 0.02, "initializer_cutoff_factor": 2.0, "norm_eps": 1e-05, "norm_bias": False,
    "pad_token_id": 50283, "eos_token_id": 50282, "bos_token_id": 50281, "cls_token_id": 50281,
    "sep_token_id": 50282, "attention_bias": False, "attention_dropout": 0.0,
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        "full_attention": {"rope_type": "default", "rope_theta": 160000.0},
    },
    "local_attention": 128, "embedding_dropout": 0.0, "mlp_bias": False, "mlp_dropout": 0.0, "decoder_bias": True,
    "classifier_pooling": "cls", "classifier_dropout": 0.0, "classifier_bias": False,
    "classifier_activation": "gelu", "deterministic_flash_attn": False, "sparse_prediction": False,
    "sparse_pred_ignore_index": -100, "tie_word_embeddings": True,
}
_SETTINGS["albert"] = without(
    _SETTINGS["bert"],
    "use_cache classifier_dropout is_decoder add_cross_attention",
) | {
    "vocab_size": 30000, "embedding_size": 128, "hidden_size": 4096, "num_hidden_groups": 1, "num_attention_heads":
    64, "intermediate_size": 16384, "inner_group_num": 1, "hidden_act": "gelu_new", "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0, "classifier_dropout_prob": 0.1, "bos_token_id": 2, "eos_token_id": 3,
}
_SETTINGS["electra"] = _SETTINGS["bert"] | {
    "embedding_size": 128, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024, "summary_type":
    "first", "summary_use_proj": True, "summary_activation": "gelu", "summary_last_dropout": 0.1,
}
_SETTINGS["ernie"] = _SETTINGS["bert"] | {
    "task_type_vocab_size": 3, "use_task_id": False,
}
_SETTINGS["mpnet"] = without(
    _SETTINGS["bert"],
    "type_vocab_size use_cache classifier_dropout is_decoder add_cross_attention",
) | {
    "vocab_size": 30527, "relative_attention_num_buckets": 32, "pad_token_id": 1, "bos_token_id": 0,
    "eos_token_id": 2,
}
_SETTINGS["deberta-v2"] = without(
    _SETTINGS["bert"],
    "use_cache classifier_dropout is_decoder add_cross_attention",
) | {
    "vocab_size": 128100, "hidden_size": 1536, "num_hidden_layers": 24, "num_attention_heads": 24,
    "intermediate_size": 6144, "type_vocab_size": 0, "layer_norm_eps": 1e-07, "relative_attention": False,
    "max_relative_positions": -1, "position_biased_input": True, "pos_att_type": None, "pooler_dropout": 0.0,
    "pooler_hidden_act": "gelu", "legacy": True, "pooler_hidden_size": 1536,
}
_SETTINGS["nomic_bert"] = without(
    _SETTINGS["bert"],
    "use_cache is_decoder add_cross_attention tie_word_embeddings",
) | {
    "vocab_size": 30528, "hidden_act": "silu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
    "max_position_embeddings": 2048, "rope_parameters": {"rope_theta": 1000.0, "rope_type": "default"}, "head_dim":
    64,
}
_SETTINGS["gte"] = without(
    _SETTINGS["bert"],
    "use_cache is_decoder add_cross_attention",
) | {
    "vocab_size": 250048, "attention_probs_dropout_prob": 0.0, "max_position_embeddings": 8192, "type_vocab_size":
    1, "pad_token_id": 1, "rope_parameters": {"rope_theta": 160000.0, "rope_type": "default"},
}
_SETTINGS["jina_embeddings_v3"] = without(
    _SETTINGS["xlm-roberta"],
    "is_decoder add_cross_attention",
) | {
    "vocab_size": 250002, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
    "intermediate_size": 4096, "max_position_embeddings": 8194, "type_vocab_size": 1, "layer_norm_eps": 1e-05,
    "rope_parameters": {"rope_theta": 20000.0, "rope_type": "default"},
}
_SETTINGS["xlm-roberta-xl"] = _SETTINGS["xlm-roberta"] | {
    "vocab_size": 250880, "hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 32,
    "intermediate_size": 10240, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-05,
}
_SETTINGS["mobilebert"] = without(
    _SETTINGS["bert"],
    "use_cache is_decoder add_cross_attention bos_token_id eos_token_id",
) | {
    "hidden_size": 512, "num_hidden_layers": 24, "num_attention_heads": 4, "intermediate_size": 512, "hidden_act":
    "relu", "hidden_dropout_prob": 0.0, "embedding_size": 128, "trigram_input": True, "use_bottleneck": True,
    "intra_bottleneck_size": 128, "use_bottleneck_attention": False, "key_query_shared_bottleneck": True,
    "num_feedforward_networks": 4, "normalization_type": "no_norm", "classifier_activation": True,
    "true_hidden_size": 128,
}
_SETTINGS["gpt2"] = {
    "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": None,
    "activation_function": "gelu_new", "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1,
    "layer_norm_epsilon": 1e-05, "initializer_range": 0.02, "summary_type": "cls_index", "summary_use_proj": True,
    "summary_activation": None, "summary_proj_to_labels": True, "summary_first_dropout": 0.1,
    "scale_attn_weights": True, "use_cache": True, "bos_token_id": 50256, "eos_token_id": 50256,
    "pad_token_id": None, "scale_attn_by_inverse_layer_idx": False, "reorder_and_upcast_attn": False,
    "add_cross_attention": False, "tie_word_embeddings": True,
}
_SETTINGS["falcon"] = {
    "vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
    "num_ln_in_parallel_attn": None, "layer_norm_epsilon": 1e-05, "initializer_range": 0.02, "use_cache": True,
    "hidden_dropout": 0.0, "attention_dropout": 0.0, "num_kv_heads": 71, "alibi": False,
    "new_decoder_architecture": False, "multi_query": True, "parallel_attn": True, "bias": False,
    "max_position_embeddings": 2048, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    "bos_token_id": 11, "eos_token_id": 11, "pad_token_id": None, "ffn_hidden_size": 18176, "activation": "gelu",
    "tie_word_embeddings": True,
}
_SETTINGS["llama"] = {
    "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": None, "hidden_act": "silu", "max_position_embeddings": 2048,
    "initializer_range": 0.02, "rms_norm_eps": 1e-06, "use_cache": True, "pad_token_id": None, "bos_token_id": 1,
    "eos_token_id": 2, "pretraining_tp": 1, "tie_word_embeddings": False,
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "attention_bias": False,
    "attention_dropout": 0.0, "mlp_bias": False, "head_dim": None,
}
_SETTINGS["eurobert"] = _SETTINGS["llama"] | {
    "vocab_size": 128256, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
    "num_attention_heads": 12, "num_key_value_heads": 12, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05,
    "pad_token_id": 128001, "bos_token_id": 128000, "eos_token_id": 128001, "head_dim": 64, "mask_token_id":
    128002, "classifier_pooling": "late",
}
_SETTINGS["mistral"] = without(
    _SETTINGS["llama"],
    "pretraining_tp attention_bias mlp_bias",
) | {
    "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131072, "sliding_window": 4096,
}
_SETTINGS["mixtral"] = _SETTINGS["mistral"] | {
    "rms_norm_eps": 1e-05, "sliding_window": None, "num_experts_per_tok": 2, "num_local_experts": 8,
    "output_router_logits": False, "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0,
    "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"},
}
_SETTINGS["olmoe"] = without(
    _SETTINGS["llama"],
    "pretraining_tp mlp_bias head_dim",
) | {
    "vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 2048, "num_hidden_layers": 16,
    "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 4096, "rms_norm_eps": 1e-05,
    "pad_token_id": 1, "bos_token_id": None, "eos_token_id": 50279, "clip_qkv": None, "num_experts_per_tok": 8,
    "num_experts": 64, "output_router_logits": False, "router_aux_loss_coef": 0.01, "norm_topk_prob": False,
}
_SETTINGS["phi3"] = without(
    _SETTINGS["llama"],
    "pretraining_tp attention_bias mlp_bias head_dim",
) | {
    "vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "num_key_value_heads": 32,
    "resid_pdrop": 0.0, "embd_pdrop": 0.0, "max_position_embeddings": 4096,
    "original_max_position_embeddings": 4096, "rms_norm_eps": 1e-05,
    "rope_parameters": {"rope_theta": 10000.0, "partial_rotary_factor": 1.0, "rope_type": "default"},
    "eos_token_id": 32000, "pad_token_id": 32000, "sliding_window": None,
}
_SETTINGS["qwen2"] = without(
    _SETTINGS["llama"],
    "pretraining_tp attention_bias mlp_bias head_dim",
) | {
    "vocab_size": 151936, "intermediate_size": 22016, "num_key_value_heads": 32, "max_position_embeddings": 32768,
    "use_sliding_window": False, "sliding_window": None, "max_window_layers": 28, "bos_token_id": None,
    "eos_token_id": None,
}
_SETTINGS["qwen3"] = _SETTINGS["qwen2"] | {
    "head_dim": 128, "attention_bias": False,
}
_SETTINGS["qwen2_moe"] = _SETTINGS["qwen2"] | {
    "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16,
    "num_key_value_heads": 16, "sliding_window": 0, "decoder_sparse_step": 1, "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632, "num_experts_per_tok": 4, "num_experts": 60, "norm_topk_prob": False,
    "output_router_logits": False, "router_aux_loss_coef": 0.001, "mlp_only_layers": [], "qkv_bias": True,
}
_SETTINGS["qwen3_moe"] = without(
    _SETTINGS["qwen2_moe"],
    "max_window_layers shared_expert_intermediate_size num_experts qkv_bias",
) | {
    "intermediate_size": 6144, "num_attention_heads": 32, "num_key_value_heads": 4, "attention_bias": False,
    "sliding_window": None, "moe_intermediate_size": 768, "num_experts_per_tok": 8, "num_local_experts": 128,
}
_SETTINGS |= settings_of_states(_SETTINGS["llama"])
_SETTINGS["gemma"] = without(
    _SETTINGS["llama"],
    "pretraining_tp mlp_bias",
) | {
    "vocab_size": 256000, "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh",
    "max_position_embeddings": 8192, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2,
    "tie_word_embeddings": True, "use_bidirectional_attention": None,
}
_SETTINGS["gemma2"] = without(
    _SETTINGS["gemma"],
    "hidden_act",
) | {
    "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
    "num_key_value_heads": 4, "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 256,
    "sliding_window": 4096, "final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0,
}
_SETTINGS["gemma3_text"] = _SETTINGS["gemma2"] | {
    "vocab_size": 262208, "max_position_embeddings": 131072,
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        "full_attention": {"rope_type": "default", "rope_theta": 1000000.0},
    },
    "final_logit_softcapping": None, "attn_logit_softcapping": None, "use_bidirectional_attention": False,
}
_SETTINGS["t5"] = {
    "is_encoder_decoder": True, "vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6,
    "num_decoder_layers": None, "num_heads": 8, "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128, "dropout_rate": 0.1, "layer_norm_epsilon": 1e-06,
    "initializer_factor": 1.0, "feed_forward_proj": "relu", "use_cache": True, "pad_token_id": 0, "eos_token_id": 1,
    "classifier_dropout": 0.0, "is_decoder": False, "dense_act_fn": "relu", "is_gated_act": False,
    "scale_decoder_outputs": True, "tie_word_embeddings": True,
}
_SETTINGS["bart"] = {
    "is_encoder_decoder": True, "id2label": {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"},
    "label2id": {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}, "vocab_size": 50265, "max_position_embeddings": 1024,
    "encoder_layers": 12, "encoder_ffn_dim": 4096, "encoder_attention_heads": 16, "decoder_layers": 12,
    "decoder_ffn_dim": 4096, "decoder_attention_heads": 16, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0,
    "activation_function": "gelu", "d_model": 1024, "dropout": 0.1, "attention_dropout": 0.0,
    "activation_dropout": 0.0, "init_std": 0.02, "classifier_dropout": 0.0, "scale_embedding": False,
    "use_cache": True, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2,
    "forced_eos_token_id": 2, "is_decoder": False, "tie_word_embeddings": True,
}
_SETTINGS["marian"] = without(
    _SETTINGS["bart"],
    "id2label label2id classifier_dropout",
) | {
    "vocab_size": 58101, "decoder_vocab_size": None, "decoder_start_token_id": 58100, "pad_token_id": 58100,
    "eos_token_id": 0, "bos_token_id": None, "forced_eos_token_id": 0, "share_encoder_decoder_embeddings": True,
}
_SETTINGS["mbart"] = without(
    _SETTINGS["bart"],
    "id2label label2id",
) | {
    "decoder_start_token_id": None,
}
_SETTINGS["m2m_100"] = without(
    _SETTINGS["bart"],
    "id2label label2id classifier_dropout forced_eos_token_id is_decoder",
) | {
    "vocab_size": 128112, "encoder_layerdrop": 0.05, "decoder_layerdrop": 0.05, "activation_function": "relu",
    "attention_dropout": 0.1, "scale_embedding": True,
}
_SETTINGS["pegasus"] = without(
    _SETTINGS["bart"],
    "id2label label2id classifier_dropout bos_token_id",
) | {
    "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1, "forced_eos_token_id": 1,
}
_SETTINGS["mt5"] = without(
    _SETTINGS["t5"],
    "scale_decoder_outputs",
) | {
    "vocab_size": 250112, "d_ff": 1024, "num_layers": 8, "num_decoder_layers": 8, "num_heads": 6,
    "feed_forward_proj": "gated-gelu", "bos_token_id": None, "decoder_start_token_id": 0, "dense_act_fn":
    "gelu_new", "is_gated_act": True,
}
_SETTINGS["umt5"] = without(
    _SETTINGS["t5"],
    "scale_decoder_outputs",
) | {
    "vocab_size": 250112, "d_ff": 1024, "num_layers": 8, "num_decoder_layers": 8, "num_heads": 6,
    "feed_forward_proj": "gated-gelu", "decoder_start_token_id": 0, "dense_act_fn": "gelu_new", "is_gated_act":
    True,
}
_SETTINGS["whisper"] = without(
    _SETTINGS["bart"],
    "id2label label2id max_position_embeddings classifier_dropout forced_eos_token_id is_decoder",
) | {
    "vocab_size": 51865, "num_mel_bins": 80, "encoder_layers": 4, "encoder_attention_heads": 6, "decoder_layers": 4,
    "decoder_attention_heads": 6, "decoder_ffn_dim": 1536, "encoder_ffn_dim": 1536, "decoder_start_token_id": 50257,
    "d_model": 384, "dropout": 0.0, "max_source_positions": 1500, "max_target_positions": 448,
    "pad_token_id": 50256, "bos_token_id": 50256, "eos_token_id": 50256, "suppress_tokens": None,
    "begin_suppress_tokens": (220, 50256), "use_weighted_layer_sum": False, "classifier_proj_size": 256,
    "apply_spec_augment": False, "mask_time_prob": 0.05, "mask_time_length": 10, "mask_time_min_masks": 2,
    "mask_feature_prob": 0.0, "mask_feature_length": 10, "mask_feature_min_masks": 0, "median_filter_width": 7,
}
_SETTINGS["vit"] = {
    "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.02, "layer_norm_eps": 1e-12, "image_size": 224, "patch_size": 16, "num_channels": 3,
    "qkv_bias": True, "encoder_stride": 16, "pooler_output_size": 768, "pooler_act": "tanh",
}
_SETTINGS["dinov2"] = without(
    _SETTINGS["vit"],
    "intermediate_size encoder_stride pooler_output_size pooler_act",
) | {
    "mlp_ratio": 4, "layer_norm_eps": 1e-06, "patch_size": 14, "layerscale_value": 1.0, "drop_path_rate": 0.0,
    "use_swiglu_ffn": False, "apply_layernorm": True, "reshape_hidden_states": True, "use_mask_token": True,
}
_SETTINGS["clip"] = {
    "text_config": None, "vision_config": None, "projection_dim": 512, "logit_scale_init_value": 2.6592,
    "initializer_factor": 1.0,
}
_SETTINGS["clip_text_model"] = {
    "vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048, "projection_dim": 512,
    "num_hidden_layers": 12, "num_attention_heads": 8, "max_position_embeddings": 77, "hidden_act": "quick_gelu",
    "layer_norm_eps": 1e-05, "attention_dropout": 0.0, "initializer_range": 0.02, "initializer_factor": 1.0,
    "pad_token_id": 1, "bos_token_id": 49406, "eos_token_id": 49407,
}
_SETTINGS["clip_vision_model"] = {
    "hidden_size": 768, "intermediate_size": 3072, "projection_dim": 512, "num_hidden_layers": 12,
    "num_attention_heads": 12, "num_channels": 3, "image_size": 224, "patch_size": 32, "hidden_act": "quick_gelu",
    "layer_norm_eps": 1e-05, "attention_dropout": 0.0, "initializer_range": 0.02, "initializer_factor": 1.0,
}

_SETTINGS |= changed(_SETTINGS["llama"]) | settings_of_speech() | settings_of_pictures()

# Names under which other models keep the same size.
_ALIASES: dict[str, dict[str, str]] = {
    "deepseek_v2": {
        "num_experts": "n_routed_experts",
    },
    "deepseek_v3": {
        "num_local_experts": "n_routed_experts", "num_mtp_layers": "num_nextn_predict_layers",
    },
    "distilbert": {
        "hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers",
    },
    "gpt2": {
        "hidden_size": "n_embd", "max_position_embeddings": "n_positions", "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    "granitemoehybrid": {
        "layers_block_type": "layer_types",
    },
    "gpt_oss": {
        "num_experts": "num_local_experts",
    },
    "mixtral": {
        "num_experts": "num_local_experts",
    },
    "olmoe": {
        "num_local_experts": "num_experts",
    },
    "qwen3_moe": {
        "num_experts": "num_local_experts",
    },
    "t5": {
        "hidden_size": "d_model", "num_attention_heads": "num_heads", "num_hidden_layers": "num_layers",
        "head_dim": "d_kv",
    },
    "bart": {
        "num_attention_heads": "encoder_attention_heads", "hidden_size": "d_model",
        "num_hidden_layers": "encoder_layers",
    },
    "marian": {
        "num_attention_heads": "encoder_attention_heads", "hidden_size": "d_model",
        "num_hidden_layers": "encoder_layers",
    },
    "whisper": {
        "num_key_value_heads": "encoder_attention_heads", "num_attention_heads": "encoder_attention_heads",
        "hidden_size": "d_model", "num_hidden_layers": "encoder_layers",
    },
}
_ALIASES["segformer"] = {"num_hidden_layers": "num_encoder_blocks"}
_ALIASES |= dict.fromkeys(("detr", "m2m_100", "mbart", "pegasus"), _ALIASES["bart"])
_ALIASES |= dict.fromkeys(("mt5", "umt5"), _ALIASES["t5"])
# fmt: on

DEFAULTS: dict[str, tuple[Mapping[str, Any], Mapping[str, str]]] = {
    kind: (settings, _ALIASES.get(kind, {})) for kind, settings in _SETTINGS.items()
}
