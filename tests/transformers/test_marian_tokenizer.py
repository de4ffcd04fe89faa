"""Marian's tokenizer: two SentencePiece models, and ids of one vocabulary or two."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.transformers.both import both

from tallow.errors import UnsupportedError

pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")
TEXTS = ["The quick fox", ">>fra<< A cat sleeps.", "", "Ж 日本 naïve"]


@pytest.fixture(scope="module", params=[False, True])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    from support import tokenizer_folders

    return str(
        tokenizer_folders.write(tmp_path_factory.mktemp("m") / "n", tokenizer_folders.marian(separate=request.param))
    )


def run(program: Any) -> None:
    with warnings.catch_warnings():  # transformers recommends a package for punctuation
        warnings.simplefilter("ignore")
        both(program)


def test_texts_and_targets(folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        rows = [
            dict(tokenizer(TEXTS, padding=True, return_tensors="pt")),
            dict(tokenizer("a cat", text_target=TEXTS[3])),
        ]
        rows += [dict(tokenizer(text_target=TEXTS)), dict(tokenizer(TEXTS, truncation=True, max_length=4))]
        texts = tokenizer.batch_decode(tokenizer(text_target=TEXTS)["input_ids"], skip_special_tokens=True)
        found = [texts, tokenizer.decode(tokenizer(text_target=TEXTS[0])["input_ids"]), tokenizer.pad_token_id]
        return [*rows, *found, tokenizer.vocab_size, type(tokenizer).__name__, tokenizer.model_max_length]

    run(program)


def test_files(folder: str, tmp_path: Path) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tf.MarianTokenizer.from_pretrained(folder).save_pretrained(tmp_path / tf.__name__)
        again = [tf.MarianTokenizer.from_pretrained(path) for path in sorted(tmp_path.iterdir())]
        return [dict(each(TEXTS)) for each in again][:1]

    run(program)


def test_what_is_not_here(folder: str) -> None:
    import tallow.transformers as tf

    with pytest.raises(UnsupportedError, match="from_pretrained"):
        tf.MarianTokenizer(vocab={})
