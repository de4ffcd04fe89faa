"""Tokenizers of folders as they lie on the Hub: transformers' AutoTokenizer gives the same."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import transformers

from tallow.errors import ArgumentError
from tallow.text.tokenizer import Tokenizer

NAMES = ("bos_token", "eos_token", "pad_token", "mask_token")


def write(folder: Path, **files: Any) -> None:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def write_vocabulary(folder: Path, model: Any, special: list[str]) -> None:
    raw = tokenizers.Tokenizer(model)
    raw.add_special_tokens(special)
    raw.save(str(folder / "tokenizer.json"))


def vocabulary(*words: str) -> dict[str, int]:
    return {word: i for i, word in enumerate(words)}


def write_bert(folder: Path) -> None:
    """As bert-base-uncased: nothing but the class names the special tokens."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    write_vocabulary(folder, tokenizers.models.WordPiece(vocabulary(*special, "cat"), unk_token="[UNK]"), special)
    write(folder, tokenizer_config={"do_lower_case": True, "model_max_length": 512}, config={"model_type": "bert"})


def write_roberta(folder: Path) -> None:
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    write_vocabulary(folder, tokenizers.models.BPE(vocabulary(*special, "c", "a"), []), special)
    write(folder, tokenizer_config={"model_max_length": 512}, config={"model_type": "roberta"})


def write_gpt2(folder: Path) -> None:
    write_vocabulary(folder, tokenizers.models.BPE(vocabulary("c", "a", "<|endoftext|>"), []), ["<|endoftext|>"])
    write(folder, tokenizer_config={"model_max_length": 1024}, config={"model_type": "gpt2"})


@pytest.mark.parametrize("kind", [write_bert, write_roberta, write_gpt2])
def test_the_class_names_special_tokens(kind: Any, tmp_path: Path) -> None:
    kind(tmp_path)
    theirs, ours = transformers.AutoTokenizer.from_pretrained(tmp_path), Tokenizer.from_pretrained(tmp_path)
    for name in NAMES:
        assert getattr(ours, f"{name}_id") == getattr(theirs, f"{name}_id"), name
    assert ours.encode("cat") == theirs.encode("cat")


MAP = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}
TEMPLATE = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"bos_token": None, "eos_token": None},
        {"eos_token": "hi"},
        {"added_tokens_decoder": {}, "eos_token": "hi"},
        {"eos_token": {"__type": "AddedToken", "content": "hi", "lstrip": True}},
    ],
)
def test_special_tokens_map(config: dict[str, Any], tmp_path: Path) -> None:
    """It wins over the config, unless that lists the added tokens."""
    model = tokenizers.models.WordLevel(vocabulary("<s>", "</s>", "hi"), unk_token="hi")
    write_vocabulary(tmp_path, model, ["<s>", "</s>"])
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE} | config
    write(tmp_path, tokenizer_config=config, special_tokens_map=MAP)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    ours = Tokenizer.from_pretrained(tmp_path)
    for name in NAMES:
        assert getattr(ours, f"{name}_id") == getattr(theirs, f"{name}_id"), name
    messages = [{"role": "user", "content": "hi"}]
    assert ours.render_chat(messages) == theirs.apply_chat_template(messages, tokenize=False)


def test_added_tokens_file(tmp_path: Path) -> None:
    """The file of older folders lists tokens beyond the vocabulary."""
    write_vocabulary(tmp_path, tokenizers.models.WordLevel(vocabulary("<s>", "hi"), unk_token="hi"), ["<s>"])
    write(tmp_path, added_tokens={"<end>": 2, "<new>": 3}, special_tokens_map={"eos_token": "<end>"})
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    ours = Tokenizer.from_pretrained(tmp_path)
    ids = [0, 1, 2, 3]
    assert ours.eos_token_id == theirs.eos_token_id == 2
    assert ours.encode("<s>hi<end><new>") == theirs.encode("<s>hi<end><new>") == ids
    assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize(
    "flags", [{}, {"do_lower_case": False}, {"strip_accents": False}, {"tokenize_chinese_chars": False}]
)
def test_the_config_decides_what_the_class_normalizes(flags: dict[str, Any], tmp_path: Path) -> None:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = vocabulary(*special, "cafe", "café", "Café", "你", "##好", "好")
    write_vocabulary(tmp_path, tokenizers.models.WordPiece(words, unk_token="[UNK]"), special)
    write(tmp_path, tokenizer_config={"tokenizer_class": "BertTokenizer"} | flags, config={"model_type": "bert"})
    theirs, ours = transformers.AutoTokenizer.from_pretrained(tmp_path), Tokenizer.from_pretrained(tmp_path)
    assert ours.encode("Café 你好") == theirs.encode("Café 你好")


def test_templates(tmp_path: Path) -> None:
    """A file wins over the config; a folder has more of them, with or without a default."""
    write_gpt2(tmp_path)
    write(tmp_path, tokenizer_config={"chat_template": "config"}, chat_template={"chat_template": "old"})
    messages = [{"role": "user", "content": "hi"}]

    def texts() -> list[str]:
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        text = Tokenizer.from_pretrained(tmp_path).render_chat(messages)
        return [text, theirs.apply_chat_template(messages, tokenize=False)]

    assert texts() == ["config"] * 2
    (tmp_path / "chat_template.jinja").write_text("file")
    assert texts() == ["file"] * 2
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "other.jinja").write_text("another")
    assert texts() == ["file"] * 2
    (tmp_path / "chat_template.jinja").unlink()
    theirs, ours = transformers.AutoTokenizer.from_pretrained(tmp_path), Tokenizer.from_pretrained(tmp_path)
    text = theirs.apply_chat_template(messages, tokenize=False, chat_template="other")
    assert ours.render_chat(messages, chat_template="other") == text == "another"


