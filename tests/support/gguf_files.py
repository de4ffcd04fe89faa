"""GGUF files, written by the `gguf` package as llama.cpp's converter does: models of transformers, and tokenizers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tallow.models import gguf_llama

NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
NAMES = {ours: theirs for theirs, ours in (gguf_llama.OUTER | gguf_llama.INNER).items()}


def write_model(
    model: Any,
    path: Path,
    kind: Any = None,
    add: Callable[[Any], None] = lambda writer: None,
    *,
    implied_heads: bool = False,
    **options: Any,
) -> None:
    """Rows of queries and keys of a Llama are in the order of neighbouring pairs.

    Args:
        kind: what to quantise matrices to.
        add: further entries, such as a tokenizer.
        implied_heads: say nothing of what follows from the heads of queries, in files: the others' number and width.
        options: of the writer.
    """
    import gguf

    config, architecture = model.config, model.config.model_type
    writer = gguf.GGUFWriter(path, architecture, **options)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    if not implied_heads:
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_key_length(model.model.layers[0].self_attn.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    if config.rope_parameters["rope_type"] == "llama3":
        plain = config.rope_parameters["rope_theta"] ** (-np.arange(0, 16, 2) / 16)
        divisors = plain / model.model.rotary_emb.inv_freq.numpy()
        writer.add_tensor("rope_freqs.weight", divisors.astype(np.float32))
    for name, tensor in model.state_dict().items():
        parts = name.removeprefix("model.layers.").split(".")
        array = tensor.numpy()
        if name.startswith("model.layers."):
            theirs = f"blk.{parts[0]}.{NAMES['.'.join(parts[1:-1])]}.{parts[-1]}"
        else:
            theirs = f"{NAMES[name.rpartition('.')[0]]}.{parts[-1]}"
        if theirs == "output.weight" and config.tie_word_embeddings:
            continue
        if architecture == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
            halves = array.reshape(heads, 2, -1, array.shape[1])
            array = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(array.shape)
        if kind is not None and array.ndim == 2:
            writer.add_tensor(theirs, gguf.quants.quantize(array, kind), raw_dtype=kind)
        else:
            writer.add_tensor(theirs, array)
    add(writer)
    finish(writer)


def add_bytes(writer: Any, tokenizer: str, pre: str | None) -> None:
    """What a `tokenizer.json` says that merges bytes."""
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
    """What a `tokenizer.json` says that merges pieces, as a SentencePiece model: pieces have scores, not merges."""
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


def finish(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tokens(entries: dict[str, Any]) -> list[str]:
    vocab = entries["model"]["vocab"]
    return sorted(vocab, key=vocab.get)
