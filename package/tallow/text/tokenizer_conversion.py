"""Read the vocabulary of a tokenizer's folder that has no `tokenizer.json`.

    vocab.txt                    WordPiece: BERT, DistilBERT, ELECTRA, MPNet
    vocab.json with merges.txt   BPE of bytes: GPT-2, RoBERTa, BART, CLIP, Qwen2, Whisper
    spiece.model and others      a SentencePiece model: T5, ALBERT, XLNet, Llama 2, Gemma, XLM-RoBERTa, CamemBERT,
                                 mBART, NLLB
    added_tokens.json            tokens that were added to the vocabulary, if `tokenizer_config.json` has none

The steps are those of the tokenizer's class; without a known class, those that SentencePiece itself makes.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tallow.errors import TokenizerError
from tallow.text.declared_ids import HINT, declared_ids, place
from tallow.text.piece_merges import piece_merges
from tallow.text.sentencepiece import (
    BPE,
    CONTROL,
    NORMAL,
    SPACE,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    SentencePieceModel,
    parse_model,
)
from tallow.text.tokenizer_classes import CLASSES, TokenizerClass
from tallow.text.tokenizer_files import read_bytes, read_ids, read_lines
from tallow.text.tokenizer_steps import PIECES, SINGLE_SPACES, STRIP, Entry, metaspace, pairs, replace, sequence

WORDS, MERGES = ("vocab.txt",), ("vocab.json", "merges.txt")
MODELS = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "spm.model", "sentencepiece.model")
SETS: tuple[tuple[str, ...], ...] = (WORDS, MERGES, *zip(MODELS))  # each is a vocabulary
VOCABULARIES = tuple(map(" with ".join, SETS))
# By the kind of a class's vocabulary: the files that may have it.
FILES = {"WordPiece": (WORDS,), "BPE": (MERGES, *zip(MODELS)), "Unigram": (*zip(MODELS),)}
BLANK: Entry = dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"))
BLANK |= {"version": "1.0", "added_tokens": []}
# Not "^" and "$", which match at each line in one of the two engines.
OUTER_SPACES = replace({"Regex": r"(?<![\s\S]) +| +(?![\s\S])"}, "")


class Converted(NamedTuple):
    """The vocabulary of a folder.

    Attributes:
        entries: of a `tokenizer.json` without steps.
        kind: the class whose steps it gets.
    """

    entries: dict[str, Any]
    kind: TokenizerClass


def convert(
    folder: Path, config: Mapping[str, Any], added: Mapping[str, int], kind: TokenizerClass | None
) -> Converted | None:
    """Return the vocabulary of a folder without `tokenizer.json`; None if it has none of the files.

    Args:
        config: the entries of `tokenizer_config.json`.
        added: ids of the tokens of `added_tokens.json`.
        kind: the class that the folder names, if it is known.

    Raises:  TokenizerError for malformed files
    """
    files = _files(folder, kind)
    if not files:
        return None
    name, charsmap = str(files[0]), None
    marked: list[Entry] = []
    if files[0].name in WORDS:
        kind = kind if kind is not None and kind.model == "WordPiece" else CLASSES["BertTokenizer"]
        model: Entry = {"type": kind.model, "vocab": read_words(files[0])}
    elif files[0].name in MERGES:
        kind = kind if kind is not None and kind.model == "BPE" else CLASSES["GPT2Tokenizer"]
        model = {"type": kind.model, "vocab": read_ids(files[0]), "merges": read_merges(files[1])}
    else:
        pieces = parse_model(read_bytes(files[0]), name)
        kind = kind if kind is not None and kind.model == _kind_of(pieces) else class_of_pieces(pieces)
        model, charsmap, marked = _model(pieces, kind, config, name), _charsmap(pieces), _marked(pieces)
    vocab = model["vocab"]
    place(vocab, declared_ids(config, added, str(folder)), _special(kind, config).values(), name)
    return Converted(BLANK | {"added_tokens": _with_ids(marked, vocab), "normalizer": charsmap, "model": model}, kind)


def piece_entries(path: Path) -> dict[str, Any]:
    """Return the entries of a `tokenizer.json` that splits texts as a SentencePiece model, without special tokens.

    Raises:  TokenizerError for a malformed file
    """
    pieces = parse_model(read_bytes(path), str(path))
    kind = class_of_pieces(pieces)
    model = _model(pieces, kind, {}, str(path))
    if model["type"] == "Unigram":  # no text has these pieces: a space, which is not in pieces, keeps them apart
        for i, type in enumerate(pieces.types):
            if type in (CONTROL, UNKNOWN):
                model["vocab"][i][0] = " " + pieces.pieces[i]
    steps = _own_steps(pieces, _charsmap(pieces))
    return BLANK | steps | {"model": model | steps["model"]}


def class_of_pieces(model: SentencePieceModel) -> TokenizerClass:
    """Return a class with the steps of SentencePiece itself; for a model of the form of Llama 2's, that class."""
    is_llama = model.kind == BPE and model.byte_fallback and model.add_dummy_prefix
    if is_llama and not (model.remove_extra_whitespaces or model.charsmap):
        return CLASSES["LlamaTokenizer"]
    named = {"bos_token": model.bos_piece, "eos_token": model.eos_piece, "unk_token": model.unk_piece}
    tokens = {name: piece for name, piece in named.items() if piece in model.pieces}
    return TokenizerClass(_kind_of(model), tokens, lambda folder: _own_steps(model, folder.charsmap))


