"""transformers' defaults of configs of models of pictures, by `model_type`.

The values are those of transformers 5.23, as in `configuration_defaults.py`.
"""

from __future__ import annotations

from typing import Any

# The names of the classes.
PICTURES: dict[str, str] = {
    "resnet": "ResNetConfig",
    "detr": "DetrConfig",
    "depth_anything": "DepthAnythingConfig",
    "segformer": "SegformerConfig",
    "blip": "BlipConfig",
    "blip_text_model": "BlipTextConfig",
    "blip_vision_model": "BlipVisionConfig",
}

# The backbones of configs that describe none.
BACKBONES: dict[str, dict[str, Any]] = {
    "depth_anything": {
        "model_type": "dinov2",
        "image_size": 518,
        "hidden_size": 384,
        "num_attention_heads": 6,
        "out_indices": [9, 10, 11, 12],
        "reshape_hidden_states": False,
    },
}


# fmt: off
def settings_of_pictures() -> dict[str, dict[str, Any]]:
    """Return the settings of each model."""
    settings: dict[str, dict[str, Any]] = {}
    settings["resnet"] = {
        "num_channels": 3, "embedding_size": 64, "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3],
        "layer_type": "bottleneck", "hidden_act": "relu", "downsample_in_first_stage": False,
        "downsample_in_bottleneck": False,
    }
    settings["detr"] = {
        "is_encoder_decoder": True, "backbone_config": None, "num_channels": 3, "num_queries": 100, "encoder_layers": 6,
        "encoder_ffn_dim": 2048, "encoder_attention_heads": 8, "decoder_layers": 6, "decoder_ffn_dim": 2048,
        "decoder_attention_heads": 8, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "activation_function": "relu",
        "d_model": 256, "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0, "init_std": 0.02,
        "init_xavier_std": 1.0, "auxiliary_loss": False, "position_embedding_type": "sine", "dilation": False,
        "class_cost": 1, "bbox_cost": 5, "giou_cost": 2, "mask_loss_coefficient": 1, "dice_loss_coefficient": 1,
        "bbox_loss_coefficient": 5, "giou_loss_coefficient": 2, "eos_coefficient": 0.1,
    }
    settings["depth_anything"] = {
        "backbone_config": None, "patch_size": 14, "initializer_range": 0.02, "reassemble_hidden_size": 384,
        "reassemble_factors": [4, 2, 1, 0.5], "neck_hidden_sizes": [48, 96, 192, 384], "fusion_hidden_size": 64,
        "head_in_index": -1, "head_hidden_size": 32, "depth_estimation_type": "relative", "max_depth": 1,
    }
    settings["segformer"] = {
        "num_channels": 3, "num_encoder_blocks": 4, "depths": [2, 2, 2, 2], "sr_ratios": [8, 4, 2, 1],
        "hidden_sizes": [32, 64, 160, 256], "patch_sizes": [7, 3, 3, 3], "strides": [4, 2, 2, 2],
        "num_attention_heads": [1, 2, 5, 8], "mlp_ratios": [4, 4, 4, 4], "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout_prob": 0.1,
        "initializer_range": 0.02, "drop_path_rate": 0.1, "layer_norm_eps": 1e-06, "decoder_hidden_size": 256,
        "semantic_loss_ignore_index": 255, "reshape_last_stage": True,
    }
    settings["blip"] = {
        "text_config": None, "vision_config": None, "projection_dim": 512, "logit_scale_init_value": 2.6592,
        "image_text_hidden_size": 256, "label_smoothing": 0.0, "tie_word_embeddings": True,
        "initializer_factor": 1.0, "initializer_range": 0.02,
    }
    settings["blip_text_model"] = {
        "vocab_size": 30524, "hidden_size": 768, "encoder_hidden_size": 768, "intermediate_size": 3072,
        "projection_dim": 768, "num_hidden_layers": 12, "num_attention_heads": 8, "max_position_embeddings": 512,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "initializer_range": 0.02, "bos_token_id": 30522, "eos_token_id": 2,
        "pad_token_id": 0, "sep_token_id": 102, "is_decoder": True, "use_cache": True, "tie_word_embeddings": True,
        "label_smoothing": 0.0,
    }
    settings["blip_vision_model"] = {
        "hidden_size": 768, "intermediate_size": 3072, "projection_dim": 512, "num_hidden_layers": 12,
        "num_attention_heads": 12, "image_size": 384, "patch_size": 16, "hidden_act": "gelu",
        "layer_norm_eps": 1e-05, "attention_dropout": 0.0, "initializer_range": 1e-10,
    }
    return settings
