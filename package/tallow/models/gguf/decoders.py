"""The configs of decoders in GGUF files that differ from Llama in some terms.

Source:  what llama.cpp's converters write, `conversion/*.py`; values that files omit, from its `src/models`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tallow.errors import CheckpointError
from tallow.models.gguf.decoder_names import DECODER_NAMES
from tallow.models.gguf.latents import LatentsFile
from tallow.models.gguf.metadata import (
    HEAD,
    YARN_LOGARITHM,
    Design,
    Metadata,
    decoder_settings,
    llama_settings,
    rope_scaling,
    row_count,
)

PATTERN = "attention.sliding_window_pattern"
DEEPSEEK = {None: "DeepseekV2", 1: "DeepseekV2", 2: "DeepseekV3"}  # by `expert_gating_func`: softmax or sigmoid


def _read(metadata: Metadata, model: str, *, is_partial: bool = False, **more: Any) -> Design:
    """Return the design of a model of Llama's kind.

    Args:    more: settings in addition to Llama's, or in place of them
    """
    names = DECODER_NAMES[model]
    settings = llama_settings(metadata, names, partial=is_partial) | more
    return Design(model, names, metadata.config(model, settings))


def _interleaved(metadata: Metadata, model: str, *, is_partial: bool = False, **more: Any) -> Design:
    """Models whose rotary pairs are neighbours in Hugging Face folders, too."""
    return _read(metadata, model, is_partial=is_partial, rope_interleaved=True, **more)


def _cohere2(metadata: Metadata) -> Design:
    return _interleaved(metadata, "Cohere2", head_dim=None)


def _deepseek2(metadata: Metadata) -> Design:
    """DeepSeek V2 or V3. Widths of heads are those of latents in files that divide the layer of keys and values."""
    metadata.require("expert_gating_func", tuple(filter(None, DEEPSEEK)))
    model = DEEPSEEK[metadata.get("expert_gating_func")]
    names = DECODER_NAMES[model]
    settings = decoder_settings(metadata, names)
    heads, rotated = settings["num_attention_heads"], settings["qk_rope_head_dim"]
    metadata.require("attention.head_count_kv", (1, heads))
    keys, values = (
        metadata.get(f"attention.{part}_length_mla") or metadata.get(f"attention.{part}_length")
        for part in ("key", "value")
    )
    for part in ("key", "value"):
        metadata.get(f"attention.{part}_length")
    scaling = rope_scaling(metadata)
    if scaling is not None and scaling.get("rope_type") == "yarn" and "mscale" not in scaling:
        raise CheckpointError(
            f"{metadata.file.name} has no deepseek2.{YARN_LOGARITHM}", hint="convert the model again with llama.cpp"
        )
    further = metadata.get("nextn_predict_layers") or 0
    if type(settings["num_hidden_layers"]) is type(further) is int:
        settings["num_hidden_layers"] -= further
    settings |= {
        "num_key_value_heads": heads,
        "qk_nope_head_dim": keys - rotated if type(keys) is type(rotated) is int else None,
        "v_head_dim": values,
        "first_k_dense_replace": settings["first_k_dense_replace"] or 0,
        "norm_topk_prob": bool(metadata.get("expert_weights_norm")),
        "routed_scaling_factor": metadata.get("expert_weights_scale") or 1.0,
        "n_group": settings["n_group"] or 1,
        "topk_group": settings["topk_group"] or settings["n_group"] or 1,
        "attention_bias": any(name.endswith(".attn_kv_a_mqa.bias") for name in metadata.file),
        "rope_scaling": scaling,
    }
    if model == "DeepseekV2":
        settings["topk_method"] = "group_limited_greedy" if settings["n_group"] != 1 else "greedy"
    config = metadata.config(model, settings)
    return Design(model, names, config, further=further, file=LatentsFile(metadata.file))


def _ernie(metadata: Metadata) -> Design:
    return _interleaved(metadata, "Ernie4_5", use_bias="blk.0.attn_q.bias" in metadata.file)


def _exaone4(metadata: Metadata) -> Design:
    return _read(metadata, "Exaone4", **_layers(metadata, 4))


def _layers(metadata: Metadata, every: int) -> dict[str, Any]:
    """Return the layer_types of a file, which may name the layers that slide; otherwise all but `every`-th do."""
    layers, window = metadata.get("block_count"), metadata.get("attention.sliding_window")
    slides = metadata.get(PATTERN)
    if type(layers) is not int or not 0 < layers <= len(metadata.file):
        return {}  # the config raises for it
    if slides is None or isinstance(slides, int):
        slides = [(i + 1) % (slides or every) != 0 for i in range(layers)]
    if not isinstance(slides, list) or len(slides) != layers:
        raise CheckpointError(
            f"{metadata.file.name}: {PATTERN} is {slides!r:.80}; expected one entry per layer, {layers}"
        )
    kinds = ["sliding_attention" if slide and window else "full_attention" for slide in slides]
    return {"layer_types": kinds, "sliding_window": window or None}


def _gemma4(metadata: Metadata) -> Design:
    names = DECODER_NAMES["Gemma4"]
    settings = decoder_settings(metadata, names) | _layers(metadata, 6)
    metadata.require("expert_count", (0,))
    metadata.require("attention.value_length", (settings["global_head_dim"],))
    metadata.require("attention.value_length_swa", (settings["head_dim"],))
    metadata.require("rope.dimension_count", (settings["global_head_dim"],))
    metadata.require("rope.dimension_count_swa", (settings["head_dim"],))
    owners = _count(settings["num_hidden_layers"]) - _count(settings["num_kv_shared_layers"])
    hidden, heads = (metadata.get(key) for key in ("feed_forward_length", "attention.head_count_kv"))
    slides = [kind == "sliding_attention" for kind in settings.get("layer_types", ())]
    of_kind = dict(zip(slides, heads, strict=False)) if isinstance(heads, list) else dict.fromkeys((True, False), heads)
    settings |= {
        "attention_k_eq_v": any(_lacks_values(metadata, i) for i in range(min(owners, len(metadata.file)))),
        "rope_scaling": _proportional(rope_scaling(metadata)),
        "num_key_value_heads": of_kind.get(True, of_kind.get(False)),
        "num_global_key_value_heads": of_kind.get(False),
        "intermediate_size": hidden[0] if isinstance(hidden, list) and hidden else hidden,
        "use_double_wide_mlp": isinstance(hidden, list) and hidden[-1:] != hidden[:1],
    }
    if "per_layer_token_embd.weight" in metadata.file:
        settings["vocab_size_per_layer_input"] = row_count(metadata.file, "per_layer_token_embd.weight")
    return Design("Gemma4", names, metadata.config("Gemma4", settings))


def _proportional(scaling: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the scaling of a share of all pairs, for divisors of 1 and then of 1e30, which stop the others."""
    divisors = (scaling or {}).get("divisors", [])
    turning = divisors.count(1.0)
    if not turning or any(each < 1e29 for each in divisors[turning:]):
        return scaling
    return {"rope_type": "proportional", "partial_rotary_factor": turning / len(divisors)}


