"""web/threads/memory-type.js and web/threads/shared-memory.js, tested in Node without a browser."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest
from support import paths

HERE = Path(__file__).parent


@pytest.fixture
def modules(pyodide_dir: Path, tmp_path: Path) -> list[Path]:
    """Return every WebAssembly module that the pages load."""
    kernels = sorted((paths.ROOT / "package/tallow/kernels/lib").glob("*.wasm"))
    with zipfile.ZipFile(next(pyodide_dir.glob("numpy-*.whl"))) as wheel:
        extensions = [tmp_path / wheel.extract(name, tmp_path) for name in wheel.namelist() if name.endswith(".so")]
    assert len(kernels) == 2
    assert len(extensions) > 10
    return [pyodide_dir / "pyodide.asm.wasm", *kernels, *extensions]


@pytest.mark.parametrize("name", ["memory-type", "shared-memory"])
def test_in_node(name: str, node: str, modules: list[Path]) -> None:
    environment = os.environ | {"TALLOW_WASM_MODULES": json.dumps([str(path) for path in modules])}
    command = [node, "--test", "--test-reporter=tap", str(HERE / "sharing" / f"{name}.test.mjs")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
