"""Write GGUF files with the `gguf` package as llama.cpp's converter does: models of transformers, and tokenizers."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tallow.io import llama2c
from tallow.io.llama2c import LAYER_NAMES

NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6


def write_model(
    model: Any,
    path: Path,
    kind: Any = None,
    add: Callable[[Any], None] = lambda writer: None,
    *,
    implied_heads: bool = False,
    quantize: Callable[[Any, Any], Any] | None = None,
    **options: Any,
) -> None:
    """Write a transformers model to a GGUF file.

    Args:
        kind: quantization type of the matrices, except those of positions and segments.
        add: function that adds further entries, such as a tokenizer.
        implied_heads: omit the number of key-value heads and the head size, which readers then derive from the query
            heads.
        quantize: makes blocks from a matrix and `kind`, in place of the package's function.
        options: options of the GGUFWriter.
    """
    import gguf

    config = model.config
    architecture = ARCHITECTURES.get(config.model_type, config.model_type)
    writer = gguf.GGUFWriter(path, architecture, **options)
    scans = config.model_type in SCANS
    (add_scan_sizes if scans else add_sizes if config.model_type in SIZES else add_decoder_sizes)(
        writer, model, implied_heads
    )
    by_name = {name: number for number, name in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(by_name[architecture], config.num_hidden_layers)
    for name, tensor in with_experts(model.state_dict()).items():
        array = converted(model, name, tensor.numpy())
        if array is None or (name == "lm_head.weight" and config.tie_word_embeddings):
            continue
        if name.endswith(".dt_bias"):
            name = name.replace(".dt_bias", ".dt_proj.bias")
        if name.endswith(".expert_bias"):
            name += ".bias"
        if ".feed_forward.experts." in name:
            parts = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}
            path, kind_of, _ = name.rsplit(".", 2)
            name = f"{path.removeprefix('model.')}.{parts[kind_of]}.weight"
        theirs = names.get_name(name.removeprefix(f"{config.model_type}."), try_suffixes=(".weight", ".bias"))
        assert theirs is not None, name
        is_quantised = not theirs.startswith(("position_embd", "token_types")) and "conv" not in theirs.split(".")[-2]
        is_quantised = is_quantised and not theirs.endswith(("ssm_a", "ssm_d", "ssm_norm.weight"))
        if kind is not None and array.ndim > 1 and is_quantised:
            writer.add_tensor(theirs, (quantize or gguf.quants.quantize)(array, kind), raw_dtype=kind)
        else:
            writer.add_tensor(theirs, array)
    add(writer)
    finish(writer)


ENCODERS = ("roberta", "xlm-roberta", "distilbert")
SPARSE = {"mixtral": "llama", "qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe"}
ARCHITECTURES = SPARSE | {"lfm2_moe": "lfm2moe", "qwen3_5_text": "qwen35", "qwen3_5_moe_text": "qwen35moe"}
ARCHITECTURES |= {"mistral": "llama", "gemma3_text": "gemma3", **dict.fromkeys(ENCODERS, "bert")}
# By model_type, for models not of Llama's design: the names of the feed-forward width and of eps in the config.
SIZES = {
    "gpt2": ("n_inner", "layer_norm_epsilon"),
    "falcon": ("ffn_hidden_size", "layer_norm_epsilon"),
    "bert": ("intermediate_size", "layer_norm_eps"),
    "roberta": ("intermediate_size", "layer_norm_eps"),
    "xlm-roberta": ("intermediate_size", "layer_norm_eps"),
    "distilbert": ("hidden_dim", None),
}
SCANS = ("mamba", "mamba2")
LFM2 = ("lfm2", "lfm2_moe")
DELTA = ("qwen3_5_text", "qwen3_5_moe_text")
HYBRIDS = LFM2 + DELTA
GEMMAS = ("gemma", "gemma2", "gemma3_text")
POSITIONS = "embeddings.position_embeddings.weight"


def with_experts(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state dict of a transformers model with the experts' matrices as converters write them."""
    tensors: dict[str, Any] = {}
    for name, tensor in state.items():
        path, _, kind = name.rpartition(".")
        if kind == "gate_up_proj":
            gate, up = tensor.chunk(2, 1)
            tensors |= {f"{path}.gate_proj.weight": gate, f"{path}.up_proj.weight": up}
        elif path.endswith(".experts"):
            tensors[f"{name}.weight"] = tensor
        else:
            tensors[name] = tensor[0] if name.endswith("shared_expert_gate.weight") else tensor
    return tensors


