"""The recipe for Pyodide's distribution, read by pyodide-build's loader."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import pythons
from support.paths import ROOT

import tallow
from tallow.site.browser_wheel import top_level_packages

PYODIDE_BUILD = "pyodide-build==0.39.2"
PYTHONS = ("3.13", "3.12")  # which it supports
LOAD = """
import json, sys
from pathlib import Path
import attrs
from pyodide_build.recipe.loader import load_recipes
recipe = load_recipes(Path(sys.argv[1]), ["tallow"])["tallow"]
print(json.dumps(attrs.asdict(recipe), default=str))
"""


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    python = next(filter(None, map(pythons.find, PYTHONS)), None)
    if python is None:
        pytest.skip(f"no Python {PYTHONS[0]} on this machine")
    environment = pythons.environment() | {"PYTHONPATH": str(pythons.packages(python, [PYODIDE_BUILD]))}
    command = [python, "-c", LOAD, ROOT / "recipes"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_recipe_builds_this_checkout(recipe: dict[str, Any]) -> None:
    assert recipe["package"]["version"] == tallow.__version__
    assert Path(recipe["source"]["path"]).resolve() == ROOT
    assert recipe["requirements"]["run"] == ["numpy"]
    assert recipe["test"]["imports"][0] == "tallow"


def test_recipe_lists_the_packages_of_the_wheel(recipe: dict[str, Any], pure_wheel: Path) -> None:
    assert sorted(recipe["package"]["top_level"]) == sorted(top_level_packages(pure_wheel))


def test_script_of_the_recipe_chooses_the_pure_wheel(recipe: dict[str, Any]) -> None:
    script = f"{recipe['build']['script']}\necho $TALLOW_WHEEL"
    environment = {name: value for name, value in os.environ.items() if name != "TALLOW_WHEEL"}
    done = subprocess.run(["bash", "-ec", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "pure\n"
