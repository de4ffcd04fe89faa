"""Folders of models are replaced as a whole: what a killed or failed writer leaves, and which other files stay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support import kills

from tallow.errors import HubError
from tallow.hub import local_folder
from tallow.io import whole_folder
from tallow.io.atomic import ABANDONED_S
from tallow.io.whole_folder import aside, atomic_folder
from tallow.models import AutoModel
from tallow.models.decoders.llama_formats import save_hugging_face

# Each writer where folders can be exchanged, and two of them in each other way: 248 kills.
KILLED = [(writer, "exchange") for writer in kills.WRITERS]
KILLED += [("convert, parts", "two renames"), ("convert, parts", "in place"), ("save_pretrained", "in place")]


def can_exchange(folder: Path) -> bool:
    for name in "ab":
        (folder / name).mkdir()
    return whole_folder._exchange(folder / "a", folder / "b")


@pytest.mark.native
@pytest.mark.parametrize(("writer", "way"), KILLED)
def test_a_writer_killed_at_any_change(writer: str, way: str, tmp_path: Path) -> None:
    """The folder is the old one or the new one, or its reader says what is missing. The next write mends it."""
    if way == "exchange" and not can_exchange(tmp_path):  # as on macOS
        way = "two renames"
    command = [sys.executable, kills.__file__, writer, way, str(tmp_path)]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    results = json.loads(process.stdout)
    assert len(results) >= 20
    found = [each for each, *_ in results]
    assert {"old", "new"} <= {*found}
    others = {each.partition("\n")[0] for each in found} - {"old", "new"}
    folder = tmp_path / "folder"
    name = "adapter_config.json" if writer == "save_pretrained" else "config.json"
    assert (
        others
        == {
            "exchange": set(),
            "two renames": {f"HubError: {folder} is missing: a process was killed while it replaced the folder"},
            "in place": {f"CheckpointError: {folder / name} does not exist"},
        }[way]
    )
    assert all(has_note for each, has_note, *_ in results if not each.startswith("HubError"))
    assert all((after, kept) == ("new", True) for *_, after, kept in results)


def write(folder: Path, text: str, *names: str) -> None:
    """Replace a folder by one with some files of the same text."""
    with atomic_folder(folder) as stage:
        for name in names:
            (stage / name).parent.mkdir(exist_ok=True)
            (stage / name).write_text(text)


def texts(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def as_mounted(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == folder)


def as_working_directory(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.chdir(folder)


def without_a_working_directory(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def fail() -> Path:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "cwd", fail)


def with_a_folder(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "own").mkdir()


@pytest.mark.parametrize(
    "prepare", [None, as_mounted, as_working_directory, without_a_working_directory, with_a_folder]
)
def test_other_files_stay(
    prepare: Callable[[pytest.MonkeyPatch, Path], None] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in folders that cannot be replaced, which keep their inode."""
    folder = tmp_path / "folder"
    old = ("config.json", "model.safetensors", "README.md", "1_Pooling/config.json", "1_Pooling/notes.txt")
    write(folder, "old", *old)
    if prepare is not None:
        prepare(monkeypatch, folder)
    inode = folder.stat().st_ino
    new = ("config.json", "model.safetensors", "1_Pooling/config.json", "2_Dense/config.json")
    write(folder, "new", *new)
    assert texts(folder) == dict.fromkeys(old, "old") | dict.fromkeys(new, "new")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]
    if prepare is not None:
        assert folder.stat().st_ino == inode


