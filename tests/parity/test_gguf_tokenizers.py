"""Tokenizers out of GGUF files: the ids of the `tokenizer.json` they were made of, or of transformers' conversion."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
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
    """A GGUF file without tensors; `entries` are named as the writer's methods that add them."""
    writer = gguf.GGUFWriter(path, architecture)
    add(writer)
    for name, value in entries.items():
        getattr(writer, f"add_{name}")(value)
    gguf_files.finish(writer)
    return path


def qwen2() -> str:
    """What transformers makes of Qwen2's vocabulary and merges, which NFC goes before."""
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
    for word, _ in words:  # one that is a token is taken whole, which transformers does not know of
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


def test_pieces_of_llama2c(data_dir: Path, tmp_path: Path) -> None:
    """Another who merges by scores: llama2.c."""
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
    said = [{"role": "user", "content": "hi"}]
    assert ours.render_chat(said).startswith("<|begin|>")
    assert ours.render_chat(said, chat_template="tool_use").startswith("<|im_start|>system")


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({}, "has no tokenizer.ggml.tokens"),
        ({"token_list": ["a"], "tokenizer_model": "t5"}, "of kind 't5'; 'gpt2', 'llama' are read"),
        ({"token_list": ["a"], "tokenizer_model": "gpt2", "tokenizer_pre": "odd"}, "in the manner 'odd'"),
        ({"token_list": ["a"], "tokenizer_model": "gpt2"}, "has no tokenizer.ggml.merges"),
        ({"token_list": ["a"], "tokenizer_model": "llama"}, "has no tokenizer.ggml.scores"),
        ({"token_list": ["a"], "tokenizer_model": "llama", "token_scores": [0.0, 1.0]}, "for each token"),
        ({"token_list": ["a"], "tokenizer_model": "gpt2", "token_merges": ["x y"]}, "is not a tokenizer.json"),
    ],
)
def test_what_is_no_tokenizer(entries: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(TokenizerError) as caught:
        Tokenizer.from_gguf(file_of(tmp_path / "x.gguf", lambda writer: None, **entries))
    assert says in str(caught.value)


# ------------------------------------------------------------------------------------------------ models in one file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random Llama as transformers saves it, and as the file model.gguf beside."""
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


def test_automodel_takes_the_file(folder: Path) -> None:
    expected = "".join(AutoModel.from_pretrained(folder / "saved").chat(SAID, max_tokens=20))
    for lm in (
        AutoModel.from_pretrained(folder / "model.gguf"),
        AutoModel.from_pretrained(folder, gguf_file="model.gguf"),
    ):
        assert "".join(lm.chat(SAID, max_tokens=20)) == expected
    ends = map(lm.tokenizer.token_to_id, ("<|im_end|>", "<|eot_id|>", "<end_of_turn>"))
    assert lm.stop_ids == {2, *ends}  # the file's own, and those that are known by their names
    with pytest.raises(HubError, match=r"name one of the files: .*model\.gguf"):
        AutoModel.from_pretrained(folder)
    with pytest.raises(HubError, match=r"there is no file .*none\.gguf"):
        AutoModel.from_pretrained(folder, gguf_file="none.gguf")


def test_commands_take_the_file(
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
