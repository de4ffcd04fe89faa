"""The copy of Pyodide's main module for sites; tests/browser/test_shared_memory.py opens pages with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.paths import ROOT

from tallow.site.shared_module import write_shared_module

pytestmark = pytest.mark.native
HEADER = bytes.fromhex("0061736d 01000000")
PLAIN = HEADER + bytes.fromhex("05 04 01 01 01 02")  # a memory of 1 to 2 pages
SHARED = HEADER + bytes.fromhex("05 04 01 03 01 02")
REWRITER = ROOT / "web" / "threads" / "memory-type.js"


@pytest.mark.native
@pytest.mark.parametrize(("module", "expected"), [(PLAIN, SHARED), (SHARED, None), (b"no module", None)])
def test_copy_has_a_shared_memory(module: bytes, expected: bytes | None, tmp_path: Path) -> None:
    if not shutil.which("node"):
        pytest.skip("needs Node")
    source, target = tmp_path / "source.wasm", tmp_path / "target.wasm"
    source.write_bytes(module)
    assert write_shared_module(source, target, REWRITER) == (expected is not None)
    assert (target.read_bytes() if target.exists() else None) == expected


def test_without_node_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    source, target = tmp_path / "source.wasm", tmp_path / "target.wasm"
    source.write_bytes(PLAIN)
    assert not write_shared_module(source, target, REWRITER)
    assert not target.exists()
