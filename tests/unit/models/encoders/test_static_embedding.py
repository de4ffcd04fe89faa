"""Static embeddings: the mean of the vectors of tokens, by NumPy, and folders as sentence-transformers writes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import tallow as tl
from tallow.errors import ArgumentError, CheckpointError
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.models.encoders.sentence_folder import EncoderFiles, files_of
from tallow.models.encoders.sentence_parts import Normalize
from tallow.models.encoders.static_embedding import StaticEmbedding
from tallow.text.marks import Marks, PostProcessor, Text
from tallow.text.tokenizer import Tokenizer
from tallow.text.tokenizer_folder import FILES, SETTINGS

TABLE = np.random.default_rng(0).integers(-127, 128, (9, 4)).astype(np.int8)
MODULES = b'[{"path": "", "type": "sentence_transformers.models.StaticEmbedding"}]'
MARK = Marks((8,), 0)


class Digits:
    """An engine whose ids are the digits of the text."""

    def encode(self, text: str) -> list[int]:
        return [int(digit) for digit in text]

    def decode(self, ids: Sequence[int], special: bool) -> str:
        return "".join(map(str, ids))

    def token_to_id(self, token: str) -> int | None:
        return 0 if token == "[PAD]" else None

    def definition(self) -> str:
        return "{}"


def encoder(table: np.ndarray = TABLE, name: str = "embedding.weight", **options: int) -> SentenceEncoder:
    model = StaticEmbedding.assemble({name: tl.from_numpy(table)})
    tokenizer = Tokenizer(Digits(), {"pad_token": "[PAD]"}, PostProcessor((MARK, Text(0, 0), MARK)))
    return SentenceEncoder(tokenizer, model, heads=[Normalize()], **options)


def mean(text: str) -> np.ndarray:
    vector = TABLE[[int(digit) for digit in text]].astype(np.float64).mean(0)
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("name", ["embedding.weight", "embeddings"])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_vector_is_the_mean_without_special_tokens(name: str, batch_size: int) -> None:
    texts = ["1", "23", "0000417", "55"]
    vectors = encoder(name=name).encode(texts, batch_size=batch_size)
    np.testing.assert_allclose(vectors, [mean(text) for text in texts], atol=1e-6)


def test_scale_of_the_table_does_not_matter() -> None:
    floats = encoder((TABLE * 0.01).astype(np.float32))
    np.testing.assert_allclose(floats.encode("1234"), encoder().encode("1234"), atol=1e-6)


def test_text_without_tokens_is_the_zero_vector() -> None:
    np.testing.assert_array_equal(encoder().encode(["", ""]), np.zeros((2, 4), np.float32))


def test_texts_of_any_length_and_truncated_ones() -> None:
    text = "12345670" * 100
    np.testing.assert_allclose(encoder().encode(text), mean(text), atol=1e-5)
    np.testing.assert_allclose(encoder(max_length=3).encode("1234"), mean("123"), atol=1e-6)
    assert encoder().count_tokens(text) == 800


def test_dtypes() -> None:
    assert StaticEmbedding.assemble({"embeddings": tl.from_numpy(TABLE)}).embedding.weight.dtype == tl.float32
    half = {"embeddings": tl.from_numpy(TABLE.astype(np.float16))}
    assert StaticEmbedding.assemble(half).embedding.weight.dtype == tl.float16
    assert StaticEmbedding.assemble(half, dtype=tl.float32).embedding.weight.dtype == tl.float32
    assert StaticEmbedding.assemble(half).num_parameters() == TABLE.size


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "there is no matrix embedding.weight"),
        ({"embedding.weight": tl.ones(3)}, "there is no matrix embedding.weight"),
        ({"embeddings": tl.ones(3, 2), "weights": tl.ones(3)}, "weights"),
        ({"embeddings": tl.ones(3, 2), "embedding.weight": tl.ones(3, 2)}, "unexpected   embeddings"),
    ],
)
def test_other_tensors_are_refused(state: dict[str, tl.Tensor], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        StaticEmbedding.assemble(state)


def test_nothing_to_quantise() -> None:
    with pytest.raises(ArgumentError, match="no Linear layers"):
        StaticEmbedding(3, 2).quantize("int8")


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    encoder().explain()
    assert "rows of a table" in capsys.readouterr().out


def test_files() -> None:
    optional = ("config_sentence_transformers.json", *SETTINGS)
    assert files_of(MODULES) == EncoderFiles(("modules.json",), optional, ("",), (FILES,))
