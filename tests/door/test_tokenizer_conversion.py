"""Folders without `tokenizer.json`: ids, special tokens, pairs and decoded texts equal those of transformers."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
import transformers
from support import sentencepiece_files, tokenizer_kinds
from support.tokenizer_folders import (
    END,
    FOLDERS,
    LLAMA,
    NEW,
    SIZE,
    TEXTS,
    bert,
    bpe,
    marian,
    pieces,
    spm,
    write,
)

from tallow.cli import main
from tallow.errors import TokenizerError
from tallow.models import AutoModel
from tallow.text import Tokenizer
from tallow.text.llama2c import Llama2cTokenizer


def assert_equal(folder: Path, texts: list[str] | None = None, expected: Any = None) -> None:
    """Compare what a folder's tokenizer does with transformers' for the same folder."""
    expected = expected or transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer = Tokenizer.from_pretrained(folder)
    texts = texts or [*TEXTS, *tokenizer_kinds.texts(60, 0)]
    for text in texts:
        for special in (True, False):
            assert tokenizer.encode(text, add_special_tokens=special) == expected.encode(
                text, add_special_tokens=special
            ), (text, special)
        ids = expected.encode(text)
        for special in (True, False):
            found = tokenizer.decode(ids, skip_special_tokens=special)
            assert found == expected.decode(ids, skip_special_tokens=special), text
    pairs = [text for text in texts if text]  # transformers takes an empty second text for none
    for first, second in itertools.pairwise(pairs):
        pair = expected(first, second, return_token_type_ids=True)
        row = tokenizer.encode_each([(first, second)], max_length=1 << 20)[0]
        assert (row.ids, row.segments) == (pair["input_ids"], pair["token_type_ids"]), (first, second)
    for token, i in expected.get_vocab().items():
        assert tokenizer.token_to_id(token) == i, token


@pytest.mark.parametrize("name", FOLDERS)
def test_folder_equals_transformers(name: str, tmp_path: Path) -> None:
    assert_equal(write(tmp_path / "folder", FOLDERS[name]()))


@pytest.mark.parametrize("model", ["llama", "mistral", "phi3"])
def test_class_of_llama_without_a_config(model: str, tmp_path: Path) -> None:
    """transformers reads these without the space before a text, unless the config names the class."""
    folder = write(tmp_path / "folder", spm(model, "tokenizer.model", "bpe", **LLAMA))
    assert_equal(folder, expected=transformers.LlamaTokenizer.from_pretrained(folder))


def test_pieces_without_a_class(tmp_path: Path) -> None:
    """The ids are those of SentencePiece itself."""
    as_it_is = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    for kind, options in {"unigram": {"byte_fallback": True}, "bpe": {}, "bpe, as it is": as_it_is}.items():
        data = pieces(kind.partition(",")[0], **options)
        expected = sentencepiece.SentencePieceProcessor(model_proto=data)
        tokenizer = Tokenizer.from_pretrained(write(tmp_path / kind, {"spiece.model": data}))
        for text in TEXTS:
            if "<s>" not in text:  # a special token here, letters there
                ids = expected.encode(text)
                assert tokenizer.encode(text) == ids, (kind, text)
                if expected.unk_id() not in ids:  # "⁇" there
                    assert tokenizer.decode(ids) == expected.decode(ids), (kind, text)


@pytest.fixture
def llama2(data_dir: Path, tmp_path: Path) -> Path:
    """Llama 2's pieces and scores as a `tokenizer.model`."""
    metadata = Llama2cTokenizer.load(data_dir / "llama2c_tokenizer_32000.bin").gguf_form()
    rows = zip(*(metadata[f"tokenizer.ggml.{key}"] for key in ("tokens", "scores", "token_type")), strict=True)
    data = sentencepiece_files.model(rows, trainer=sentencepiece_files.field(35, 1))  # byte_fallback
    config = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "legacy": False}
    return write(tmp_path / "llama2", {"tokenizer.model": data, "tokenizer_config.json": config})


