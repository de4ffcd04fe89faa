"""Convert a tokenizer to the metadata of a GGUF file: the counterpart of gguf_tokenizer.py.

Source:  https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; the entries that llama.cpp reads, from its
         `src/llama-vocab.cpp`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tallow.errors import TokenizerError
from tallow.text.gguf_pieces import unigram, word_pieces
from tallow.text.gguf_steps import BYTE_PIECE, HINT, UNUSED_SCORE, mappings, steps, warn_of_spaces
from tallow.text.gguf_tokenizer import FALCON, GPT2, ROLES, TEMPLATE, WORDS, Words
from tallow.text.sentencepiece import BYTE, CONTROL, NORMAL, SPACE, UNKNOWN, UNUSED, USER_DEFINED

PUNCTUATION = FALCON[0]  # the first split in Falcon's tokenizer.json, which has a name there
# `tokenizer.ggml.pre` by the rules it stands for; of several names the first, which llama.cpp knows too.
PRE: dict[Words, str] = {}
for _name in ("gpt-2", "llama-bpe", "qwen2", "smollm", "tekken", "deepseek-coder", "falcon", "gpt-4o"):
    PRE.setdefault(WORDS[_name], _name)
# Splits at spaces, as in Gemma's tokenizer.json, after all spaces are replaced: no effect.
_NO_SPLIT = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}


def gguf_entries(entries: Mapping[str, Any], config: Mapping[str, Any], size: int, name: str) -> dict[str, Any]:
    """Return the metadata for the entries of a `tokenizer.json` and a `tokenizer_config.json`.

    Args:
        size: the model's vocabulary size; ids without a token get unused ones, as llama.cpp requires one for each row
            of the embedding.
        name: name of the tokenizer, for error messages.

    Raises:  TokenizerError for a tokenizer that GGUF has no name for, one with more tokens than `size`, or a malformed
             one
    Warns:   TallowWarning if readers of GGUF get other ids for some texts
    """
    model = entries.get("model")
    kind = model.get("type", "BPE") if isinstance(model, Mapping) else None
    if kind not in _KINDS:
        known = ", ".join(map(repr, _KINDS))
        raise TokenizerError(f"{name} is of type {kind!r:.80}; GGUF files get tokenizers of type {known}", hint=HINT)
    added = mappings(entries.get("added_tokens"), "added_tokens", name)
    pairs: list[tuple[Any, Any]] = [
        *_ids(model, name).items(),
        *((token.get("content"), token.get("id")) for token in added),
    ]
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
    metadata = _KINDS[kind](entries, tokens, types, name) | {"tokens": tokens, "token_type": types}
    metadata |= _roles(entries, config, ids, name)
    return {f"tokenizer.ggml.{key}": value for key, value in metadata.items()} | _templates(config.get("chat_template"))


def _ids(model: Any, name: str) -> dict[str, int]:
    """Return the ids of a model's tokens. Unigram has a list of pieces with scores."""
    vocab = model.get("vocab")
    if model.get("type") == "Unigram" and isinstance(vocab, list):
        pairs = [pair for pair in vocab if isinstance(pair, list | tuple) and len(pair) == 2]
        if len(pairs) == len(vocab) and all(isinstance(score, int | float) for _, score in pairs):
            return {piece: i for i, (piece, _) in enumerate(pairs)}
    elif isinstance(vocab, dict):
        return vocab
    raise TokenizerError(f"{name} has no vocabulary", hint=HINT)


def _merging(entries: Mapping[str, Any], tokens: list[str], types: list[int], name: str) -> dict[str, Any]:
    """Return the entries of a BPE tokenizer: of bytes, or of pieces with byte fallback."""
    is_byte_level = any(step.get("type") == "ByteLevel" for step in steps(entries, "pre_tokenizer", name))
    return _byte_level(entries, name) if is_byte_level else _sentence_piece(entries, tokens, types, name)


