"""Archives of pages with bytecode, compiled here by the running Python as Pyodide compiles them for itself."""

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

from tallow.site import bytecode
from tallow.site.bytecode_writer import compile_archive

pytestmark = pytest.mark.native
FILES = {"deep/__init__.py": "", "deep/answer.py": "def answer():\n    return 1 / 0\n", "deep/data.txt": "text"}
TAG = sys.implementation.cache_tag


@pytest.fixture(autouse=True)
def no_pycache_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for bytecode beside the sources, as Pyodide does, wherever this run keeps its own."""
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)


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
    """Return the traceback that Python prints if the answer fails, for a module imported from `path`."""
    code = "import deep.answer; deep.answer.answer()"
    environment = os.environ | {"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment).stderr


def test_installed_files_keep_source_and_bytecode() -> None:
    files = contents(compile_archive(archive_of(FILES), "/site"))
    assert {name: files[name].decode() for name in FILES} == FILES
    assert files.keys() - FILES == {f"deep/__pycache__/{name}.{TAG}.pyc" for name in ("__init__", "answer")}


def test_archives_read_in_place_have_only_bytecode() -> None:
    files = contents(compile_archive(archive_of(FILES), "/lib/python.zip"))
    assert set(files) == {"deep/__init__.pyc", "deep/answer.pyc", "deep/data.txt"}


def test_header_is_that_of_an_unchecked_hash() -> None:
    """PEP 552: the magic number, then flags: bit 0 means "hash-based", bit 1 "check the source"."""
    files = contents(compile_archive(archive_of(FILES), "/lib/python.zip"))["deep/answer.pyc"]
    assert files[:4] == importlib.util.MAGIC_NUMBER
    assert struct.unpack_from("<I", files, 4) == (0b01,)


def test_bytecode_runs_and_names_its_source_file(tmp_path: Path) -> None:
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
    """Return a stub of a Pyodide copy; the cache is the test's own."""
    monkeypatch.setenv("TALLOW_CACHE", str(tmp_path / "cache"))
    (tmp_path / "pyodide").mkdir()
    (tmp_path / "pyodide/package.json").write_text(json.dumps({"version": "314.0.3"}))
    return tmp_path / "pyodide"


def test_archive_is_unchanged_without_node(pyodide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "archive.zip"
    archive.write_bytes(archive_of(FILES))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not bytecode.add_bytecode(archive, "/site", pyodide)
    node = tmp_path / "node"  # an outdated archive ends with an error
    node.write_text("#!/bin/sh\nexit 1\n")
    node.chmod(0o755)
    assert not bytecode.add_bytecode(archive, "/site", pyodide)
    assert archive.read_bytes() == archive_of(FILES)
    assert not list((tmp_path / "cache/bytecode").iterdir())


def test_bytecode_is_cached_and_replaced_when_outdated(
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
    cached = sorted((tmp_path / "cache/bytecode").iterdir())
    assert len(cached) == 2
    os.utime(cached[0], (0, 0))
    archive.write_bytes(archive_of({"a.py": "a = 3"}))
    assert bytecode.add_bytecode(archive, "/site", pyodide)
    left = set((tmp_path / "cache/bytecode").iterdir())
    assert len(left) == 2
    assert cached[0] not in left
