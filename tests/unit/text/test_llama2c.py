"""The llama2.c tokenizer encodes and decodes as run.c does."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallow.errors import TokenizerError
from tallow.text import Llama2cTokenizer

BYTES = [f"<0x{byte:02X}>".encode() for byte in range(256)]
MARKS = [b"<unk>", b"\n<s>\n", b"\n</s>\n"]


def pack(pieces: list[tuple[bytes, float]]) -> bytes:
    """Build a tokenizer.bin as llama2.c's tokenizer.py writes it."""
    longest = max((len(piece) for piece, _ in pieces), default=0)
    return struct.pack("<I", longest) + b"".join(struct.pack("<fI", score, len(p)) + p for p, score in pieces)


# A vocabulary with competing merges: "ab" beats "bc", "aa" ties with "ab", and some three-letter words need two merges.
LETTERS = [(letter.encode(), -100.0) for letter in " abcdé"]
WORDS = [(b"ab", -1.0), (b"bc", -2.0), (b"aa", -1.0), (b"abc", -3.0), (b" a", -4.0), (b"abab", -0.5), (b"dd", -2e10)]
SMALL = [(piece, 0.0) for piece in MARKS + BYTES] + LETTERS + WORDS


def run_c_encode(vocabulary: list[tuple[bytes, float]], text: str) -> list[int]:
    """Transcribe run.c's `encode` line by line: one scan over all pairs for each merge."""
    ids = {piece: i for i, (piece, _) in enumerate(vocabulary)}
    tokens = [1]
    for character in " " + text if text else "":
        piece = character.encode()
        tokens += [ids[piece]] if piece in ids else [byte + 3 for byte in piece]
    while True:
        best_score, best_id, best_at = -1e10, -1, -1
        for at in range(len(tokens) - 1):
            merged = ids.get(vocabulary[tokens[at]][0] + vocabulary[tokens[at + 1]][0], -1)
            if merged != -1 and vocabulary[merged][1] > best_score:
                best_score, best_id, best_at = vocabulary[merged][1], merged, at
        if best_at == -1:
            return tokens
        tokens[best_at : best_at + 2] = [best_id]


def decode(tokenizer: Llama2cTokenizer, ids: list[int]) -> bytes:
    return b"".join(tokenizer.decode(previous, token) for previous, token in pairwise(ids))


@given(st.text(alphabet="aabbcd é\n😀<0x41>"))
def test_merges_are_those_of_run_c(text: str) -> None:
    tokenizer = Llama2cTokenizer.load(pack(SMALL))
    assert tokenizer.encode(text) == run_c_encode(SMALL, text)


@given(st.text())
def test_decoding_undoes_encoding(text: str) -> None:
    tokenizer = Llama2cTokenizer.load(pack(SMALL))
    try:
        expected = text.encode()
    except UnicodeEncodeError:
        with pytest.raises(TokenizerError, match="not a character"):
            tokenizer.encode(text)
    else:
        assert decode(tokenizer, tokenizer.encode(text)) == expected


# llama2.c's test.c, whose ids come from Meta's tokenizer
LLAMA_2 = {
    "": [1],
    "I believe the meaning of life is": [1, 306, 4658, 278, 6593, 310, 2834, 338],
    "Simply put, the theory of relativity states that ": [
        1, 3439, 17632, 1925, 29892, 278, 6368, 310, 14215, 537, 5922, 393, 29871
    ],
    "A brief message congratulating the team on the launch:\n\n        Hi everyone,\n\n        I just ": [
        1, 319, 11473, 2643, 378, 629, 271, 18099, 278, 3815, 373, 278, 6826, 29901, 13, 13, 4706, 6324,
        14332, 29892, 13, 13, 4706, 306, 925, 29871
    ],
    (
        "Translate English to French:\n\n        sea otter => loutre de mer\n"
        "        peppermint => menthe poivrée\n        plush girafe => girafe peluche\n        cheese =>"
    ): [
        1, 4103, 9632, 4223, 304, 5176, 29901, 13, 13, 4706, 7205, 4932, 357, 1149, 301, 449, 276, 316,
        2778, 13, 4706, 1236, 407, 837, 524, 1149, 6042, 354, 772, 440, 29878, 1318, 13, 4706, 715, 1878,
        330, 3055, 1725, 1149, 330, 3055, 1725, 4639, 28754, 13, 4706, 923, 968, 1149
    ],
}  # fmt: skip


