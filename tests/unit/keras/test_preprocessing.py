"""Preprocessing layers: hashes, vocabularies, texts. Values are from Keras' documentation or counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tallow import keras
from tallow.errors import ArgumentError
from tallow.keras import layers
from tallow.keras.layers.fingerprints import fingerprint, siphash

COLUMN = [["A"], ["B"], ["C"], ["D"], ["E"]]


@pytest.mark.parametrize(
    ("options", "inputs", "bins"),
    [
        ({}, COLUMN, [1, 0, 1, 1, 2]),
        ({"mask_value": ""}, [["A"], ["B"], [""], ["C"], ["D"]], [1, 1, 0, 2, 2]),
        ({"salt": [133, 137]}, COLUMN, [1, 2, 1, 0, 2]),
        ({"salt": 133}, COLUMN, [0, 0, 2, 1, 0]),
    ],
)
def test_hashing_gives_the_bins_of_keras_documentation(options: Any, inputs: Any, bins: list[int]) -> None:
    layer = layers.Hashing(num_bins=3, **options)
    assert layer(inputs).tolist() == [[n] for n in bins]
    assert layer(np.array(inputs)).tolist() == [[n] for n in bins]
    assert layers.Hashing.from_config(layer.get_config())(inputs).tolist() == [[n] for n in bins]


def test_crossed_features_have_the_bins_of_keras_documentation() -> None:
    features = (np.array(["A", "B", "A", "B", "A"]), np.array([101, 101, 101, 102, 102]))
    assert layers.HashedCrossing(num_bins=5)(features).tolist() == [1, 4, 1, 1, 3]
    hot = layers.HashedCrossing(num_bins=5, output_mode="one_hot")(features)
    assert hot.argmax(1).tolist() == [1, 4, 1, 1, 3]


def test_sip_hash_matches_the_reference_vectors() -> None:
    """The first values of vectors_sip64 in the reference implementation, github.com/veorq/SipHash."""
    key = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
    assert siphash(b"", key) == 0x726FDB47DD0E0E31
    assert siphash(bytes(range(8)), key) == 0x93F5F5799A932462
    assert siphash(bytes(range(15)), key) == 0xA129CA6149BE45E5


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (0, 0x9AE16A3B2F90404F), (3, 0x24A5B3A074E7F369), (7, 0x3C40C92B1CCB7355), (16, 0x54630BAD7705CEBD),
        (17, 0x9E2106C72D7793A8), (32, 0x0CF7D548B260F41A), (33, 0xF49EB04963C87E0B), (64, 0x329B2197AB082C24),
        (65, 0xB5F9E500C309820B), (128, 0x1C88D9153FF0E8F1), (129, 0xC10DCD08272135D6), (200, 0x2CC1D6381DA7FC27),
    ],
)  # fmt: skip
def test_fingerprint_matches_farm_hash(length: int, expected: int) -> None:
    """Lengths take different paths. Values are those of farmhash.fingerprint64 in pyfarmhash 0.4.0 from PyPI."""
    text = "abcdefghijklmnopqrstuvwxyz0123456789" * 6
    assert fingerprint(text[:length].encode()) == expected


VOCABULARY = ["a", "b", "c", "d"]
DATA = [["a", "c", "d"], ["d", "z", "b"]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[1, 3, 4], [4, 0, 2]]),
        ({"mask_token": ""}, [[2, 4, 5], [5, 1, 3]]),
        ({"output_mode": "multi_hot"}, [[0, 1, 0, 1, 1], [1, 0, 1, 0, 1]]),
        ({"output_mode": "multi_hot", "max_tokens": 6, "pad_to_max_tokens": True},
         [[0, 1, 0, 1, 1, 0], [1, 0, 1, 0, 1, 0]]),
        ({"output_mode": "tf_idf", "idf_weights": [0.25, 0.75, 0.6, 0.4]},
         [[0, 0.25, 0, 0.6, 0.4], [0.5, 0, 0.75, 0, 0.4]]),
    ],
)  # fmt: skip
def test_strings_become_integers(options: Any, expected: Any) -> None:
    layer = layers.StringLookup(vocabulary=VOCABULARY, **options)
    np.testing.assert_allclose(layer(DATA).numpy(), expected, rtol=1e-6)
    again = layers.StringLookup.from_config(layer.get_config())
    np.testing.assert_allclose(again(np.array(DATA)).numpy(), expected, rtol=1e-6)
    assert again.get_vocabulary() == layer.get_vocabulary()


def test_integers_become_strings() -> None:
    layer = layers.StringLookup(vocabulary=VOCABULARY, invert=True)
    assert layer(np.array([[1, 3, 4], [4, 0, 2]])).tolist() == [["a", "c", "d"], ["d", "[UNK]", "b"]]


def test_adapting_puts_frequent_tokens_first() -> None:
    layer = layers.StringLookup()
    layer.adapt(DATA)
    assert layer.get_vocabulary() == ["[UNK]", "d", "z", "c", "b", "a"]  # ties in descending order, as in Keras
    layer = layers.StringLookup(max_tokens=3)
    layer.adapt(iter([np.array(DATA[0]), np.array(["c", "c"])]))
    assert layer.get_vocabulary() == ["[UNK]", "c", "d"]
    layer = layers.StringLookup(output_mode="tf_idf")
    layer.adapt([["a", "a"], ["a", "b"]])
    weights = np.log(1 + 2 / (1 + np.array([2, 1])))
    np.testing.assert_allclose(layer([["a", "b", "b"]]).numpy(), [[0, weights[0], 2 * weights[1]]], rtol=1e-6)


def test_integers_become_indices() -> None:
    layer = layers.IntegerLookup(vocabulary=[12, 36, 1138, 42])
    data = np.array([[12, 1138, 42], [42, 1000, 36]])
    assert layer(data).tolist() == [[1, 3, 4], [4, 0, 2]]
    assert layers.IntegerLookup(vocabulary=[12, 36, 1138, 42], num_oov_indices=2)(data).tolist() == [
        [2, 4, 5],
        [5, 0, 3],
    ]
    hot = layers.IntegerLookup(vocabulary=[12, 36], output_mode="count")
    assert hot(data).tolist() == [[2, 1, 0], [2, 0, 1]]
    x = keras.Input((3,), dtype="int64")
    model = keras.Model(x, layers.Embedding(5, 2)(layer(x)))
    assert model(data).shape == (2, 3, 2)
    back = layers.IntegerLookup(vocabulary=[12, 36], invert=True)
    assert back(np.array([1, 2, 0])).tolist() == [12, 36, -1]


def test_tokens_out_of_the_vocabulary_are_refused_where_they_have_no_index() -> None:
    layer = layers.StringLookup(vocabulary=VOCABULARY, num_oov_indices=0)
    with pytest.raises(ArgumentError, match="'z' is not in the vocabulary"):
        layer(DATA)
    with pytest.raises(ArgumentError, match="duplicate tokens"):
        layers.StringLookup(vocabulary=["a", "a"])
    with pytest.raises(ArgumentError, match="reading a file is not supported"):
        layers.StringLookup(vocabulary="/etc/passwd")


def test_texts_become_integers() -> None:
    layer = layers.TextVectorization(max_tokens=5000, output_sequence_length=4)
    layer.adapt(["foo bar", "bar baz", "baz bada boom"])
    assert layer.get_vocabulary() == ["", "[UNK]", "baz", "bar", "foo", "boom", "bada"]
    assert layer([["foo qux bar"], ["Foo, BAZ!"]]).tolist() == [[4, 1, 3, 0], [4, 2, 0, 0]]
    assert layer("foo bar").tolist() == [4, 3, 0, 0]
    again = layers.TextVectorization.from_config(layer.get_config())
    assert again(["foo qux bar"]).tolist() == [[4, 1, 3, 0]]
    fixed = layers.TextVectorization(vocabulary=["earth", "wind", "and", "fire"])
    assert fixed(["earth wind and fire", "fire"]).tolist() == [[2, 3, 4, 5], [5, 0, 0, 0]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["its", "a", "b", "a"]),
        ({"standardize": "lower"}, ["it's", "a-b", "a"]),
        ({"standardize": "strip_punctuation"}, ["Its", "AB", "a"]),
        ({"standardize": None, "split": None}, ["It's A-B  a"]),
        ({"standardize": lambda texts: np.char.replace(texts, "-", " ")}, ["It's", "A", "B", "a"]),
        ({"split": lambda texts: [text.split("b") for text in texts.tolist()]}, ["its a", "  a"]),
        ({"ngrams": 2}, ["its", "ab", "a", "its ab", "ab a"]),
        ({"ngrams": (2,)}, ["its ab", "ab a"]),
    ],
)
def test_words_of_texts(options: Any, words: list[str]) -> None:
    layer = layers.TextVectorization(**options)
    expected = words if options else ["its", "ab", "a"]
    assert layer.words(np.array(["It's A-B  a"])) == [expected]


def test_texts_become_vectors() -> None:
    layer = layers.TextVectorization(output_mode="multi_hot", vocabulary=["foo", "bar", "baz"])
    assert layer(["foo foo bar", "qux"]).tolist() == [[0, 1, 1, 0], [1, 0, 0, 0]]
    layer = layers.TextVectorization(output_mode="count", split="character", vocabulary=["a", "b"])
    assert layer(["aab", "b?c"]).tolist() == [[0, 2, 1], [1, 0, 1]]


def test_adapted_ranges_hold_equal_parts_of_the_data() -> None:
    data = np.random.default_rng(0).normal(size=(1000,)).astype(np.float32) ** 3
    layer = layers.Discretization(num_bins=4)
    layer.adapt(data)
    counts = np.bincount(layer(data).numpy())
    assert np.abs(counts - 250).max() < 20
    again = layers.Discretization.from_config(layer.get_config())
    np.testing.assert_array_equal(again(data).numpy(), layer(data).numpy())
    with pytest.raises(ArgumentError, match="bin_boundaries are not set"):
        layers.Discretization(num_bins=4)(data)
