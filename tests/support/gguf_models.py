"""Small random models of transformers, one for each architecture that tallow reads from GGUF files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

SIZES = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
    "rms_norm_eps": 1e-5,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
TOKENS = [[3, 5, 9, 2, 7, 33, 60, 8] * 5]  # longer than the window and the original context of the models below
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 10000.0}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "long_factor": [1 + i / 3 for i in range(8)],
    "short_factor": [1 + i / 9 for i in range(8)],
    "original_max_position_embeddings": 32,
    "partial_rotary_factor": 1.0,
}
GEMMA3 = {
    "head_dim": 32,
    "query_pre_attn_scalar": 32,
    "sliding_window": 4,
    "num_hidden_layers": 7,
    "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 3}
HALF = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
DELTA = {
    "head_dim": 32,
    "rms_norm_eps": 1e-3,
    "full_attention_interval": 2,
    "rope_parameters": HALF,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
}
GROUPS = {"new_decoder_architecture": True, "num_kv_heads": 2}
# By name for a test: the class in transformers, and changes of SIZES.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "mistral": ("MistralForCausalLM", {"sliding_window": 4}),
    "qwen2, yarn": ("Qwen2ForCausalLM", {"rope_parameters": YARN}),
    "mixtral": ("MixtralForCausalLM", {"rope_parameters": ROPE}),
    "olmoe": ("OlmoeForCausalLM", EXPERTS),
    "qwen2 moe": (
        "Qwen2MoeForCausalLM",
        EXPERTS | {"moe_intermediate_size": 32, "shared_expert_intermediate_size": 64},
    ),
    "qwen3 moe": (
        "Qwen3MoeForCausalLM",
        EXPERTS | {"moe_intermediate_size": 32, "norm_topk_prob": True},
    ),
    "lfm2": ("Lfm2ForCausalLM", {"layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False}),
    "lfm2 moe": (
        "Lfm2MoeForCausalLM",
        EXPERTS | {"layer_types": ["full_attention", "conv"], "moe_intermediate_size": 32, "num_dense_layers": 1},
    ),
    "qwen3.5": ("Qwen3_5ForCausalLM", DELTA),
    "mamba": ("MambaForCausalLM", {"state_size": 8, "time_step_rank": 32}),
    "mamba2": (
        "Mamba2ForCausalLM",
        {"state_size": 8, "num_heads": 4, "head_dim": 32, "n_groups": 2},
    ),
    "qwen3.5 moe": (
        "Qwen3_5MoeForCausalLM",
        DELTA | EXPERTS | {"moe_intermediate_size": 32, "shared_expert_intermediate_size": 64},
    ),
    "gemma": ("GemmaForCausalLM", {"head_dim": 32}),
    "gemma2": ("Gemma2ForCausalLM", {"head_dim": 32, "query_pre_attn_scalar": 32, "sliding_window": 4}),
    "gemma2, 27B": ("Gemma2ForCausalLM", {"head_dim": 32, "query_pre_attn_scalar": 16, "num_hidden_layers": 46}),
    "gemma3": ("Gemma3ForCausalLM", GEMMA3),
    "phi3": ("Phi3ForCausalLM", {"rope_parameters": HALF, "sliding_window": 4}),
    "phi3, longrope": ("Phi3ForCausalLM", {"rope_parameters": LONGROPE, "original_max_position_embeddings": 32}),
    "falcon, 7B": ("FalconForCausalLM", {}),
    "falcon, 11B": ("FalconForCausalLM", {"num_ln_in_parallel_attn": 1, **GROUPS}),
    "falcon, 40B": ("FalconForCausalLM", GROUPS),
    "falcon, biases": ("FalconForCausalLM", {"bias": True, **GROUPS}),
    "gpt2": ("GPT2LMHeadModel", {"n_inner": 96}),
    "gpt2, head": ("GPT2LMHeadModel", {"tie_word_embeddings": False}),
    "bert": ("BertModel", {}),
    "roberta": ("RobertaModel", {"pad_token_id": 1}),
    "xlm-roberta": ("XLMRobertaModel", {"pad_token_id": 1}),
    "distilbert": ("DistilBertModel", {"hidden_dim": 96, "n_layers": 2, "dim": 64, "n_heads": 4}),
}


def reference(name: str, changes: dict[str, Any], sizes: dict[str, Any] = SIZES) -> Any:
    """Return a model of the class `name` in transformers, with random weights, norms and biases included."""
    import transformers

    torch.manual_seed(0)
    kind = getattr(transformers, name)
    model = kind(kind.config_class(**sizes | changes)).eval()
    with torch.no_grad():
        for buffer_name, buffer in model.named_buffers():
            if buffer_name.endswith(("expert_bias", "e_score_correction_bias")):
                buffer.normal_()
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(torch.randn_like(parameter) / 4)
    return model


def save(model: Any, folder: Path) -> None:
    """Save a model of `reference`, without the entries of SIZES that its config does not define."""
    model.save_pretrained(folder)
    kind = type(model.config)
    foreign = SIZES.keys() - kind().to_dict().keys() - kind.attribute_map.keys()
    entries = json.loads((folder / "config.json").read_text())
    kept = {name: value for name, value in entries.items() if name not in foreign}
    (folder / "config.json").write_text(json.dumps(kept))


def output(model: Any) -> Any:
    """Return a model's logits or hidden states for TOKENS, as NumPy's array."""
    with torch.no_grad():
        result = model(torch.tensor(TOKENS))
    return (result.logits if hasattr(result, "logits") else result.last_hidden_state).numpy()
