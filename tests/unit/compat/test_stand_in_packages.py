"""`tokenizers` and `safetensors` where they are not installed: the same results as the packages."""

from __future__ import annotations

import copy
import importlib
import importlib.metadata
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallow as tl
from tallow.compat import install_torch
from tallow.compat.packages import VERSIONS, PackageFinder, safetensors, tokenizers
from tallow.compat.packages.safetensors import numpy as of_numpy
from tallow.compat.packages.safetensors import torch as of_torch
from tallow.errors import ArgumentError, CheckpointError, MissingPackageError, TokenizerError, UnsupportedError
from tallow.kernels.library import IN_BROWSER

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s", "on", "mat", "."]
FAMILIES = {
    "normalizers": "normalizer",
    "pre_tokenizers": "pre_tokenizer",
    "processors": "post_processor",
    "decoders": "decoder",
    "models": "model",
}
FIELDS = ("ids", "type_ids", "attention_mask", "special_tokens_mask", "sequence_ids")


def word_pieces(library: Any) -> Any:
    """A tokenizer as transformers makes one for BERT."""
    vocab = {word: i for i, word in enumerate(WORDS)}
    tokenizer = library.Tokenizer(library.models.WordPiece(vocab=vocab, unk_token="[UNK]"))
    steps = [library.normalizers.NFD(), library.normalizers.BertNormalizer(lowercase=True)]
    tokenizer.normalizer = library.normalizers.Sequence(steps)
    split = library.pre_tokenizers.Split(library.Regex(r"\d"), behavior="merged_with_next")
    tokenizer.pre_tokenizer = library.pre_tokenizers.Sequence([library.pre_tokenizers.BertPreTokenizer(), split])
    tokenizer.post_processor = library.processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.decoder = library.decoders.WordPiece(prefix="##")
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", library.AddedToken("[MASK]", lstrip=True)])
    tokenizer.add_tokens(["zebra"])
    return tokenizer


@pytest.fixture
def pair() -> tuple[Any, Any]:
    """A tokenizer of the package and one of ours."""
    return word_pieces(pytest.importorskip("tokenizers")), word_pieces(tokenizers)