def test_llama2(llama2: Path) -> None:
    """Its runs of spaces have the lowest scores, and so are merged last: transformers 5 merges by id, not by score."""
    texts = [*TEXTS, *tokenizer_kinds.texts(60, 1), "[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi! [/INST] Hello </s>"]
    assert_equal(llama2, [text for text in texts if "  " not in text])
    tokenizer = Tokenizer.from_pretrained(llama2)
    expected = sentencepiece.SentencePieceProcessor(model_file=str(llama2 / "tokenizer.model"))
    for text in texts:
        if "<" not in text and text.strip(" "):
            # A space is added here only before another character.
            ids = expected.encode(text.removeprefix(" "))
            assert tokenizer.encode(text, add_special_tokens=False) == ids, text


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_marian(separate: bool, tmp_path: Path) -> None:
    folder = write(tmp_path / "marian", marian(separate=separate))
    expected = transformers.MarianTokenizer.from_pretrained(folder)
    tokenizer = Tokenizer.from_pretrained(folder)
    texts = [*TEXTS, ">>fra<< Hello world", ">>fra<<x", ">>xyz<< y", " >>deu<< z", "a >>deu<< b", "x</s>>>deu<<y <pad>"]
    texts += [*tokenizer_kinds.texts(60, 2), "Жe 日本 日 本", "a >> b << c"]
    for text in texts:
        for special in (True, False):
            ids = expected.encode(text, add_special_tokens=special)
            assert tokenizer.encode(text, add_special_tokens=special) == ids, text
        assert tokenizer.encode(text, "a cat") == expected.encode(text, "a cat"), text
        target = expected(text_target=text)["input_ids"] if text else [0]
        for special in (True, False):
            found = tokenizer.decode(target, skip_special_tokens=special)
            assert found == expected.decode(target, skip_special_tokens=special), text
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id) == (expected.eos_token_id, expected.pad_token_id)
    spaces = [i for i in range(20) if expected.convert_ids_to_tokens(i).startswith("▁")]
    assert {tokenizer.token_bytes()[i][:1] for i in spaces if tokenizer.token_bytes()[i]} == {b" "}


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_translation_of_a_folder_with_source_spm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = marian()
    size = len(files["vocab.json"])
    sizes = {"d_model": 16, "max_position_embeddings": 64, "vocab_size": size}
    for part in ("encoder", "decoder"):
        sizes |= {f"{part}_layers": 1, f"{part}_attention_heads": 2, f"{part}_ffn_dim": 16}
    ids = {"pad_token_id": size - 1, "decoder_start_token_id": size - 1, "eos_token_id": 0, "forced_eos_token_id": None}
    config = transformers.MarianConfig(**sizes, **ids)
    torch.manual_seed(0)
    model = transformers.MarianMTModel(config).eval()
    model.save_pretrained(tmp_path)
    folder = write(tmp_path, {name: content for name, content in files.items() if name != "config.json"})
    theirs = transformers.MarianTokenizer.from_pretrained(folder)
    ids = theirs(">>fra<< The quick brown fox", return_tensors="pt").input_ids
    expected = theirs.decode(model.generate(ids, max_new_tokens=12, do_sample=False)[0], skip_special_tokens=True)
    found = "".join(AutoModel.from_pretrained(folder).generate_text(">>fra<< The quick brown fox", max_tokens=12))
    assert found.strip() == expected
    assert expected
    assert main(["generate", ">>fra<< The quick brown fox", "--model", str(folder), "--steps", "12"]) == 0
    assert capsys.readouterr().out.strip() == expected


def test_ids_of_added_tokens_are_those_of_the_files(tmp_path: Path) -> None:
    """A model was trained with these ids, even if ids before them are unused or were those of another token."""
    folder = write(tmp_path / "folder", bert(**{"added_tokens.json": {"<new>": SIZE + 7, "<other>": 9}}))
    tokenizer = Tokenizer.from_pretrained(folder)
    assert tokenizer.encode("a<new>b <other>", add_special_tokens=False)[1::2] == [SIZE + 7, 9]


