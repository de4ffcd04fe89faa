"""Write a folder as a whole: a crash leaves the old version or the new one, or a folder that does not load.

The new folder is written beside the old one, and takes its place in one step (Linux), or in two renames, between which
the old one is named ".NAME.tallow-old": whoever writes next finds it there and puts it back.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import pathlib
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tallow.io.atomic import (
    FORBIDDEN,
    NOT_RENAMED,
    atomic_copy,
    keep_owner_and_mode,
    made_folder,
    naming,
    part_name,
    remove_abandoned,
)
from tallow.io.model_folder import INDEX
from tallow.io.source import Path

# Files without which no reader loads a folder, in the order in which the files of one folder appear: modules.json says
# where the config.json of a sentence encoder lies, and an encoder without modules.json is read with other pooling.
KEYS = ("adapter_config.json", "modules.json", "config.json")
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux


@contextmanager
def atomic_folder(path: Path) -> Iterator[pathlib.Path]:
    """Make a temporary folder beside `path`, which takes its place if the block succeeds and is deleted otherwise.

    Other files in an existing folder stay, except the index of a file that is new: an index takes precedence over it.

    A folder cannot be replaced if it is mounted, is the working directory or contains it, has other folders than the
    new one, or lies in a folder that may not be written to. There, the files without which it does not load (`KEYS`)
    are removed first, the new files are moved into it, and their `KEYS` last.

    Raises:  OSError as `os.mkdir` does, and if `path` is a file
    """
    with _staged(path, _update) as stage:
        yield stage


@contextmanager
def replaced_folder(path: Path, entry: str) -> Iterator[pathlib.Path]:
    """Make a temporary folder beside `path`, which takes its place as in `atomic_folder`; nothing in the old one stays.

    A folder cannot be replaced if it is mounted, is the working directory or contains it, or lies in a folder that may
    not be written to. There, the file `entry`, without which nobody opens the folder, is removed first, and written
    last.

    Raises:  as `atomic_folder`
    """
    with _staged(path, lambda stage, target: _replace(stage, target, entry)) as stage:
        yield stage


@contextmanager
def _staged(path: Path, install: Callable[[pathlib.Path, pathlib.Path], None]) -> Iterator[pathlib.Path]:
    target = pathlib.Path(os.path.realpath(path))
    with naming(path), made_folder(target.parent):
        if target.exists() and not target.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        _recover(target)
        stage = _stage(target)
        try:
            yield stage
            if target.exists():
                install(stage, target)
            else:
                stage.rename(target)
        finally:
            shutil.rmtree(stage, ignore_errors=True)


def aside(folder: pathlib.Path) -> pathlib.Path:
    """Return where a folder lies between the two renames by which another takes its place."""
    return folder.parent / f".{folder.name}.tallow-old"


def _recover(target: pathlib.Path) -> None:
    """Put a folder back that a killed process had renamed; remove it if the new one has taken its place."""
    if target.exists():
        shutil.rmtree(aside(target), ignore_errors=True)
    else:
        with contextlib.suppress(FileNotFoundError):
            aside(target).rename(target)


def _stage(target: pathlib.Path) -> pathlib.Path:
    """Make the temporary folder: beside `target`, or in it where it must be to move files by renames."""
    name = part_name(target.name)
    if not os.path.ismount(target):
        remove_abandoned(os.fspath(target.parent))
        try:
            return _made(target.with_name(name))
        except OSError as error:
            if error.errno not in FORBIDDEN or not target.is_dir():
                raise
    remove_abandoned(os.fspath(target))
    return _made(target / name)


def _made(folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir()
    return folder


def _update(stage: pathlib.Path, target: pathlib.Path) -> None:
    if not (_is_replaceable(stage, target) and _link_others(target, stage) and _swap(stage, target)):
        _move_into(stage, target)


def _replace(stage: pathlib.Path, target: pathlib.Path, entry: str) -> None:
    if _is_replaceable(stage, target) and _swap(stage, target):
        return
    (target / entry).unlink(missing_ok=True)
    _remove_others(stage, target)
    for name in sorted(_files(stage), key=pathlib.Path(entry).__eq__):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        _move(stage / name, target / name)


def _remove_others(folder: pathlib.Path, target: pathlib.Path) -> None:
    """Remove what lies in `target`, except the files that `folder` has too, and `folder` itself."""
    for path in sorted(target.rglob("*"), reverse=True):  # what lies in a folder comes before it
        if path.is_relative_to(folder):
            continue
        replacement = folder / path.relative_to(target)
        if path.is_symlink() or not path.is_dir():
            if replacement.is_dir() or not replacement.exists():
                path.unlink()
        elif not replacement.is_dir() and not folder.is_relative_to(path):
            path.rmdir()


def _files(folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the names of all files, relative to the folder."""
    return [each.relative_to(folder) for each in folder.rglob("*") if not each.is_dir()]


