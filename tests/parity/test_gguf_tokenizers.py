"""Tokenizers from GGUF files: ids equal those of the source `tokenizer.json`, or of transformers' conversion."""

from __future__ import annotations

import base64
import io
import json
import shutil
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from support import gguf_files, tokenizer_kinds
from support.chats import CHATML, TURNS, save_tokenizer

from tallow.cli import main
from tallow.errors import HubError, TokenizerError
from tallow.models import AutoModel
from tallow.text import Llama2cTokenizer, Tokenizer

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
gguf = pytest.importorskip("gguf")

TEXTS = list(tokenizer_kinds.texts(300, seed=2))


def file_of(path: Path, add: Callable[[Any], None], architecture: str = "llama", **entries: Any) -> Path:
    """Write a GGUF file without tensors; `entries` are named like the writer's methods that add them."""
    writer = gguf.GGUFWriter(path, architecture)
    add(writer)
    for name, value in entries.items():
        getattr(writer, f"add_{name}")(value)
    gguf_files.finish(writer)
    return path


def qwen2() -> str:
    """Return transformers' tokenizer for Qwen2's vocabulary and merges, with NFC normalization."""
    entries = json.loads(tokenizer_kinds.KINDS["bytes-gpt2"]())["model"]
    fast = transformers.Qwen2Tokenizer(vocab=entries["vocab"], merges=[tuple(merge) for merge in entries["merges"]])
    return fast.backend_tokenizer.to_str()


@pytest.mark.parametrize(
    ("make", "pre"),
    [
        (tokenizer_kinds.KINDS["bytes-llama3"], "llama-bpe"),
        (tokenizer_kinds.KINDS["bytes-gpt2"], "gpt-2"),
        (tokenizer_kinds.KINDS["bytes-gpt2"], None),
        (qwen2, "qwen2"),
    ],
    ids=["llama 3", "gpt-2", "older", "qwen2"],
)
def test_bytes(make: Callable[[], str], pre: str | None, tmp_path: Path) -> None:
    source = make()
    expected = tokenizers.Tokenizer.from_str(source)
    ours = Tokenizer.from_pretrained(
        file_of(tmp_path / "x.gguf", lambda w: gguf_files.add_bytes(w, source, pre), bos_token_id=0)
    )
    for text in TEXTS:
        ids = ours.encode(text)
        assert ids == expected.encode(text).ids, text
        for special in (True, False):
            assert ours.decode(ids, skip_special_tokens=special) == expected.decode(ids, special)


def test_words_of_tekken(tmp_path: Path) -> None:
    source = tokenizer_kinds.KINDS["bytes-gpt2"]()
    path = file_of(tmp_path / "x.gguf", lambda w: gguf_files.add_bytes(w, source, "tekken"), add_bos_token=False)
    ours = Tokenizer.from_pretrained(path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, gguf_file="x.gguf")
    words = [pre for text in TEXTS for pre in theirs.backend_tokenizer.pre_tokenizer.pre_tokenize_str(text)]
    entries = json.loads(source)["model"]["vocab"]
    assert len(words) > 1000
    for word, _ in words:  # a word that is a token is taken whole; transformers does not do this
        if word not in entries:
            text = theirs.backend_tokenizer.decoder.decode([word])
            assert ours.encode(text) == theirs.encode(text, add_special_tokens=False)


def test_pieces(tmp_path: Path) -> None:
    source = tokenizer_kinds.KINDS["pieces-llama2"]()
    expected = tokenizers.Tokenizer.from_str(source)
    path = file_of(tmp_path / "x.gguf", lambda w: gguf_files.add_pieces(w, source), bos_token_id=1, eos_token_id=2)
    ours = Tokenizer.from_pretrained(path)
    assert (ours.bos_token_id, ours.eos_token_id) == (1, 2)
    for text in TEXTS:
        ids = ours.encode(text)
        assert ids == expected.encode(text).ids, text
        assert ours.decode(ids) == expected.decode(ids)


def check(ours: Tokenizer, expected: Any) -> None:
    """Compare ids and texts, and ids and segments of pairs."""
    for text, other in pairwise(TEXTS):
        ids = ours.encode(text)
        assert ids == expected.encode(text).ids, text
        assert ours.decode(ids) == expected.decode(ids)
        if other:
            pair, theirs = ours.encode_batch([(text, other)]), expected.encode(text, other)
            assert pair.input_ids[0].tolist() == theirs.ids
            assert pair.token_type_ids[0].tolist() == theirs.type_ids


@pytest.mark.parametrize("older", [False, True], ids=["newer", "older"])
@pytest.mark.parametrize("kind", ["words-uncased", "words-cased"])
def test_word_pieces(kind: str, older: bool, tmp_path: Path) -> None:
    source = tokenizer_kinds.KINDS[kind]()
    path = file_of(tmp_path / "x.gguf", lambda w: gguf_files.add_words(w, source, older=older))
    ours = Tokenizer.from_pretrained(path)
    check(ours, tokenizers.Tokenizer.from_str(source))
    assert (ours.pad_token_id, ours.mask_token_id) == (0, 4)