def add_scan_sizes(writer: Any, model: Any, implied_heads: bool) -> None:
    """Add the sizes of Mamba."""
    config = model.config
    is_first = config.model_type == "mamba"
    channels = config.intermediate_size if is_first else int(config.expand * config.hidden_size)
    writer.add_context_length(2**20)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_ssm_conv_kernel(config.conv_kernel)
    writer.add_ssm_inner_size(channels)
    writer.add_ssm_state_size(config.state_size)
    writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)
    if config.model_type == "mamba2":
        writer.add_ssm_time_step_rank(config.num_heads)
        writer.add_ssm_group_count(config.n_groups)
    else:
        writer.add_ssm_time_step_rank(config.time_step_rank)
        writer.add_ssm_dt_b_c_rms(False)


def add_sizes(writer: Any, model: Any, implied_heads: bool) -> None:
    """Add the sizes of GPT-2, Falcon and BERT's family."""
    config = model.config
    hidden, eps = SIZES[config.model_type]
    positions = config.max_position_embeddings
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(getattr(config, hidden) or 4 * config.hidden_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_layer_norm_eps(1e-12 if eps is None else getattr(config, eps))
    if config.model_type == "falcon":
        writer.add_tensor_data_layout("jploski")
        writer.add_head_count_kv(falcon_groups(config))
    elif ARCHITECTURES.get(config.model_type, config.model_type) == "bert":
        positions -= positions_before(config)
        writer.add_causal_attention(False)
        writer.add_pad_token_id(config.pad_token_id)
    writer.add_context_length(positions)


def add_decoder_sizes(writer: Any, model: Any, implied_heads: bool) -> None:
    """Add the sizes of models of Llama's design."""
    import gguf

    config, kv_heads = model.config, model.config.num_key_value_heads
    if config.model_type in HYBRIDS:
        add_states(writer, config)
        if config.model_type in LFM2:
            kv_heads = [kv_heads if kind == "full_attention" else 0 for kind in config.layer_types]
    rope = config.rope_parameters.get("full_attention", config.rope_parameters)
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    if hasattr(config, "intermediate_size"):
        writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_layer_norm_rms_eps(config.norm_eps if config.model_type in LFM2 else config.rms_norm_eps)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    if config.pad_token_id is not None:
        writer.add_pad_token_id(config.pad_token_id)
    if not implied_heads:
        writer.add_head_count_kv(kv_heads)
    if config.model_type in (*GEMMAS, *DELTA):
        writer.add_key_length(head)
        writer.add_value_length(head)
    elif config.model_type != "phi3" and not implied_heads:
        writer.add_key_length(head)
    if config.model_type in (*SPARSE, "olmoe", "lfm2_moe", "qwen3_5_moe_text"):
        writer.add_expert_count(config.num_experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
    if config.model_type in ("qwen2_moe", "qwen3_moe", "lfm2_moe", "qwen3_5_moe_text"):
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if config.model_type in ("qwen2_moe", "qwen3_5_moe_text"):
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    if config.model_type == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
        writer.add_sliding_window(config.sliding_window)
    if config.model_type in ("mistral", "gemma3_text"):
        writer.add_sliding_window(config.sliding_window)
    if config.model_type not in ("gemma", "gemma2"):
        writer.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] == "llama3":
        unscaled = rope["rope_theta"] ** (-np.arange(0, 16, 2) / 16)
        divisors = unscaled / model.model.rotary_emb.inv_freq.numpy()
        writer.add_tensor("rope_freqs.weight", divisors.astype(np.float32))
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if config.model_type == "phi3":
        original = config.original_max_position_embeddings
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_dimension_count(
            int(rope["partial_rotary_factor"] * config.hidden_size) // config.num_attention_heads
        )
        writer.add_sliding_window(config.sliding_window or 0)
        if rope["rope_type"] == "longrope":
            scale = config.max_position_embeddings / original
            writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(scale) / math.log(original)))
            writer.add_tensor("rope_factors_long.weight", np.float32(rope["long_factor"]))
            writer.add_tensor("rope_factors_short.weight", np.float32(rope["short_factor"]))


def add_states(writer: Any, config: Any) -> None:
    """Add the sizes of layers with states."""
    import gguf

    if config.model_type in LFM2:
        writer.add_shortconv_l_cache(config.conv_L_cache)
        writer.add_vocab_size(config.vocab_size)
        if config.model_type == "lfm2_moe":
            writer.add_leading_dense_block_count(config.num_dense_layers)
            writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
        return
    heads = config.linear_num_value_heads
    writer.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
    writer.add_ssm_state_size(config.linear_key_head_dim)
    writer.add_ssm_group_count(config.linear_num_key_heads)
    writer.add_ssm_time_step_rank(heads)
    writer.add_ssm_inner_size(config.linear_value_head_dim * heads)
    writer.add_full_attention_interval(2)
    writer.add_rope_dimension_count(int(config.head_dim * config.rope_parameters["partial_rotary_factor"]))
    writer.add_rope_dimension_sections([11, 11, 10, 0])