def _count(value: Any) -> int:
    return value if type(value) is int else 0


def _lacks_values(metadata: Metadata, layer: int) -> bool:
    file = metadata.file
    return f"blk.{layer}.attn_k.weight" in file and f"blk.{layer}.attn_v.weight" not in file


def _glm4(metadata: Metadata) -> Design:
    return _interleaved(metadata, "Glm4", is_partial=True)


def _neox(metadata: Metadata) -> Design:
    return _read(metadata, "GPTNeoX", is_partial=True, head_dim=None)


def _gpt_oss(metadata: Metadata) -> Design:
    names = DECODER_NAMES["GptOss"]
    settings = llama_settings(metadata, names)
    if isinstance(scaling := settings["rope_scaling"], dict) and scaling.get("rope_type") == "yarn":
        settings["rope_scaling"] = scaling | {"truncate": False}
    metadata.get("feed_forward_length")  # the same as that of experts
    return Design("GptOss", names, metadata.config("GptOss", settings))


def _granite(metadata: Metadata) -> Design:
    metadata.require("rope.scaling.finetuned", (True,))  # False stands for no rotation
    metadata.require("expert_count", (0,))
    return _read(metadata, "Granite")


def _hunyuan(metadata: Metadata) -> Design:
    metadata.require("rope.scaling.factor", (1.0,))  # the base holds the scaling
    return _read(metadata, "HunYuanDenseV1")


def _olmo(metadata: Metadata) -> Design:
    metadata.get("attention.layer_norm_epsilon")  # that of all its norms
    return _read(metadata, "Olmo")


def _olmo2(metadata: Metadata) -> Design:
    """OLMo 2, or OLMo 3, which has sliding windows; the scaling holds for layers without one."""
    is_third = metadata.get("attention.sliding_window") is not None
    return _read(metadata, "Olmo3", **_layers(metadata, 4)) if is_third else _read(metadata, "Olmo2")


def _phi2(metadata: Metadata) -> Design:
    return _read(metadata, "Phi", is_partial=True, head_dim=None, tie_word_embeddings=HEAD not in metadata.file)


def _stablelm(metadata: Metadata) -> Design:
    biases = "blk.0.attn_q.bias" in metadata.file
    is_parallel = "blk.0.ffn_norm.weight" not in metadata.file
    more = {"use_qkv_bias": biases, "use_parallel_residual": is_parallel, "head_dim": None}
    return _read(metadata, "StableLm", is_partial=True, **more)


def _starcoder2(metadata: Metadata) -> Design:
    biases = "blk.0.attn_q.bias" in metadata.file
    return _read(metadata, "Starcoder2", use_bias=biases, head_dim=None)


def _ministral3(metadata: Metadata) -> Design:
    metadata.require("expert_count", (0,))
    return _read(metadata, "Ministral3")


READERS: dict[str, Callable[[Metadata], Design]] = {
    "arcee": partial(_read, model="Arcee"),
    "cohere2": _cohere2,
    "command-r": partial(_interleaved, model="Cohere", head_dim=None),
    "deepseek2": _deepseek2,
    "ernie4_5": _ernie,
    "exaone4": _exaone4,
    "gemma4": _gemma4,
    "glm4": _glm4,
    "gpt-oss": _gpt_oss,
    "gptneox": _neox,
    "granite": _granite,
    "hunyuan-dense": _hunyuan,
    "mistral3": _ministral3,
    "olmo": _olmo,
    "olmo2": _olmo2,
    "phi2": _phi2,
    "seed_oss": partial(_read, model="SeedOss"),
    "smollm3": partial(_read, model="SmolLM3"),
    "stablelm": _stablelm,
    "starcoder2": _starcoder2,
}
