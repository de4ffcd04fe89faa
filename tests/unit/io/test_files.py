"""`tl.save` and `tl.load`: the extension selects a file's format when saving, its content when loading."""

from __future__ import annotations

import io
from pathlib import Path
from pickle import PicklingError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallow as tl
from tallow.errors import ArgumentError, ArgumentTypeError, CheckpointError

TENSORS = {"a": tl.tensor([1.0, 2.0]), "b.c": tl.tensor([[3]])}
STARTS = {".safetensors": b"\x78\0\0\0\0\0\0\0{", ".npz": b"PK\x03\x04", ".pt": b"PK\x03\x04", ".pth": b"PK\x03\x04"}


def lists(tensors: dict[str, tl.Tensor]) -> dict[str, Any]:
    return {name: tensor.tolist() for name, tensor in tensors.items()}


@pytest.mark.parametrize("extension", [".safetensors", ".npz", ".pt", ".pth", ".bin", "", ".SafeTensors"])
def test_format_follows_the_extension_and_is_detected(extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"model{extension}"
    tl.save(TENSORS, path)
    start = STARTS.get(extension.lower(), STARTS[".pt"])
    assert path.read_bytes()[2 : len(start)] == start[2:]
    renamed = tmp_path / "renamed"
    path.rename(renamed)
    for source in (renamed, str(renamed), renamed.read_bytes(), io.BytesIO(renamed.read_bytes())):
        loaded = tl.load(source)
        assert lists(loaded) == lists(TENSORS)
        assert [loaded[name].dtype for name in TENSORS] == [tl.float32, tl.int64]
    for options in ({"weights_only": False}, {"mmap": True}, {"mmap": False}, {"map_location": "cpu"}):
        assert lists(tl.load(renamed, **options)) == lists(TENSORS)
    for options in ({"map_location": "meta"}, {"device": "meta"}, {"map_location": {"cpu": "meta", "cuda:0": "meta"}}):
        assert {str(t.device) for t in tl.load(renamed, **options).values()} == {"meta"}


def test_one_array_goes_to_npy(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    tl.save(tl.tensor([1, 2]), path)
    assert np.load(path, allow_pickle=False).tolist() == [1, 2]
    assert tl.load(path).tolist() == [1, 2]
    assert str(tl.load(path, "meta").device) == "meta"


def test_empty_archive_is_an_empty_dict(tmp_path: Path) -> None:
    tl.save({}, tmp_path / "x.npz")
    assert tl.load(tmp_path / "x.npz") == {}


def test_mmap_false_reads_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    tl.save(tl.ones(2), path)
    before = tl.load(path, mmap=False)
    path.write_bytes(bytes(path.stat().st_size))
    assert before.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("x.safetensors", tl.ones(2), ArgumentTypeError, "a .safetensors file stores a dict"),
        ("x.npz", [tl.ones(2)], ArgumentTypeError, "a .npz file stores a dict"),
        ("x.npz", {1: tl.ones(2)}, ArgumentTypeError, "a .npz file stores a dict"),
        ("x.npz", {"../x": tl.ones(2)}, ArgumentError, "cannot name an entry"),
        ("x.npy", {"a": tl.ones(2)}, ArgumentTypeError, "is dict, not a Tensor"),
        ("x.pt", lambda: 0, PicklingError, "lambda"),
    ],
)
def test_unsupported_values_leave_the_old_file(
    name: str, value: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    with pytest.raises(error, match=message):
        tl.save(value, path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("content", [b"", b"<html>", b"\x89HDF\r\n\x1a\n", b"\x80\x02N.", b"\x1f\x8b\x08", bytes(20)])
def test_other_files_are_refused_with_a_list_of_formats(content: bytes) -> None:
    with pytest.raises(CheckpointError, match="in an unknown format") as caught:
        tl.load(content)
    assert "safetensors" in str(caught.value)


def test_arguments_that_contradict_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="pickle_module can be the standard library"):
        tl.load(b"", None, io)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="mean the same"):
        tl.load(b"", "cpu", device="cpu")
    with pytest.raises(ArgumentTypeError, match="path or a bytes-like object"):
        tl.load(3)
    with pytest.raises(FileNotFoundError):
        tl.load(tmp_path / "none")


def test_lazily_imported_names_exist() -> None:
    assert {"load", "save"} <= set(dir(tl))
    assert tl.load is tl.io.load


@given(st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06", b"GGUF", b"\x93NUMPY", b"\x80\x02\x8a\x0a"]), st.binary())
def test_any_bytes_load_or_raise_a_checkpoint_error(start: bytes, rest: bytes) -> None:
    try:
        tl.load(start + rest)
    except CheckpointError:
        return


def test_a_missing_folder_is_named_as_given(tmp_path: Path) -> None:
    path = tmp_path / "none" / "a.npz"
    with pytest.raises(FileNotFoundError) as caught:
        tl.save({"a": tl.ones(2)}, path)
    assert caught.value.filename == str(path)