def tiled(config: Any, name: str, array: Any) -> Any:
    """Return an array of the gated delta rule with the value heads in the order of GGUF files."""
    groups, heads, width = config.linear_num_key_heads, config.linear_num_value_heads, config.linear_value_head_dim
    first = 2 * groups * config.linear_key_head_dim if "in_proj_qkv" in name or "conv1d" in name else 0
    each = 1 if name.endswith(("A_log", "dt_bias", "in_proj_a.weight", "in_proj_b.weight")) else width
    places = np.arange(heads * each).reshape(groups, heads // groups, each).swapaxes(0, 1).reshape(-1)
    if name.endswith("out_proj.weight"):
        return np.ascontiguousarray(array[:, places])
    return np.concatenate([array[:first], array[first:][places]])


def converted(model: Any, name: str, array: Any) -> Any:
    """Return an array of a checkpoint as llama.cpp's converter stores it; None for one that it omits."""
    config = model.config
    kind = config.model_type
    if kind in ("llama", "mistral", "mixtral") and name.endswith(("q_proj.weight", "k_proj.weight")):
        heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
        halves = array.reshape(heads, 2, -1, array.shape[1])
        return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(array.shape)
    if kind in DELTA and ".linear_attn." in name and not name.endswith(".norm.weight"):
        array = tiled(config, name, array)
        return -np.exp(array) if name.endswith("A_log") else array.squeeze(1) if "conv1d" in name else array
    if kind in (*GEMMAS, *DELTA) and name.endswith("norm.weight") and ".linear_attn." not in name:
        return array + 1
    if kind in SCANS and name.endswith("A_log"):
        array = -np.exp(array)
    if kind in SCANS and "conv1d.weight" in name:
        return array.squeeze(1)
    if kind == "mamba2" and name.endswith(("A_log", ".D")):
        return array[:, None]
    if kind == "mamba2" and name.endswith("mixer.norm.weight"):
        return array.reshape(config.n_groups, -1)
    if kind in LFM2 and "conv.conv" in name:
        return array.squeeze(1)
    if kind == "gpt2" and name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
        return np.ascontiguousarray(array.T)
    if kind == "falcon" and "query_key_value" in name:
        groups, heads = falcon_groups(config), config.num_attention_heads
        fused = array.reshape(groups, heads // groups + 2, config.hidden_size // heads, *array.shape[1:])
        parts = fused[:, :-2], fused[:, [-2]], fused[:, [-1]]
        return np.concatenate([part.reshape(-1, *array.shape[1:]) for part in parts])
    if "pooler." in name or name.endswith("position_ids") or (kind == "bert" and name.startswith("classifier.")):
        return None
    if name.endswith(POSITIONS):
        return array[positions_before(config) :]
    return array


def falcon_groups(config: Any) -> int:
    if config.new_decoder_architecture:
        return config.num_kv_heads
    return 1 if config.multi_query else config.num_attention_heads


def positions_before(config: Any) -> int:
    """Return the number of positions before that of the first token."""
    return config.pad_token_id + 1 if "roberta" in config.model_type else 0


def write_llama2c(
    model: Path,
    tokenizer: Path,
    path: Path,
    kind: Any = None,
    *,
    context: int | None = None,
    template: str | None = None,
    **options: Any,
) -> None:
    """Write a llama2.c checkpoint and its tokenizer to a GGUF file.

    Args:
        kind: quantization type of the matrices whose rows are whole blocks; the others stay in float32.
        context: the number of positions; None means that of the checkpoint.
        template: a chat template.
        options: options of the GGUFWriter.
    """
    import gguf

    checkpoint = llama2c.load(model)
    header, arrays = checkpoint.header, checkpoint.arrays
    pieces = _llama2c_pieces(tokenizer)
    writer = gguf.GGUFWriter(path, **{"arch": "llama"} | options)
    writer.add_block_count(header.n_layers)
    writer.add_embedding_length(header.dim)
    writer.add_feed_forward_length(header.hidden_dim)
    writer.add_head_count(header.n_heads)
    writer.add_head_count_kv(header.n_kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_context_length(context or header.seq_len)
    writer.add_rope_freq_base(10000.0)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _ in pieces])
    writer.add_token_scores([score for _, score in pieces])
    kinds = {"<unk>": UNKNOWN, "<s>": CONTROL, "</s>": CONTROL}
    writer.add_token_types([kinds.get(text, BYTE if text.startswith("<0x") else NORMAL) for text, _ in pieces])
    if template is not None:
        writer.add_chat_template(template)
    for role, token in (("unk", 0), ("bos", 1), ("eos", 2)):
        getattr(writer, f"add_{role}_token_id")(token)
    tensors = {"token_embd": arrays["token_embedding_table"], "output_norm": arrays["rms_final_weight"]}
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, header.n_layers)
    for name, key in LAYER_NAMES.items():
        tensors |= {names.get_name(f"model.layers.{i}.{name}"): array for i, array in enumerate(arrays[key])}
    for name, array in tensors.items():
        array = np.ascontiguousarray(array)
        if kind is not None and array.ndim == 2 and array.shape[1] % gguf.GGML_QUANT_SIZES[kind][0] == 0:
            writer.add_tensor(f"{name}.weight", gguf.quants.quantize(array, kind), raw_dtype=kind)
        else:
            writer.add_tensor(f"{name}.weight", array)
    finish(writer)


