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
from collections.abc import Callable, Collection, Iterable

import fetch_npm
import fetch_packages
import fetch_pyodide
import pytest
from scenes import kinds

# Names on the PATH, and places of applications on macOS.
CHROMIUM = ("chromium", "google-chrome-stable", "google-chrome", "chromium-browser")
MAC_CHROMIUM = ("Google Chrome.app/Contents/MacOS/Google Chrome", "Chromium.app/Contents/MacOS/Chromium")
FIREFOX = ("firefox-esr", "firefox")
MAC_FIREFOX = ("Firefox.app/Contents/MacOS/firefox",)
NODE_MAJOR = 20  # required by Pyodide


def chromium() -> str | None:
    """Return the path of a browser that tests can drive: Chromium or Google Chrome."""
    return _working(CHROMIUM, MAC_CHROMIUM)


def firefox() -> str | None:
    """Return the path of a Firefox that tests can drive."""
    return _working(FIREFOX, MAC_FIREFOX)


def node() -> str | None:
    """Return the path of a Node that is new enough for Pyodide."""
    path = shutil.which("node")
    version = _version(path).strip().removeprefix("v") if path else ""
    return path if version and int(version.partition(".")[0]) >= NODE_MAJOR else None


def _working(names: Iterable[str], applications: Iterable[str]) -> str | None:
    """Return the first program that runs."""
    installed = [*filter(None, map(shutil.which, names)), *(f"/Applications/{place}" for place in applications)]
    return next((path for path in installed if _version(path)), None)


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
    "firefox": firefox,
    "espeak": lambda: ctypes.util.find_library("espeak-ng"),
    "emoji": kinds.FONT.is_file,
    "node": node,
    "packages_dir": lambda: fetch_packages.place().is_dir(),
    "wheels_dir": lambda: fetch_packages.wheels_place().is_dir(),
    "pyodide_dir": lambda: fetch_pyodide.place().is_dir(),
    **{f"{name}_dir": copy.place.is_dir for name, copy in fetch_npm.COPIES.items()},
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
