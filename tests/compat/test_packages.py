"""Packages written for PyTorch compute the same numbers on tallow, from the same weights.

The cases of packages.py run always, those of the folder `ecosystem` with `--ecosystem`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support.paths import ROOT

sys.path.insert(0, str(ROOT / "tests" / "compat"))
from comparison import CASES, difference
from packages import load_ecosystem

pytestmark = pytest.mark.native
QUICK = list(CASES)
PROGRAM = str(ROOT / "tests" / "compat" / "packages.py")


def compute(packages: Path, to: Path, names: Sequence[str]) -> tuple[Path, Path]:
    """Compute cases with both libraries, each in one process: imports take the longest. Return the folders."""
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    folders = to / "torch", to / "tallow"
    for folder in folders:
        folder.mkdir()
    commands = [[sys.executable, "-W", "ignore", PROGRAM, folder.name, str(folder), *names] for folder in folders]
    for process in [subprocess.Popen(c, env=environment, stdout=subprocess.DEVNULL) for c in commands]:
        process.wait(timeout=240 + 60 * len(names))
    return folders


@pytest.fixture(scope="module")
def quick(packages_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The results of the quick cases."""
    return compute(packages_dir, tmp_path_factory.mktemp("quick"), QUICK)


@pytest.fixture(scope="module")
def others(
    ecosystem_dir: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[Path, Path]:
    """The results of the chosen cases of the folder `ecosystem`."""
    chosen = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    return compute(ecosystem_dir, tmp_path_factory.mktemp("others"), [c for c in CASES if c in chosen - {*QUICK}])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "name" in metafunc.fixturenames:
        if metafunc.config.getoption("--ecosystem"):
            load_ecosystem()
        metafunc.parametrize("name", list(CASES))


def test_the_numbers_are_pytorchs(name: str, request: pytest.FixtureRequest) -> None:
    folders = request.getfixturevalue("quick" if name in QUICK else "others")
    assert difference(*folders, name) is None


def test_a_difference_of_one_element_is_found(tmp_path: Path) -> None:
    for name, value in (("torch", 1.0), ("tallow", 1.001)):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "case.npz", np.array([2.0, 2.0]), np.array([value, 0.1]))
    assert difference(tmp_path / "torch", tmp_path / "torch", "case") is None
    assert "array 1 differs by 0.001" in str(difference(tmp_path / "torch", tmp_path / "tallow", "case"))
    assert difference(tmp_path / "torch", tmp_path / "tallow", "other") == "the process ended"
    np.savez(tmp_path / "torch" / "nan.npz", np.array([np.nan]))
    assert "not finite" in str(difference(tmp_path / "torch", tmp_path / "torch", "nan"))
