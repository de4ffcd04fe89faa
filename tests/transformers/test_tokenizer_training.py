"""Tokenizers made from a vocabulary, an object or another tokenizer: as transformers makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.transformers.both import both, both_raise
from tests.transformers.tokenizer_folders import write

from tallow.errors import ArgumentError

pytest.importorskip("transformers")
TEXT = "the cat sat on the mat, the fox sat on the cat"
WORDS = {
    word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat", "fox"])
}
LETTERS = {letter: i for i, letter in enumerate(["<|endoftext|>", *"abcdefghijklmnopqrstuvwxyz", "Ġ", "th", "the"])}
PIECES = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁the", -1.0), ("▁", -2.0), ("cat", -2.5), ("s", -3.0)]


KINDS = ("BertTokenizer", "GPT2Tokenizer", "LlamaTokenizer", "RobertaTokenizer", "XLMRobertaTokenizer")


@pytest.mark.parametrize("name", KINDS)
def test_training(name: str, tmp_path: Path) -> None:
    """The order of equally frequent pieces changes from run to run, so the texts of tokens are compared."""
    folder = write(tmp_path, name)

    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        options = {
            "new_special_tokens": ["<new>"],
            "show_progress": False,
        }
        new = tokenizer.train_new_from_iterator([[TEXT] * 3, [TEXT] * 3], vocab_size=400, **options)
        found = [
            len(new.get_vocab()),
            new.special_tokens_map,
            new.extra_special_tokens,
            type(new).__name__,
            new.model_max_length,
        ]
        found += [new.tokenize("<new> the cat sat"), new.decode(new.encode("the fox")), new("the cat").tokens()]
        return [*found, sorted(new.get_vocab()), new.padding_side]

    both(program)


@pytest.mark.parametrize("name", ["BertTokenizer", "XLMRobertaTokenizer"])
def test_training_renames_special_tokens(name: str, tmp_path: Path) -> None:
    """transformers keeps the former names too, as further tokens; here only the new ones are left."""
    import tallow.transformers as tf

    tokenizer = tf.AutoTokenizer.from_pretrained(write(tmp_path, name))
    former = [tokenizer.unk_token, tokenizer.sep_token or tokenizer.eos_token]
    renamed = dict(zip(former, ["<who>", "<end>"], strict=True))
    new = tokenizer.train_new_from_iterator([TEXT] * 3, 80, special_tokens_map=renamed, show_progress=False)
    assert new.unk_token == "<who>"
    assert new.convert_ids_to_tokens(new.encode("☃"))[-2:] == ["<who>", "<end>"]
    assert not {*former} & {*new.get_vocab()}


def test_training_adds_what_the_trainer_takes(tmp_path: Path) -> None:
    folder = write(tmp_path, "GPT2Tokenizer")

    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        new = tokenizer.train_new_from_iterator(iter([TEXT] * 3), 280, min_frequency=4, show_progress=False, length=3)
        return [sorted(new.get_vocab()), new.tokenize(TEXT)]

    both(program)


def test_vocabularies() -> None:
    def program(tf: Any, torch: Any) -> Any:
        words = tf.BertTokenizer(vocab=WORDS, do_lower_case=True)
        letters = tf.GPT2TokenizerFast(vocab=LETTERS, merges=[("t", "h"), ("th", "e")], bos_token="<|endoftext|>")
        pieces = tf.T5Tokenizer(vocab=PIECES, extra_ids=0)
        texts = [each("The cats", "the fox") for each in (words, letters)] + [pieces("the cats")]
        return [*texts, repr(words), len(letters), words.mask_token_id, pieces.eos_token_id]

    both(program)


def test_files_of_vocabularies(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")

    def program(tf: Any, torch: Any) -> Any:
        return [
            tf.BertTokenizerFast.from_pretrained(tmp_path)("the cats"),
            tf.BertTokenizer(str(tmp_path / "vocab.txt"))("fox"),
        ]

    both(program)


def test_objects_and_files(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({"the": 0, "cat": 1, "<who>": 2}, unk_token="<who>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))

    def program(tf: Any, torch: Any) -> Any:
        settings = {"unk_token": "<who>", "pad_token": "<pad>", "model_max_length": 8}
        of_object = tf.PreTrainedTokenizerFast(tokenizer_object=made, **settings)
        of_file = tf.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"), **settings)
        rows = [each(["the cat", "dog"], padding="max_length") for each in (of_object, of_file)]
        ends = tf.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>", add_bos_token=True)
        rows += [ends("the cat"), ends("the", "cat")]
        ends.add_eos_token, ends.add_bos_token = True, False
        return [*rows, ends("the cat"), ends.add_eos_token, ends.add_bos_token, of_file.unk_token_id, len(of_object)]

    both(program)


def test_ends_of_a_folder(tmp_path: Path) -> None:
    folder = write(tmp_path, "LlamaTokenizer")
    both(lambda tf, torch: tf.AutoTokenizer.from_pretrained(folder, add_bos_token=True, add_eos_token=True)("a", "b"))


def test_names_of_classes() -> None:
    names = ["BartTokenizerFast", "ElectraTokenizer", "LlamaTokenizerFast", "MPNetTokenizer", "DistilBertTokenizerFast"]

    def program(tf: Any, torch: Any) -> Any:
        same = [getattr(tf, name).__name__ for name in names]
        return [*same, tf.PreTrainedTokenizerFast.__name__, tf.BertTokenizer is tf.BertTokenizerFast]

    both(program)


def test_errors() -> None:
    both_raise(lambda tf, torch: tf.PreTrainedTokenizerFast(), errors=ArgumentError)
    both_raise(lambda tf, torch: tf.AutoTokenizer(), errors=TypeError)
    both_raise(lambda tf, torch: tf.BestTokenizer, errors=AttributeError)
    both_raise(lambda tf, torch: tf.BertTokenizer(vocab=WORDS, padding_side="top"), errors=ArgumentError)