def test_the_template_of_an_old_processor(tmp_path: Path) -> None:
    write_gpt2(tmp_path)
    write(tmp_path, chat_template={"chat_template": "old"})
    assert Tokenizer.from_pretrained(tmp_path).render_chat([{"role": "user", "content": "hi"}]) == "old"


def test_the_old_name_of_the_limit(tmp_path: Path) -> None:
    write_gpt2(tmp_path)
    write(tmp_path, tokenizer_config={"max_len": 7})
    theirs, ours = transformers.AutoTokenizer.from_pretrained(tmp_path), Tokenizer.from_pretrained(tmp_path)
    assert ours.model_max_length == theirs.model_max_length == 7


def write_letters(folder: Path, processor: Any = None, **config: Any) -> None:
    """A vocabulary of letters and two marks."""
    words = vocabulary("[CLS]", "[SEP]", "[PAD]", *"abcdefgh")
    raw = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="a"))
    raw.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    if processor is not None:
        raw.post_processor = processor
    raw.save(str(folder / "tokenizer.json"))
    write(folder, tokenizer_config={"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"} | config)


CLS, SEP = ("[CLS]", 0), ("[SEP]", 1)
template = tokenizers.processors.TemplateProcessing
PROCESSORS = {
    "nothing": None,
    "offsets": tokenizers.processors.ByteLevel(trim_offsets=True),
    "BERT": tokenizers.processors.BertProcessing(SEP, CLS),
    "RoBERTa": tokenizers.processors.RobertaProcessing(SEP, CLS, True, False),
    "a token at the start": template("[CLS] $A", "[CLS] $A [CLS]:1 $B:1", [CLS]),
    "two tokens at the end": template("$A [SEP] [SEP]", "$A [SEP] $B:1 [SEP]:1 [SEP]:2", [SEP]),
    "several steps": tokenizers.processors.Sequence(
        [tokenizers.processors.ByteLevel(), template("[CLS] $A", "$B:1 [SEP] $A:3", [CLS, SEP])]
    ),
}
LETTERS = "a b c d e f g h"
TEXTS: list[Any] = [LETTERS, "h g", "", (LETTERS, "h g"), ("h g", LETTERS), (LETTERS, LETTERS[::-1]), ("a", "")]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("processor", PROCESSORS.values(), ids=list(PROCESSORS))
def test_truncation(processor: Any, side: str, tmp_path: Path) -> None:
    """Texts are cut before tokens are added, on the tokenizer's side, and of a pair the longer one first."""
    write_letters(tmp_path, processor, truncation_side=side)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    ours = Tokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        for limit in (4, 5, 7, 8, 20):
            for special in (True, False):
                options = {"truncation": True, "max_length": limit, "add_special_tokens": special}
                expected = theirs([text], **options).encodings[0]
                (row,) = ours.encode_each([text], max_length=limit, add_special_tokens=special)
                assert row.ids == expected.ids, (text, limit, special)
                assert row.segments == expected.type_ids, (text, limit, special)


def test_a_limit_below_the_special_tokens(tmp_path: Path) -> None:
    write_letters(tmp_path, PROCESSORS["BERT"])
    tokenizer = Tokenizer.from_pretrained(tmp_path)
    assert tokenizer.encode_each(["a"], max_length=2)[0].ids == [0, 1]
    with pytest.raises(ArgumentError, match="max_length=1, but the special tokens alone are 2"):
        tokenizer.encode_each(["a"], max_length=1)


@pytest.mark.parametrize("side", ["right", "left"])
def test_padding(side: str, tmp_path: Path) -> None:
    write_letters(tmp_path, PROCESSORS["BERT"], padding_side=side)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    expected = theirs([LETTERS, "a"], padding=True)
    batch = Tokenizer.from_pretrained(tmp_path).encode_batch([LETTERS, "a"])
    assert batch.input_ids.tolist() == expected["input_ids"]
    assert batch.attention_mask.tolist() == expected["attention_mask"]


SPOKEN = ["it", "'", "s", "n", "t", "ve", "m", "I", ".", ",", "?", "!", "do", "likes", "don"]


@pytest.mark.parametrize("cleans", [True, False])
@pytest.mark.parametrize("kind", ["WordLevel", "BPE"])
def test_clean_up_of_spaces(cleans: bool, kind: str, tmp_path: Path) -> None:
    """Only of vocabularies that are no byte-pair encoding; a stream gives the same text."""
    words = vocabulary("<unk>", *SPOKEN)
    model = tokenizers.models.BPE(words, []) if kind == "BPE" else tokenizers.models.WordLevel(words, "<unk>")
    write_vocabulary(tmp_path, model, ["<unk>"])
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": cleans}
    write(tmp_path, tokenizer_config=config)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    ours = Tokenizer.from_pretrained(tmp_path)
    draw = random.Random(0)
    for _ in range(200):
        ids = [draw.randrange(1, len(words)) for _ in range(12)]
        text = theirs.decode(ids)
        assert ours.decode(ids) == text
        assert "".join(ours.decode_stream(ids)) == text


@pytest.mark.parametrize("splits", [True, False])
def test_special_tokens_in_texts(splits: bool, tmp_path: Path) -> None:
    words = vocabulary("<unk>", "<", "s", ">", "<s>", "a")
    write_vocabulary(tmp_path, tokenizers.models.BPE(words, [], unk_token="<unk>"), ["<unk>", "<s>"])
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "split_special_tokens": splits}
    write(tmp_path, tokenizer_config=config)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    ids = Tokenizer.from_pretrained(tmp_path).encode("<s>a")
    assert ids == theirs.encode("<s>a") == ([1, 2, 3, 5] if splits else [4, 5])
