"""Files that are often saved instead of weights are called by their names."""

from __future__ import annotations

import pytest

from tallow.errors import CheckpointError
from tallow.io.model_folder import check_head, refuse_mistaken


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"%PDF-1.7", "a PDF"),
        (b"\x89PNG\r\n\x1a\n", "a picture"),
        (b"\xff\xd8\xff\xe0", "a picture"),
        (b"<!DOCTYPE html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1", "a Git LFS pointer"),
        (b"GGUF\x03\0\0\0", "a GGUF file"),
    ],
)
@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "config.json"])
def test_a_file_of_another_kind_is_named(name: str, head: bytes, what: str) -> None:
    with pytest.raises(CheckpointError, match=f"{name} is {what}, not ") as caught:
        check_head(name, head, 1000)
    assert caught.value.hint


def test_the_right_files_pass() -> None:
    check_head("model.safetensors", b"\x08\0\0\0\0\0\0\0{}", 10)
    check_head("pytorch_model.bin", b"PK\3\4", 10)
    check_head("config.json", b'{"a": 1}', 10)
    check_head("vocab.txt", b"<unk>", 10)  # a text may begin with anything
    refuse_mistaken("a", b"", "a weights file")
