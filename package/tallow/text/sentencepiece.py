"""Read SentencePiece models: `spiece.model`, `tokenizer.model`, `sentencepiece.bpe.model`, `source.spm`.

The format is a message of Protocol Buffers. A message is a list of fields, and a field is a key, `number << 3 | type`,
and a value: a varint (type 0), 8 bytes (1), a length and that many bytes (2), or 4 bytes (5).

    ModelProto        1 pieces, one field each;  2 TrainerSpec;  3 NormalizerSpec
    SentencePiece     1 the piece;  2 its score, float32;  3 its type
    TrainerSpec       3 the kind of the model;  35 byte_fallback;  40 unk_id;  45 unk_piece, 46 bos_piece, 47 eos_piece
    NormalizerSpec    2 precompiled_charsmap;  3 add_dummy_prefix;  4 remove_extra_whitespaces

Source:  https://protobuf.dev/programming-guides/encoding/; https://github.com/google/sentencepiece, the file
         `src/sentencepiece_model.proto`
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from tallow.errors import TokenizerError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # types of pieces
SPACE = "▁"  # the symbol for a space in pieces
UNIGRAM, BPE = 1, 2  # kinds of models
KINDS = {UNIGRAM: "Unigram", BPE: "BPE", 3: "words", 4: "characters"}
MAX_LETTERS = 1 << 24  # of all pieces, which engines store letter by letter; the largest known have half of it
HINT = "download it again; or it is another kind of file"
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_FLOAT = struct.Struct("<f")

Field = int | bytes


@dataclass
class SentencePieceModel:
    """A model: its pieces by id, and how text is prepared.

    Attributes:
        kind: UNIGRAM or BPE.
        charsmap: the table that normalizes characters, compiled; empty if there is none.
        add_dummy_prefix: whether a text gets a space in front.
        remove_extra_whitespaces: whether spaces at both ends and repeated spaces are removed.
    """

    pieces: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    kind: int = UNIGRAM
    byte_fallback: bool = False
    unk_id: int = 0
    unk_piece: str = "<unk>"
    bos_piece: str = "<s>"
    eos_piece: str = "</s>"
    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True


def parse_model(data: bytes, name: str) -> SentencePieceModel:
    """Parse the bytes of a model.

    Args:    name: name of the file, for error messages
    Raises:  TokenizerError for a malformed or truncated file, and for models of words or characters
    """
    model = SentencePieceModel()
    for number, value in _fields(data, 0, len(data), name):
        if number == 1:
            _add_piece(model, value, name)
        elif number == 2:
            _read_trainer(model, _message(value, name), name)
        elif number == 3:
            _read_normalizer(model, _message(value, name), name)
    if not model.pieces:
        raise TokenizerError(f"{name} has no pieces; it is not a SentencePiece model", hint=HINT)
    if (letters := sum(map(len, model.pieces))) > MAX_LETTERS:
        raise TokenizerError(f"{name} has pieces of {letters} letters; the limit is {MAX_LETTERS}", hint=HINT)
    if len(set(model.pieces)) < len(model.pieces):
        piece = Counter(model.pieces).most_common(1)[0][0]
        raise TokenizerError(f"{name} has the piece {piece!r:.80} twice", hint=HINT)
    if model.kind not in (UNIGRAM, BPE):
        kind = KINDS.get(model.kind, model.kind)
        raise TokenizerError(f"{name} is a SentencePiece model of {kind}", hint="supported are Unigram and BPE")
    if not -1 <= model.unk_id < len(model.pieces):
        raise TokenizerError(f"{name}: its unk_id is {model.unk_id}, but it has {len(model.pieces)} pieces", hint=HINT)
    return model


def _add_piece(model: SentencePieceModel, message: Field, name: str) -> None:
    piece, score, kind = "", 0.0, NORMAL
    data = _message(message, name)
    for number, value in _fields(data, 0, len(data), name):
        if number == 1:
            piece = _text(value, name)
        elif number == 2:
            score = _FLOAT.unpack(value)[0] if isinstance(value, bytes) and len(value) == 4 else math.nan
        elif number == 3:
            kind = _integer(value, name)
    if not piece or not math.isfinite(score):
        raise TokenizerError(f"{name}: the piece {len(model.pieces)} is {piece!r:.80} with score {score}", hint=HINT)
    model.pieces.append(piece)
    model.scores.append(score)
    model.types.append(kind)


def _read_trainer(model: SentencePieceModel, data: bytes, name: str) -> None:
    for number, value in _fields(data, 0, len(data), name):
        if number == 3:
            model.kind = _integer(value, name)
        elif number == 35:
            model.byte_fallback = bool(_integer(value, name))
        elif number == 40:
            model.unk_id = _integer(value, name)
        elif number == 45:
            model.unk_piece = _text(value, name)
        elif number == 46:
            model.bos_piece = _text(value, name)
        elif number == 47:
            model.eos_piece = _text(value, name)


def _read_normalizer(model: SentencePieceModel, data: bytes, name: str) -> None:
    for number, value in _fields(data, 0, len(data), name):
        if number == 2:
            model.charsmap = _message(value, name)
        elif number == 3:
            model.add_dummy_prefix = bool(_integer(value, name))
        elif number == 4:
            model.remove_extra_whitespaces = bool(_integer(value, name))


def _fields(data: bytes, at: int, end: int, name: str) -> Iterator[tuple[int, Field]]:
    """Yield the number and the value of each field of a message: an integer for a varint, bytes for the others."""
    while at < end:
        # Most keys and lengths take one byte: a call for each would double the time of a large vocabulary.
        key, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at, end, name)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(data, at, end, name)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, at = (data[at], at + 1) if at < end and data[at] < 128 else _varint(data, at, end, name)
        elif kind in (_FOUR, _EIGHT):
            length = 4 if kind == _FOUR else 8
        else:
            _refuse(name, f"a field of type {kind} at {at}")
        if length > end - at:
            _refuse(name, f"a field of {length} bytes at {at}, but {end - at} are left")
        yield key >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int, end: int, name: str) -> tuple[int, int]:
    """Return the integer at `at`, seven bits a byte, and where it ends."""
    value = 0
    for i in range(at, min(end, at + 10)):
        byte = data[i]
        value |= (byte & 127) << 7 * (i - at)
        if byte < 128:
            return value, i + 1
    _refuse(name, f"an integer without an end at {at}")


def _integer(value: Field, name: str) -> int:
    """Return a signed integer of 32 bits, which the format stores as one of 64 bits."""
    if not isinstance(value, int):
        _refuse(name, "bytes in place of an integer")
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _message(value: Field, name: str) -> bytes:
    if not isinstance(value, bytes):
        _refuse(name, "an integer in place of bytes")
    return value


def _text(value: Field, name: str) -> str:
    try:
        return _message(value, name).decode()
    except UnicodeDecodeError as error:
        raise TokenizerError(f"{name} has the piece {value!r:.80}, which is not UTF-8", hint=HINT) from error


def _refuse(name: str, found: str) -> NoReturn:
    raise TokenizerError(f"{name} is no SentencePiece model, or it is truncated: {found}", hint=HINT)
