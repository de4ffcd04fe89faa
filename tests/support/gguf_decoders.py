"""Small random models of decoders that differ from Llama in some terms, and their GGUF files, written by the `gguf`
package by the rules of llama.cpp's converters.

Source:  llama.cpp's `conversion/*.py`
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from support.gguf_files import add_states, converted, finish, with_experts
from support.gguf_models import DELTA

PLAIN = {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}
HALF = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}}
FACTORS = {"embedding_multiplier": 3.0, "residual_multiplier": 0.4, "attention_multiplier": 0.2, "logits_scaling": 2.0}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 16,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
}
LATENTS = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 24,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
}
FALCON_H1 = {
    "head_dim": 16,
    "mamba_d_state": 8,
    "mamba_d_ssm": 96,
    "mamba_n_heads": 4,
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
# By name for a test: the architecture of the file, the class in transformers, and changes of SIZES.
DECODERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "arcee": ("arcee", "ArceeForCausalLM", PLAIN),
    "cohere": ("command-r", "CohereForCausalLM", PLAIN | {"logit_scale": 0.5}),
    "cohere2": ("cohere2", "Cohere2ForCausalLM", PLAIN | {"sliding_window": 4, "num_hidden_layers": 4}),
    "deepseek v2": (
        "deepseek2",
        "DeepseekV2ForCausalLM",
        LATENTS
        | {"q_lora_rank": None, "attention_bias": True}
        | {"rope_parameters": YARN | {"mscale": 0.7, "mscale_all_dim": 0.7}},
    ),
    "deepseek v3": ("deepseek2", "DeepseekV3ForCausalLM", LATENTS | {"q_lora_rank": 32, "n_group": 4, "topk_group": 2}),
    "ernie 4.5": ("ernie4_5", "Ernie4_5ForCausalLM", PLAIN | {"head_dim": 32}),
    "exaone4": ("exaone4", "Exaone4ForCausalLM", PLAIN | {"sliding_window": 4, "num_hidden_layers": 4}),
    "gpt-neox": ("gptneox", "GPTNeoXForCausalLM", HALF),
    "gemma4": (
        "gemma4",
        "Gemma4ForCausalLM",
        {"num_hidden_layers": 6, "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * 2}
        | {"head_dim": 16, "global_head_dim": 32, "sliding_window": 4, "num_kv_shared_layers": 2}
        | {"use_double_wide_mlp": True, "hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 64},
    ),
    "gemma4, keys as values": (
        "gemma4",
        "Gemma4ForCausalLM",
        {"num_hidden_layers": 6, "attention_k_eq_v": True, "num_global_key_value_heads": 1}
        | {"head_dim": 16, "global_head_dim": 32, "sliding_window": 4, "hidden_size_per_layer_input": 0},
    ),
    "glm 4": ("glm4", "Glm4ForCausalLM", HALF | {"head_dim": 16}),
    "falcon-h1": ("falcon-h1", "FalconH1ForCausalLM", PLAIN | FALCON_H1),
    "falcon-h1, norms": (
        "falcon-h1",
        "FalconH1ForCausalLM",
        PLAIN | FALCON_H1 | {"mamba_rms_norm": True, "mamba_norm_before_gate": False, "mamba_n_groups": 2},
    ),
    "jamba": ("jamba", "JambaForCausalLM", {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 4}),
    "gpt-oss": (
        "gpt-oss",
        "GptOssForCausalLM",
        {"head_dim": 16, "sliding_window": 4, "num_local_experts": 4, "num_experts_per_tok": 2}
        | {"rope_parameters": YARN | {"truncate": False}},
    ),
    "granite": ("granite", "GraniteForCausalLM", PLAIN | FACTORS),
    "hunyuan": ("hunyuan-dense", "HunYuanDenseV1ForCausalLM", PLAIN | {"head_dim": 16}),
    "ministral3": (
        "mistral3",
        "Ministral3ForCausalLM",
        {"head_dim": 16, "sliding_window": None}
        | {"rope_parameters": YARN | {"mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.5}},
    ),
    "olmo": ("olmo", "OlmoForCausalLM", {"clip_qkv": 0.5}),
    "olmo2": ("olmo2", "Olmo2ForCausalLM", PLAIN),
    "olmo3": ("olmo2", "Olmo3ForCausalLM", {"sliding_window": 4, "num_hidden_layers": 4}),
    "phi": ("phi2", "PhiForCausalLM", HALF | {"num_key_value_heads": 4, "intermediate_size": 256}),
    "qwen3 next": (
        "qwen3next",
        "Qwen3NextForCausalLM",
        DELTA
        | {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 32}
        | {"shared_expert_intermediate_size": 64, "norm_topk_prob": True},
    ),
    "seed oss": ("seed_oss", "SeedOssForCausalLM", PLAIN | {"head_dim": 32}),
    "smollm3": ("smollm3", "SmolLM3ForCausalLM", PLAIN | {"num_hidden_layers": 4}),
    "stablelm": ("stablelm", "StableLmForCausalLM", HALF | {"use_qkv_bias": True}),
    "stablelm, parallel": ("stablelm", "StableLmForCausalLM", HALF | {"use_parallel_residual": True}),
    "starcoder2": ("starcoder2", "Starcoder2ForCausalLM", PLAIN),
}
PERMUTED = ("arcee", "granite", "mistral3", "olmo", "smollm3")  # whose converters order rows by rotary pairs


def write_decoder(model: Any, architecture: str, path: Path, kind: Any = None) -> None:
    """Write a model of transformers.  Args: kind: quantization type of the matrices; None leaves them in floats"""
    import gguf

    writer = gguf.GGUFWriter(path, architecture)
    add_sizes(writer, model, architecture)
    by_name = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(by_name[architecture], model.config.num_hidden_layers)
    for name, tensor in tensors_of(model, architecture).items():
        if name == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        theirs = name if name.startswith("blk.") else names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert theirs is not None, name
        if kind is not None and tensor.ndim > 1 and not name.endswith(".bias"):
            writer.add_tensor(theirs, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
        else:
            writer.add_tensor(theirs, tensor)
    finish(writer)


def write_rwkv7(model: Any, path: Path) -> None:
    """Write an RWKV-7 of tallow.

    Source:  llama.cpp's `conversion/rwkv.py`
    """
    import gguf

    config = model.config
    writer = gguf.GGUFWriter(path, "rwkv7")
    writer.add_context_length(2**20)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_layer_norm_eps(config.norm_eps)
    writer.add_wkv_head_size(config.head_dim)
    writer.add_decay_lora_rank(config.decay_low_rank_dim)
    writer.add_iclr_lora_rank(config.a_low_rank_dim)
    writer.add_value_residual_mix_lora_rank(config.v_low_rank_dim)
    writer.add_gate_lora_rank(config.gate_low_rank_dim)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(0)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.RWKV7, config.num_hidden_layers)
    parts = {"_lora.lora.0.weight": "1.weight", "_lora.lora.2.weight": "2.weight", "_lora.lora.2.bias": "0.weight"}
    parts |= {"ffn_norm": "ln2", "attn_norm": "ln1", "g_norm": "ln_x", "ffn": "feed_forward", "attn": "attention"}
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    for layer in range(config.num_hidden_layers):
        shares = [state.pop(f"model.layers.{layer}.attn.x_{mix}") for mix in "rwkvag"]
        writer.add_tensor(f"blk.{layer}.time_mix_lerp_fused.weight", np.stack(shares).reshape(6, 1, 1, -1))
    for name, array in state.items():
        for ours, theirs in parts.items():
            name = name.replace(ours, theirs)
        found = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert found is not None, name
        found += "" if found.endswith((".weight", ".bias")) else ".weight"
        array = array.reshape(-1) if found.endswith("r_k.weight") else array
        writer.add_tensor(found, array)
        if "blk.0.time_mix_a" in found:  # layer 0 has no values of its own
            writer.add_tensor(found.replace("time_mix_a", "time_mix_v"), array)
    finish(writer)


def tensors_of(model: Any, architecture: str) -> dict[str, Any]:
    """Return the tensors of a model as converters write them."""
    config, tensors, state = model.config, {}, model.state_dict()
    for name, tensor in (state if architecture == "gpt-oss" else with_experts(state)).items():
        array = tensor.numpy()
        if architecture in PERMUTED and ".self_attn." in name and name.split(".")[-2] in ("q_proj", "k_proj"):
            heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
            array = np.ascontiguousarray(array.reshape(heads, 2, -1, *array.shape[1:]).swapaxes(1, 2)).reshape(
                array.shape
            )
        if "query_key_value" in name:  # all queries, then all keys, then all values
            parts = array.reshape(config.num_attention_heads, 3, -1, *array.shape[1:])
            array = np.concatenate([parts[:, i].reshape(-1, *array.shape[1:]) for i in range(3)])
        path, _, part = name.rpartition(".")
        if path.endswith(".experts") and architecture == "gpt-oss":
            part, end = (part.removesuffix("_bias"), "bias") if part.endswith("_bias") else (part, "weight")
            array = array if end == "bias" else array.swapaxes(1, 2)
            both = {"gate_proj": array[:, ::2], "up_proj": array[:, 1::2]}
            named = both if part == "gate_up_proj" else {part: array}
            tensors |= {f"{path}.{each}.{end}": np.ascontiguousarray(rows) for each, rows in named.items()}
        elif part == "e_score_correction_bias":
            tensors[f"{path}.e_score_correction.bias"] = array
        elif name.endswith(".kv_b_proj.weight"):
            heads = array.reshape(config.num_attention_heads, -1, config.kv_lora_rank)
            keys, values = heads[:, : config.qk_nope_head_dim], heads[:, config.qk_nope_head_dim :]
            tensors[name.replace("kv_b", "k_b")] = np.ascontiguousarray(keys.swapaxes(1, 2))
            tensors[name.replace("kv_b", "v_b")] = np.ascontiguousarray(values)
        elif architecture == "qwen3next":
            tensors |= _of_qwen3_next(config, name, array)
        elif ".mamba." in name or architecture == "falcon-h1":
            named = name.replace(".dt_bias", ".dt_proj.bias")
            tensors[named] = _with_factors(config, name, array) if architecture == "falcon-h1" else _scan(name, array)
        else:
            end = ".weight" if name.endswith((".sinks", "layer_scalar")) else ""
            tensors[name + end] = converted(model, name, array)
    return tensors


def _of_qwen3_next(config: Any, name: str, array: Any) -> dict[str, Any]:
    """Return the tensors of a file for one of a Qwen3-Next."""
    if name.endswith("in_proj_qkvz.weight"):
        layer, groups = name.split(".")[2], config.linear_num_key_heads
        keys, each = config.linear_key_head_dim, config.linear_num_value_heads // groups * config.linear_value_head_dim
        rows = array.reshape(groups, -1, config.hidden_size)
        parts = np.split(rows, np.cumsum([keys, keys, each]), axis=1)
        *qkv, gate = (part.reshape(-1, config.hidden_size) for part in parts)
        return {f"blk.{layer}.attn_qkv.weight": np.concatenate(qkv), f"blk.{layer}.attn_gate.weight": gate}
    if name.endswith("norm.weight") and ".linear_attn." not in name:
        array = array + 1
    return {name.replace(".dt_bias", ".dt_proj.bias"): _scan(name, array)}


def _scan(name: str, array: Any) -> Any:
    """Return an array of a Mamba as files have it."""
    if name.endswith(".A_log"):
        return -np.exp(array)
    return array.squeeze(1) if name.endswith("conv1d.weight") else array


def _with_factors(config: Any, name: str, array: Any) -> Any:
    """Return an array of a Falcon-H1 with the config's factors, as files have it."""
    gate, output = config.mlp_multipliers
    inner = config.attention_in_multiplier
    factors = {
        "feed_forward.gate_proj.weight": gate,
        "feed_forward.down_proj.weight": output,
        "self_attn.q_proj.weight": inner,
        "self_attn.k_proj.weight": inner * config.key_multiplier,
        "self_attn.v_proj.weight": inner,
        "self_attn.o_proj.weight": config.attention_out_multiplier,
        "mamba.out_proj.weight": config.ssm_out_multiplier,
        "lm_head.weight": config.lm_head_multiplier,
        "embed_tokens.weight": config.embedding_multiplier,
    }
    if name.endswith("mamba.in_proj.weight"):
        keys = config.mamba_n_groups * config.mamba_d_state
        sizes = [config.mamba_d_ssm, config.mamba_d_ssm, keys, keys, config.mamba_n_heads]
        factor = np.repeat(np.float32(config.ssm_multipliers), sizes)[:, None] * config.ssm_in_multiplier
    else:
        factor = next((value for end, value in factors.items() if name.endswith(end)), 1.0)
    array = _scan(name, array) * np.float32(factor)
    if name.endswith((".A_log", ".D")):
        return array[:, None]
    return array.reshape(config.mamba_n_groups, -1) if name.endswith("mamba.norm.weight") else array


