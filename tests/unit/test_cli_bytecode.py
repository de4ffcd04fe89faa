"""The archives of pages with their bytecode: made here by the Python that runs, as Pyodide makes it for itself."""

from __future__ import annotations

import importlib
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tallow.cli import bytecode
from tallow.cli.bytecode_writer import compile_archive

pytestmark = pytest.mark.native
FILES = {"deep/__init__.py": "", "deep/answer.py": "def answer():\n    return 1 / 0\n", "deep/data.txt": "text"}
TAG = sys.implementation.cache_tag


def archive_of(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def contents(archive: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def traceback_of(path: Path) -> str:
    """What Python writes when the answer fails, imported from `path`."""
    code = "import deep.answer; deep.answer.answer()"
    environment = os.environ | {"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment).stderr


def test_files_that_are_installed_stay_beside_their_bytecode() -> None:
    found = contents(compile_archive(archive_of(FILES), "/site"))
    assert {name: found[name].decode() for name in FILES} == FILES
    assert found.keys() - FILES == {f"deep/__pycache__/{name}.{TAG}.pyc" for name in ("__init__", "answer")}


def test_an_archive_that_is_read_has_bytecode_alone() -> None:
    found = contents(compile_archive(archive_of(FILES), "/lib/python.zip"))
    assert set(found) == {"deep/__init__.pyc", "deep/answer.pyc", "deep/data.txt"}


def test_header_is_that_of_an_unchecked_hash() -> None:
    """PEP 552: the magic number, then flags, of which bit 0 says "by hash" and bit 1 "look at the source"."""
    found = contents(compile_archive(archive_of(FILES), "/lib/python.zip"))["deep/answer.pyc"]
    assert found[:4] == importlib.util.MAGIC_NUMBER
    assert struct.unpack_from("<I", found, 4) == (0b01,)


def test_bytecode_is_what_runs_and_names_its_place(tmp_path: Path) -> None:
    archive = tmp_path / "python.zip"
    archive.write_bytes(compile_archive(archive_of(FILES), str(archive)))
    assert f'"{archive}/deep/answer.py", line 2, in answer' in traceback_of(archive)
    with zipfile.ZipFile(io.BytesIO(compile_archive(archive_of(FILES), str(tmp_path / "site")))) as opened:
        opened.extractall(tmp_path / "site")
    (tmp_path / "site/deep/answer.py").write_text("answer = print  # nobody looks here\n")
    assert f'"{tmp_path}/site/deep/answer.py", line 2, in answer' in traceback_of(tmp_path / "site")


def test_same_archive_same_bytes() -> None:
    source = archive_of(FILES)
    assert compile_archive(source, "/site") == compile_archive(source, "/site")


@pytest.fixture
def pyodide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What stands for a copy of Pyodide, and a cache of the test's own."""
    monkeypatch.setenv("TALLOW_CACHE", str(tmp_path / "cache"))
    (tmp_path / "pyodide").mkdir()
    (tmp_path / "pyodide/package.json").write_text(json.dumps({"version": "314.0.3"}))
    return tmp_path / "pyodide"


def test_archive_stays_as_it_is_without_node(pyodide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "archive.zip"
    archive.write_bytes(archive_of(FILES))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not bytecode.add_bytecode(archive, "/site", pyodide)
    node = tmp_path / "node"  # one that is too old ends with an error
    node.write_text("#!/bin/sh\nexit 1\n")
    node.chmod(0o755)
    assert not bytecode.add_bytecode(archive, "/site", pyodide)
    assert archive.read_bytes() == archive_of(FILES)
    assert not list((tmp_path / "cache/bytecode").iterdir())


def test_bytecode_is_made_once_and_forgotten_when_it_is_old(
    pyodide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = tmp_path / "node"  # its fourth argument is the folder of the archives
    node.write_text('#!/bin/sh\ncp "$4/source.zip" "$4/target.zip"\n/bin/echo called >> "$0.log"\n')
    node.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    archive = tmp_path / "archive.zip"
    for text in ("a = 1", "a = 1", "a = 2"):
        archive.write_bytes(archive_of({"a.py": text}))
        assert bytecode.add_bytecode(archive, "/site", pyodide)
    assert Path(f"{node}.log").read_text() == "called\n" * 2
    kept = sorted((tmp_path / "cache/bytecode").iterdir())
    assert len(kept) == 2
    os.utime(kept[0], (0, 0))
    archive.write_bytes(archive_of({"a.py": "a = 3"}))
    assert bytecode.add_bytecode(archive, "/site", pyodide)
    left = set((tmp_path / "cache/bytecode").iterdir())
    assert len(left) == 2
    assert kept[0] not in left
