"""Tokenizers' folders as they lie in public repositories, with a small vocabulary put into their `tokenizer.json`.

The files are those of `hub/` in the folder of real data. A folder keeps every entry of its files; its vocabulary and
merges, which the collection leaves out, are small.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import transformers
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

from support import hub_files
from support.tokenizer_kinds import CHARSMAP
from tallow.text.byte_letters import LETTERS_OF_BYTES

COLLECTIONS = ("tokenizer_configs", "special_tokens_maps", "tokenizers", "configs")
# Letters of the texts, and words that need several merges.
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;!?'\"-()[]<>|/_éüß你好的"
WORDS = ("the", "ing", "er", "is", "not", "cat", "on", "token", "un", "The", "12")


class HubFolder(NamedTuple):
    """A folder of the collection.

    Attributes:
        name: of the repository and the folder in it.
        files: the entries of its files by their names.
    """

    name: str
    files: dict[str, dict[str, Any]]


def folders() -> Iterator[HubFolder]:
    """Yield the folders that have a file of a tokenizer; equal ones once."""
    seen = set()
    for name, files in sorted(hub_files.folders(*COLLECTIONS).items()):
        key = json.dumps(files, sort_keys=True)
        if files.keys() - {"config.json"} and key not in seen:
            seen.add(key)
            yield HubFolder(name, files)


def class_of(folder: HubFolder) -> str:
    """Return the name of a folder's class: the one it names, or that of its type of models."""
    config, model = (folder.files.get(name, {}) for name in ("tokenizer_config.json", "config.json"))
    name = config.get("tokenizer_class") or model.get("tokenizer_class")
    name = name or TOKENIZER_MAPPING_NAMES.get(model.get("model_type")) or "LlamaTokenizer"
    return str(name).removesuffix("Fast")


def forms(all_folders: Iterable[HubFolder]) -> dict[str, list[dict[str, Any]]]:
    """Return the `tokenizer.json` files of the collection by the classes of their folders."""
    found: dict[str, list[dict[str, Any]]] = {}
    for folder in all_folders:
        if entries := folder.files.get("tokenizer.json"):
            found.setdefault(class_of(folder), []).append(entries)
    return found


def form_for(folder: HubFolder, known: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return a `tokenizer.json` for a folder that has none: of its class, with most of the added tokens of its config;
    or that which transformers makes for the class, or that of Llama."""
    name = class_of(folder)
    kind = getattr(transformers, name, None)
    kind = kind if hasattr(kind, "_tokenizer") else None
    model = getattr(getattr(kind, "model", None), "__name__", None)
    fitting = [entries for entries in known.get(name, ()) if model in (None, kind_of(entries["model"]))]
    if not fitting and name == "PegasusTokenizer":  # it has no vocabulary of its own
        fitting = known["T5Tokenizer"]
    if not fitting and kind is not None and kind.__name__ != "TokenizersBackend":
        return dict(json.loads(kind().backend_tokenizer.to_str()))
    listed = folder.files.get("tokenizer_config.json", {}).get("added_tokens_decoder", {})

    def common(entries: dict[str, Any]) -> int:
        return sum({"id": token["id"]} | listed.get(str(token["id"]), {}) == token for token in entries["added_tokens"])

    return max(fitting or known["LlamaTokenizer"], key=common)


def kind_of(model: dict[str, Any]) -> str:
    """Return the kind of a vocabulary, which older files do not name."""
    return str(model.get("type") or ("BPE" if "merges" in model else "WordPiece"))


def write(folder: HubFolder, place: Path, form: dict[str, Any]) -> None:
    """Write the files of a folder.

    Args:  form: a `tokenizer.json` for a folder that has none
    """
    place.mkdir(exist_ok=True)
    entries = with_vocabulary(folder.files.get("tokenizer.json", form))
    for name, content in (folder.files | {"tokenizer.json": entries}).items():
        (place / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def with_vocabulary(entries: dict[str, Any]) -> dict[str, Any]:
    """Return a `tokenizer.json` with a small vocabulary; added tokens keep their ids."""
    model = dict(entries["model"])
    kind = kind_of(model)
    size = model.pop("vocab_size", len(model.get("vocab") or ()))
    for name in ("merges_count", "merges_as", "unigram_head", "vocab", "merges"):
        model.pop(name, None)
    added = {token["content"]: token["id"] for token in entries.get("added_tokens", ()) if token["id"] < size}
    has_bytes = "ByteLevel" in json.dumps(entries.get("pre_tokenizer"))
    if kind == "Unigram":
        model["vocab"] = _scores(added)
    else:
        words, merges = _pieces(kind, has_bytes, model)
        if kind == "BPE":
            model["merges"] = [" ".join(merge) for merge in merges]
        model["vocab"] = _numbered(words, added)
    return {**entries, "model": model, "normalizer": _with_charsmap(entries.get("normalizer"))}


def _numbered(words: list[str], added: dict[str, int]) -> dict[str, int]:
    """Give words the lowest ids that no added token has."""
    taken = set(added.values())
    free = (i for i in range(1 << 20) if i not in taken)
    return added | {word: next(free) for word in dict.fromkeys(words) if word not in added}


def _scores(added: dict[str, int]) -> list[list[Any]]:
    """Return the pieces and scores of a Unigram model; its added tokens come first where they have low ids."""
    words = ["▁", *LETTERS, *WORDS, *(f"▁{word}" for word in WORDS)]
    numbered = _numbered([*words], {word: id for word, id in added.items() if id < 5})
    return [[word, 0.0 if word in added else -8.0 + len(word)] for word in sorted(numbered, key=numbered.__getitem__)]


def _pieces(kind: str, has_bytes: bool, model: dict[str, Any]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the words and merges of a byte-pair encoding, or the words of WordPiece."""
    if kind == "WordPiece":
        return ["[UNK]", *LETTERS, *(f"##{letter}" for letter in LETTERS), *WORDS, "##ing", "##er"], []
    space = LETTERS_OF_BYTES[ord(" ")] if has_bytes else "▁"
    letters = list(LETTERS_OF_BYTES.values()) if has_bytes else [space, *LETTERS]
    letters += [f"<0x{byte:02X}>" for byte in range(256)] if model.get("byte_fallback") else []
    letters += [model["unk_token"]] if model.get("unk_token") else []
    merges = []
    for word in (*WORDS, *(space + word for word in WORDS)):
        merges += [(word[:i], word[i]) for i in range(1, len(word))]
    merges = list(dict.fromkeys(merges))
    suffix = model.get("end_of_word_suffix") or ""
    ends = [letter + suffix for letter in letters] if suffix else []
    return [*letters, *ends, *(first + second for first, second in merges)], merges


def _with_charsmap(normalizer: Any) -> Any:
    """Put a small map of characters where the collection leaves out a large one."""
    if isinstance(normalizer, dict):
        if normalizer.get("type") == "Precompiled":
            return {
                "type": "Precompiled",
                "precompiled_charsmap": base64.b64encode(zlib.decompress(base64.b85decode(CHARSMAP))).decode(),
            }
        return {name: _with_charsmap(part) for name, part in normalizer.items()}
    return [_with_charsmap(part) for part in normalizer] if isinstance(normalizer, list) else normalizer