def add_sizes(writer: Any, model: Any, architecture: str) -> None:
    """Add the metadata."""
    import gguf

    config = model.config
    rope = getattr(config, "rope_parameters", None) or {"rope_type": "default"}
    rope = rope.get("full_attention", rope)
    # Gemma 4's layers have two widths, and DeepSeek's heads have others for keys and values.
    own = None if architecture in ("gemma4", "deepseek2") else getattr(config, "head_dim", None)
    head = own or config.hidden_size // config.num_attention_heads
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    if architecture != "gemma4":
        writer.add_feed_forward_length(config.intermediate_size)
        kv_heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
        if architecture == "jamba":
            kv_heads = [kv_heads if kind == "attention" else 0 for kind in config.layers_block_type]
        writer.add_head_count_kv(1 if architecture == "deepseek2" else kv_heads)
    writer.add_head_count(config.num_attention_heads)
    if "rope_theta" in rope:
        writer.add_rope_freq_base(rope["rope_theta"])
    eps = next((getattr(config, name) for name in ("layer_norm_eps", "norm_epsilon") if hasattr(config, name)), None)
    if eps is None and architecture != "olmo":
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    else:
        writer.add_layer_norm_eps(1e-5 if eps is None else eps)
    if own and architecture != "cohere2":
        writer.add_key_length(head)
        writer.add_value_length(head)
    if "partial_rotary_factor" in rope and architecture != "gemma4":
        writer.add_rope_dimension_count(int(head * rope["partial_rotary_factor"]))
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    MORE.get(architecture, lambda writer, config: None)(writer, config)
    if architecture == "gemma4":
        _gemma4(writer, config)
    elif (window := getattr(config, "sliding_window", None)) is not None:
        writer.add_sliding_window(window)
        if architecture in ("exaone4", "olmo2"):
            writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config.layer_types])


