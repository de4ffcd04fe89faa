"""Damaged folders and texts that do not fit: the error names the cause, from Python and in a terminal."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support.chats import CHATML, save_tokenizer

from tallow.cli import main
from tallow.errors import TallowError
from tallow.models import AutoModel

transformers = pytest.importorskip("transformers")

INDEX = "model.safetensors.index.json"
PAGE = b"<!doctype html><html><title>429 Too Many Requests</title></html>" + b" " * 400
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 100000\n"
CONTEXT = 64


@pytest.fixture(scope="module")
def saved_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random Llama in several shards, with a tokenizer, as transformers saves it."""
    folder = tmp_path_factory.mktemp("whole")
    save_tokenizer(folder, CHATML, 300)
    torch.manual_seed(0)
    sizes = {"vocab_size": 300, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    config = transformers.LlamaConfig(**sizes, num_attention_heads=4, max_position_embeddings=CONTEXT)
    transformers.LlamaForCausalLM(config).save_pretrained(folder, max_shard_size="60KB")
    assert len(shards(folder)) > 1
    return folder


@pytest.fixture
def folder(saved_model: Path, tmp_path: Path) -> Path:
    """A copy of the folder, to be damaged."""
    return Path(shutil.copytree(saved_model, tmp_path / "model"))


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("model-*.safetensors"))


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def rename_shard(folder: Path, name: str) -> None:
    weight_map = json.loads((folder / INDEX).read_text())["weight_map"]
    first = next(iter(weight_map))
    edit(folder / INDEX, weight_map=weight_map | {first: name})


def only(folder: Path, name: str, content: bytes) -> None:
    """Make these the only weights of the folder."""
    for path in (*shards(folder), folder / INDEX):
        path.unlink()
    (folder / name).write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def step_outside(folder: Path) -> None:
    shutil.copyfile(shards(folder)[0], folder.parent / "outside.safetensors")
    rename_shard(folder, "../outside.safetensors")


FOLDERS: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "config of another size": (
        lambda folder: edit(folder / "config.json", vocab_size=301),
        ("wrong shape", "model.embed_tokens.weight: file (300, 32), model (301, 32)"),
    ),
    "config of more layers": (
        lambda folder: edit(folder / "config.json", num_hidden_layers=3),
        ("missing", "model.layers.2.mlp.up_proj.weight"),
    ),
    "unknown architecture": (
        lambda folder: edit(folder / "config.json", architectures=["RwkvForCausalLM"], model_type="rwkv"),
        ("config.json: tallow does not support RwkvForCausalLM",),
    ),
    "setting that is not computed": (
        lambda folder: edit(folder / "config.json", hidden_act="prelu"),
        ("config.json", "activation 'prelu'"),
    ),
    "truncated shard": (lambda folder: truncate(shards(folder)[1]), ("model-00002-of", "truncated")),
    "shard that is missing": (lambda folder: shards(folder)[1].unlink(), ("model-00002-of", "is missing")),
    "index of a missing file": (
        lambda folder: rename_shard(folder, "other.safetensors"),
        (INDEX, "'other.safetensors' is missing"),
    ),
    "index of a file outside": (step_outside, (INDEX, "'../outside.safetensors', which is not a file name")),
    "index that is none": (lambda folder: (folder / INDEX).write_bytes(PAGE), (INDEX, "is not a JSON object")),
    "page as safetensors": (
        lambda folder: only(folder, "model.safetensors", PAGE),
        ("model.safetensors is a web page", "download it again"),
    ),
    "page as pytorch_model.bin": (
        lambda folder: only(folder, "pytorch_model.bin", PAGE),
        ("pytorch_model.bin is a web page", "download it again"),
    ),
    "pointer as safetensors": (
        lambda folder: only(folder, "model.safetensors", POINTER),
        ("model.safetensors is a Git LFS pointer", "git lfs pull"),
    ),
    "no weights": (
        lambda folder: [path.unlink() for path in (*shards(folder), folder / INDEX)],
        ("has neither model.safetensors nor pytorch_model.bin",),
    ),
    "page as config": (
        lambda folder: (folder / "config.json").write_bytes(PAGE),
        ("config.json is not a JSON object",),
    ),
    "no config": (lambda folder: (folder / "config.json").unlink(), ("config.json does not exist",)),
    "broken tokenizer": (
        lambda folder: (folder / "tokenizer.json").write_text('{"model": {"type": "BPE"'),
        ("tokenizer.json is not a tokenizer.json",),
    ),
    "page as tokenizer": (lambda folder: (folder / "tokenizer.json").write_bytes(PAGE), ("tokenizer.json is not",)),
    "bytes as tokenizer": (
        lambda folder: (folder / "tokenizer.json").write_bytes(b"\xff\xfe"),
        ("tokenizer.json is not UTF-8",),
    ),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), ("has no tokenizer.json",)),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_folder(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage, messages = FOLDERS[case]
    damage(folder)
    with pytest.raises(TallowError) as caught:
        list(AutoModel.from_pretrained(folder).generate_text("the cat", max_tokens=2))
    assert all(words in str(caught.value) for words in messages), caught.value
    assert_refused(capsys, ["generate", "--model", str(folder), "the cat"], *messages)


TEXTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "lone surrogate": ("the cat \ud800 sat", ("the text has a lone surrogate at 8: '\\ud800'",)),
    "undecodable byte": ("the cat \udcff sat", ("the text has a lone surrogate at 8: '\\udcff'",)),
    "beyond the context": ("cat " * (CONTEXT + 1), ("tokens, the model's context holds 64; shorten the prompt",)),
    "a word of 1 MB": ("x" * 1_000_000, ("the prompt takes 1000000 tokens, the model's context holds 64",)),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text(case: str, saved_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, messages = TEXTS[case]
    with pytest.raises(TallowError) as caught:
        list(AutoModel.from_pretrained(saved_model).generate_text(text))
    assert all(words in str(caught.value).replace("\n  hint: ", "; ") for words in messages), caught.value
    assert_refused(capsys, ["generate", "--model", str(saved_model), text], *messages)


def assert_refused(capsys: pytest.CaptureFixture[str], command: list[str], *messages: str) -> None:
    """Check for exit status 2 and one line of error, besides the list of mismatches."""
    assert main(command) == 2
    out, err = capsys.readouterr()
    assert out == ""
    first, *rest = [line for line in err.splitlines() if not line.startswith("loaded ")]
    assert first.startswith("tallow generate: error: ")
    assert all(words in err for words in messages), err
    assert not rest or "does not fit" in first or "does not support" in first, err
