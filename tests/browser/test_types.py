"""The JavaScript is what its JSDoc types say: TypeScript checks them, and builds nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support import places

TYPESCRIPT = "typescript@7.0.2"


@pytest.fixture(scope="session")
def typescript(node: str) -> Path:
    """TypeScript from npm, downloaded once and kept in the cache."""
    npm = shutil.which("npm")
    if not npm:
        pytest.skip(f"npm is not on PATH, though {node} is there")
    folder = places.cache_dir() / TYPESCRIPT.replace("@", "-")
    compiler = folder / "node_modules" / ".bin" / "tsc"
    if not compiler.exists():
        subprocess.run([npm, "install", "--silent", "--no-save", "--prefix", folder, TYPESCRIPT], check=True)
    return compiler


def test_types(typescript: Path, pyodide_dir: Path, tmp_path: Path) -> None:
    web = places.ROOT / "web"
    config = {
        "extends": str(web / "tsconfig.json"),
        "compilerOptions": {"skipLibCheck": True, "paths": {"pyodide": [str(pyodide_dir / "pyodide.d.ts")]}},
        "include": [str(web / "**/*.js"), str(places.ROOT / "wasm_examples" / "**/*.js")],
    }
    (tmp_path / "tsconfig.json").write_text(json.dumps(config))
    done = subprocess.run([typescript, "-p", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
