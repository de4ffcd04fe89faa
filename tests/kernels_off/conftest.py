"""Starts the suite without kernels as soon as the tests are collected: it runs beside those that come before it."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest
from support import subsuite
from support.places import ROOT

STARTED: list[subsuite.Running] = []
FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def pytest_collection_finish(session: pytest.Session) -> None:
    chosen = any(item.path.parent == Path(__file__).parent for item in session.items)
    if chosen and not session.config.option.collectonly:
        FOLDERS.append(tempfile.TemporaryDirectory())
        junit = Path(FOLDERS[0].name, "junit.xml")
        command = [sys.executable, "-m", "pytest", "tests/unit", "-q", "-p", "no:cacheprovider", f"--junitxml={junit}"]
        env = os.environ | {"TALLOW_KERNELS": "off", "OMP_NUM_THREADS": "1"}
        STARTED.append(subsuite.Running(command, junit, env=env, cwd=ROOT))


@pytest.fixture
def without_kernels() -> subsuite.Running:
    """The unit tests in a process where kernels are off."""
    return STARTED[0]


def pytest_sessionfinish() -> None:
    for running in STARTED:
        running.stop()
    for folder in FOLDERS:
        folder.cleanup()
