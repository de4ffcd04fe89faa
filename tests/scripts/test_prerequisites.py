"""scripts/prerequisites.py requests only what the chosen tests need, and only if it is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import prerequisites
import pytest
from support.paths import ROOT

NEEDS: list[tuple[list[str], set[str]]] = [
    (["tests/unit/ops/test_elementwise.py", "tests/scripts/test_train_spoken.py", "-k", "softmax or numbers"], set()),
    (["tests/scripts/test_spoken_model.py"], {"espeak"}),
    (["tests/browser/test_types.py"], {"node", "pyodide_dir"}),
    (["tests/browser/console/test_page.py"], {"chromium", "driver", "pyodide_dir", "tokenizers_dir", "markdown_dir"}),
    (
        ["tests/browser/test_accessibility.py"],
        {"axe_dir", "chromium", "driver", "pyodide_dir", "tokenizers_dir", "markdown_dir"},
    ),
    (["tests/browser/test_firefox.py"], {"firefox", "pyodide_dir", "tokenizers_dir", "markdown_dir"}),
    (["tests/pyodide/test_unit_in_pyodide.py"], {"node", "pyodide_dir", "tokenizers_dir", "markdown_dir"}),
    (["tests/nowhere"], set()),  # the test run itself reports the error
]
# all in one separate process: pytest does not run inside pytest
ON_A_BARE_MACHINE = """
import json, prerequisites, sys
prerequisites.PRESENT = dict.fromkeys(prerequisites.PRESENT, lambda: None)
print(json.dumps([prerequisites.missing(["-p", "no:cacheprovider", *case]) for case in json.loads(sys.argv[1])]))
"""


def test_missing_is_what_the_chosen_tests_need() -> None:
    cases = json.dumps([arguments for arguments, _ in NEEDS])
    env = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    command = [sys.executable, "-c", ON_A_BARE_MACHINE, cases]
    printed = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout
    assert [set(names) for names in json.loads(printed)] == [names for _, names in NEEDS]


def test_complete_machine_collects_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in prerequisites.PRESENT:
        monkeypatch.setitem(prerequisites.PRESENT, name, lambda: "there")
    monkeypatch.setattr(prerequisites.pytest, "main", None)
    assert prerequisites.missing(["tests"]) == []


def test_all_tests_need_everything_without_a_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in prerequisites.PRESENT:
        monkeypatch.setitem(prerequisites.PRESENT, name, lambda name=name: name != "node")
    monkeypatch.setattr(prerequisites.pytest, "main", None)
    assert prerequisites.missing([]) == ["node"]


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_browser_that_only_asks_for_a_snap_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ubuntu's chromium-browser without its snap, with Google Chrome and without."""
    program(tmp_path, "chromium-browser", "echo requires the chromium snap >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert prerequisites.chromium() is None
    chrome = program(tmp_path, "google-chrome", "echo Google Chrome 156.0")
    assert prerequisites.chromium() == str(chrome)


@pytest.mark.parametrize(("version", "is_usable"), [("v18.19.0", False), ("v20.0.0", True), ("v104.1.0", True)])
def test_node_is_new_enough(version: str, is_usable: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(tmp_path, "node", f"echo {version}")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (prerequisites.node() is not None) == is_usable


BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="no bash")
@pytest.mark.parametrize("tool", ["sha256sum", "shasum"])
def test_digest_with_either_tool(tool: str, tmp_path: Path) -> None:
    """macOS has only shasum."""
    for name in ("cut", tool):
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"no {name} here")
        (tmp_path / name).symlink_to(path)
    code = "set -eu; PATH=$1; . scripts/bootstrap.bash; printf abc | digest"
    process = subprocess.run([str(BASH), "-c", code, "-", tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert process.stdout.strip() == "ba7816bf8f01"  # FIPS 180-2, appendix B.1