def _is_replaceable(stage: pathlib.Path, target: pathlib.Path) -> bool:
    try:
        working = pathlib.Path.cwd()
    except FileNotFoundError:  # it was removed
        return False
    return stage.parent == target.parent and not working.is_relative_to(target)


def _link_others(source: pathlib.Path, folder: pathlib.Path) -> bool:
    """Link the files of `source` that `folder` lacks into it.

    Returns:  False if one of them is a folder, lies on another file system or may not be linked
    """
    try:
        for other in _others(source, folder):
            if other.is_dir() and not other.is_symlink():
                return False
            os.link(other, folder / other.relative_to(source), follow_symlinks=False)
    except (OSError, NotImplementedError, AttributeError):  # Emscripten has no os.link
        return False
    return True


def _others(source: pathlib.Path, folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield what lies in `source` and stays there, beside the files of `folder`."""
    for own in (source, *(source / each.relative_to(folder) for each in folder.rglob("*") if each.is_dir())):
        for path in own.iterdir() if own.is_dir() else ():
            replacement = folder / path.relative_to(source)
            if not os.path.lexists(replacement) and not _is_replaced_index(replacement):
                yield path


def _is_replaced_index(path: pathlib.Path) -> bool:
    """Return whether a path names the index of shards, next to the one file that holds their tensors now."""
    return path.name.endswith(INDEX) and path.with_name(path.name.removesuffix(INDEX)).exists()


def _swap(new: pathlib.Path, old: pathlib.Path) -> bool:
    """Let two folders trade places.  Returns: whether they did"""
    try:
        keep_owner_and_mode(new, old.stat())
        if not _exchange(new, old):
            old.rename(aside(old))
            try:
                new.rename(old)
            except OSError:
                aside(old).rename(old)
                return False
            aside(old).rename(new)
    except OSError:
        return False
    return True


def _exchange(first: pathlib.Path, second: pathlib.Path) -> bool:
    """Exchange two folders in one step.  Returns: False where the system or the file system cannot"""
    if sys.platform != "linux":
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    paths = os.fsencode(first), os.fsencode(second)
    return rename is not None and rename(AT_FDCWD, paths[0], AT_FDCWD, paths[1], RENAME_EXCHANGE) == 0


def _move_into(stage: pathlib.Path, target: pathlib.Path) -> None:
    """Move the files of `stage` into `target`, so that no reader loads it before the last one is there."""
    files = sorted(_files(stage), key=_place)
    for name in reversed(files):
        if name.name in KEYS:
            (target / name).unlink(missing_ok=True)
    for name in files:
        destination = target / name
        destination.parent.mkdir(parents=True, exist_ok=True)
        _move(stage / name, destination)
        destination.with_name(name.name + INDEX).unlink(missing_ok=True)


def _place(name: pathlib.Path) -> tuple[int, ...]:
    """Return a file's place in the order of writing: `KEYS` come last, and those of inner folders before the others."""
    return (1, -len(name.parts), KEYS.index(name.name)) if name.name in KEYS else (0,)


def _move(file: pathlib.Path, destination: pathlib.Path) -> None:
    """Rename a file, or copy it to another file system or over a file that cannot be replaced."""
    try:
        os.replace(file, destination)
    except OSError as error:
        if error.errno not in NOT_RENAMED:
            raise
        atomic_copy(file, destination)
