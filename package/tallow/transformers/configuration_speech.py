"""transformers' defaults of configs of models of waveforms, by `model_type`.

The values are those of transformers 5.23, as in `configuration_defaults.py`.
"""

from __future__ import annotations

from typing import Any

from tallow.transformers.configuration_states import without

# The names of the classes.
SPEECH: dict[str, str] = {
    "hubert": "HubertConfig",
    "vits": "VitsConfig",
    "wav2vec2": "Wav2Vec2Config",
    "wavlm": "WavLMConfig",
}


# fmt: off
def settings_of_speech() -> dict[str, dict[str, Any]]:
    """Return the settings of each model."""
    settings: dict[str, dict[str, Any]] = {}
    settings["hubert"] = {
        "vocab_size": 32, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout": 0.1, "activation_dropout": 0.1,
        "attention_dropout": 0.1, "feat_proj_layer_norm": True, "feat_proj_dropout": 0.0, "final_dropout": 0.1,
        "layerdrop": 0.1, "initializer_range": 0.02, "layer_norm_eps": 1e-05, "feat_extract_norm": "group",
        "feat_extract_activation": "gelu", "conv_dim": [512, 512, 512, 512, 512, 512, 512],
        "conv_stride": [5, 2, 2, 2, 2, 2, 2], "conv_kernel": [10, 3, 3, 3, 3, 2, 2], "conv_bias": False,
        "num_conv_pos_embeddings": 128, "num_conv_pos_embedding_groups": 16, "conv_pos_batch_norm": False,
        "do_stable_layer_norm": False, "apply_spec_augment": True, "mask_time_prob": 0.05, "mask_time_length": 10,
        "mask_time_min_masks": 2, "mask_feature_prob": 0.0, "mask_feature_length": 10, "mask_feature_min_masks": 0,
        "ctc_loss_reduction": "sum", "ctc_zero_infinity": False, "use_weighted_layer_sum": False,
        "classifier_proj_size": 256, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "num_feat_extract_layers": 7,
    }
    settings["wav2vec2"] = without(settings["hubert"], "feat_proj_layer_norm conv_pos_batch_norm") | {
        "feat_quantizer_dropout": 0.0, "num_codevectors_per_group": 320, "num_codevector_groups": 2,
        "contrastive_logits_temperature": 0.1, "num_negatives": 100, "codevector_dim": 256,
        "proj_codevector_dim": 256, "diversity_loss_weight": 0.1, "tdnn_dim": [512, 512, 512, 512, 1500],
        "tdnn_kernel": [5, 3, 3, 1, 1], "tdnn_dilation": [1, 2, 3, 1, 1], "xvector_output_dim": 512,
        "add_adapter": False, "adapter_kernel_size": 3, "adapter_stride": 2, "num_adapter_layers": 3,
        "output_hidden_size": None, "adapter_attn_dim": None,
    }
    settings["wavlm"] = without(
        settings["wav2vec2"],
        "feat_quantizer_dropout mask_feature_min_masks adapter_attn_dim",
    ) | {"num_buckets": 320, "max_bucket_distance": 800, "num_ctc_classes": 80, "ctc_loss_reduction": "mean"}
    settings["vits"] = {
        "vocab_size": 38, "hidden_size": 192, "num_hidden_layers": 6, "num_attention_heads": 2, "window_size": 4,
        "use_bias": True, "ffn_dim": 768, "layerdrop": 0.1, "ffn_kernel_size": 3, "flow_size": 192,
        "spectrogram_bins": 513, "hidden_act": "relu", "hidden_dropout": 0.1, "attention_dropout": 0.1,
        "activation_dropout": 0.1, "initializer_range": 0.02, "layer_norm_eps": 1e-05,
        "use_stochastic_duration_prediction": True, "num_speakers": 1, "speaker_embedding_size": 0,
        "upsample_initial_channel": 512, "upsample_rates": [8, 8, 2, 2], "upsample_kernel_sizes": [16, 16, 4, 4],
        "resblock_kernel_sizes": [3, 7, 11], "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5], [1, 3, 5]],
        "leaky_relu_slope": 0.1, "depth_separable_channels": 2, "depth_separable_num_layers": 3,
        "duration_predictor_flow_bins": 10, "duration_predictor_tail_bound": 5.0,
        "duration_predictor_kernel_size": 3, "duration_predictor_dropout": 0.5, "duration_predictor_num_flows": 4,
        "duration_predictor_filter_channels": 256, "prior_encoder_num_flows": 4,
        "prior_encoder_num_wavenet_layers": 4, "posterior_encoder_num_wavenet_layers": 16,
        "wavenet_kernel_size": 5, "wavenet_dilation_rate": 1, "wavenet_dropout": 0.0, "speaking_rate": 1.0,
        "noise_scale": 0.667, "noise_scale_duration": 0.8, "sampling_rate": 16000, "pad_token_id": None,
    }
    return settings
# fmt: on
