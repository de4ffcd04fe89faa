"""Convert tokenizers that split words into pieces, WordPiece and Unigram, to the metadata of a GGUF file.

gguf_tokenizer_export.py converts the tokenizers that merge pieces, and describes all of them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from tallow.dtypes import Array
from tallow.errors import TokenizerError
from tallow.text.gguf_steps import BYTE_PIECE, HINT, UNUSED_SCORE, steps, warn_of_spaces
from tallow.text.gguf_tokenizer import CAPITAL
from tallow.text.sentencepiece import BYTE, CONTROL, NORMAL, SPACE, UNKNOWN

CONTINUATION = "##"
MAX_WORD = 100  # characters of a word that WordPiece splits; readers assume it
RUNS = {"Regex": " {2,}"}  # of spaces, in a tokenizer.json


def word_pieces(entries: Mapping[str, Any], tokens: list[str], types: list[int], name: str) -> dict[str, Any]:
    """Return the entries of a WordPiece tokenizer. In place, mark the `tokens` that begin words, not the others.

    Raises:  TokenizerError unless it normalizes and splits text as BERT does
    """
    model = entries["model"]
    normalizers = steps(entries, "normalizer", name)
    splits = [step.get("type") for step in steps(entries, "pre_tokenizer", name)]
    if [step.get("type") for step in normalizers] != ["BertNormalizer"] or splits != ["BertPreTokenizer"]:
        raise TokenizerError(f"{name} prepares text in a way that GGUF has no name for", hint=HINT)
    expected: dict[str, Any] = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None}
    found = {entry: normalizers[0].get(entry) for entry in expected}
    found |= {"prefix": model.get("continuing_subword_prefix"), "longest": model.get("max_input_chars_per_word")}
    expected |= {"prefix": CONTINUATION, "longest": MAX_WORD}
    normal = [token for token, kind in zip(tokens, types, strict=True) if kind == NORMAL]
    cased = any(CAPITAL.search(token) for token in normal if not (token[:1] == "[" and token[-1:] == "]"))
    # Files do not say whether text is converted to lower case, so readers look for capital letters.
    found["lowercase"], expected["lowercase"] = normalizers[0].get("lowercase"), not cased
    if found != expected:
        raise TokenizerError(f"{name} splits words by {found!r}; readers of GGUF assume {expected!r}", hint=HINT)
    unknown = model.get("unk_token")
    if unknown not in tokens:
        raise TokenizerError(f"{name} has no token for unknown words", hint=HINT)
    metadata = {"model": "bert", "pre": "default", "unknown_token_id": tokens.index(unknown)}
    for i, (token, kind) in enumerate(zip(tokens, types, strict=True)):
        if kind != CONTROL and token != unknown:
            tokens[i] = token.removeprefix(CONTINUATION) if token.startswith(CONTINUATION) else SPACE + token
    return metadata


def unigram(entries: Mapping[str, Any], tokens: list[str], types: list[int], name: str) -> dict[str, Any]:
    """Return the entries of a Unigram tokenizer, and complete `types`.

    Raises:  TokenizerError unless it prepares text as SentencePiece does
    """
    model = entries["model"]
    scores = [0.0 if kind in (UNKNOWN, CONTROL) else UNUSED_SCORE for kind in types]
    for i, (_, score) in enumerate(model["vocab"]):
        scores[i] = float(score)
    metadata = {"model": "t5", "pre": "default", "scores": scores} | _spaces(entries, name)
    unknown = model.get("unk_id")
    if type(unknown) is int and 0 <= unknown < len(tokens):
        types[unknown] = UNKNOWN
        metadata["unknown_token_id"] = unknown
    if model.get("byte_fallback"):
        for i, token in enumerate(tokens):
            if types[i] == NORMAL and BYTE_PIECE.fullmatch(token):
                types[i] = BYTE
    return metadata


def _spaces(entries: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the entries about characters and spaces."""
    normalizers = steps(entries, "normalizer", name)
    splits = steps(entries, "pre_tokenizer", name)
    metadata: dict[str, Any] = {}
    if normalizers and normalizers[0].get("type") == "Precompiled":
        table = normalizers.pop(0).get("precompiled_charsmap")
        if table:
            # Signed bytes, as in the files of llama.cpp's converter; readers take both.
            metadata["precompiled_charsmap"] = _bytes(table, name)
    # A table replaces all other white space by spaces, so that both ways to remove it are the same.
    removed = "precompiled_charsmap" in metadata and (_is_word(splits) or _removes_spaces(normalizers))
    last = splits[1:] if removed and _is_word(splits) else splits
    is_known = len(last) == 1 and last[0].get("type") == "Metaspace" and last[0].get("replacement") == SPACE
    if not is_known or not (removed or not normalizers):
        raise TokenizerError(f"{name} prepares text in a way that GGUF has no name for", hint=HINT)
    scheme = last[0].get("prepend_scheme", "always")
    prefix = scheme != "never" and last[0].get("add_prefix_space", True)
    if prefix and not (_is_word(splits) or (removed and scheme == "always")):
        warn_of_spaces(scheme, name)
    return metadata | {"add_space_prefix": bool(prefix), "remove_extra_whitespaces": removed}


def _is_word(splits: list[Mapping[str, Any]]) -> bool:
    return bool(splits) and splits[0].get("type") == "WhitespaceSplit"


def _removes_spaces(normalizers: list[Mapping[str, Any]]) -> bool:
    """Return whether these steps remove spaces at the end, and all but one of several spaces in a row.

    Metaspace adds no space to a text that begins with one, so a single space at the start has no effect.
    """
    if [step.get("type") for step in normalizers] != ["Strip", "Replace"]:
        return False
    strip, replace = normalizers
    return bool(strip.get("strip_right")) and replace.get("pattern") == RUNS and replace.get("content") in (" ", SPACE)


def _bytes(table: Any, name: str) -> Array:
    try:
        raw = base64.b64decode(table, validate=True)
    except (TypeError, ValueError) as error:
        raise TokenizerError(f"{name} has a precompiled_charsmap that is not base 64", hint=HINT) from error
    return np.frombuffer(raw, np.int8)