@pytest.mark.parametrize("text", LLAMA_2)
def test_llama_2_vocabulary(data_dir: Path, text: str) -> None:
    tokenizer = Llama2cTokenizer.load(data_dir / "llama2c_tokenizer_32000.bin", vocab_size=32000)
    assert tokenizer.encode(text) == LLAMA_2[text]
    assert decode(tokenizer, LLAMA_2[text]) == text.encode()


def test_long_text_takes_n_log_n(data_dir: Path) -> None:
    """run.c's scan would take 10¹⁰ comparisons here."""
    tokenizer = Llama2cTokenizer.load(data_dir / "tok512.bin")
    text = "Once upon a time " * 6000
    assert decode(tokenizer, tokenizer.encode(text)) == text.encode()


def test_marks_and_spaces() -> None:
    tokenizer = Llama2cTokenizer.load(pack(SMALL))
    space = len(MARKS + BYTES)
    assert tokenizer.encode("", bos=False) == []
    assert tokenizer.encode("", bos=True, eos=True) == [1, 2]
    assert tokenizer.decode(1, space) == b""  # after BOS
    assert tokenizer.decode(5, space) == tokenizer.decode(None, space) == b" "
    assert tokenizer.decode(None, 3 + 0xE9) == b"\xe9"
    assert tokenizer.decode(None, 1) == b"\n<s>\n"


def test_of_equal_pieces_the_first_is_used() -> None:
    tokenizer = Llama2cTokenizer.load(pack([*SMALL, (b"a", -1.0)]))
    assert tokenizer.encode("da") == run_c_encode(SMALL, "da")


def test_wrong_vocabulary_is_refused(data_dir: Path) -> None:
    for vocab_size in (511, 513, 32000):
        with pytest.raises(TokenizerError, match=f"has 512 tokens, but the model has vocab_size={vocab_size}"):
            Llama2cTokenizer.load(data_dir / "tok512.bin", vocab_size=vocab_size)
    with pytest.raises(TokenizerError):
        Llama2cTokenizer.load(data_dir / "stories260K.bin", vocab_size=512)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (b"", "0 bytes are too few"),
        (pack(SMALL)[:-1], "claims 2 bytes, but 1 are left"),
        (pack(SMALL) + b"\0", f"header of token {len(SMALL)}"),
        (struct.pack("<ifi", 4, 0.0, -1), "claims -1 bytes, but 0 are left"),
        (struct.pack("<ifi", 4, 0.0, 2**31 - 1) + b"abcd", "claims 2147483647 bytes, but 4 are left"),
    ],
)
def test_malformed_files_are_refused(file: bytes, message: str) -> None:
    with pytest.raises(TokenizerError) as caught:
        Llama2cTokenizer.load(file)
    assert message in str(caught.value)


def test_character_that_cannot_be_spelled_is_refused() -> None:
    tokenizer = Llama2cTokenizer.load(pack([(piece, 0.0) for piece in [*MARKS, b" ", b"a"]]))
    assert tokenizer.encode("a") == [1, 3, 4]
    with pytest.raises(TokenizerError, match="neither 'b' nor its bytes"):
        tokenizer.encode("b")


def test_ids_outside_the_vocabulary_are_refused() -> None:
    tokenizer = Llama2cTokenizer.load(pack(SMALL))
    for token in (-1, len(SMALL)):
        with pytest.raises(TokenizerError, match=f"token {token} is not in the vocabulary"):
            tokenizer.decode(None, token)


@given(st.binary(max_size=64))
def test_any_bytes_load_or_raise_a_tokenizer_error(file: bytes) -> None:
    try:
        tokenizer = Llama2cTokenizer.load(file)
    except TokenizerError:
        return
    try:
        ids = tokenizer.encode("a b\n")
    except TokenizerError:
        return
    assert all(0 <= i < max(tokenizer.vocab_size, 2) for i in ids)
