"""Packages for PyTorch in the console: the programs of the folder `programs` print the numbers of PyTorch.

Two of them run always, all with `--ecosystem`. programs/expected.py has written what PyTorch prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fetch_packages
import pytest
from fetch_packages import OTHER_WHEELS, WHEELS
from playwright.sync_api import Browser, Page
from tests.browser import programs
from tests.browser.consoles import Console
from tests.browser.index import Index, tab_index

QUICK = ("keras", "transformers")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "module" in metafunc.fixturenames:
        metafunc.parametrize("module", programs.MODULES if metafunc.config.getoption("--ecosystem") else QUICK)


@pytest.fixture(scope="module")
def index(wheels_dir: Path, pyodide_dir: Path, request: pytest.FixtureRequest) -> Index:
    """PyPI with the wheels of the packages."""
    folder = wheels_dir
    if request.config.getoption("--ecosystem"):
        folder = fetch_packages.wheels_place((*WHEELS, *OTHER_WHEELS))
        if not folder.is_dir():
            pytest.skip("the wheels are missing: run scripts/fetch_packages.py --wheels --ecosystem")
    return tab_index(folder, pyodide_dir)


@pytest.fixture(scope="module")
def opened(browser: Browser, site: str, index: Index) -> Iterator[Page]:
    """A page with a session, shared by the tests of the file."""
    context = browser.new_context()
    index.serve(context)
    page = context.new_page()
    programs.prepare(Console(page).open(site))
    yield page
    context.close()


def test_a_program_prints_the_numbers_of_pytorch(console: Console, module: str) -> None:
    programs.install(console, module)
    programs.compare(console.run(programs.source(module)), module)
