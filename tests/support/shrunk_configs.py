"""Shrink the config.json of a published model: small sizes, the same flags, and what nothing reads as it is."""

from __future__ import annotations

import json
from typing import Any

VOCAB, LAYERS, HEAD, POSITIONS, WINDOW, PATCH = 64, 2, 8, 64, 6, 4

WIDTHS = ("hidden_size", "n_embd", "dim", "d_model")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
SIZES = {
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"), LAYERS),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "sliding_window_pattern"), LAYERS),
    **dict.fromkeys(("intermediate_size", "n_inner", "hidden_dim", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim"), 24),
    **dict.fromkeys(("ffn_hidden_size", "moe_intermediate_size", "shared_expert_intermediate_size"), 24),
    **dict.fromkeys(("num_experts", "num_local_experts"), 4),
    "num_experts_per_tok": 2,
    "local_attention": 8,
    "projection_dim": 12,
    "pooler_output_size": 20,
}
CONTEXTS = ("max_position_embeddings", "n_positions", "n_ctx", "max_source_positions", "max_target_positions")
TOKENS = ("bad_words_ids", "suppress_tokens", "begin_suppress_tokens")
PARTS = ("text_config", "vision_config")


def shrunk(entries: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of a small model of the same design.

    Ratios stay: of the heads of queries to those of keys, of the width to all heads (equal or not), of the context to
    that of the training, of the window to the context (less or not). Layers keep one of each kind.
    """
    small: dict[str, Any] = json.loads(json.dumps(entries))
    small |= {name: min(size, small[name]) for name, size in SIZES.items() if small.get(name)}
    small |= {part: shrunk(small[part]) for part in PARTS if isinstance(small.get(part), dict)}
    _shrink_widths(small, entries)
    _shrink_layers(small, entries)
    _shrink_positions(small, entries)
    if "image_size" in small:
        small |= {"image_size": 3 * PATCH, "patch_size": PATCH}
    if "num_mel_bins" not in small:  # Whisper's special tokens follow from the size of its vocabulary
        _shrink_vocabulary(small)
    return small


def _shrink_widths(small: dict[str, Any], entries: dict[str, Any]) -> None:
    heads = next((entries[name] for name in HEADS if name in entries), None)
    kv_heads = next((entries[name] for name in KV_HEADS if entries.get(name)), heads)
    few = {1: 1}.get(kv_heads, 2)
    many = few if heads == kv_heads else 2 * few
    small |= {name: many for name in HEADS if name in small} | {name: few for name in KV_HEADS if small.get(name)}
    head = next((entries[name] for name in ("head_dim", "d_kv") if entries.get(name)), None)
    for name in WIDTHS:
        if name in small and heads:
            small[name] = many * HEAD if head is None or head * heads == entries[name] else many * HEAD + HEAD
    small |= {name: HEAD for name in ("head_dim", "d_kv") if small.get(name)}
    if small.get("partial_rotary_factor", 1) < 1:
        small["partial_rotary_factor"] = 0.5  # an even number of elements of a narrow head


def _shrink_layers(small: dict[str, Any], entries: dict[str, Any]) -> None:
    if isinstance(kinds := small.get("layer_types"), list):
        each = list(dict.fromkeys(kinds))
        small["layer_types"] = each if len(each) == LAYERS else each[:1] * LAYERS
    if small.get("max_window_layers") is not None:
        small["max_window_layers"] = LAYERS if entries["max_window_layers"] >= entries["num_hidden_layers"] else 1
    if isinstance(small.get("mlp_only_layers"), list):
        small["mlp_only_layers"] = [layer for layer in small["mlp_only_layers"] if layer < LAYERS]


def _shrink_positions(small: dict[str, Any], entries: dict[str, Any]) -> None:
    context = entries.get("max_position_embeddings")
    for name in CONTEXTS:
        if small.get(name):
            rest = small[name] % POSITIONS  # such as RoBERTa's two further positions
            small[name] = POSITIONS + (rest if rest < HEAD else 0)
    if small.get("sliding_window"):
        small["sliding_window"] = WINDOW if context is None or small["sliding_window"] < context else POSITIONS
    for place in (small, small.get("rope_scaling"), small.get("rope_parameters")):
        if isinstance(place, dict):
            if original := place.get("original_max_position_embeddings"):
                place["original_max_position_embeddings"] = max(2, POSITIONS * original // (context or original))
            for name in ("short_factor", "long_factor"):
                if name in place:
                    place[name] = place[name][: HEAD // 2]


def _shrink_vocabulary(small: dict[str, Any]) -> None:
    """Replace token ids that are too large by the last ids, in the same order."""
    names = [name for name in small if name.endswith(("_token_id", "_token_ids")) or name in TOKENS]
    if small.get("decoder_vocab_size"):
        small["decoder_vocab_size"] = VOCAB if small["decoder_vocab_size"] == small["vocab_size"] else VOCAB - HEAD
    if small.get("vocab_size"):
        small["vocab_size"] = VOCAB
    large = sorted({token for name in names for token in _tokens(small[name]) if token >= VOCAB})
    known = {token: VOCAB - len(large) + i for i, token in enumerate(large)}
    small |= {name: _replaced(small[name], known) for name in names}


def _tokens(value: Any) -> list[int]:
    return (
        [token for each in value for token in _tokens(each)]
        if isinstance(value, list)
        else [value] * (value is not None)
    )


def _replaced(value: Any, known: dict[int, int]) -> Any:
    return [_replaced(each, known) for each in value] if isinstance(value, list) else known.get(value, value)