def test_other_files_stay_where_nothing_can_be_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Emscripten."""
    monkeypatch.delattr(os, "link", raising=False)
    write(tmp_path / "folder", "old", "config.json", "README.md")
    write(tmp_path / "folder", "new", "config.json")
    assert texts(tmp_path) == {"folder/config.json": "new", "folder/README.md": "old"}


def test_the_index_of_a_file_that_is_new_does_not_stay(tmp_path: Path) -> None:
    """It would take precedence over the new weights."""
    folder = tmp_path / "folder"
    for is_mounted in (False, True):
        write(folder, "old", "model.safetensors.index.json", "model-00001-of-00001.safetensors", "a.index.json")
        with pytest.MonkeyPatch.context() as patch:
            if is_mounted:
                as_mounted(patch, folder)
            save_hugging_face(kills.llama(1), folder)
        assert AutoModel.from_pretrained(folder).config.rope_theta == 100
        assert (folder / "a.index.json").exists()


@pytest.mark.parametrize("prepare", [None, as_mounted, as_working_directory, without_a_working_directory])
def test_nothing_stays_of_a_folder_that_is_replaced(
    prepare: Callable[[pytest.MonkeyPatch, Path], None] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    kills.replace(folder, "old")
    (folder / "a" / "link").symlink_to(tmp_path)
    if prepare is not None:
        prepare(monkeypatch, folder)
    inode = folder.stat().st_ino
    kills.replace(folder, "new")
    assert texts(folder) == dict.fromkeys(kills.SITES["new"], "new")
    assert {each.name for each in folder.iterdir()} == {"index.html", "site.json", "a", "b", "c", "d"}
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]
    assert (folder.stat().st_ino == inode) is (prepare is not None)


@pytest.mark.native
@pytest.mark.parametrize("way", kills.WAYS)
def test_a_replacement_killed_at_any_change(way: str, tmp_path: Path) -> None:
    """A folder that is neither the old nor the new one has no entry, and the next replacement mends it."""
    if way == "exchange" and not can_exchange(tmp_path):
        way = "two renames"
    command = [sys.executable, kills.__file__, kills.REPLACEMENT, way, str(tmp_path)]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    assert len(found) > 10
    assert {*found} == {"exchange": {"old", "new"}}.get(way, {"old", "new", "no entry"})


def test_a_failed_writer_leaves_the_old_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    write(folder, "old", "config.json")
    with pytest.raises(TypeError), atomic_folder(folder) as stage:
        (stage / "config.json").write_text(b"new")  # type: ignore[arg-type]
    assert texts(tmp_path) == {"folder/config.json": "old"}


def test_a_failed_writer_leaves_no_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stop"), atomic_folder(tmp_path / "a" / "b" / "folder"):
        raise ValueError("stop")
    assert not [*tmp_path.iterdir()]


def test_a_link_to_a_folder_stays(tmp_path: Path) -> None:
    write(tmp_path / "folder", "old", "config.json")
    (tmp_path / "link").symlink_to("folder")
    write(tmp_path / "link", "new", "config.json")
    assert (tmp_path / "link").is_symlink()
    assert texts(tmp_path / "folder") == {"config.json": "new"}


@pytest.mark.native
def test_permissions_of_a_folder_stay(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    write(folder, "old", "config.json")
    (tmp_path / "plain").mkdir()
    assert folder.stat().st_mode == (tmp_path / "plain").stat().st_mode
    folder.chmod(0o2750)
    mode = folder.stat().st_mode
    write(folder, "new", "config.json")
    assert folder.stat().st_mode == mode


def test_a_folder_in_the_way_of_a_killed_writer(tmp_path: Path) -> None:
    """Between two renames there is no folder: its reader tells where it is, and the next writer puts it back first."""
    folder = tmp_path / "folder"
    write(folder, "old", "config.json", "README.md")
    folder.rename(aside(folder))
    with pytest.raises(HubError, match=f"mv {aside(folder)} {folder}"):
        local_folder(folder)
    write(folder, "new", "config.json")
    assert texts(tmp_path) == {"folder/config.json": "new", "folder/README.md": "old"}


def test_what_killed_writers_left_is_removed_when_it_is_a_day_old(tmp_path: Path) -> None:
    """Files and folders with names of this package alone."""
    part = ".folder.0123456789abcdef.tallow-part"
    (tmp_path / part).mkdir()
    (tmp_path / part / "model.safetensors").write_text("part")
    kept = [".folder.0123456789abcde.tallow-part", ".folder.0123456789abcdef.part", "0123456789abcdef.tallow-part"]
    for name in (*kept, ".recent.0123456789abcdef.tallow-part"):
        (tmp_path / name).write_text("x")
    old = time.time() - 2 * ABANDONED_S
    for path in (tmp_path / part / "model.safetensors", tmp_path / part, *(tmp_path / name for name in kept)):
        os.utime(path, (old, old))
    write(tmp_path / "folder", "new", "config.json")
    assert {each.name for each in tmp_path.iterdir()} == {*kept, ".recent.0123456789abcdef.tallow-part", "folder"}


@pytest.mark.native
def test_a_folder_beside_which_nothing_may_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    write(folder, "old", "config.json", "README.md")
    make = whole_folder._made

    def refused(path: Path) -> Path:
        if path.parent == tmp_path:
            raise PermissionError(13, "Permission denied", str(path))
        return make(path)

    monkeypatch.setattr(whole_folder, "_made", refused)
    write(folder, "new", "config.json")
    assert texts(tmp_path) == {"folder/config.json": "new", "folder/README.md": "old"}
    with pytest.raises(PermissionError, match=r"'.*/other'$"):
        write(tmp_path / "other", "new", "config.json")