def _byte_level(entries: Mapping[str, Any], name: str) -> dict[str, Any]:
    patterns = []
    for step in steps(entries, "pre_tokenizer", name):
        kind = step.get("type")
        if kind == "Split" and step.get("behavior") == "Isolated" and not step.get("invert"):
            pattern = step.get("pattern")
            patterns.append(pattern.get("Regex") if isinstance(pattern, Mapping) else None)
        elif kind == "Digits":
            patterns.append(r"\p{N}" if step.get("individual_digits") else r"\p{N}+")
        elif kind == "Punctuation" and step.get("behavior") == "Contiguous":
            patterns.append(PUNCTUATION)
        elif kind == "ByteLevel" and not step.get("add_prefix_space"):
            patterns += [GPT2] if step.get("use_regex", True) else []
        else:
            patterns.append(None)
    normalizers = [step.get("type") for step in steps(entries, "normalizer", name)]
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
    normalizers = steps(entries, "normalizer", name)
    splits = steps(entries, "pre_tokenizer", name)
    prefix = any(step.get("type") == "Prepend" and step.get("prepend") == SPACE for step in normalizers)
    prefix |= any(step.get("type") == "Metaspace" and step.get("prepend_scheme") != "never" for step in splits)
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    known = all(step == spaces or step == {"type": "Prepend", "prepend": SPACE} for step in normalizers)
    known &= all(
        (step.get("type") == "Metaspace" and step.get("replacement") == SPACE) or (step == _NO_SPLIT and normalizers)
        for step in splits
    )
    if not known or not (normalizers or splits) or not entries["model"].get("byte_fallback"):
        raise TokenizerError(f"{name} prepares text in a way that GGUF has no name for", hint=HINT)
    for step in splits:
        if step.get("type") == "Metaspace":
            warn_of_spaces(step.get("prepend_scheme", "always"), name)
    ranks: dict[str, int] = {}
    for rank, merge in enumerate(_merges(entries, name)):
        ranks.setdefault("".join(merge), rank)
    unknown = entries["model"].get("unk_token")
    if unknown is not None and unknown not in tokens:
        raise TokenizerError(f"{name} has no token {unknown!r:.80}, its unk_token", hint=HINT)
    for i, token in enumerate(tokens):
        if token == unknown:
            types[i] = UNKNOWN
        elif types[i] == NORMAL and BYTE_PIECE.fullmatch(token):
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
    ends = _ends(entries, name)
    marks = (("bos", ends.first), ("eos", ends.last))
    tokens |= {role: token for role, token in marks if token is not None and token in ids}
    if ends.has_separator is not None and ends.last is not None and ends.last in ids:
        tokens.setdefault("seperator", ends.last)
    roles: dict[str, Any] = {f"{role}_token_id": ids[token] for role, token in tokens.items()}
    roles |= {"add_bos_token": ends.first is not None, "add_eos_token": ends.last is not None}
    return roles if ends.has_separator is None else roles | {"add_sep_token": ends.has_separator}


class _Ends(NamedTuple):
    """The tokens before and after a text, and whether a pair of texts has a further token between them; None if the
    first text of a pair has no token at its end."""

    first: str | None = None
    last: str | None = None
    has_separator: bool | None = None


def _ends(entries: Mapping[str, Any], name: str) -> _Ends:
    """Return the tokens that the post-processor adds to a text."""
    for step in steps(entries, "post_processor", name):
        kind = step.get("type")
        if kind == "ByteLevel":
            continue
        if kind in ("BertProcessing", "RobertaProcessing"):
            first, last = (_token(step.get(role)) for role in ("cls", "sep"))
            if first is not None and last is not None:
                return _Ends(first, last, kind == "RobertaProcessing")
        single, pair = (_marks(step.get(form), name) for form in ("single", "pair"))
        if kind != "TemplateProcessing" or single is None:
            raise TokenizerError(f"{name} adds tokens to a text by {kind!r:.80}", hint=HINT)
        text = single.index(None) if None in single else -1
        if text not in (0, 1) or len(single) - text > 2:
            raise TokenizerError(f"{name} adds {single!r:.200} to a text; GGUF has one token at each end", hint=HINT)
        first, last = single[0] if text else None, single[text + 1] if len(single) > text + 1 else None
        return _Ends(first, last, _separator(pair or [], last))
    return _Ends()


def _token(pair: Any) -> str | None:
    """Return the token of a pair of a token and its id."""
    return pair[0] if isinstance(pair, list | tuple) and pair and isinstance(pair[0], str) else None


def _marks(parts: Any, name: str) -> list[str | None] | None:
    """Return the special tokens of a template, and None for each text; None for anything but a list."""
    return [_special_token(part, name) for part in parts] if isinstance(parts, list) else None


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


def _separator(pair: list[str | None], last: str | None) -> bool | None:
    texts = [i for i, mark in enumerate(pair) if mark is None]
    if last is None or len(texts) != 2:
        return None
    between = pair[texts[0] + 1 : texts[1]]
    return len(between) == 2 if between[:1] == [last] and len(between) <= 2 else None


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


_KINDS = {"BPE": _merging, "WordPiece": word_pieces, "Unigram": unigram}
