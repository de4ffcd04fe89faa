"""All tokenizers of language models have one interface: the same vocabulary in two files reads and writes alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallow.errors import TokenizerError
from tallow.models.built_in import stories
from tallow.text.stream_decoder import ByteDecoder, MarkedDecoder, StreamDecoder, pieces_of
from tallow.text.text_tokenizer import TextTokenizer
from tallow.text.tokenizer import Tokenizer, write_tokenizer

TEXTS = ["Once upon a time", "Zoë: 😀\n", " two  spaces "]


@pytest.fixture(scope="module")
def binary() -> TextTokenizer:
    """llama2.c's `tokenizer.bin`."""
    return stories.load()[1]


@pytest.fixture(scope="module", params=["tokenizer.bin", pytest.param("tokenizer.json", marks=pytest.mark.native)])
def words(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    _, known = stories.load()
    if request.param == "tokenizer.bin":
        return known
    folder: Path = tmp_path_factory.mktemp("words")
    write_tokenizer(*known.hugging_face_form(), folder)
    return Tokenizer.from_pretrained(folder)


@pytest.mark.parametrize("text", TEXTS)
def test_prompts_and_their_text(words: TextTokenizer, binary: TextTokenizer, text: str) -> None:
    ids = words.encode_prompt(text)
    assert ids == binary.encode_prompt(text)
    assert ids[0] == words.bos_token_id
    assert words.encode_prompt(text, add_special_tokens=False) == ids[1:]
    pieces = list(words.decode_stream(ids))
    assert "".join(pieces) == text
    assert all(pieces)
    for split in range(1, len(ids)):  # the space before a word depends on what precedes it
        first = "".join(words.decode_stream(ids[:split]))
        if not first.endswith("\N{REPLACEMENT CHARACTER}"):
            assert first + "".join(words.decode_stream(ids[split:], previous=ids[:split])) == text


def test_an_empty_prompt_begins_a_text(words: TextTokenizer) -> None:
    for special in (True, False):
        assert words.encode_prompt("", add_special_tokens=special) == [words.bos_token_id]


def test_ends_and_special_tokens(words: TextTokenizer) -> None:
    assert words.eos_token_id in words.stop_ids
    (token,) = words.encode_prompt("Once", add_special_tokens=False)
    ids = [words.bos_token_id or 0, token, words.eos_token_id or 0]
    assert "".join(words.decode_stream(ids)) == "Once"
    shown = words.stream_decoder(skip_special_tokens=False)
    assert "</s>" in "".join(map(shown.push, ids)) + shown.finish()


def test_text_of_tokens(words: TextTokenizer, binary: TextTokenizer) -> None:
    for token in range(len(binary.token_bytes())):
        assert words.token_text(token) == binary.token_text(token)
    first = 3  # of the 256 bytes
    assert words.token_text(first + 0xC3) == ("\N{REPLACEMENT CHARACTER}", b"\xc3")
    assert words.token_text(1) == words.token_text(1 << 20) == ("", b"")


def test_a_conversation_needs_a_template(words: TextTokenizer) -> None:
    assert words.chat_template is None
    assert not words.tells_of_tools()
    with pytest.raises(TokenizerError, match="no chat template"):
        words.apply_chat_template([{"role": "user", "content": "a"}])


def test_marks_follow_the_text_before_them() -> None:
    """Also a word that is cleaned when the next one begins, and a character that is not whole."""
    texts = {1: "Yes", 2: " do", 3: "{}"}
    words = StreamDecoder(lambda ids: "".join(texts.get(id, "") for id in ids), cleans_up=True)
    assert "".join(pieces_of(MarkedDecoder(words, {9: "<mark>"}), [1, 2, 9, 3])) == "Yes do<mark>{}"
    characters = StreamDecoder(lambda ids: bytes(id for id in ids if id != 9).decode(errors="replace"))
    for decoder in (characters, ByteDecoder(lambda _, id: bytes([id]), hidden={9})):
        assert (
            "".join(pieces_of(MarkedDecoder(decoder, {9: "<mark>"}), b"a\xc3\x09b"))
            == "a\N{REPLACEMENT CHARACTER}<mark>b"
        )
