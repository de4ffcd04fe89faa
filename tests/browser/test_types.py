"""TypeScript checks the JSDoc types of the JavaScript sources; nothing is compiled."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support import paths

TYPESCRIPT = "typescript@7.0.2"


@pytest.fixture(scope="session")
def typescript(node: str) -> Path:
    """Return TypeScript from npm, downloaded to the cache on first use."""
    npm = shutil.which("npm")
    if not npm:
        pytest.skip(f"npm is not on PATH, though {node} is there")
    folder = paths.cache_dir() / TYPESCRIPT.replace("@", "-")
    compiler = folder / "node_modules" / ".bin" / "tsc"
    if not compiler.exists():
        subprocess.run([npm, "install", "--silent", "--no-save", "--prefix", folder, TYPESCRIPT], check=True)
    return compiler


def test_types(typescript: Path, pyodide_dir: Path, tmp_path: Path) -> None:
    web = paths.ROOT / "web"
    config = {
        "extends": str(web / "tsconfig.json"),
        "compilerOptions": {"skipLibCheck": True, "paths": {"pyodide": [str(pyodide_dir / "pyodide.d.ts")]}},
        "include": [str(paths.ROOT / folder / "**/*.js") for folder in ("web", "wasm_examples", "docs/theme")],
    }
    (tmp_path / "tsconfig.json").write_text(json.dumps(config))
    process = subprocess.run([typescript, "-p", tmp_path], capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
