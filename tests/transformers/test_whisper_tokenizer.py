"""Whisper's tokenizer: what begins transcripts, and times in them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.transformers.both import both, both_raise
from tests.transformers.tokenizer_folders import write_whisper

from tallow.errors import ArgumentError, UnsupportedError

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_whisper(tmp_path_factory.mktemp("whisper"))


def test_prefixes(folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.WhisperTokenizer.from_pretrained(folder, language="french", task="transcribe")
        found = [type(tokenizer).__name__, tokenizer.prefix_tokens, tokenizer("a cat"), tokenizer("a", "cat")]
        tokenizer.set_prefix_tokens(language="de", predict_timestamps=True)
        found += [tokenizer.prefix_tokens, tokenizer("a cat")["input_ids"], tokenizer.language, tokenizer.task]
        found += [tokenizer.get_decoder_prompt_ids(task="translate", language="Spanish"), tokenizer("fox").input_ids]
        found += [tokenizer.build_inputs_with_special_tokens([1, 2], [3]), tokenizer.get_prompt_ids(" A cat ")]
        return [
            *found,
            tokenizer.get_prompt_ids("fox", return_tensors="pt"),
            tf.AutoTokenizer.from_pretrained(folder)("a"),
        ]

    both(program)


# Times in seconds, and texts: two windows, parts with one end or two.
TRANSCRIPTS: list[list[float | str]] = [
    [0.0, " A cat", 1.5, 1.5, " sleeps.", 3.0],
    [0.0, " A cat", 1.5, 1.5, " sleeps", 29.0, 0.0, " The fox", 2.0],
    [0.0, " A cat", 10.0, 0.0, " sleeps", 2.0, 2.0, " on", 4.0],
    [" no times"],
    [0.5, " one time"],
]


@pytest.mark.parametrize("parts", TRANSCRIPTS)
def test_times(folder: str, parts: list[float | str]) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        start = tokenizer.convert_tokens_to_ids(["<|startoftranscript|>", "<|en|>", "<|transcribe|>"])
        words = [part if isinstance(part, str) else f"<|{part:.2f}|>" for part in parts]
        ids = start + [id for word in words for id in tokenizer.encode(word, add_special_tokens=False)]
        before = [tokenizer.convert_tokens_to_ids("<|startofprev|>"), 50, 51]
        texts = [tokenizer.decode(ids), tokenizer.decode(ids, skip_special_tokens=True)]
        texts += [tokenizer.decode(ids, decode_with_timestamps=True), tokenizer.decode(ids, output_offsets=True)]
        texts += [tokenizer.batch_decode([before + ids, ids], skip_special_tokens=True)[1]]
        texts += [tokenizer.decode(torch.tensor(before + ids), skip_special_tokens=True, decode_with_timestamps=True)]
        return [*texts, tokenizer.decode(ids, skip_special_tokens=True, basic_normalize=True)]

    both(program)


def test_basic_normalization(folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        return [
            tokenizer.basic_normalize(text) for text in ("Hello, World! [noise] (laughs)", "Ça-va?  ﬁne", "a_b <x>")
        ]

    both(program)


def test_errors(folder: str) -> None:
    def load(tf: Any) -> Any:
        return tf.AutoTokenizer.from_pretrained(folder)

    both_raise(lambda tf, torch: load(tf).set_prefix_tokens(language="klingon"), errors=ArgumentError)
    both_raise(lambda tf, torch: load(tf).set_prefix_tokens(task="sing"), errors=ArgumentError)
    both_raise(lambda tf, torch: load(tf).get_prompt_ids("<|en|>"), errors=ArgumentError)
    import tallow.transformers as tf

    with pytest.raises(UnsupportedError, match="English"):
        load(tf).decode([1], normalize=True)