def test_many_renamed_tokens_take_time_in_their_number_alone(tmp_path: Path) -> None:
    """Comparing each with each would take a minute."""
    count = 20_000
    renamed = {"added_tokens_decoder": {str(i): {"content": f"<{i}>", "special": True} for i in range(count)}}
    lines = "\n".join(f"word{i}" for i in range(count))
    folder = write(tmp_path / "folder", {"vocab.txt": lines, "tokenizer_config.json": renamed})
    tokenizer = Tokenizer.from_pretrained(folder)
    assert tokenizer.encode(f"<{count - 1}><0>", add_special_tokens=False) == [count - 1, 0]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has no tokenizer.json, and no other files of a tokenizer: vocab.txt, vocab.json with merges.txt"),
        ({"vocab.json": {"a": 0}}, "has no tokenizer.json"),
        ({"vocab.txt": ""}, "vocab.txt has no tokens"),
        ({"vocab.txt": b"\xff\xfe"}, "vocab.txt is not UTF-8"),
        ({"vocab.json": {"a": 0.5}, "merges.txt": ""}, "vocab.json is not an object of tokens and their ids"),
        ({"vocab.json": {"a": 0, "b": 0}, "merges.txt": ""}, "vocab.json has two tokens with the same id"),
        ({"vocab.json": ["a"], "merges.txt": ""}, "vocab.json is not a JSON object"),
        ({"vocab.json": {"a": 0}, "merges.txt": "#version: 0.2\na b c"}, "merges.txt: line 2 is 'a b c'"),
        ({"vocab.json": {"a": 0}, "merges.txt": "a b"}, "out of vocabulary"),
        (bert(**{"added_tokens.json": {"<a>": -1}}), "added_tokens.json is not an object"),
        (bert({"added_tokens_decoder": {"x": NEW}}), "added_tokens_decoder has the id 'x'"),
        (bert({"added_tokens_decoder": {"9" * 5000: NEW}}), "added_tokens_decoder has the id '999"),
        (bert({"unk_token": None}), "the tokenizer has no unk_token"),
        ({"vocab.txt": "\n" * ((1 << 24) + 1)}, "vocab.txt has more than 16777216 lines"),
        (bert({"added_tokens_decoder": {"2": NEW}}), "the tokens '.CLS.' and '<new>' have the id 2"),
    ],
)
def test_malformed_folder(files: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=message):
        Tokenizer.from_pretrained(write(tmp_path / "folder", files))


def test_commands_read_such_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A BERT of `vocab.txt` fills masks and embeds, and a GPT-2 of `vocab.json` writes, as with a `tokenizer.json`."""
    small = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    files = bert({"do_lower_case": True, "model_max_length": 512})
    encoder = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=SIZE, **small)).eval()
    files_of_gpt2 = bpe("gpt2", last=(END,))
    size = len(files_of_gpt2["vocab.json"])
    end = {"bos_token_id": size - 1, "eos_token_id": size - 1}
    decoder = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=size, n_embd=32, n_layer=1, n_head=2, **end)
    )
    for name, model, contents in (("bert", encoder, files), ("gpt2", decoder, files_of_gpt2)):
        model.save_pretrained(tmp_path / name)
        write(tmp_path / name, {file: content for file, content in contents.items() if file != "config.json"})
    commands = {
        "bert": [["fill-mask", "The [MASK] fox", "--model"], ["embed", "a cat", "--model"]],
        "gpt2": [["generate", "The fox", "--steps", "5", "--temperature", "0", "--model"]],
    }
    for name, several in commands.items():
        folder, fast = tmp_path / name, tmp_path / f"{name}, fast"
        shutil.copytree(folder, fast)
        transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(fast)
        assert (fast / "tokenizer.json").exists()
        for command in several:
            assert [main([*command, str(place)]) for place in (folder, fast)] == [0, 0], capsys.readouterr().err
            output = capsys.readouterr().out
            assert output[: len(output) // 2] == output[len(output) // 2 :], command
