"""A pipe, a device, a socket or a folder in the place of a file is refused: a reader would wait for it for ever."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import kills

import tallow as tl
from tallow.audio import Sound, write_wav
from tallow.cli import main
from tallow.data import CSVDataset, NPZDataset
from tallow.data.cifar import unpack
from tallow.data.download import fetch
from tallow.data.idx import read_idx
from tallow.data.stories import read_stories
from tallow.errors import SpecialFileError, TallowError
from tallow.io import contents, gguf
from tallow.io.images import read_image
from tallow.keras.models import load_model
from tallow.keras.utils import load_img
from tallow.models import AutoModel
from tallow.models.decoders.llama_formats import save_hugging_face
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.models.generation_config import GenerationConfig
from tallow.peft import PeftModel
from tallow.site.browser_wheel import pack_wheel
from tallow.site.build import build_site
from tallow.text import Tokenizer
from tallow.text.llama2c import Llama2cTokenizer
from tallow.training.texts import documents

pytestmark = pytest.mark.native
DEADLINE_S = 120  # for what takes milliseconds


@pytest.fixture(autouse=True)
def _deadline() -> Iterator[None]:
    """Fail where a reader waits."""

    def fail(*_: Any) -> None:
        raise AssertionError("the reader waits")

    former = signal.signal(signal.SIGALRM, fail)
    signal.alarm(DEADLINE_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, former)


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)  # the path of a socket has at most 107 letters
        listener.bind(path.name)


# /dev/zero is a device, too, but reading it would take the memory of the machine if this test failed.
SPECIAL: dict[str, Callable[[Path], None]] = {
    "a named pipe": os.mkfifo,
    "a character device": lambda path: path.symlink_to("/dev/null"),
    "a socket": bind,
}


def language_model(folder: Path) -> None:
    kills.language_model(1, folder)
    (folder / "generation_config.json").write_text("{}")


def shards(folder: Path) -> None:
    save_hugging_face(kills.llama(1), folder)
    whole = folder / "model.safetensors"
    tensors = tl.load(whole)
    whole.rename(folder / "model-00001-of-00001.safetensors")
    index = {"weight_map": dict.fromkeys(tensors, "model-00001-of-00001.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def pytorch_model(folder: Path) -> None:
    save_hugging_face(kills.llama(1), folder)
    tl.save(tl.load(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def with_tokenizer(folder: Path) -> None:
    AutoModel.from_pretrained(folder)
    GenerationConfig.from_folder(folder)
    Tokenizer.from_pretrained(folder)


def adapted(folder: Path) -> None:
    PeftModel.from_pretrained(kills.llama(1), folder).load_adapter(folder / "other", "other")


FOLDERS: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any]]] = {
    "language model": (language_model, with_tokenizer),
    "shards": (shards, AutoModel.from_pretrained),
    "PyTorch's file": (pytorch_model, AutoModel.from_pretrained),
    "tallow inspect": (shards, lambda folder: contents.contents(folder)),
    "sentence encoder": (partial(kills.sentence_encoder, 1), SentenceEncoder.from_pretrained),
    "adapters": (lambda folder: kills.adapter(1).save_pretrained(folder), adapted),
}


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("name", FOLDERS)
def test_each_file_of_a_folder(name: str, kind: str, tmp_path: Path) -> None:
    make, load = FOLDERS[name]
    folder = tmp_path / "folder"
    make(folder)
    load(folder)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) >= 2
    for path in files:
        kept = path.rename(tmp_path / "kept")
        SPECIAL[kind](path)
        with pytest.raises(SpecialFileError, match=f"{path.name} is {kind}, not a regular file"):
            load(folder)
        path.unlink()
        path.mkdir()
        with pytest.raises(OSError, match=f"Is a directory: '{path}'"):
            load(folder)
        path.rmdir()
        kept.rename(path)
    load(folder)


FILES: dict[str, Callable[[Path], Any]] = {
    "x.pt": tl.load,
    "x.bin": lambda path: tl.load(path, mmap=False),
    "x.gguf": gguf.is_gguf,
    "x.png": read_image,
    "x.jpg": load_img,
    "x.csv": CSVDataset,
    "x.npz": NPZDataset,
    "x.txt": lambda path: [*read_stories(path)],
    "text.txt": lambda path: [*documents([path.parent])],
    "x.keras": load_model,
    "tokenizer.bin": Llama2cTokenizer.load,
    "train-images-idx3-ubyte": lambda path: read_idx(str(path), (28, 28)),
    "cifar.tar.gz": lambda path: unpack(str(path), ["data_batch_1"], str(path.parent)),
    "data.gz": lambda path: fetch(["http://127.0.0.1:9/"], str(path), "0" * 32),
    "kernel.cu": lambda path: tl.cuda.compile_kernel(path, "kernel"),
    "tallow-1-py3-none-any.whl": lambda path: pack_wheel(path.parent / "site", path),
    "package.json": lambda path: build_site(path.parent / "site", wheel=None, pyodide=path.parent),
}


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("name", FILES)
def test_a_file(name: str, kind: str, tmp_path: Path) -> None:
    SPECIAL[kind](tmp_path / name)
    with pytest.raises(TallowError, match=f"{name} is {kind}, not a regular file"):
        FILES[name](tmp_path / name)


@pytest.mark.parametrize("kind", SPECIAL)
def test_convert_copies_regular_files_alone(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_hugging_face(kills.llama(1), tmp_path / "model")
    SPECIAL[kind](tmp_path / "model" / "vocab.txt")
    assert main(["convert", str(tmp_path / "model"), str(tmp_path / "out")]) == 2
    assert f"vocab.txt is {kind}, not a regular file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_pipes_that_a_user_names(tmp_path: Path) -> None:
    """As `tallow train <(zcat texts.gz)`, or a sound from /dev/stdin."""
    text, sound, pipe = tmp_path / "text.txt", tmp_path / "sound.wav", tmp_path / "pipe"
    text.write_text("a story")
    write_wav(sound, np.zeros(1600, np.float32), 16_000)
    for path, read in ((text, lambda: [*documents([pipe])]), (sound, lambda: Sound(pipe).read())):
        os.mkfifo(pipe)
        content = path.read_bytes()
        writer = threading.Thread(target=pipe.write_bytes, args=(content,))
        writer.start()
        assert len(read()) == (1 if path is text else 1600)
        writer.join(DEADLINE_S)
        pipe.unlink()


@pytest.mark.parametrize("kind", ["a character device", "a socket"])
def test_other_special_files_that_a_user_names(kind: str, tmp_path: Path) -> None:
    SPECIAL[kind](tmp_path / "x")
    for read in (lambda path: Sound(path).read(), lambda path: [*documents([path])]):
        with pytest.raises(SpecialFileError, match=f"x is {kind}, not a regular file or a pipe"):
            read(tmp_path / "x")
