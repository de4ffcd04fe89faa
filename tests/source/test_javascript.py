"""The pages' JavaScript is typed by its JSDoc comments, and TypeScript finds nothing to say."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from support.places import ROOT, cache_dir

TYPESCRIPT = "5.9.3"


@pytest.fixture(scope="session")
def tsc() -> Path:
    """The compiler, installed once and kept in the cache."""
    folder = cache_dir() / f"typescript-{TYPESCRIPT}"
    compiler = folder / "node_modules" / "typescript" / "bin" / "tsc"
    if not compiler.exists():
        npm = shutil.which("npm")
        assert npm, "npm is not on PATH; scripts/test installs it"
        folder.mkdir(parents=True, exist_ok=True)
        quiet = ["--silent", "--no-audit", "--no-fund"]
        subprocess.run([npm, "install", *quiet, "--prefix", folder, f"typescript@{TYPESCRIPT}"], check=True)
    return compiler


def test_types_fit(tsc: Path, pyodide_dir: Path, tmp_path: Path) -> None:
    node = shutil.which("node")
    assert node, "node is not on PATH; scripts/test installs it"
    project = {
        "extends": str(ROOT / "web" / "tsconfig.json"),
        # Pyodide's own declarations want Node's and Emscripten's beside them, hence skipLibCheck.
        "compilerOptions": {"skipLibCheck": True, "paths": {"pyodide": [str(pyodide_dir / "pyodide.d.ts")]}},
        "include": [str(ROOT / "web" / "**" / "*.js"), str(ROOT / "wasm_examples" / "**" / "*.js")],
    }
    config = tmp_path / "tsconfig.json"
    config.write_text(json.dumps(project))
    done = subprocess.run([node, tsc, "--project", config], capture_output=True, text=True)
    if done.returncode:
        pytest.fail(done.stdout + done.stderr, pytrace=False)
