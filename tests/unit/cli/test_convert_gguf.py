"""`tallow convert` to a GGUF file that cannot be written, or that is read at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.full_disk import ERROR, a_full_disk

from tallow.cli import main
from tallow.io.gguf import GGUF
from tallow.models.built_in import stories
from tallow.models.gguf.export import save_gguf

LIMIT = 100_000  # bytes; less than the story model in any type takes


def convert(*arguments: object) -> int:
    return main(["convert", *map(str, arguments)])


@pytest.mark.parametrize("old", [None, b"precious"])
def test_a_full_disk(old: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No part of a file is left, and an old file stays."""
    path = tmp_path / "x.gguf"
    if old is not None:
        path.write_bytes(old)
    with a_full_disk(LIMIT):
        assert convert(stories.FOLDER, path, "--quant", "q4_0", "--force") == 2
    assert f"{path}: {ERROR}" in capsys.readouterr().err
    assert [each.read_bytes() for each in tmp_path.iterdir()] == ([] if old is None else [old])
    assert convert(stories.FOLDER, path, "--quant", "q4_0", "--force") == 0
    assert path.stat().st_size > LIMIT


def test_a_folder_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert convert(stories.FOLDER, tmp_path / "none" / "x.gguf", "--quant", "q4_0") == 2
    err = capsys.readouterr().err
    assert f"{tmp_path / 'none' / 'x.gguf'}" in err
    assert "No such file" in err
    assert not [*tmp_path.iterdir()]


def test_a_file_in_place_of_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.gguf").mkdir()
    assert convert(stories.FOLDER, tmp_path / "x.gguf", "--quant", "q4_0", "--force") == 2
    assert "Is a directory" in capsys.readouterr().err
    assert not [*(tmp_path / "x.gguf").iterdir()]


def test_a_file_is_converted_in_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tensors are read from the old file while the new one is written."""
    path = tmp_path / "x.gguf"
    model, _ = stories.load()
    save_gguf(model, path, "F32")
    save_gguf(model, tmp_path / "expected.gguf", "Q4_K_M")
    assert convert(path, path, "--quant", "q4_k_m") == 2
    assert "exists" in capsys.readouterr().err
    assert GGUF(path).info("blk.0.ffn_down.weight").type == "F32"
    assert convert(path, path, "--quant", "q4_k_m", "--force") == 0
    found, expected = GGUF(path), GGUF(tmp_path / "expected.gguf")
    assert {name: found.info(name).type for name in found} == {name: expected.info(name).type for name in expected}
    assert all((found.get_blocks(name) == expected.get_blocks(name)).all() for name in found)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["expected.gguf", "x.gguf"]
