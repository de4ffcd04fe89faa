"""Files that are written: links, devices, pipes, long names, permissions, full disks, and what cannot be renamed."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support import kills
from support.full_disk import ERROR, a_full_disk

import tallow as tl
from tallow import keras
from tallow.audio import write_wav
from tallow.io import atomic
from tallow.io.atomic import atomic_write
from tallow.keras.callbacks import BackupAndRestore, Callback, ModelCheckpoint
from tallow.keras.utils import save_img
from tallow.models.decoders.llama_formats import save_hugging_face
from tallow.training.plot import plot_losses

pytestmark = pytest.mark.native  # about POSIX's file systems

VALUES = {"x": tl.arange(1000)}
EXTENSIONS = (".safetensors", ".pt", ".npz", ".npy", ".gguf")


def save(path: Path) -> None:
    tl.save(VALUES["x"].float() if path.suffix == ".npy" else {"x": VALUES["x"].float()}, path)


def check(source: Path | bytes) -> None:
    loaded = tl.load(source)
    values = loaded if isinstance(loaded, tl.Tensor) else loaded["x"]
    np.testing.assert_array_equal(values.numpy(), np.arange(1000))


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_pipe_gets_the_file(extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"pipe{extension}"
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    save(path)
    reader.join(60)
    check(read[0])
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_device_stays_one(extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"null{extension}"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # as /dev/null; a fault must not replace that itself
        path.open("rb").close()
    except PermissionError as error:
        pytest.skip(f"devices cannot be made here: {error}")
    save(path)
    assert stat.S_ISCHR(path.stat().st_mode)
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_stays_and_its_file_is_replaced(is_dangling: bool, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link, path = tmp_path / "link.pt", tmp_path / "folder" / "file"
    if not is_dangling:
        path.write_bytes(b"old")
    link.symlink_to("folder/file")
    save(link)
    assert link.readlink() == Path("folder/file")
    check(path)
    assert [*path.parent.iterdir()] == [path]


@pytest.mark.parametrize("name", ["n" * 245, "n" * 252, "é" * 126])
def test_long_names(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.pt"
    save(path)
    save(path)
    check(path)


@pytest.mark.parametrize("code", [errno.EBUSY, errno.EXDEV, errno.EPERM])
def test_a_file_that_cannot_be_renamed_over(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that is mounted into a container. The old content, which is longer, is gone."""
    path = tmp_path / "file.pt"
    path.write_bytes(b"old" * 100_000)
    inode = path.stat().st_ino

    def refused(source: str, target: str) -> None:
        raise OSError(code, os.strerror(code), source, None, target)

    monkeypatch.setattr(os, "replace", refused)
    save(path)
    assert path.stat().st_ino == inode
    check(path)
    assert [*tmp_path.iterdir()] == [path]
    with pytest.raises(OSError, match=f"'{tmp_path}/new.pt'$"):
        save(tmp_path / "new.pt")


def test_a_file_in_a_folder_that_may_not_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, create = tmp_path / "folder" / "file.pt", atomic._create
    path.parent.mkdir()
    path.write_bytes(b"old")

    def refused(name: str, mode: int) -> tuple[int, str]:
        if os.path.dirname(name) == str(path.parent):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), name)
        return create(name, mode)

    monkeypatch.setattr(atomic, "_create", refused)
    save(path)
    check(path)
    with pytest.raises(OSError, match=r"Read-only file system: '.*/folder/new\.pt'$"):
        save(path.with_name("new.pt"))


def test_the_umask_is_neither_set_nor_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To set it changes the permissions of the files that other threads make at that moment."""
    former = os.umask(0o027)
    try:
        monkeypatch.delattr(os, "umask")
        save(tmp_path / "file.pt")
    finally:
        monkeypatch.undo()
        os.umask(former)
    assert stat.S_IMODE((tmp_path / "file.pt").stat().st_mode) == 0o640


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    """No other user may read the new content of a private file while it is written."""
    path = tmp_path / "file.pt"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with atomic_write(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    path.chmod(0o664)
    save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o664


def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "file.pt"
    path.write_bytes(b"old")
    try:
        os.chown(path, 1234, 1235)
    except PermissionError:
        pytest.skip("only root may give files away")
    save(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_the_error_of_a_full_disk_names_the_file(extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"file{extension}"
    with a_full_disk(1000), pytest.raises(OSError, match=f"{ERROR}: '{path}'$"):
        save(path)
    assert not [*tmp_path.iterdir()]


WRITERS: dict[str, Callable[[Path], Any]] = {
    "plot.png": lambda path: plot_losses(SimpleNamespace(history=[(i, i) for i in range(9)], curve=[]), ["x"], path),  # type: ignore[arg-type]
    "picture.png": lambda path: save_img(path, NOISE),
    "picture.jpg": lambda path: save_img(path, NOISE),
    "sound.wav": lambda path: write_wav(path, NOISE.ravel(), 16_000),
    "model.keras": lambda path: small_model().save(path),
    "x.weights.h5": lambda path: small_model().save_weights(path),
    "new/folder/{epoch}.keras": lambda path: fit(ModelCheckpoint(path)),
    "new/training.safetensors": lambda path: fit(BackupAndRestore(path.parent)),
    "model/model.safetensors": lambda path: save_hugging_face(kills.llama(1), path.parent),
}
NOISE = np.random.default_rng(0).uniform(0, 255, (64, 64, 3)).astype(np.uint8)


def small_model() -> Any:
    tl.manual_seed(0)
    return keras.Sequential([keras.layers.Dense(100, input_shape=(100,))])


def fit(callback: Callback) -> None:
    model = small_model()
    model.compile(loss="mse")
    model.fit(np.ones((2, 100), np.float32), np.ones((2, 100), np.float32), verbose=0, callbacks=[callback])


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_files_and_folders_as_they_were(name: str, tmp_path: Path) -> None:
    """No part of a file, no empty folder, and the old file."""
    path = tmp_path / name
    with a_full_disk(1000), pytest.raises(OSError, match=ERROR) as caught:
        WRITERS[name](path)
    assert str(caught.value.filename).startswith(str(path.parent if "model.s" in name else path).partition("{")[0])
    assert not [*tmp_path.iterdir()]
    if path.parent == tmp_path:
        path.write_bytes(b"old")
        with a_full_disk(1000), pytest.raises(OSError, match=ERROR):
            WRITERS[name](path)
        assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {name: b"old"}
        WRITERS[name](path)
        assert path.stat().st_size > 1000
