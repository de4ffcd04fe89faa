"""The reader of SentencePiece models: the format's rules, and files that break them."""

from __future__ import annotations

import struct

import pytest
from support.sentencepiece_files import BYTE, CONTROL, NORMAL, PIECES, UNIGRAM, UNKNOWN, field, model, varint

from tallow.errors import TokenizerError
from tallow.text.sentencepiece import BPE, parse_model

ONE = [("a", 0.5, NORMAL)]
TRAINER = field(35, 1) + field(40, -1) + field(45, "<oov>") + field(46, "[") + field(47, "]")


def test_all_fields() -> None:
    found = parse_model(model(trainer=TRAINER, normalizer=field(2, b"\x00\x01") + field(3, 0)), "x.model")
    assert list(zip(found.pieces, found.scores, found.types, strict=True)) == PIECES
    assert (found.kind, found.byte_fallback, found.unk_id) == (BPE, True, -1)
    assert (found.unk_piece, found.bos_piece, found.eos_piece) == ("<oov>", "[", "]")
    assert (found.charsmap, found.add_dummy_prefix, found.remove_extra_whitespaces) == (b"\x00\x01", False, False)
    assert {UNKNOWN, CONTROL, BYTE, NORMAL} == set(found.types)


def test_defaults_are_those_of_the_format() -> None:
    found = parse_model(field(1, field(1, "a")), "x.model")
    assert (found.scores, found.types, found.kind, found.unk_id) == ([0.0], [NORMAL], UNIGRAM, 0)
    assert (found.byte_fallback, found.add_dummy_prefix, found.remove_extra_whitespaces) == (False, True, True)
    assert (found.unk_piece, found.bos_piece, found.eos_piece) == ("<unk>", "<s>", "</s>")


def test_unknown_fields_are_skipped() -> None:
    """Files of later versions have more; the last value of a field counts."""
    more = field(200, b"x" * 300) + field(201, 1 << 60) + varint(202 << 3 | 1) + bytes(8) + field(203, 1.0)
    found = parse_model(more + field(1, more + field(1, "z") + field(1, "a")) + field(5, b"") + more, "x.model")
    assert found.pieces == ["a"]


@pytest.mark.parametrize("length", range(1, len(model(ONE))))
def test_truncated(length: int) -> None:
    """A cut is an error; one between two fields leaves a smaller model."""
    whole = model(ONE)
    ends = {len(field(1, field(1, "a") + field(2, 0.5) + field(3, NORMAL)))}
    ends.add(len(whole) - len(field(3, field(4, 0))))
    if length in ends:
        assert parse_model(whole[:length], "x.model").pieces == ["a"]
    else:
        with pytest.raises(TokenizerError, match=r"x\.model is no SentencePiece model, or it is truncated"):
            parse_model(whole[:length], "x.model")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x.model has no pieces"),
        (field(2, b""), "x.model has no pieces"),
        (b'{"model": "json"}', "no SentencePiece model"),
        (b"IQ== 0\nIg== 1\n", "it is not a SentencePiece model"),  # tiktoken's format, as of Llama 3
        (b"\x80" * 11, "an integer without an end at 0"),
        (b"\x0a" + varint(1 << 63), "a field of 9223372036854775808 bytes at 11, but 0 are left"),
        (b"\x0b", "a field of type 3"),
        (field(1, 5), "an integer in place of bytes"),
        (model(ONE, trainer=field(40, b"ab")), "bytes in place of an integer"),
        (model([(b"\xff", 0.0, NORMAL)]), "which is not UTF-8"),
        (model([("", 0.0, NORMAL)]), "the piece 0 is ''"),
        (model([("a", float("nan"), NORMAL)]), "the piece 0 is 'a' with score nan"),
        (field(1, field(1, "a") + varint(2 << 3 | 1) + struct.pack("<d", 1)), "with score nan"),
        (model([("a" * 6_000_000 + c, 0.0, NORMAL) for c in "abc"]), "pieces of 18000003 letters"),
        (model(ONE * 2), "has the piece 'a' twice"),
        (model(ONE, kind=3), "a SentencePiece model of words"),
        (model(ONE, kind=9), "a SentencePiece model of 9"),
        (model(ONE, trainer=field(40, 1)), "its unk_id is 1, but it has 1 pieces"),
    ],
)
def test_malformed(data: bytes, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        parse_model(data, "x.model")