def _llama2c_pieces(tokenizer: Path) -> list[tuple[str, float]]:
    """Return the pieces of a `tokenizer.bin` and their scores, as SentencePiece writes them."""
    data, position, pieces = tokenizer.read_bytes(), 4, []
    while position < len(data):
        score, length = struct.unpack_from("<fi", data, position)
        position += 8 + length
        text = data[position - length : position].decode()
        pieces.append((text.strip("\n") if text.startswith("\n<") else text.replace(" ", "▁"), score))
    return pieces


def add_bytes(writer: Any, tokenizer: str, pre: str | None) -> None:
    """Add a byte-level BPE tokenizer from a `tokenizer.json`."""
    entries = json.loads(tokenizer)
    tokens = _tokens(entries)
    special = {token["content"] for token in entries["added_tokens"]}
    writer.add_tokenizer_model("gpt2")
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([CONTROL if token in special else NORMAL for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in entries["model"]["merges"]])


def add_pieces(writer: Any, tokenizer: str) -> None:
    """Add a `tokenizer.json`'s pieces as a SentencePiece model, which has scores in place of merges."""
    entries = json.loads(tokenizer)
    tokens = _tokens(entries)
    special = {token["content"]: CONTROL for token in entries["added_tokens"]} | {"<unk>": UNKNOWN}
    ranks: dict[str, int] = {}
    for rank, merge in enumerate(entries["model"]["merges"]):
        ranks.setdefault("".join(merge), rank)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_types([BYTE if token.startswith("<0x") else special.get(token, NORMAL) for token in tokens])
    writer.add_token_scores([-float(ranks.get(token, len(tokens))) for token in tokens])
    writer.add_unk_token_id(tokens.index("<unk>"))


def add_words(writer: Any, tokenizer: str, *, older: bool = False) -> None:
    """Add a `tokenizer.json`'s WordPiece vocabulary: the first piece of a word is marked, not the others.

    Args:    older: as the first files, which leave all names in brackets as they are, and name no roles
    """
    entries = json.loads(tokenizer)
    tokens = _tokens(entries)
    special = {token["content"] for token in entries["added_tokens"]}

    def marked(token: str) -> str:
        if token in special or (older and token.startswith("[") and token.endswith("]")):
            return token
        return token.removeprefix("##") if token.startswith("##") else f"\u2581{token}"

    writer.add_tokenizer_model("bert")
    writer.add_token_list(list(map(marked, tokens)))
    writer.add_token_types([CONTROL if token in special else NORMAL for token in tokens])
    if not older:
        for role, token in (("bos", "[CLS]"), ("eos", "[SEP]"), ("sep", "[SEP]"), ("unk", "[UNK]"), ("mask", "[MASK]")):
            getattr(writer, f"add_{role}_token_id")(tokens.index(token))
        for role, added in (("bos", True), ("eos", True), ("sep", False)):
            getattr(writer, f"add_add_{role}_token")(added)


def add_unigram(writer: Any, tokenizer: str) -> None:
    """Add a `tokenizer.json`'s Unigram vocabulary, as of XLM-RoBERTa."""
    entries = json.loads(tokenizer)
    special = {token["content"]: CONTROL for token in entries["added_tokens"]} | {"<unk>": UNKNOWN}
    tokens = [token for token, _ in entries["model"]["vocab"]]
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores([score for _, score in entries["model"]["vocab"]])
    writer.add_token_types([special.get(token, NORMAL) for token in tokens])
    writer.add_add_space_prefix(True)
    writer.add_remove_extra_whitespaces(True)
    for role, token in (("bos", "<s>"), ("eos", "</s>"), ("sep", "</s>"), ("unk", "<unk>"), ("pad", "<pad>")):
        getattr(writer, f"add_{role}_token_id")(tokens.index(token))
        if role in ("bos", "eos", "sep"):
            getattr(writer, f"add_add_{role}_token")(True)


def finish(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tokens(entries: dict[str, Any]) -> list[str]:
    vocab = entries["model"]["vocab"] | {token["content"]: token["id"] for token in entries["added_tokens"]}
    return sorted(vocab, key=vocab.get)
