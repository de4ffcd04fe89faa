"""Convert a tokenizer to the metadata of a GGUF file: the counterpart of gguf_tokenizer.py.

Source:  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; the entries that llama.cpp reads, from its
         `src/llama-vocab.cpp`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tallow.errors import TokenizerError
from tallow.text.gguf_tokenizer import (
    BYTE,
    CONTROL,
    GPT2,
    NORMAL,
    ROLES,
    SPACE,
    TEMPLATE,
    UNKNOWN,
    USER_DEFINED,
    WORDS,
    Words,
)

UNUSED = 5
UNUSED_SCORE = -10000.0  # of tokens that no text is split into
HINT = "the weights can be used without it: convert a folder that has no tokenizer.json"
# `tokenizer.ggml.pre` by the rules it stands for; of several names the first, which llama.cpp knows too.
PRE: dict[Words, str] = {}
for _name in ("gpt-2", "llama-bpe", "qwen2", "smollm", "tekken", "deepseek-coder"):
    PRE.setdefault(WORDS[_name], _name)
# Entries of a `tokenizer.json`, and the lists in those of type "Sequence".
STEPS = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "post_processor": "processors"}
_BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")


def gguf_entries(entries: Mapping[str, Any], config: Mapping[str, Any], size: int, name: str) -> dict[str, Any]:
    """Return the metadata for the entries of a `tokenizer.json` and a `tokenizer_config.json`.

    Args:
        size: the model's vocabulary size; ids without a token get unused ones, as llama.cpp requires one for each row
            of the embedding.
        name: name of the tokenizer, for error messages.

    Raises:  TokenizerError for a tokenizer that GGUF has no name for, one with more tokens than `size`, or a malformed
             one
    """
    model = entries.get("model")
    if not isinstance(model, Mapping) or model.get("type", "BPE") != "BPE" or not isinstance(model.get("vocab"), dict):
        kind = model.get("type") if isinstance(model, Mapping) else None
        raise TokenizerError(f"{name} is of type {kind!r:.80}; GGUF files get tokenizers of type 'BPE'", hint=HINT)
    added = _mappings(entries.get("added_tokens"), "added_tokens", name)
    pairs = [*model["vocab"].items(), *((token.get("content"), token.get("id")) for token in added)]
    if not all(type(token) is str and type(i) is int and i >= 0 for token, i in pairs):
        raise TokenizerError(f"{name} has tokens without an id", hint=HINT)
    ids: dict[str, int] = dict(pairs)
    if (highest := max((i for _, i in pairs), default=-1)) >= size:
        raise TokenizerError(
            f"{name} has a token {highest}, but the model has vocab_size={size}",
            hint="use the tokenizer that the model was trained with",
        )
    tokens, types = [f"[PAD{i}]" for i in range(size)], [UNUSED] * size
    for token, i in ids.items():
        tokens[i], types[i] = token, NORMAL
    for entry in added:
        types[entry["id"]] = CONTROL if entry.get("special") else USER_DEFINED
    is_byte_level = any(step.get("type") == "ByteLevel" for step in _steps(entries, "pre_tokenizer", name))
    metadata = _byte_level(entries, name) if is_byte_level else _sentence_piece(entries, tokens, types, name)
    metadata |= {"tokens": tokens, "token_type": types} | _roles(entries, config, ids, name)
    return {f"tokenizer.ggml.{key}": value for key, value in metadata.items()} | _templates(config.get("chat_template"))


def _mappings(value: Any, what: str, name: str) -> list[Mapping[str, Any]]:
    """Return a list of JSON objects; an empty one for null.  Raises: TokenizerError for anything else"""
    values = [] if value is None else value
    if not isinstance(values, list) or not all(isinstance(each, Mapping) for each in values):
        raise TokenizerError(f"{name}: {what} is not a list of objects", hint=HINT)
    return values


def _steps(entries: Mapping[str, Any], kind: str, name: str) -> list[Mapping[str, Any]]:
    """Return the steps of a normalizer, pre-tokenizer or post-processor, without sequences."""

    def flat(steps: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        for step in steps:
            if step.get("type") == "Sequence":
                yield from flat(_mappings(step.get(STEPS[kind]), kind, name))
            else:
                yield step

    entry = entries.get(kind)
    return list(flat(_mappings(None if entry is None else [entry], kind, name)))


def _byte_level(entries: Mapping[str, Any], name: str) -> dict[str, Any]:
    patterns = []
    for step in _steps(entries, "pre_tokenizer", name):
        kind = step.get("type")
        if kind == "Split" and step.get("behavior") == "Isolated" and not step.get("invert"):
            pattern = step.get("pattern")
            patterns.append(pattern.get("Regex") if isinstance(pattern, Mapping) else None)
        elif kind == "Digits" and step.get("individual_digits"):
            patterns.append(r"\p{N}")
        elif kind == "ByteLevel" and not step.get("add_prefix_space"):
            patterns += [GPT2] if step.get("use_regex", True) else []
        else:
            patterns.append(None)
    normalizers = [step.get("type") for step in _steps(entries, "normalizer", name)]
    for words, pre in PRE.items():
        same_normalizer = normalizers == ([words.normalizer] if words.normalizer else [])
        merges_alike = words.ignore_merges == bool(entries["model"].get("ignore_merges"))
        if (*patterns,) == words.patterns and same_normalizer and merges_alike:
            return {"model": "gpt2", "pre": pre, "merges": list(map(" ".join, _merges(entries, name)))}
    raise TokenizerError(f"{name} splits text by rules that GGUF has no name for: {patterns!r:.300}", hint=HINT)


def _merges(entries: Mapping[str, Any], name: str) -> list[list[str]]:
    """Return the pairs of merges, which a tokenizer.json has as lists or as "left right"."""
    merges = entries["model"].get("merges") or []
    merges = merges if isinstance(merges, list) else [merges]
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
    if not all(map(_is_pair, pairs)):
        raise TokenizerError(f"{name} has merges that are not pairs of tokens", hint=HINT)
    return pairs


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(part, str) for part in value)


def _sentence_piece(entries: Mapping[str, Any], tokens: list[str], types: list[int], name: str) -> dict[str, Any]:
    """Return the entries of pieces with byte fallback, with scores in place of merges, and complete `types`."""
    normalizers = _steps(entries, "normalizer", name)
    splits = _steps(entries, "pre_tokenizer", name)
    prefix = any(step.get("type") == "Prepend" and step.get("prepend") == SPACE for step in normalizers)
    prefix |= any(step.get("type") == "Metaspace" and step.get("prepend_scheme") != "never" for step in splits)
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    known = all(step == spaces or step == {"type": "Prepend", "prepend": SPACE} for step in normalizers)
    known &= all(step.get("type") == "Metaspace" and step.get("replacement") == SPACE for step in splits)
    if not known or not (normalizers or splits) or not entries["model"].get("byte_fallback"):
        raise TokenizerError(f"{name} prepares text in a way that GGUF has no name for", hint=HINT)
    ranks: dict[str, int] = {}
    for rank, merge in enumerate(_merges(entries, name)):
        ranks.setdefault("".join(merge), rank)
    unknown = entries["model"].get("unk_token")
    if unknown is not None and unknown not in tokens:
        raise TokenizerError(f"{name} has no token {unknown!r:.80}, its unk_token", hint=HINT)
    for i, token in enumerate(tokens):
        if token == unknown:
            types[i] = UNKNOWN
        elif types[i] == NORMAL and _BYTE_PIECE.fullmatch(token):
            types[i] = BYTE
    scores = [-float(ranks.get(token, -UNUSED_SCORE)) if types[i] == NORMAL else 0.0 for i, token in enumerate(tokens)]
    options = {} if unknown is None else {"unknown_token_id": tokens.index(unknown)}
    # "default" is the only value that llama.cpp gives to SentencePiece models.
    return {"model": "llama", "pre": "default", "scores": scores, "add_space_prefix": prefix} | options


def _roles(entries: Mapping[str, Any], config: Mapping[str, Any], ids: Mapping[str, int], name: str) -> dict[str, Any]:
    """Return the ids of special tokens, and whether a text gets BOS and EOS."""
    tokens: dict[str, str] = {}
    for role, entry in ROLES.items():
        token = config.get(entry)
        content = token.get("content") if isinstance(token, Mapping) else token
        if isinstance(content, str) and content in ids:
            tokens[role] = content
    first, last = _ends(entries, name)
    tokens |= {role: token for role, token in (("bos", first), ("eos", last)) if token is not None and token in ids}
    roles: dict[str, Any] = {f"{role}_token_id": ids[token] for role, token in tokens.items()}
    return roles | {"add_bos_token": first is not None, "add_eos_token": last is not None}


def _ends(entries: Mapping[str, Any], name: str) -> tuple[str | None, str | None]:
    """Return the tokens that the post-processor adds before and after a text."""
    for step in _steps(entries, "post_processor", name):
        if step.get("type") == "ByteLevel":
            continue
        parts = step.get("single")
        if step.get("type") != "TemplateProcessing" or not isinstance(parts, list):
            raise TokenizerError(f"{name} adds tokens to a text by {step.get('type')!r:.80}", hint=HINT)
        special = [_special_token(part, name) for part in parts]
        text = special.index(None) if None in special else -1
        if text not in (0, 1) or len(special) - text > 2:
            raise TokenizerError(f"{name} adds {special!r:.200} to a text; GGUF has one token at each end", hint=HINT)
        return special[0] if text else None, special[text + 1] if len(special) > text + 1 else None
    return None, None


def _special_token(part: Any, name: str) -> str | None:
    """Return the special token that a part of a template stands for; None for the text."""
    part = part if isinstance(part, Mapping) else {}
    if "Sequence" in part:
        return None
    token = part.get("SpecialToken")
    content = token.get("id") if isinstance(token, Mapping) else None
    if not isinstance(content, str):
        raise TokenizerError(f"{name}: its post_processor adds {part!r:.80} to a text", hint=HINT)
    return content


def _templates(template: Any) -> dict[str, Any]:
    if isinstance(template, str):
        return {TEMPLATE: template}
    named = {
        item["name"]: item["template"]
        for item in (template if isinstance(template, list) else ())
        if isinstance(item, Mapping) and isinstance(item.get("name"), str) and isinstance(item.get("template"), str)
    }
    entries = {TEMPLATE: named.pop("default")} if "default" in named else {}
    entries |= {"tokenizer.chat_templates": list(named)} if named else {}
    return entries | {f"{TEMPLATE}.{name}": source for name, source in named.items()}
