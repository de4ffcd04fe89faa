"""The documentation builds, and its reference names what users look for."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from support.places import ROOT

SCRIPT = ROOT / "scripts" / "build_docs.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_docs", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("tallow", ["randn", "softmax", "manual_seed", "op"]),
        ("tallow.Tensor", ["backward", "reshape", "grad"]),
        ("tallow.nn", ["Linear", "Transformer", "VarBuilder", "linear"]),
        ("tallow.keras.layers", ["Dense", "Conv2D"]),
        ("tallow.models", ["AutoModel", "SentenceEncoder"]),
    ],
)
def test_reference_has_a_heading_for_every_name(script: ModuleType, module: str, names: list[str]) -> None:
    page = script.reference(module)
    for name in names:
        assert f"\n## {name}\n" in page


def test_signatures_are_shown_as_written(script: ModuleType) -> None:
    page = script.reference("tallow.nn")
    assert "Linear(in_features: int, out_features: int, bias: bool = True" in page
    assert "'int'" not in page


def test_docstrings_keep_their_layout(script: ModuleType) -> None:
    def example() -> None:
        """First.

        More words.

        Args:
            x: a number

        Shapes:  (N,)
        """

    assert script.described(example) == (
        "First.\n\nMore words.\n\n```text\nArgs:\n    x: a number\n\nShapes:  (N,)\n```"
    )


def test_the_site_builds(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    out = tmp_path / "site"
    done = subprocess.run([sys.executable, SCRIPT, out], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "RobertaEmbeddings" in (out / "porting" / "index.html").read_text(encoding="utf-8")
    assert (out / "api" / "tallow.nn" / "index.html").exists()
