"""Magics of IPython in the console and the notebook: understood, or refused with what to write instead."""

from __future__ import annotations

import importlib.util
import io
import re
from contextlib import redirect_stdout
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Browser
from support import paths
from tests.browser.consoles import Console


@pytest.fixture(scope="module")
def magics() -> ModuleType:
    """The module of the page, which needs no browser."""
    spec = importlib.util.spec_from_file_location("magics", paths.ROOT / "wasm_examples/console/magics.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(magics: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs a cell and returns its variables, what it printed, and its translation."""
    import sys

    monkeypatch.setitem(sys.modules, "magics", magics)

    def run(source: str) -> tuple[dict[str, Any], str, Any]:
        cell, variables = magics.translated(source), dict[str, Any]()
        with redirect_stdout(io.StringIO()) as printed:
            exec(cell.source, variables)
        assert cell.source.count("\n") == source.count("\n") or source.startswith("%%timeit")
        return variables, printed.getvalue(), cell

    return run


def test_magics_without_effect_are_noted_and_the_rest_runs(run: Any) -> None:
    variables, _, cell = run(
        "%matplotlib inline\n%load_ext autoreload\n!pip install timm einops\nx = 1\nif x:\n    %pip install a"
    )
    assert variables["x"] == 1
    assert cell.installs == ["timm einops", "a"]
    assert [note.split()[0] for note in cell.notes] == ["%matplotlib", "%load_ext"]


def test_time_keeps_the_value_and_the_variables(run: Any) -> None:
    variables, printed, _ = run("for i in range(2):\n    %time y = i + 1")
    assert variables["y"] == 2
    assert len(re.findall(r"Wall time: [\d.e-]+ (?:ns|µs|ms|s)\n", printed)) == 2
    assert run("value = [\n'''\n%time x\n''']\n")[0]["value"] == ["\n%time x\n"]  # a line of a string stays
    assert run("%%time\nx = 3")[2].is_timed
    assert run("\n\n%%time\nx = 3")[2].is_timed
    assert "3\n" in run("%time print('%s' % 3)  # a comment (")[1]


def test_timeit_runs_as_often_as_asked(run: Any) -> None:
    for source in ("%timeit -n 3 -r 2 calls.append(1)", "%%timeit -n 3 -r 2\ncalls.append(1)"):
        import __main__

        __main__.calls = calls = []  # type: ignore[attr-defined]
        printed = run(source)[1]
        assert len(calls) == 6
        assert "per loop (mean ± std. dev. of 2 runs, 3 loops each)" in printed
        del __main__.calls  # type: ignore[attr-defined]


def test_a_question_mark_shows_documentation_and_source(run: Any) -> None:
    assert "Return the number of items" in run("len?")[1]
    assert "def fullmatch" in run("import re\nre.fullmatch??")[1]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1\n!ls", ["!ls does not work in a tab", "os.listdir()"]),
        ("files = !ls", ["!ls", "os.listdir()"]),
        ("!make", ["!make", "no shell"]),
        ("%%bash\nls", ["%%bash", "Python"]),
        ("%cd data", ["%cd", "os.chdir"]),
        ("%pip list", ["%pip", "only pip install"]),
        ("# timed\n%%time\nx = 1", ["%%time", "first line"]),
        ("x = %time 3", ["%time", "%time x = f()"]),
        ("%nothing", ["%nothing", "write it in Python"]),
        ("%timeit -q 1", ["-q", "-n LOOPS"]),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(magics: ModuleType, source: str, words: list[str]) -> None:
    with pytest.raises(SyntaxError) as caught:
        magics.translated(source)
    assert all(word in str(caught.value) for word in words)
    assert caught.value.lineno == len(re.split(r"\n[!%]", source))


def test_other_errors_stay(magics: ModuleType) -> None:
    for source in ("x = = 1", "5 %time", "x = 1 if", "\0"):
        assert magics.translated(source).source == source


def test_in_the_console(browser: Browser, revisited_site: str) -> None:
    context = browser.new_context()
    console = Console(context.new_page()).open(revisited_site)
    assert "%matplotlib has no effect here" in console.run("%matplotlib inline\n1")
    assert re.search(r"Wall time: .*4", console.run("%time 2 + 2"), re.DOTALL)
    assert re.search(r"7.*Wall time", console.run("%%time\nprint(7)\n"), re.DOTALL)
    assert "per loop" in console.run("%timeit -n 2 -r 2 tl.ones(3)")
    refused = console.run("!ls")
    assert "SyntaxError: !ls does not work in a tab: use os.listdir()" in refused
    assert "magics.py" not in refused
    context.close()
