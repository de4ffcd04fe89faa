"""Rare config entries and heads, compared with transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
import transformers

from support.model_pairs import (
    DELTA,
    DISTILBERT_SIZES,
    ENCODER_SIZES,
    FALCON_H1,
    FALCON_SIZES,
    GPT2_SIZES,
    JAMBA,
    LLAMA_SIZES,
    LONGROPE,
    MAMBA_SIZES,
    MODERNBERT_SIZES,
)

EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2}
WHISPER_SIZES = dict.fromkeys(
    ("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"), 2
) | {
    "vocab_size": 97,
    "d_model": 32,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 40,
    "num_mel_bins": 8,
    "max_source_positions": 20,
    "max_target_positions": 24,
    "init_std": 0.2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
    "begin_suppress_tokens": None,
}
HYBRID = {"layer_types": ["linear_attention", "full_attention", "linear_attention"]}
SIZES = {
    **dict.fromkeys(("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Gemma3"), LLAMA_SIZES | {"head_dim": 8}),
    **dict.fromkeys(("Bert", "Roberta", "XLMRoberta"), ENCODER_SIZES | {"pad_token_id": 1}),
    "DistilBert": DISTILBERT_SIZES | {"pad_token_id": 1},
    "Falcon": FALCON_SIZES,
    "FalconH1": LLAMA_SIZES | FALCON_H1,
    "Jamba": LLAMA_SIZES | JAMBA,
    "Lfm2": LLAMA_SIZES | {"full_attn_idxs": [1], "block_multiple_of": 8},
    "Lfm2Moe": LLAMA_SIZES | EXPERTS | {"layer_types": ["conv", "full_attention", "conv"], "num_dense_layers": 1},
    "Mixtral": LLAMA_SIZES,
    "ModernBert": MODERNBERT_SIZES,
    "Olmoe": LLAMA_SIZES | EXPERTS,
    **dict.fromkeys(("Qwen2Moe", "Qwen3Moe"), LLAMA_SIZES | EXPERTS | {"moe_intermediate_size": 24}),
    "Mamba": MAMBA_SIZES,
    "Mamba2": MAMBA_SIZES | {"num_heads": 8, "head_dim": 8, "n_groups": 2},
    "Qwen3_5": LLAMA_SIZES | DELTA | HYBRID,
    **dict.fromkeys(("Qwen3Next", "Qwen3_5Moe"), LLAMA_SIZES | EXPERTS | DELTA | HYBRID),
    "GPT2": GPT2_SIZES,
    "Phi3": LLAMA_SIZES,
    "Whisper": WHISPER_SIZES,
}
LABELS = {
    "id2label": {0: "bad", 1: "good", 2: "so so"},
    "label2id": {"bad": 0, "good": 1, "so so": 2},
    "pad_token_id": 0,
}
DYNAMIC = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
WINDOW = {"use_sliding_window": True, "sliding_window": 3}


class Case(NamedTuple):
    """A transformers class (family and head), config changes, and config.json entries that its class does not write."""

    family: str
    head: str
    changes: Mapping[str, Any] = MappingProxyType({})
    entries: Mapping[str, Any] = MappingProxyType({})

    @property
    def name(self) -> str:
        entries = ", ".join(f"{name}={value}"[:40] for name, value in ({**self.changes, **self.entries}).items())
        return f"{self.family}{self.head} {entries}".strip()


def _rope(**entries: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_theta": 10000.0, **entries}}


CAUSAL = "ForCausalLM"
DECODERS = [
    # Prompts of different lengths grow past the length from which the rotary angles change.
    *(Case(name, CAUSAL, {"max_position_embeddings": 20, "rope_parameters": DYNAMIC}) for name in ("Llama", "Falcon")),
    Case("Llama", CAUSAL, _rope(**LONGROPE, factor=3.0, original_max_position_embeddings=20)),
    Case("Phi3", CAUSAL, {"original_max_position_embeddings": 20, "rope_parameters": LONGROPE}),
    *(Case(name, CAUSAL, WINDOW | {"max_window_layers": 0}) for name in ("Qwen2", "Qwen3")),
    Case("Qwen2", CAUSAL, {"max_window_layers": 0}),
    *(Case("Llama", CAUSAL, {"hidden_act": act}) for act in ("gelu", "relu2", "gelu_10", "laplace")),
    *(Case("Mistral", CAUSAL, {"hidden_act": act}) for act in ("gelu_pytorch_tanh", "hardswish", "leaky_relu")),
    *(Case("Phi3", CAUSAL, {"hidden_act": act}) for act in ("linear", "sqrtsoftplus")),
    Case("Gemma", CAUSAL, {"hidden_act": "relu"}),
    Case("Gemma2", CAUSAL, {"hidden_activation": "gelu"}, {"hidden_act": "relu"}),
    Case("Gemma3", CAUSAL, {"hidden_activation": "relu", "sliding_window": 3}),
    Case("GPT2", "LMHeadModel", {"tie_word_embeddings": False, "activation_function": "gelu_accurate"}),
    Case("Llama", CAUSAL, _rope(rope_type="proportional", factor=2.0, partial_rotary_factor=0.5)),
    Case("Llama", CAUSAL, _rope(rope_type="default"), {"partial_rotary_factor": 0.5}),
    Case("Llama", CAUSAL, {"attention_dropout": 0.2, "pretraining_tp": 2}),
    Case("Mistral", CAUSAL, {}, {"attention_bias": True, "mlp_bias": True}),
    Case("Phi3", CAUSAL, {}, {"attention_bias": True}),
    Case("Qwen2", CAUSAL, {}, {"attention_bias": False}),
    Case("Mixtral", CAUSAL, {"hidden_act": "gelu"}, {"norm_topk_prob": False}),
    Case("Qwen2Moe", CAUSAL, {"qkv_bias": False, "norm_topk_prob": True}, {"attention_bias": True}),
    Case("Qwen3Moe", CAUSAL, {"decoder_sparse_step": 3, "attention_bias": True}),
    Case("Qwen3Moe", CAUSAL, WINDOW),
    Case("Lfm2", CAUSAL, {"block_ffn_dim_multiplier": 1.4}, {"block_use_swiglu": True, "num_heads": 4}),
]
FAMILIES = ("Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Phi3", "GPT2", "Falcon")
BASE_MODELS = [
    *(Case(name, "Model") for name in FAMILIES),
    *(
        Case(name, "Model")
        for name in ("Lfm2", "Lfm2Moe", "Mamba", "Mamba2", "Mixtral", "Olmoe", "Qwen2Moe", "Qwen3Moe", "Qwen3Next")
    ),
    *(Case(name, "Model") for name in ("FalconH1", "Jamba")),
    *(Case(name, "TextModel") for name in ("Gemma3", "Qwen3_5", "Qwen3_5Moe")),
    Case("Falcon", "Model", {"alibi": True, "multi_query": False, "parallel_attn": False}),
    Case("Phi3", "Model", {"original_max_position_embeddings": 20, "rope_parameters": LONGROPE}),
]
CLASSIFIERS = [
    *(Case(name, f"For{kind}Classification", LABELS) for name in FAMILIES for kind in ("Sequence", "Token")),
    *(Case(name, "TextForSequenceClassification", LABELS) for name in ("Gemma3", "Qwen3_5")),
    *(Case("Qwen3Next", f"For{kind}Classification", LABELS) for kind in ("Sequence", "Token")),
    Case("Qwen3Next", "ForQuestionAnswering"),
    *(Case(name, "ForQuestionAnswering") for name in FAMILIES if not name.startswith(("Gemma", "Phi3"))),
]
ENCODER_HEADS = [
    Case("Bert", "ForPreTraining"),
    Case("Bert", "ForPreTraining", {"tie_word_embeddings": False}),
    *(Case("Bert", head, {"is_decoder": True}) for head in ("Model", "LMHeadModel", "ForSequenceClassification")),
    Case("XLMRoberta", CAUSAL, {"is_decoder": True, "tie_word_embeddings": False}),
    *(
        Case(name, "ForMaskedLM", {"tie_word_embeddings": False})
        for name in ("Bert", "Roberta", "DistilBert", "ModernBert")
    ),
    Case("ModernBert", "ForSequenceClassification", {"attention_bias": True, "classifier_bias": True}),
    Case("ModernBert", "Model", {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}),
]
WHISPERS = [
    Case("Whisper", "ForConditionalGeneration", {"scale_embedding": True}),
    Case("Whisper", "ForConditionalGeneration", {"scale_embedding": True, "tie_word_embeddings": False}),
]


def reference(case: Case, folder: Path) -> Any:
    """Save a transformers model and return it loaded from the folder. All of its weights affect the output."""
    kind = getattr(transformers, case.family + case.head)
    torch.manual_seed(0)
    sizes = json.loads(json.dumps({**SIZES[case.family], **case.changes}))  # transformers writes into its dicts
    model = kind(kind.config_class(**sizes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:  # norms are initialized to ones, biases to zeros
                parameter.add_(torch.randn_like(parameter) / 4)
    model.save_pretrained(folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | dict(case.entries)))
    return load_reference(case, folder)


def load_reference(case: Case, folder: Path) -> Any:
    """Load the transformers model of a folder."""
    # Only the eager attention of transformers caps the scores of Gemma 2 and 3.
    options = {"attn_implementation": "eager"} if case.family in ("Gemma2", "Gemma3") else {}
    return getattr(transformers, case.family + case.head).from_pretrained(folder, **options).eval()