def _gemma4(writer: Any, config: Any) -> None:
    slides = [kind == "sliding_attention" for kind in config.layer_types]
    layers = [config.per_layer_config[i] for i in range(config.num_hidden_layers)]
    wide, narrow = layers[slides.index(False)].head_dim, layers[slides.index(True)].head_dim
    owners = config.num_hidden_layers - config.num_kv_shared_layers
    width = config.intermediate_size
    doubled = [width if i < owners else 2 * width for i in range(config.num_hidden_layers)]
    writer.add_feed_forward_length(doubled if config.use_double_wide_mlp else width)
    writer.add_head_count_kv([layer.num_key_value_heads for layer in layers])
    writer.add_shared_kv_layers(config.num_kv_shared_layers)
    writer.add_embedding_length_per_layer_input(config.hidden_size_per_layer_input)
    writer.add_sliding_window(config.sliding_window)
    writer.add_sliding_window_pattern(slides)
    writer.add_key_length(wide)
    writer.add_value_length(wide)
    writer.add_key_length_swa(narrow)
    writer.add_value_length_swa(narrow)
    writer.add_rope_dimension_count(wide)
    writer.add_rope_dimension_count_swa(narrow)
    writer.add_rope_freq_base_swa(config.rope_parameters["sliding_attention"]["rope_theta"])
    rotated = int(wide * config.rope_parameters["full_attention"]["partial_rotary_factor"] / 2)
    writer.add_tensor("rope_freqs.weight", np.float32([1.0] * rotated + [1e30] * (wide // 2 - rotated)))


def _deepseek2(writer: Any, config: Any) -> None:
    import gguf

    is_third = config.model_type == "deepseek_v3"
    writer.add_leading_dense_block_count(config.first_k_dense_replace)
    writer.add_vocab_size(config.vocab_size)
    if config.q_lora_rank is not None:
        writer.add_q_lora_rank(config.q_lora_rank)
    writer.add_kv_lora_rank(config.kv_lora_rank)
    writer.add_key_length(config.kv_lora_rank + config.qk_rope_head_dim)
    writer.add_value_length(config.kv_lora_rank)
    writer.add_key_length_mla(config.qk_nope_head_dim + config.qk_rope_head_dim)
    writer.add_value_length_mla(config.v_head_dim)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_expert_count(config.n_routed_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    writer.add_rope_dimension_count(config.qk_rope_head_dim)
    if (of_all := config.rope_parameters.get("mscale_all_dim")) is not None:
        writer.add_rope_scaling_yarn_log_mul(0.1 * of_all)
    if is_third:
        writer.add_expert_weights_norm(config.norm_topk_prob)
        writer.add_expert_group_count(config.n_group)
        writer.add_expert_group_used_count(config.topk_group)
    kinds = gguf.ExpertGatingFuncType
    writer.add_expert_gating_func(kinds.SIGMOID if is_third else kinds.SOFTMAX)


def _falcon_h1(writer: Any, config: Any) -> None:
    writer.add_ssm_conv_kernel(config.mamba_d_conv)
    writer.add_ssm_state_size(config.mamba_d_state)
    writer.add_ssm_inner_size(config.mamba_d_ssm)
    writer.add_ssm_time_step_rank(config.mamba_n_heads)
    writer.add_ssm_group_count(config.mamba_n_groups)


def _jamba(writer: Any, config: Any) -> None:
    writer.add_ssm_conv_kernel(config.mamba_d_conv)
    writer.add_ssm_state_size(config.mamba_d_state)
    writer.add_ssm_inner_size(config.mamba_expand * config.hidden_size)
    writer.add_ssm_time_step_rank(config.mamba_dt_rank)
    writer.add_expert_count(config.num_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)


def _qwen3_next(writer: Any, config: Any) -> None:
    add_states(writer, config)
    writer.add_expert_count(config.num_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)


def _granite(writer: Any, config: Any) -> None:
    writer.add_embedding_scale(config.embedding_multiplier)
    writer.add_residual_scale(config.residual_multiplier)
    writer.add_attention_scale(config.attention_multiplier)
    writer.add_logit_scale(config.logits_scaling)


def _cohere(writer: Any, config: Any) -> None:
    import gguf

    writer.add_logit_scale(config.logit_scale)
    writer.add_rope_scaling_type(gguf.RopeScalingType.NONE)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)


def _gpt_oss(writer: Any, config: Any) -> None:
    writer.add_expert_count(config.num_local_experts)
    writer.add_expert_used_count(config.num_experts_per_tok)
    writer.add_expert_feed_forward_length(config.intermediate_size)


def _ministral3(writer: Any, config: Any) -> None:
    writer.add_rope_scaling_yarn_log_mul(config.rope_parameters["mscale_all_dim"])
    writer.add_attn_temperature_scale(config.rope_parameters["llama_4_scaling_beta"])


MORE: dict[str, Callable[[Any, Any], None]] = {
    "deepseek2": _deepseek2,
    "falcon-h1": _falcon_h1,
    "granite": _granite,
    "jamba": _jamba,
    "qwen3next": _qwen3_next,
    "command-r": _cohere,
    "cohere2": _cohere,
    "gpt-oss": _gpt_oss,
    "mistral3": _ministral3,
    "olmo": lambda writer, config: writer.add_clamp_kqv(config.clip_qkv),
    "gptneox": lambda writer, config: writer.add_parallel_residual(config.use_parallel_residual),
    "stablelm": lambda writer, config: writer.add_parallel_residual(config.use_parallel_residual),
}
