#!/usr/bin/env python3
"""Find the programs that tests need and pip does not install, and list the missing ones.

    python scripts/prerequisites.py [PYTEST ARGUMENTS]

prints the names of missing programs that the chosen tests need; `scripts/test` installs them. A test names its needs as
fixtures: `PRESENT` has the name of each such fixture. If nothing is missing, or all tests are chosen, no test is
collected.
"""

from __future__ import annotations

import contextlib
import ctypes.util
import io
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator

import fetch_axe
import fetch_markdown
import fetch_pyodide
import fetch_tokenizers
import pytest

BROWSERS = ("chromium", "google-chrome-stable", "google-chrome", "chromium-browser")
MAC_BROWSERS = ("Google Chrome", "Chromium")
NODE_MAJOR = 20  # required by Pyodide


def chromium() -> str | None:
    """Return the path of a browser that tests can drive: Chromium or Google Chrome."""
    return next((path for path in _browsers() if _version(path)), None)


def node() -> str | None:
    """Return the path of a Node that is new enough for Pyodide."""
    path = shutil.which("node")
    version = _version(path).strip().removeprefix("v") if path else ""
    return path if version and int(version.partition(".")[0]) >= NODE_MAJOR else None


def _browsers() -> Iterator[str]:
    yield from filter(None, map(shutil.which, BROWSERS))
    yield from (f"/Applications/{name}.app/Contents/MacOS/{name}" for name in MAC_BROWSERS)


def _version(program: str) -> str:
    """Return the output of `program --version`; empty if it fails, as Ubuntu's chromium-browser without its snap."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


PRESENT: dict[str, Callable[[], object]] = {
    "driver": lambda: _version("playwright"),
    "chromium": chromium,
    "espeak": lambda: ctypes.util.find_library("espeak-ng"),
    "node": node,
    "pyodide_dir": lambda: fetch_pyodide.place().is_dir(),
    "tokenizers_dir": lambda: fetch_tokenizers.place().is_dir(),
    "markdown_dir": lambda: fetch_markdown.place().is_dir(),
    "axe_dir": lambda: fetch_axe.place().is_dir(),
}


class _Fixtures:
    """A pytest plugin that collects the fixtures of the chosen tests, including fixtures of fixtures."""

    names: Collection[str] = ()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.names = {name for item in session.items for name in getattr(item, "fixturenames", ())}


def missing(arguments: list[str]) -> list[str]:
    """Return the names from `PRESENT` that are missing and that the tests chosen by `arguments` need."""
    absent = [name for name, find in PRESENT.items() if not find()]
    if not absent or not arguments:
        return absent  # all tests need them all
    fixtures = _Fixtures()
    with contextlib.redirect_stdout(io.StringIO()):  # the test run reports wrong arguments itself
        pytest.main(["--collect-only", "-q", *arguments], plugins=[fixtures])
    return [name for name in absent if name in fixtures.names]


if __name__ == "__main__":
    print(*missing(sys.argv[1:]), sep="\n")
