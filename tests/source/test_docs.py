"""The documentation builds, and its reference has the names that users look up."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import reference_pages
from support import builds
from support.links import dead_links
from support.paths import ROOT

from tallow.cli.parser import COMMANDS, parser_of

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
    assert "Linear(\n    in_features: int,\n    out_features: int,\n    bias: bool = True,\n" in page
    assert "'int'" not in page


def test_long_signatures_have_a_line_for_each_parameter() -> None:
    long = (
        "(a: dict[str, tuple[int, int]] = {}, *, " + ", ".join(f"option_{i}: int = {i}" for i in range(9)) + ") -> Any"
    )
    shown = reference_pages.wrapped("f", long)
    lines = shown.splitlines()
    assert lines[:3] == ["f(", "    a: dict[str, tuple[int, int]] = {},", "    *,"]
    assert lines[-1] == ") -> Any"
    assert ast.parse(f"def {shown}: ...")
    assert reference_pages.wrapped("f", "(a: int) -> None") == "f(a: int) -> None"


def test_the_page_of_commands_has_every_command_with_every_option() -> None:
    page = reference_pages.commands()
    parser = parser_of(COMMANDS)
    (choices,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for name, command in choices.choices.items():
        section = page.partition(f"\n## tallow {name}\n")[2].partition("\n## ")[0]
        rows = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
        shown = {word for row in rows for word in re.findall(r"(?<![\w-])--?[\w-]+", row)}
        assert shown == set(command._option_string_actions) - {"-h", "--help"}


def test_docstrings_keep_their_layout(script: ModuleType) -> None:
    def example() -> None:
        """First.

        More words.

        Args:
            x: a number

        Shapes:  (*N,)
                 and more

            x = 1
        """

    assert script.described(example) == (
        "First.\n\nMore words.\n\n**Args**\n\n- `x`: a number\n\n**Shapes:** (\\*N,) and more\n\n"
        "```text\n    x = 1\n```"
    )


ALL = re.compile(r"^__all__", re.MULTILINE)
# modules whose names users reach under another path
INTERNAL = {
    *("tallow.compat.attention", "tallow.compat.types"),  # torch.nn.attention, torch.types
    *("tallow.cuda.graphs", "tallow.cuda.kernels", "tallow.cuda.streams"),  # tallow.cuda
    "tallow.ops.table",  # tallow
    *("tallow.compat.settings", "tallow.compat.typed_tensors"),  # tallow
    *("tallow.keras.datasets", "tallow.keras.preprocessing", "tallow.utils"),  # modules, each with a page of its own
    "tallow.io.gguf",
}


def test_reference_has_a_page_for_every_public_module(script: ModuleType, docs_site: Path) -> None:
    folder = ROOT / "package"
    files = [path for path in folder.rglob("*.py") if ALL.search(path.read_text(encoding="utf-8"))]
    parts = [path.relative_to(folder).with_suffix("").parts for path in files]
    public = {".".join(part for part in names if part != "__init__") for names in parts}
    listed = [name for menu in script.MENUS.values() for name in menu]
    assert len(listed) == len(set(listed))
    others = ("tallow.compat.torch", "tallow.compat.packages.")  # described by PyTorch, and by those packages
    public = {name for name in public if not name.startswith(others)}
    assert {name for name in public if "._" not in name} - set(listed) == INTERNAL
    pages = {name: (docs_site / "api" / name / "index.html").read_text(encoding="utf-8") for name in listed}
    empty = [name for name, page in pages.items() if "<h2 id=" not in page]
    assert empty == ["tallow.backends"]  # switches, which are objects


def test_menu_has_every_guide(script: ModuleType) -> None:
    listed = [source for _, _, source in script.GUIDES]
    assert len(listed) == len(set(listed))
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")} <= set(listed)


@pytest.mark.parametrize("site", ["", "../"])
def test_only_a_site_has_run_buttons(script: ModuleType, site: str, tmp_path: Path) -> None:
    """On a page alone, without the reference."""
    docs, theme = tmp_path / "docs", shutil.copytree(ROOT / "docs" / "theme", tmp_path / "theme")
    docs.mkdir()
    (docs / "index.md").write_text("# A page\n", encoding="utf-8")
    settings = script.settings(docs, theme, tmp_path / "out", site) | {"nav": [{"A page": "index.md"}]}
    (tmp_path / "mkdocs.yml").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", tmp_path / "mkdocs.yml"]
    subprocess.run(command, check=True)
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert ("run.js" in page) == ("Demos" in page) == bool(site)
    assert "script-src 'self'" in page


def test_the_site_has_guides_and_a_reference(docs_site: Path) -> None:
    assert "RobertaEmbeddings" in (docs_site / "docs" / "porting" / "index.html").read_text(encoding="utf-8")
    assert (docs_site / "api" / "tallow.nn" / "index.html").exists()


def test_the_site_has_no_dead_links(docs_site: Path, tmp_path: Path) -> None:
    builds.linked_copy(docs_site, tmp_path / "docs")
    (tmp_path / "index.html").touch()  # of the site around it
    assert dead_links(tmp_path) == []


def test_dead_links_are_detected(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    alive = (
        '<a href="#x" id="x"><a href="?q#x"><a href="a/#y"><a href="/a/"><img src="a/b.svg"><a href="https://x.org">'
    )
    (tmp_path / "index.html").write_text(alive)
    (tmp_path / "a" / "index.html").write_text('<a name="y"></a><a href="../">')
    (tmp_path / "a" / "b.svg").touch()
    assert dead_links(tmp_path) == []
    for link in ("#nowhere", "a/#x", "b/", "../", "a/c.svg", "javascript:x"):
        (tmp_path / "index.html").write_text(f'<a href="{link}">')
        assert dead_links(tmp_path) == [f"index.html -> {link}"]