def test_bytes_of_roberta(tmp_path: Path) -> None:
    source = tokenizer_kinds.KINDS["bytes-roberta"]()
    expected = tokenizers.Tokenizer.from_str(source)
    ids = {f"{role}_token_id": expected.token_to_id(token) for role, token in (("bos", "<s>"), ("eos", "</s>"))}
    add = lambda w: gguf_files.add_bytes(w, source, "roberta-bpe")  # noqa: E731
    check(Tokenizer.from_gguf(file_of(tmp_path / "x.gguf", add, **ids, token_type_count=1)), expected)


def unigram(*steps: dict[str, Any]) -> str:
    """Return the Unigram tokenizer with white space as SentencePiece normalizes it, after `steps`."""
    entries = json.loads(tokenizer_kinds.KINDS["unigram"]())
    ends = [{"type": "Replace", "pattern": {"Regex": pattern}, "content": ""} for pattern in (r"\A +", r" +\z")]
    runs = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    entries["normalizer"] = {"type": "Sequence", "normalizers": [*steps, *ends, runs]}
    return json.dumps(entries)


def test_unigram(tmp_path: Path) -> None:
    source = unigram()
    path = file_of(tmp_path / "x.gguf", lambda w: gguf_files.add_unigram(w, source))
    check(Tokenizer.from_gguf(path), tokenizers.Tokenizer.from_str(source))


