"""The unit tests pass unchanged inside Pyodide, on the wheel that a browser installs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import places, subsuite

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def pytest_wheels() -> list[Path]:
    """pytest, hypothesis and what they need as pure wheels, downloaded once and kept in the cache."""
    requirements = HERE / "requirements.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    folder = places.cache_dir() / f"pyodide-test-wheels-{digest}"
    if not folder.is_dir():
        partial = folder.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        options = ["--no-deps", "--only-binary=:all:", "--python-version=3.14", "--platform=any", "--abi=none"]
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", *options, "-r", requirements, "-d", partial], check=True
        )
        partial.replace(folder)
    return sorted(folder.glob("*.whl"))


class InPyodide:
    """Runs the unit tests, or some of them, on the wheel inside Pyodide."""

    def __init__(self, pyodide: Path, wheels: list[Path], folder: Path) -> None:
        self.pyodide, self.wheels, self.folder = pyodide, wheels, folder
        node = shutil.which("node")
        assert node, "node is not on PATH; scripts/test installs it"
        self.node = node

    def __call__(self, *tests: str, flags: tuple[str, ...] = ()) -> subsuite.Outcome:
        data = places.data_dir()
        config = {
            "pyodide": str(self.pyodide),
            "wheels": [str(wheel) for wheel in self.wheels],
            "mounts": {"/checkout/tests": str(places.ROOT / "tests"), "/report": str(self.folder)}
            | ({"/data": str(data)} if data.is_dir() else {}),
            "files": {"/checkout/pyproject.toml": (places.ROOT / "pyproject.toml").read_text()},
            "env": {"TALLOW_TEST_DATA": "/data"},
            "cwd": "/checkout",
            "args": [*tests, "-v", "-p", "no:cacheprovider", "--junitxml=/report/junit.xml"],
        }
        config_file = self.folder / "config.json"
        config_file.write_text(json.dumps(config))
        return subsuite.run(
            [self.node, *flags, str(HERE / "run_pytest.mjs"), str(config_file)],
            self.folder / "junit.xml",
            env=os.environ,
            cwd=self.folder,
            timeout_s=1200,
        )


@pytest.fixture
def in_pyodide(pyodide_dir: Path, pure_wheel: Path, pytest_wheels: list[Path], tmp_path: Path) -> InPyodide:
    return InPyodide(pyodide_dir, [*pytest_wheels, pure_wheel], tmp_path)


def test_unit_suite_in_pyodide(in_pyodide: InPyodide, record_subsuite: Callable[[str, subsuite.Outcome], None]) -> None:
    outcome = in_pyodide("tests/unit")
    record_subsuite("in Pyodide", outcome)
    if outcome.failures:
        pytest.fail(f"{outcome}\n\n{subsuite.describe_failures(outcome)}", pytrace=False)


def test_kernels_with_relaxed_simd(
    in_pyodide: InPyodide, record_subsuite: Callable[[str, subsuite.Outcome], None]
) -> None:
    """The library that browsers take. Node 20 knows its instructions only when told to; newer ones always do."""
    flag = "--experimental-wasm-relaxed-simd"
    known = subprocess.run([in_pyodide.node, "--v8-options"], capture_output=True, text=True, check=True).stdout
    names = ("agree", "attention", "build", "compiled", "convolution", "decode_block", "pooling", "recurrent")
    tests = [f"tests/unit/test_kernels_{name}.py" for name in names]
    outcome = in_pyodide(*tests, flags=(flag,) if flag in known else ())
    record_subsuite("of the kernels with relaxed SIMD", outcome)
    if outcome.failures:
        pytest.fail(f"{outcome}\n\n{subsuite.describe_failures(outcome)}", pytrace=False)