def _own_steps(model: SentencePieceModel, charsmap: Entry | None) -> Entry:
    prefix, steps = model.add_dummy_prefix, [] if charsmap is None else [charsmap]
    scheme = "always" if prefix else "never"
    spaces = None
    if model.remove_extra_whitespaces:
        steps += [OUTER_SPACES, SINGLE_SPACES]
        spaces = metaspace(scheme, split=model.kind != BPE)
    else:  # unlike Metaspace, a space is added also to a text that begins with one
        steps += [*([{"type": "Prepend", "prepend": SPACE}] if prefix else []), replace({"String": " "}, SPACE)]
    from_bytes = sequence("decoders", [*PIECES, *([STRIP] if prefix else [])])
    unknown = model.pieces[model.unk_id] if model.unk_id >= 0 else None
    options = {"byte_fallback": model.byte_fallback}
    return {
        "model": pairs(unk_token=unknown, fuse_unk=True, **options)
        if model.kind == BPE
        else options | {"unk_id": None if unknown is None else model.unk_id},
        "normalizer": sequence("normalizers", steps),
        "pre_tokenizer": spaces,
        "decoder": from_bytes if model.byte_fallback or spaces is None else metaspace(scheme),
    }


def _files(folder: Path, kind: TokenizerClass | None) -> list[Path]:
    """Return the files of a folder's vocabulary: those that the class reads, else those of any class."""
    every = [*(FILES[kind.model] if kind is not None else ()), *SETS]
    found = ([folder / name for name in names] for names in every)
    return next((paths for paths in found if all(path.is_file() for path in paths)), [])


def _kind_of(model: SentencePieceModel) -> str:
    return "BPE" if model.kind == BPE else "Unigram"


def _special(kind: TokenizerClass, config: Mapping[str, Any]) -> dict[str, str]:
    """Return the special tokens of a class by name, with the names that the config gives them."""
    found = dict(kind.tokens)
    for name in found:
        token = config.get(name)
        token = token.get("content") if isinstance(token, Mapping) else token
        found[name] = token if isinstance(token, str) else found[name]
    return found


def _model(pieces: SentencePieceModel, kind: TokenizerClass, config: Mapping[str, Any], name: str) -> Entry:
    """Return the model of a `tokenizer.json`, with the vocabulary of the class."""
    scored = kind.pieces(pieces, _special(kind, config), config)
    if pieces.kind != BPE:
        return {"type": "Unigram", "vocab": scored}
    rows = zip(pieces.pieces, pieces.scores, pieces.types, strict=True)
    merged = {piece: score for piece, score, type in rows if type in (NORMAL, USER_DEFINED, UNUSED)}
    merges = list(map(list, piece_merges(merged, pieces.pieces, name)))
    return {"type": "BPE", "vocab": {token: i for i, (token, _) in enumerate(scored)}, "merges": merges}


def _marked(model: SentencePieceModel) -> list[Entry]:
    """Return the control pieces, as special tokens, and those that the user of SentencePiece defined."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    rows = zip(model.pieces, model.types, strict=True)
    return [
        {"content": piece, **flags, "special": type == CONTROL}
        for piece, type in rows
        if type in (CONTROL, USER_DEFINED)
    ]


def _with_ids(tokens: list[Entry], vocab: Any) -> list[Entry]:
    """Return the added tokens that the vocabulary has, with their ids."""
    ids = vocab if isinstance(vocab, dict) else {token: i for i, (token, _) in enumerate(vocab)}
    return [{"id": ids[token["content"]], **token} for token in tokens if token["content"] in ids]


def _charsmap(model: SentencePieceModel) -> Entry | None:
    table = base64.b64encode(model.charsmap).decode()
    return {"type": "Precompiled", "precompiled_charsmap": table} if table else None


def read_words(path: Path) -> dict[str, int]:
    """Return the ids of the tokens in the lines of a file.  Raises: TokenizerError for an empty one"""
    lines = read_lines(path)
    if not lines:
        raise TokenizerError(f"{path} has no tokens", hint=HINT)
    return {line.rstrip(): i for i, line in enumerate(lines)}


def read_merges(path: Path) -> list[list[str]]:
    """Return the pairs of tokens in the lines of a file.  Raises: TokenizerError for a line that is none"""
    merges = []
    for number, line in enumerate(read_lines(path), 1):
        if line and not line.startswith("#version"):
            left, _, right = line.partition(" ")
            if not left or not right or " " in right:
                raise TokenizerError(f"{path}: line {number} is {line!r:.80}, not a pair of tokens", hint=HINT)
            merges.append([left, right])
    return merges