def test_normalization_by_sentence_piece(tmp_path: Path) -> None:
    table = zlib.decompress(base64.b85decode(tokenizer_kinds.CHARSMAP))
    source = unigram({"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()})
    add = lambda w: gguf_files.add_unigram(w, source)  # noqa: E731
    ours = Tokenizer.from_gguf(file_of(tmp_path / "x.gguf", add, precompiled_charsmap=table))
    assert ours.encode("\ufb01nally \uff21 cat, \u00c4") == ours.encode("finally A cat, Ae")
    check(ours, tokenizers.Tokenizer.from_str(source))


@pytest.mark.parametrize(
    ("pre", "text", "words"),
    [
        ("falcon", "it's  12345 a+b, ok", ["it", "'", "s", " ", " ", "123", "45", " a", "+", "b", ",", " ok"]),
        ("gpt-4o", "HTMLPage it's 12345", ["HTMLPage", " it's", " ", "123", "45"]),
    ],
)
def test_words(pre: str, text: str, words: list[str], tmp_path: Path) -> None:
    """Each word is a token; any other split gives other tokens. The words are by hand, from the models' patterns."""
    source = json.loads(tokenizer_kinds.KINDS["bytes-gpt2"]())
    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    joined = [word.replace(" ", "Ġ") for word in words]
    merges = dict.fromkeys((word[:end], word[end]) for word in joined for end in range(1, len(word)))
    tokens = [*letters, *map("".join, merges)]
    source["model"] |= {"vocab": {token: i for i, token in enumerate(tokens)}, "merges": list(merges)}
    source["added_tokens"] = []
    path = file_of(tmp_path / "x.gguf", lambda w: gguf_files.add_bytes(w, json.dumps(source), pre))
    ours = Tokenizer.from_gguf(path)
    assert [ours.decode([token]) for token in ours.encode(text)] == words


def test_phi3_tokens_take_the_space_after_them(tmp_path: Path) -> None:
    source = json.loads(tokenizer_kinds.KINDS["pieces-llama2"]())
    size = max(source["model"]["vocab"].values()) + 1
    source["added_tokens"].append(source["added_tokens"][1] | {"id": size, "content": "<|end|>"})
    for architecture, spaces in (("phi3", 0), ("llama", 1)):
        path = file_of(tmp_path / "x.gguf", lambda w: gguf_files.add_pieces(w, json.dumps(source)), architecture)
        ours = Tokenizer.from_gguf(path)
        after = ours.encode("a<|end|> a", add_special_tokens=False)
        assert after.count(size) == 1
        assert (after == ours.encode("a<|end|>a", add_special_tokens=False)) is (spaces == 0)


def test_pieces_of_llama2c(data_dir: Path, tmp_path: Path) -> None:
    """Compare with another implementation that merges by scores: llama2.c."""
    known = Llama2cTokenizer.load(data_dir / "tok512.bin")

    def add(writer: Any) -> None:
        writer.add_tokenizer_model("llama")
        writer.add_token_list([piece.decode("utf-8").replace(" ", "▁") for piece in known._pieces])
        writer.add_token_scores(known._scores)

    ours = Tokenizer.from_gguf(file_of(tmp_path / "x.gguf", add, bos_token_id=1))
    for text in ("Once upon a time, Lily's dog said: 10 cats!", "naïve 🙂", ""):
        assert ours.encode(text) == known.encode(text)


def test_templates_and_roles(tmp_path: Path) -> None:
    source = tokenizer_kinds.KINDS["bytes-llama3"]()
    templates = [{"name": "default", "template": TURNS}, {"name": "tool_use", "template": CHATML}]
    entries: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 1, "add_bos_token": False, "add_eos_token": True}
    path = file_of(
        tmp_path / "x.gguf",
        lambda w: gguf_files.add_bytes(w, source, "llama-bpe"),
        **entries,
        chat_template=templates,
    )
    ours = Tokenizer.from_pretrained(path)
    assert ours.encode("a")[-1] == 1
    assert ours.encode("a")[:-1] == ours.encode("a", add_special_tokens=False)
    messages = [{"role": "user", "content": "hi"}]
    assert ours.render_chat(messages).startswith("<|begin|>")
    assert ours.render_chat(messages, chat_template="tool_use").startswith("<|im_start|>system")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "has no tokenizer.ggml.tokens"),
        ({"token_list": ["a"], "tokenizer_model": "rwkv"}, "has the model 'rwkv'; supported are 'gpt2', 'llama',"),
        ({"token_list": ["a"], "tokenizer_model": "t5"}, "has no tokenizer.ggml.scores"),
        (
            {"token_list": ["a"], "tokenizer_model": "t5", "token_scores": [0.0], "precompiled_charsmap": b"x"},
            "is not a tokenizer.json",
        ),
        ({"token_list": ["a"], "tokenizer_model": "bert"}, "has no token for unknown words"),
        ({"token_list": ["a"], "tokenizer_model": "gpt2", "tokenizer_pre": "odd"}, "splits text by 'odd'"),
        ({"token_list": ["a"], "tokenizer_model": "gpt2"}, "has no tokenizer.ggml.merges"),
        ({"token_list": ["a"], "tokenizer_model": "llama"}, "has no tokenizer.ggml.scores"),
        ({"token_list": ["a"], "tokenizer_model": "llama", "token_scores": [0.0, 1.0]}, "for each token"),
        ({"token_list": ["a"], "tokenizer_model": "gpt2", "token_merges": ["x y"]}, "is not a tokenizer.json"),
    ],
)
def test_invalid_tokenizers(entries: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(TokenizerError) as caught:
        Tokenizer.from_gguf(file_of(tmp_path / "x.gguf", lambda writer: None, **entries))
    assert message in str(caught.value)


# ------------------------------------------------------------------------------------------------ models in one file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random Llama as transformers saves it, and the same in model.gguf."""
    folder = tmp_path_factory.mktemp("models")
    save_tokenizer(folder / "saved", CHATML, 300)
    torch.manual_seed(0)
    sizes = {"vocab_size": 300, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    config = transformers.LlamaConfig(
        **sizes, num_attention_heads=4, initializer_range=0.2, max_position_embeddings=512
    )
    model = transformers.LlamaForCausalLM(config).eval()
    model.save_pretrained(folder / "saved")
    source = (folder / "saved" / "tokenizer.json").read_text()

    def add(writer: Any) -> None:
        gguf_files.add_bytes(writer, source, "gpt-2")
        writer.add_chat_template(CHATML)

    gguf_files.write_model(model, folder / "model.gguf", add=add)
    return folder


SAID = [{"role": "user", "content": "Where is the cat?"}]


def test_automodel_loads_the_file(folder: Path) -> None:
    expected = "".join(AutoModel.from_pretrained(folder / "saved").chat(SAID, max_tokens=20))
    for lm in (
        AutoModel.from_pretrained(folder / "model.gguf"),
        AutoModel.from_pretrained(folder, gguf_file="model.gguf"),
    ):
        assert "".join(lm.chat(SAID, max_tokens=20)) == expected
    ends = map(lm.tokenizer.token_to_id, ("<|im_end|>", "<|eot_id|>", "<end_of_turn>"))
    assert lm.stop_ids == {2, *ends}  # the file's own, and those that are known by their names
    with pytest.raises(HubError, match=r"pass one of the files: .*model\.gguf"):
        AutoModel.from_pretrained(folder)
    with pytest.raises(HubError, match=r"file not found: .*none\.gguf"):
        AutoModel.from_pretrained(folder, gguf_file="none.gguf")


def test_commands_accept_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    nameless = tmp_path / "nameless"
    shutil.copyfile(folder / "model.gguf", nameless)
    converted = tmp_path / "converted"  # with the file's tokenizer and chat template
    assert main(["convert", str(folder / "model.gguf"), str(converted)]) == 0
    printed = []
    for model in (folder / "saved", folder / "model.gguf", nameless, converted):
        options = ["--model", str(model), "--temperature", "0"]
        assert main(["generate", *options, "once upon", "--steps", "20"]) == 0
        monkeypatch.setattr("sys.stdin", io.StringIO("Where is the cat?\n"))
        assert main(["chat", *options, "--max-tokens", "10"]) == 0
        printed.append(capsys.readouterr().out)
    assert len(set(printed)) == 1
