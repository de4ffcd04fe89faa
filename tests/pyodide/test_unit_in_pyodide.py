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


def test_unit_suite_in_pyodide(
    pyodide_dir: Path,
    pure_wheel: Path,
    pytest_wheels: list[Path],
    tmp_path: Path,
    record_subsuite: Callable[[str, subsuite.Outcome], None],
) -> None:
    node = shutil.which("node")
    assert node, "node is not on PATH; scripts/test installs it"
    data = places.data_dir()
    config = {
        "pyodide": str(pyodide_dir),
        "wheels": [str(wheel) for wheel in [*pytest_wheels, pure_wheel]],
        "mounts": {"/checkout/tests": str(places.ROOT / "tests"), "/report": str(tmp_path)}
        | ({"/data": str(data)} if data.is_dir() else {}),
        "files": {"/checkout/pyproject.toml": (places.ROOT / "pyproject.toml").read_text()},
        "env": {"TALLOW_TEST_DATA": "/data"},
        "cwd": "/checkout",
        "args": ["tests/unit", "-v", "-p", "no:cacheprovider", "--junitxml=/report/junit.xml"],
    }
    config_file = tmp_path / "config.json"
    config_file.write_text(json.dumps(config))
    outcome = subsuite.run(
        [node, str(HERE / "run_pytest.mjs"), str(config_file)],
        tmp_path / "junit.xml",
        env=os.environ,
        cwd=tmp_path,
        timeout_s=1200,
    )
    record_subsuite("in Pyodide", outcome)
    if outcome.failures:
        pytest.fail(f"{outcome}\n\n{subsuite.describe_failures(outcome)}", pytrace=False)