def test_tokenizer_has_the_file_of_the_package(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    assert json.loads(ours.to_str()) == json.loads(theirs.to_str())
    again = tokenizers.Tokenizer.from_str(theirs.to_str())
    assert json.loads(again.to_str()) == json.loads(theirs.to_str())
    for copied in (again, copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert copied.encode("cats").ids == theirs.encode("cats").ids


@pytest.mark.parametrize("family", FAMILIES)
def test_parts_have_the_defaults_of_the_package(family: str) -> None:
    library = pytest.importorskip("tokenizers")
    compared = []
    for name, kind in vars(getattr(library, family)).items():
        if not isinstance(kind, type) or kind.__subclasses__() or name in ("DecodeStream", "Unigram"):
            continue
        try:
            part = kind()
        except TypeError:
            continue  # it has arguments without defaults
        whole = library.Tokenizer(library.models.WordPiece({"a": 0}, unk_token="a"))
        setattr(whole, FAMILIES[family], part)
        assert getattr(getattr(tokenizers, family), name)().entries == json.loads(whole.to_str())[FAMILIES[family]]
        compared.append(name)
    assert len(compared) >= 2


def test_texts_pairs_and_words_are_encoded_alike(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    for arguments in (("The cats sat on the [MASK].",), ("the cat", "on zebra mat"), (["the", "cats"], None, True)):
        expected, found = (tokenizer.encode(*arguments) for tokenizer in (theirs, ours))
        assert [getattr(found, name) for name in FIELDS] == [getattr(expected, name) for name in FIELDS]
    assert found.word_ids == expected.word_ids
    assert found.tokens == expected.tokens == ["[CLS]", "the", "cat", "##s", "[SEP]"]


@pytest.mark.parametrize(
    "limits", [{"max_length": 6}, {"max_length": 6, "direction": "left"}, {"max_length": 7, "strategy": "only_first"}]
)
def test_batches_are_cut_and_padded_alike(pair: tuple[Any, Any], limits: dict[str, Any]) -> None:
    texts = ["the cat sat on the mat", ("the cat sat on", "cat"), "cat"]
    rows = []
    for tokenizer in pair:
        tokenizer.enable_truncation(**limits)
        tokenizer.enable_padding(pad_id=0, direction="left", pad_to_multiple_of=4)
        rows.append([[getattr(each, name) for name in FIELDS] for each in tokenizer.encode_batch(texts)])
    theirs, ours = pair
    assert rows[1] == rows[0]
    assert (ours.truncation, ours.padding) == (theirs.truncation, theirs.padding)


def test_settings_are_in_the_file_and_texts_that_fit_are_not_cut(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    for tokenizer in pair:
        tokenizer.enable_truncation(5, strategy="only_second", direction="left")
        tokenizer.enable_padding(length=8)
    assert json.loads(ours.to_str()) == json.loads(theirs.to_str())
    again = tokenizers.Tokenizer.from_str(theirs.to_str())
    for tokenizer in (ours, again, copy.deepcopy(ours)):
        assert (tokenizer.truncation, tokenizer.padding) == (theirs.truncation, theirs.padding)
        assert tokenizer.encode("the cats").ids == theirs.encode("the cats").ids
    for tokenizer in pair:
        tokenizer.enable_truncation(2, strategy="only_first")
    assert ours.encode("the cat").ids == theirs.encode("the cat").ids


def test_changes_of_parts_take_effect(pair: tuple[Any, Any]) -> None:
    found = []
    for library, tokenizer in zip((pytest.importorskip("tokenizers"), tokenizers), pair, strict=True):
        ids = []
        for last in (library.normalizers.NFC(), library.normalizers.Lowercase()):
            first = [library.normalizers.NFD(), library.normalizers.StripAccents()]
            tokenizer.normalizer = library.normalizers.Sequence([*first, last])
            ids.append(tokenizer.encode("The Cat").ids)
        tokenizer.model.unk_token = "mat"
        ids.append(tokenizer.encode("dog").ids)
        new = [tokenizer.add_tokens(["", "cat"]), tokenizer.add_tokens(["cat"]), tokenizer.add_special_tokens(["cat"])]
        found.append((ids, new, tokenizer.get_vocab()))
        for arguments in ((["the", "cat"],), ("the", "cat", True), (3,)):
            with pytest.raises(TypeError):
                tokenizer.encode(*arguments)
    assert found[1] == found[0]


def test_ids_and_tokens_are_decoded_alike(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    for ids in ([2, 5, 6, 8, 11, 3], [12, 0, 4]):
        for skip in (True, False):
            assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)
    assert ours.decoder.decode(["the", "cat", "##s"]) == theirs.decoder.decode(["the", "cat", "##s"])
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.num_special_tokens_to_add(True) == theirs.num_special_tokens_to_add(True)
    assert [ours.id_to_token(i) for i in range(14)] == [theirs.id_to_token(i) for i in range(14)]


def test_what_is_not_computed_is_refused_by_name() -> None:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    with pytest.raises(UnsupportedError, match=r"Lowercase\.normalize_str"):
        tokenizer.normalizer.normalize_str("A")
    with pytest.raises(UnsupportedError, match="train_from_iterator"):
        tokenizer.train_from_iterator([])
    with pytest.raises(ArgumentError, match="Normalizer of type 'Unheard'"):
        tokenizers.Tokenizer.from_str(tokenizer.to_str().replace("Lowercase", "Unheard"))
    with pytest.raises(TypeError, match="pattern"):
        tokenizers.pre_tokenizers.Split()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("(a+)+b"), "isolated")
    with pytest.raises(TokenizerError, match="exponential"):
        tokenizer.encode("a")


def test_files_of_tensors_are_those_of_the_package(tmp_path: Path) -> None:
    theirs, of_package = pytest.importorskip("safetensors"), pytest.importorskip("safetensors.numpy")
    path = tmp_path / "a.safetensors"
    of_torch.save_file({"b": tl.arange(6.0).reshape(2, 3), "a": tl.ones(3)}, path, {"format": "pt"})
    np.testing.assert_array_equal(of_package.load_file(path)["b"], np.arange(6.0).reshape(2, 3))
    with theirs.safe_open(path, "np") as expected, safetensors.safe_open(path, "pt") as found:
        assert found.keys() == expected.keys()
        assert found.metadata() == expected.metadata()
        for part, other in ((found.get_slice("b"), expected.get_slice("b")),):
            assert (part.get_shape(), part.get_dtype()) == (other.get_shape(), other.get_dtype())
            np.testing.assert_array_equal(part[1:].numpy(), other[1:])
    of_package.save_file({"x": np.ones((2, 2), np.float16)}, path)
    assert of_torch.load_file(path)["x"].dtype == tl.float16
    np.testing.assert_array_equal(of_numpy.load(path.read_bytes())["x"], np.ones((2, 2)))
    with pytest.raises(CheckpointError):
        of_torch.load(b"damaged!")
    of_torch.save_file({"x": tl.ones(2, dtype=tl.bfloat16)}, path)
    # As the package does, unless ml_dtypes has been imported.
    with safetensors.safe_open(path, "np") as file, pytest.raises(TypeError, match="bfloat16"):
        file.get_tensor("x")


def test_tensors_that_share_memory_are_written_once(tmp_path: Path) -> None:
    tensor = tl.ones(4)
    with pytest.raises(ValueError, match="'a' and 'b' share memory"):
        of_torch.save({"a": tensor, "b": tensor[1:]})
    model = tl.nn.Sequential(tl.nn.Linear(2, 2), tl.nn.Linear(2, 2))
    model[1].weight = model[0].weight
    path = tmp_path / "model.safetensors"
    of_torch.save_model(model, str(path))
    assert safetensors.safe_open(path, "pt").keys() == ["0.bias", "0.weight", "1.bias"]
    other = tl.nn.Sequential(tl.nn.Linear(2, 2), tl.nn.Linear(2, 2))
    with pytest.raises(CheckpointError, match=r"1\.weight"):  # its weights are separate
        of_torch.load_model(other, path)
    other[1].weight = other[0].weight
    assert of_torch.load_model(other, path) == ([], [])
    assert (other[1].weight == model[0].weight).all()


def test_packages_that_are_not_installed_are_found_with_their_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in VERSIONS]:
        monkeypatch.delitem(sys.modules, name)
    with install_torch(replace=True):
        for name in VERSIONS:  # those that are installed are listed once
            assert len(list(importlib.metadata.distributions(name=name))) == 1
        hidden = [finder for finder in sys.meta_path if isinstance(finder, PackageFinder)]
        assert sys.meta_path[-2:-1] == hidden  # those that are installed come first, hints how to install others last
        monkeypatch.setattr(sys, "path", [])
        import safetensors.torch

        importlib.import_module("tokenizers.models")

        assert safetensors.torch.load_file is of_torch.load_file
        assert vars(sys.modules["tokenizers.models"])["BPE"].__module__ == "tallow.compat.packages.tokenizers.models"
        assert importlib.metadata.version("tokenizers") == VERSIONS["tokenizers"]
        if not IN_BROWSER:  # there the engine is another one
            with pytest.raises(MissingPackageError, match="tokenizers"):
                word_pieces(tokenizers).encode("the cat")
    assert "tokenizers" not in sys.modules
    assert not [finder for finder in sys.meta_path if isinstance(finder, PackageFinder)]
