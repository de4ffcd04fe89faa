"""Tokenizers of every kind: calls, padding, decoding and the vocabulary equal those of transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both, both_raise
from tests.transformers.tokenizer_folders import CLASSES, write

from tallow.errors import ArgumentError, ArgumentTypeError, MissingNameError

pytest.importorskip("transformers")
ONE, OTHER = "The quick fox, it isn't 1,234!", "A cat  sleeps on the sofa. naïve café"
MANY = [ONE, OTHER, "", "日本語 🙂"]
WORDS = ["The", "dogs", "isn't", "café"]
TEXTS: list[dict[str, Any]] = [
    {"text": ONE},
    {"text": ONE, "text_pair": OTHER},
    {"text": MANY},
    {"text": MANY, "text_pair": MANY[::-1]},
    {"text": [(ONE, OTHER), (OTHER, "x")]},
]
SPLIT: list[dict[str, Any]] = [
    {"text": WORDS},
    {"text": [WORDS, WORDS[:2]]},
    {"text": [WORDS, WORDS[:2]], "text_pair": [WORDS[:1], WORDS]},
]


@pytest.fixture(scope="module", params=[name for name in CLASSES if name != "WhisperTokenizer"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(tmp_path_factory.mktemp("tokenizers"), request.param)


def load(tf: Any, folder: str, **settings: Any) -> Any:
    return tf.AutoTokenizer.from_pretrained(folder, **settings)


def calls(folder: str, texts: list[dict[str, Any]], *options: dict[str, Any]) -> None:
    """Compare the results of calls with each text and each of the options."""

    def program(tf: Any, torch: Any) -> Any:
        tokenizer = load(tf, folder)
        return [dict(tokenizer(**text, **chosen)) for text in texts for chosen in options]

    both(program)


def test_call(folder: str) -> None:
    calls(
        folder,
        TEXTS,
        {},
        {"add_special_tokens": False},
        {"split_special_tokens": True},
        {"tokenizer_kwargs": {"padding": True}},
    )


def test_columns(folder: str) -> None:
    wanted = ("offsets_mapping", "special_tokens_mask", "length", "token_type_ids")
    calls(folder, TEXTS, {f"return_{name}": True for name in wanted} | {"return_attention_mask": False})


@pytest.mark.parametrize("truncation", [True, "longest_first", "only_first", "do_not_truncate", False])
def test_truncation(folder: str, truncation: bool | str) -> None:
    texts = [TEXTS[0], TEXTS[2]] if truncation == "only_first" else TEXTS
    calls(folder, texts, *({"truncation": truncation, "max_length": length} for length in (24, 6, 4)))


def test_padding(folder: str) -> None:
    sides: list[dict[str, Any]] = [{}, {"padding_side": "left"}, {"padding_side": "right", "pad_to_multiple_of": 8}]
    ways: list[dict[str, Any]] = [
        {"padding": True},
        {"padding": "longest"},
        {"padding": "max_length", "max_length": 64},
    ]
    calls(folder, TEXTS, *(side | way for side in sides for way in ways), {"padding": "max_length", "truncation": True})


def test_overflow(folder: str) -> None:
    options = {"return_overflowing_tokens": True, "return_offsets_mapping": True, "truncation": True, "max_length": 12}
    calls(
        folder, [TEXTS[0], TEXTS[2]], options, options | {"stride": 3}, options | {"stride": 2, "padding": "max_length"}
    )
    calls(
        folder,
        [{"text": "cat", "text_pair": OTHER}],
        options | {"truncation": "only_second", "stride": 2, "max_length": 14},
    )


def test_split_words(folder: str) -> None:
    options = {"is_split_into_words": True, "return_offsets_mapping": True}
    calls(folder, SPLIT, options, options | {"truncation": True, "max_length": 8, "padding": True})


@pytest.mark.parametrize("kind", ["pt", "np"])
def test_tensors(folder: str, kind: str) -> None:
    calls(folder, TEXTS, {"return_tensors": kind, "padding": True})
    calls(folder, TEXTS[:2], {"return_tensors": kind}, {"return_tensors": kind, "return_special_tokens_mask": True})


def test_targets(folder: str) -> None:
    calls(
        folder,
        [{"text_target": MANY}, {"text": MANY, "text_target": MANY[::-1]}],
        {},
        {"truncation": True, "max_target_length": 5},
    )


def test_places(folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        rows = load(tf, folder)([ONE, OTHER], [OTHER, ONE], padding=True)
        places = [rows.n_sequences, rows.is_fast, rows.tokens(1), rows.word_ids(1), rows.sequence_ids(0)]
        places += [rows[0].ids, rows[0:1][0].tokens, rows.token_to_sequence(1, 3), rows.token_to_word(0, 3)]
        for i in range(10):
            places += [rows.char_to_token(0, i), rows.char_to_token(1, i, 1), rows.char_to_word(0, i)]
            places += [rows.token_to_chars(0, i)]
        for i in range(3):
            places += [rows.word_to_tokens(0, i), rows.word_to_tokens(0, i, 1)]
            places += [rows.word_to_chars(1, i) if rows.word_to_tokens(1, i) else None]
        return places

    both(program)


def test_encode_and_tokenize(folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = load(tf, folder)
        cut = {"max_length": 4, "truncation": True}
        ids = [
            tokenizer.encode(ONE),
            tokenizer.encode(ONE, OTHER),
            tokenizer.encode(ONE, **cut),
            tokenizer.encode(ONE, return_tensors="pt"),
        ]
        return [*ids, tokenizer.tokenize(ONE), tokenizer.tokenize(ONE, OTHER, add_special_tokens=True)]

    both(program)


def test_decode(folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = load(tf, folder)
        rows = tokenizer(MANY, padding=True, return_tensors="pt").input_ids
        texts = [
            tokenizer.decode(rows[0]),
            tokenizer.decode(rows),
            tokenizer.batch_decode(rows, skip_special_tokens=True),
        ]
        texts += [
            tokenizer.decode(7),
            tokenizer.decode([]),
            tokenizer.decode(np.array([9, 8])),
            tokenizer.batch_decode([9, 8]),
        ]
        texts += [tokenizer.decode(rows[0], clean_up_tokenization_spaces=True), tokenizer.decode(tokenizer(ONE))]
        return [
            *texts,
            tokenizer.convert_tokens_to_string(tokenizer.tokenize(ONE)),
            tokenizer.clean_up_tokenization("a ."),
        ]

    both(program)


def test_vocabulary(folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = load(tf, folder)
        ids = tokenizer.encode(ONE)
        found = [
            tokenizer.convert_tokens_to_ids("the"),
            tokenizer.convert_tokens_to_ids(["q", "☃☃"]),
            tokenizer.convert_ids_to_tokens(5),
        ]
        found += [tokenizer.convert_ids_to_tokens(ids), tokenizer.convert_ids_to_tokens(ids, skip_special_tokens=True)]
        found += [
            tokenizer.get_vocab(),
            tokenizer.vocab == tokenizer.get_vocab(),
            tokenizer.vocab_size,
            len(tokenizer),
            bool(tokenizer),
        ]
        return [dict(sorted(each.items())) if isinstance(each, dict) else each for each in found]

    both(program)


def test_attributes(folder: str) -> None:
    names = (
        "model_max_length padding_side truncation_side model_input_names max_len_single_sentence max_len_sentences_pair"
    )
    names += (
        " is_fast pad_token_type_id clean_up_tokenization_spaces name_or_path special_tokens_map all_special_tokens"
    )
    names += " all_special_ids extra_special_tokens added_tokens_encoder bos_token_id eos_token mask_token unk_token_id"

    def program(tf: Any, torch: Any) -> Any:
        tokenizer = load(tf, folder)
        values = [getattr(tokenizer, name) for name in names.split()]
        counts = [tokenizer.num_special_tokens_to_add(), tokenizer.num_special_tokens_to_add(pair=True)]
        mask = tokenizer.get_special_tokens_mask(tokenizer.encode(ONE), already_has_special_tokens=True)
        return [*values, *counts, mask, repr(tokenizer), type(tokenizer).__name__, tokenizer.get_added_vocab()]

    both(program)


@pytest.mark.parametrize("name", ["PreTrainedTokenizerFast", *CLASSES])
def test_attributes_of_classes(name: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        kind = getattr(tf, name)
        return [list(kind.model_input_names), kind.padding_side, kind.truncation_side]

    both(program)


def test_pad(folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = load(tf, folder)
        rows = [dict(tokenizer(text, return_special_tokens_mask=True)) for text in MANY]
        ids = {"input_ids": [[1, 2, 3], [4]]}
        return [
            tokenizer.pad(rows),
            tokenizer.pad(rows, padding="max_length", max_length=40, padding_side="left"),
            tokenizer.pad(ids | {"labels": [1, 0]}, return_tensors="pt"),
            tokenizer.pad({"input_ids": [1, 2, 3]}, pad_to_multiple_of=8),
            tokenizer.pad(ids, return_attention_mask=False),
            tokenizer.pad(ids, padding=False),
            tokenizer.pad([{"input_ids": torch.tensor([1, 2])}, {"input_ids": torch.tensor([3])}]),
            tokenizer.pad([{"input_ids": np.array([1, 2])}, {"input_ids": np.array([3])}]),
            tokenizer.pad({"input_ids": []}),
        ]

    both(program)


def test_new_tokens(folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = load(tf, folder)
        counts = [
            tokenizer.add_tokens(["newtoken", "other"]),
            tokenizer.add_tokens("newtoken"),
            tokenizer.add_tokens([]),
        ]
        counts += [tokenizer.add_special_tokens({"pad_token": "<PP>", "extra_special_tokens": ["<x>", "<y>"]})]
        more = {"additional_special_tokens": ["<z>", tf.AddedToken("<w>", lstrip=True)]}
        counts += [tokenizer.add_special_tokens(more, replace_extra_special_tokens=False), len(tokenizer)]
        text = "newtoken a <PP> <x> <z>other <w> b"
        found = [tokenizer(text)["input_ids"], tokenizer.all_special_tokens, tokenizer.tokenize(text)]
        found += [tokenizer.decode(tokenizer.encode(text), skip_special_tokens=True), tokenizer.pad_token_id]
        tokenizer.pad_token, tokenizer.eos_token_id, tokenizer.cls_token = "<x>", 7, None
        tokenizer.extra_special_tokens = ["<y>"]
        return [*counts, *found, tokenizer.special_tokens_map, tokenizer.extra_special_tokens, tokenizer.cls_token_id]

    both(program)


def test_settings_of_the_caller(folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        settings = {"pad_token": "<p>", "model_max_length": 9, "padding_side": "left", "truncation_side": "left"}
        tokenizer = load(tf, folder, extra_special_tokens=["<q>"], model_input_names=["input_ids"], **settings)
        return [tokenizer(MANY, padding=True, truncation=True), tokenizer.all_special_tokens, tokenizer.pad_token_id]

    both(program)


def test_files(folder: str, tmp_path: Path) -> None:
    """Each library reads the files that the other writes: ids, special tokens, chat template and class."""

    def program(tf: Any, torch: Any) -> Any:
        tokenizer = load(tf, folder)
        tokenizer.add_special_tokens({"extra_special_tokens": ["<q>"]})
        names = [Path(path).name for path in tokenizer.save_pretrained(tmp_path / tf.__name__)]
        return names

    both(program)
    for written in tmp_path.iterdir():
        both(
            lambda tf, torch, path=str(written): (
                lambda t: [
                    t(f"{ONE}<q>"),
                    t.special_tokens_map,
                    t.extra_special_tokens,
                    t.chat_template,
                    type(t).__name__,
                    t.model_max_length,
                ]
            )(load(tf, path))
        )


ERRORS: list[tuple[Callable[[Any], Any], Any]] = [
    (lambda t: t(), ArgumentError),
    (lambda t: t(5), ArgumentError),
    (lambda t: t([1, 2]), ArgumentError),
    (lambda t: t(MANY, ONE), ArgumentTypeError),
    (lambda t: t(MANY, MANY[:2]), ArgumentError),
    (lambda t: t(ONE, padding="long"), ArgumentError),
    (lambda t: t(ONE, truncation="second"), ArgumentError),
    (lambda t: t(ONE, padding=True, padding_side="top"), Exception),
    (lambda t: t(MANY, return_tensors="pt"), ArgumentError),
    (lambda t: t(ONE, return_tensors="tf"), ArgumentError),
    (lambda t: t(MANY, padding=True, truncation=True, max_length=9, pad_to_multiple_of=8), ArgumentError),
    (lambda t: t(ONE, OTHER, truncation="only_second", max_length=4), ArgumentError),
    (lambda t: t(ONE, truncation=True, max_length=8, stride=8, return_overflowing_tokens=True), ValueError),
    (lambda t: t.pad({"ids": [1]}), ArgumentError),
    (lambda t: t.pad({"input_ids": [[1], [2]], "labels": [1]}), ArgumentError),
    (lambda t: t.add_special_tokens({"best_token": "a"}), ArgumentError),
    (lambda t: t.add_special_tokens({"pad_token": 5}), ArgumentError),
    (lambda t: setattr(t, "pad_token", 5), ArgumentError),
    (lambda t: t.best_token, MissingNameError),
    (lambda t: t(ONE).best_ids, MissingNameError),
    (lambda t: t(ONE)["best_ids"], KeyError),
    (lambda t: t.get_special_tokens_mask([1], [2], already_has_special_tokens=True), ArgumentError),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors(number: int, tmp_path: Path) -> None:
    call, kind = ERRORS[number]
    folder = write(tmp_path, "BertTokenizer")
    both_raise(lambda tf, torch: call(load(tf, folder)), errors=kind)


def test_padding_without_a_token(tmp_path: Path) -> None:
    folder = write(tmp_path, "GPT2Tokenizer")

    def program(tf: Any, torch: Any) -> Any:
        tokenizer = load(tf, folder)
        tokenizer.pad_token = None
        return tokenizer(MANY, padding=True)

    both_raise(program, errors=ArgumentError)


def test_warnings(tmp_path: Path) -> None:
    import tallow.transformers as tf

    tokenizer = load(tf, write(tmp_path, "BertTokenizer"))
    with pytest.warns(UserWarning, match="more than the 64"):
        tokenizer(ONE * 9)
    with pytest.warns(UserWarning, match="no effect"):
        tokenizer(ONE, padding=True, max_length=5, truncation=False)
    with pytest.warns(UserWarning, match="no argument colour"):
        tokenizer(ONE, colour="red")
