"""The tables of SentencePiece's normalizers, as SentencePiece applies them."""

from __future__ import annotations

import base64

import pytest
import sentencepiece
from support.tokenizer_folders import pieces

from tallow.text.charsmap import is_nfkc, replaced, tables
from tallow.text.sentencepiece import parse_model

CHARACTERS = ["A", "Ａ", "ﬁ", "①", "é", "Ω", "ｱ", "가", "\u200d", "\u200b", "㌔", "🙂", "𝒜", "\ufb2c", "x"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("nmt_nfkc", True), ("nfkc", True), ("nmt_nfkc_cf", False), ("nfkc_cf", False)],
)
def test_characters_are_those_of_sentencepiece(rule: str, expected: bool) -> None:
    normalizer = sentencepiece.SentencePieceNormalizer(
        rule_name=rule, add_dummy_prefix=False, escape_whitespaces=False, remove_extra_whitespaces=False
    )
    table = parse_model(pieces("unigram", normalization_rule_name=rule), rule).charsmap
    for character in CHARACTERS:
        assert replaced(table, character) == normalizer.normalize(character), ascii(character)
    assert is_nfkc(table) == expected


@pytest.mark.parametrize("table", [b"", b"\x04", b"\xff" * 12, b"\x04\0\0\0" + b"\xff" * 4, b"\x08\0\0\0\0\x04\0\0"])
def test_other_bytes_are_no_table(table: bytes) -> None:
    assert not is_nfkc(table)


def test_tables_of_a_normalizer() -> None:
    step = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(b"table").decode()}
    assert list(tables({"type": "Sequence", "normalizers": [{"type": "NFKD"}, step]})) == [b"table"]
    assert list(tables(step)) == [b"table"]
    assert list(tables(None)) == list(tables({"type": "Sequence", "normalizers": None})) == []
    with pytest.raises(ValueError, match="precompiled_charsmap"):
        list(tables(step | {"precompiled_charsmap": "a"}))
