"""Models that `tallow demo --model-dir` lists: story models with a tokenizer, and no file outside the folder."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tallow import cli
from tallow.io.llama2c import ROTARY_TABLES, Header, save
from tallow.models.built_in import stories
from tallow.site.offers import offers_of
from tallow.text.llama2c import Llama2cTokenizer

pytestmark = pytest.mark.native

TOKENIZER = stories.FOLDER / "tokenizer.bin"


def write_model(path: Path, vocab_size: int) -> Path:
    header = Header(8, 12, 1, 2, 2, vocab_size, 6, shared_classifier=True, version=0)
    shapes = {name: shape for name, shape in header.shapes().items() if name not in ROTARY_TABLES}
    save(header, {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}, path)
    return path


def write_encoder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in ("tokenizer.json", "model.safetensors"):
        (folder / name).touch()
    (folder / "config.json").write_text(json.dumps({"architectures": ["BertModel"]}))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One model with a tokenizer, one without, an encoder, and files that are neither."""
    folder = tmp_path / "models"
    write_encoder(folder / "encoder")
    write_model(folder / "a model.bin", Llama2cTokenizer.load(TOKENIZER).vocab_size)
    write_model(folder / "alone.bin", 7)
    shutil.copyfile(TOKENIZER, folder / "t.bin")
    (folder / "notes.bin").write_text("mine")
    (folder / "folder.bin").mkdir()
    return folder


def test_offers_list_models_with_a_tokenizer_and_only_their_files(folder: Path) -> None:
    offers = offers_of(folder)
    encoder = {"encoder/config.json", "encoder/tokenizer.json", "encoder/model.safetensors"}
    assert [offer["name"] for offer in (*offers.models, *offers.encoders)] == ["a model", "encoder"]
    assert set(offers.files) == {"a model.bin", "t.bin"} | encoder
    assert offers.models[0]["model"].startswith("models/a%20model.bin?v=")
    assert offers.outside == []


def test_address_changes_with_the_file(folder: Path) -> None:
    before = offers_of(folder).models[0]
    os.utime(folder / "t.bin", (1, 1))
    after = offers_of(folder).models[0]
    assert (before["model"], before["tokenizer"]) != (after["model"], after["tokenizer"])
    assert before["model"] == after["model"]


def test_links_out_of_the_folder_are_skipped_and_reported(folder: Path, tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.bin", Llama2cTokenizer.load(TOKENIZER).vocab_size)
    (folder / "link.bin").symlink_to(model)
    (folder / "passwd.bin").symlink_to("/etc/passwd")
    (folder / "linked").symlink_to(write_encoder(tmp_path / "elsewhere"))
    mixed = write_encoder(folder / "mixed")
    (mixed / "model.safetensors").unlink()
    (mixed / "model.safetensors").symlink_to(model)
    (folder / "nowhere.bin").symlink_to(folder / "gone")
    offers = offers_of(folder)
    assert offers.outside == ["link.bin", "passwd.bin", "linked", "mixed"]
    assert all(path.is_relative_to(folder) for path in offers.files.values())


def test_links_in_the_folder_are_followed(folder: Path, tmp_path: Path) -> None:
    """Links as in the Hub's cache; the folder itself may be a link too."""
    (folder / "blobs").mkdir()
    (folder / "a model.bin").rename(folder / "blobs" / "a1")
    (folder / "a model.bin").symlink_to("blobs/a1")
    (tmp_path / "also").symlink_to(folder)
    offers = offers_of(tmp_path / "also")
    assert [offer["name"] for offer in offers.models] == ["a model"]
    assert offers.files["a model.bin"] == (folder / "blobs" / "a1").resolve()


def test_named_pipes_are_not_read(folder: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(folder / "pipe.bin")
    assert [offer["name"] for offer in offers_of(folder).models] == ["a model"]


def test_names_that_are_not_utf8_are_offered(folder: Path) -> None:
    name = os.fsdecode(b"\xff.bin")
    try:
        (folder / "a model.bin").rename(folder / name)
    except OSError:
        pytest.skip("this file system has names of text alone")
    assert offers_of(folder).models[0]["model"].startswith("models/%FF.bin?v=")


@pytest.mark.parametrize("host", ["a..b", "192.0.2.1"])
def test_demo_refuses_an_address_of_another_machine(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "--port=0", "--pyodide=cdn", f"--host={host}"]) == 2
    captured = capsys.readouterr()
    assert f"--host {host!r} is not an address of this computer" in captured.err
    assert captured.out == ""
