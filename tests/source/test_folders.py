"""The folders of tests: a run without arguments takes all of them."""

from __future__ import annotations

import tomllib

from support.paths import ROOT


def test_a_run_takes_every_folder() -> None:
    with open(ROOT / "pyproject.toml", "rb") as file:
        listed = tomllib.load(file)["tool"]["pytest"]["ini_options"]["testpaths"]
    there = {path.relative_to(ROOT).parts[1] for path in (ROOT / "tests").rglob("test_*.py")}
    assert {f"tests/{name}" for name in there - {"support"}} == set(listed)
