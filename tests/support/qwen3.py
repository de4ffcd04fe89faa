"""A small random Qwen3, as a folder that transformers saves, with GPT-2's vocabulary and Qwen's rules to split text."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from support.chats import CHATML

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def save_qwen3(folder: Path, ranks: Path) -> Any:
    """Save the model and its tokenizer, and return the model of transformers.

    Args:  ranks: the tokens of a byte-level BPE by rank, in tiktoken's format
    """
    import torch
    import transformers

    vocab, merges = byte_vocabulary(ranks)
    tokenizer = transformers.Qwen2Tokenizer(vocab=vocab, merges=merges)
    tokenizer.add_special_tokens({"eos_token": SPECIAL[2], "pad_token": SPECIAL[0]})
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL})
    tokenizer.chat_template = CHATML
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=-(-len(tokenizer) // 64) * 64,  # as in Qwen3, more than the tokenizer has
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        initializer_range=0.06,
        eos_token_id=tokenizer.convert_tokens_to_ids(SPECIAL[2]),
        bos_token_id=None,
    )
    model = transformers.Qwen3ForCausalLM(config).eval()
    model.save_pretrained(folder)
    return model


def byte_vocabulary(ranks: Path) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return the ids of tokens, and the merges: each token is the merge of the two parts with the lowest ranks."""
    from tokenizers.pre_tokenizers import ByteLevel

    letters = _letters(ByteLevel)
    lines = ranks.read_text().split("\n")
    tokens = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines if line)}
    spelled = {token: "".join(letters[byte] for byte in token) for token in tokens}
    merges = []
    for token in tokens:
        splits = [(token[:end], token[end:]) for end in range(1, len(token))]
        known = [split for split in splits if split[0] in tokens and split[1] in tokens]
        if known:
            left, right = min(known, key=lambda split: max(tokens[split[0]], tokens[split[1]]))
            merges.append((spelled[left], spelled[right]))
    return {spelled[token]: rank for token, rank in tokens.items()}, merges


def _letters(byte_level: Any) -> dict[int, str]:
    """Return the letter of each byte in byte-level BPE: printable ones stand for themselves."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    assert {*letters.values()} == {*byte_level.alphabet()}
    return letters
