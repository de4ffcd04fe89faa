"""config.json of a small model of each class that reads Hugging Face folders."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from support.small_whisper import small_config
from tallow.text.whisper import OTHER_SPECIALS

ENCODER = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
ENCODER |= {"intermediate_size": 12, "max_position_embeddings": 10}
DECODER = ENCODER | {"num_key_value_heads": 1, "rope_theta": 100.0, "eos_token_id": [2]}
IMAGES = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 8, "patch_size": 4}
IMAGES_AND_FF = IMAGES | {"intermediate_size": 12}
CROSSING = {"vocab_size": 20, "d_model": 8, "max_position_embeddings": 10, "pad_token_id": 0, "eos_token_id": 2}
CROSSING |= {f"{half}_{size}": 2 for half in ("encoder", "decoder") for size in ("layers", "attention_heads")}
CROSSING |= {"encoder_ffn_dim": 12, "decoder_ffn_dim": 16, "decoder_start_token_id": 0, "is_encoder_decoder": True}
T5 = {"is_encoder_decoder": True, "vocab_size": 20, "d_model": 8, "d_kv": 4, "d_ff": 12, "num_heads": 2}
T5 |= {"num_layers": 2, "num_decoder_layers": 2}
EXPERTS = {"num_experts": 3, "num_experts_per_tok": 2}
ONE = {"moe_intermediate_size": 6, "mlp_only_layers": [0]}  # one of two layers with experts
DELTA = {"head_dim": 8, "layer_types": ["linear_attention", "full_attention"], "linear_num_key_heads": 1}
DELTA |= {"linear_num_value_heads": 2, "linear_key_head_dim": 4, "linear_value_head_dim": 6}
LATENTS = {
    "num_key_value_heads": None,
    "kv_lora_rank": 6,
    "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 2,
    "v_head_dim": 3,
}
LATENTS |= EXPERTS | {"moe_intermediate_size": 6, "n_shared_experts": 1, "first_k_dense_replace": 1}
MAMBA = {"vocab_size": 20, "hidden_size": 8, "state_size": 4, "num_hidden_layers": 2, "eos_token_id": [2]}
WAVES = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12}
WAVES |= {"conv_dim": [6, 6], "conv_kernel": [4, 3], "conv_stride": [3, 2], "num_conv_pos_embeddings": 4}
WAVES |= {"num_conv_pos_embedding_groups": 2}
VOICE = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 12}
VOICE |= {"flow_size": 6, "spectrogram_bins": 4, "upsample_initial_channel": 8, "upsample_rates": [4, 2]}
VOICE |= {"upsample_kernel_sizes": [8, 4], "resblock_kernel_sizes": [3], "resblock_dilation_sizes": [[1, 2]]}
VOICE |= {"posterior_encoder_num_wavenet_layers": 1}
RESNET = {"model_type": "resnet", "embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 1]}
DEPTH = {"model_type": "depth_anything", "patch_size": 4, "reassemble_hidden_size": 8, "head_hidden_size": 3}
DEPTH |= {"reassemble_factors": [2, 0.5], "neck_hidden_sizes": [5, 6], "fusion_hidden_size": 4}
DEPTH |= {"backbone_config": IMAGES | {"model_type": "dinov2", "out_indices": [1, 2]}}
BLIP_TEXT = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
BLIP_TEXT |= {"intermediate_size": 12, "max_position_embeddings": 10, "bos_token_id": 1, "sep_token_id": 2}
STAGES = {"num_encoder_blocks": 2, "depths": [1, 2], "sr_ratios": [2, 1], "hidden_sizes": [4, 6], "patch_sizes": [3, 3]}
STAGES |= {"strides": [2, 2], "num_attention_heads": [1, 2], "mlp_ratios": [2, 3], "decoder_hidden_size": 5}
CROSSES = {
    name: size for name, size in CROSSING.items() if name.startswith(("encoder_", "decoder_")) and "token" not in name
}
ENTRIES: dict[str, dict[str, Any]] = {
    "BertModel": ENCODER | {"model_type": "bert"},
    "RobertaModel": ENCODER | {"model_type": "roberta"},
    "AlbertModel": ENCODER | {"model_type": "albert", "embedding_size": 6},
    "DebertaV2Model": ENCODER
    | {"model_type": "deberta-v2", "relative_attention": True, "position_buckets": 4, "pos_att_type": ["c2p", "p2c"]},
    "ElectraModel": ENCODER | {"model_type": "electra", "embedding_size": 6},
    "ErnieModel": ENCODER | {"model_type": "ernie", "use_task_id": True},
    "EuroBertModel": ENCODER | {"model_type": "eurobert", "pad_token_id": 0},
    "GteModel": ENCODER | {"model_type": "gte"},
    "JinaEmbeddingsV3Model": ENCODER | {"model_type": "jina_embeddings_v3"},
    "MobileBertModel": ENCODER | {"model_type": "mobilebert", "embedding_size": 6, "intra_bottleneck_size": 4},
    "MPNetModel": ENCODER | {"model_type": "mpnet"},
    "NomicBertModel": ENCODER | {"model_type": "nomic_bert"},
    "XLMRobertaXLModel": ENCODER | {"model_type": "xlm-roberta-xl"},
    "DistilBertModel": {"model_type": "distilbert", "vocab_size": 20, "dim": 8, "n_layers": 2, "n_heads": 2}
    | {"hidden_dim": 12, "max_position_embeddings": 10},
    "ModernBertModel": ENCODER | {"model_type": "modernbert", "pad_token_id": 0},
    "ViTModel": IMAGES_AND_FF | {"model_type": "vit"},
    "Dinov2Model": IMAGES | {"model_type": "dinov2"},
    "ResNetModel": RESNET,
    "DetrModel": CROSSES | {"model_type": "detr", "d_model": 8, "num_queries": 3, "backbone_config": RESNET},
    "DepthAnythingForDepthEstimation": DEPTH,
    "SegformerForSemanticSegmentation": STAGES
    | {"model_type": "segformer", "architectures": ["SegformerForSemanticSegmentation"]},
    "BlipForConditionalGeneration": {"model_type": "blip", "text_config": BLIP_TEXT, "vision_config": IMAGES_AND_FF},
    "CLIPTextModel": ENCODER | {"model_type": "clip_text_model"},
    "CLIPVisionModel": IMAGES_AND_FF | {"model_type": "clip_vision_model"},
    "CLIPModel": {"model_type": "clip", "projection_dim": 6, "text_config": ENCODER, "vision_config": IMAGES_AND_FF},
    "GPT2": {"model_type": "gpt2", "vocab_size": 20, "n_positions": 10, "n_embd": 8, "n_layer": 2, "n_head": 2},
    "Llama": DECODER | {"model_type": "llama"},
    "Mistral": DECODER | {"model_type": "mistral"},
    "Qwen2": DECODER | {"model_type": "qwen2"},
    "Qwen3": DECODER | {"model_type": "qwen3", "head_dim": 4},
    "Mixtral": DECODER | EXPERTS | {"model_type": "mixtral"},
    "Olmoe": DECODER | EXPERTS | {"model_type": "olmoe"},
    "Qwen2Moe": DECODER | EXPERTS | {"model_type": "qwen2_moe", "shared_expert_intermediate_size": 6} | ONE,
    "Qwen3Moe": DECODER | EXPERTS | {"model_type": "qwen3_moe"} | ONE,
    "Lfm2": DECODER | {"model_type": "lfm2", "layer_types": ["conv", "full_attention"], "block_multiple_of": 4},
    "Lfm2Moe": DECODER
    | EXPERTS
    | {"model_type": "lfm2_moe", "layer_types": ["conv", "full_attention"]}
    | {"num_dense_layers": 1, "moe_intermediate_size": 6},
    "Qwen3Next": DECODER | EXPERTS | DELTA | {"model_type": "qwen3_next", "shared_expert_intermediate_size": 6} | ONE,
    "Qwen3_5": DECODER | DELTA | {"model_type": "qwen3_5_text"},
    "Qwen3_5Moe": {name: value for name, value in (DECODER | EXPERTS | DELTA).items() if name != "intermediate_size"}
    | {"model_type": "qwen3_5_moe_text", "shared_expert_intermediate_size": 6, "moe_intermediate_size": 6},
    "Mamba": MAMBA | {"model_type": "mamba", "time_step_rank": 3},
    "Mamba2": MAMBA | {"model_type": "mamba2", "num_heads": 4, "head_dim": 4, "n_groups": 2},
    "FalconH1": DECODER
    | {"model_type": "falcon_h1", "mamba_d_state": 4, "mamba_d_ssm": 16, "mamba_n_heads": 4, "mamba_n_groups": 2},
    "Jamba": DECODER
    | EXPERTS
    | {"model_type": "jamba", "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 4},
    "RWKV7": {"model_type": "rwkv7", "vocab_size": 20, "hidden_size": 8, "intermediate_size": 12, "head_dim": 4}
    | {"num_hidden_layers": 2, "decay_low_rank_dim": 3, "a_low_rank_dim": 3, "v_low_rank_dim": 2}
    | {"gate_low_rank_dim": 5, "eos_token_id": [2]},
    "DeepseekV2": DECODER | LATENTS | {"model_type": "deepseek_v2"},
    "DeepseekV3": DECODER | LATENTS | {"model_type": "deepseek_v3", "q_lora_rank": 5, "n_group": 1, "topk_group": 1},
    "Phi3": DECODER | {"model_type": "phi3"},
    "Gemma": DECODER | {"model_type": "gemma", "head_dim": 4},
    "Gemma2": DECODER | {"model_type": "gemma2", "head_dim": 4},
    "Gemma3": DECODER | {"model_type": "gemma3_text", "head_dim": 4},
    "SmolLM3": DECODER | {"model_type": "smollm3"},
    "Granite": DECODER | {"model_type": "granite"},
    "GraniteMoeHybrid": DECODER | {"model_type": "granitemoehybrid", "num_local_experts": 0},
    "Olmo": DECODER | {"model_type": "olmo"},
    "Olmo2": DECODER | {"model_type": "olmo2"},
    "Olmo3": DECODER | {"model_type": "olmo3"},
    "Ministral": DECODER | {"model_type": "ministral"},
    "Ministral3": DECODER | {"model_type": "ministral3", "head_dim": 4},
    "Phi": DECODER | {"model_type": "phi"},
    "Starcoder2": DECODER | {"model_type": "starcoder2"},
    "StableLm": DECODER | {"model_type": "stablelm", "partial_rotary_factor": 0.5},
    "Ernie4_5": DECODER | {"model_type": "ernie4_5", "head_dim": 4},
    "SeedOss": DECODER | {"model_type": "seed_oss", "head_dim": 4},
    "HunYuanDenseV1": DECODER | {"model_type": "hunyuan_v1_dense"},
    "Glm": DECODER | {"model_type": "glm", "head_dim": 4},
    "Glm4": DECODER | {"model_type": "glm4", "head_dim": 4},
    "Cohere": DECODER | {"model_type": "cohere"},
    "Cohere2": DECODER | {"model_type": "cohere2"},
    "Exaone4": DECODER | {"model_type": "exaone4"},
    "NanoChat": DECODER | {"model_type": "nanochat"},
    "Helium": DECODER | {"model_type": "helium", "head_dim": 4},
    "Arcee": DECODER | {"model_type": "arcee"},
    "Gemma4": DECODER
    | {"model_type": "gemma4_text", "head_dim": 4, "global_head_dim": 8}
    | {"vocab_size_per_layer_input": 20, "hidden_size_per_layer_input": 6},
    "GptOss": DECODER | EXPERTS | {"model_type": "gpt_oss", "head_dim": 4},
    "GPTNeoX": DECODER | {"model_type": "gpt_neox", "rotary_pct": 0.5},
    "OPT": ENCODER | {"model_type": "opt", "ffn_dim": 12, "word_embed_proj_dim": 6},
    "Falcon": {"model_type": "falcon", "alibi": True, "new_decoder_architecture": True, "num_kv_heads": 1} | ENCODER,
    "T5ForConditionalGeneration": T5 | {"model_type": "t5"},
    "MT5ForConditionalGeneration": T5 | {"model_type": "mt5"},
    "UMT5ForConditionalGeneration": T5 | {"model_type": "umt5"},
    "MBartForConditionalGeneration": CROSSING | {"model_type": "mbart"},
    "M2M100ForConditionalGeneration": CROSSING | {"model_type": "m2m_100"},
    "PegasusForConditionalGeneration": CROSSING | {"model_type": "pegasus"},
    "BartForConditionalGeneration": CROSSING | {"model_type": "bart"},
    "MarianMTModel": CROSSING | {"model_type": "marian"},
    "HubertForCTC": WAVES | {"model_type": "hubert", "architectures": ["HubertForCTC"]},
    "Wav2Vec2ForCTC": WAVES | {"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForCTC"]},
    "WavLMForCTC": WAVES | {"model_type": "wavlm", "num_buckets": 8, "architectures": ["WavLMForCTC"]},
    "VitsModel": VOICE | {"model_type": "vits"},
    "Whisper": {"model_type": "whisper"} | asdict(small_config(260 + OTHER_SPECIALS)),
}
ENTRIES["Whisper"]["init_std"] = ENTRIES["Whisper"].pop("initializer_range")
for name in ("Falcon", "OPT"):
    del ENTRIES[name]["intermediate_size"]
