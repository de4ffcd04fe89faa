"""tallow in the Pyodide of others, as docs/browser.md says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support import paths
from support.guides import blocks
from tests.browser.conftest import START_MS
from tests.browser.plain_host import serving_plainly

GUIDE = paths.ROOT / "docs" / "browser.md"
(PYSCRIPT_PAGE,) = (block for block in blocks(GUIDE, "html") if "pyscript" in block)
CDN = re.compile(r"https://cdn\.jsdelivr\.net/npm/(@pyscript/core@[\d.]+)/dist/")


@pytest.fixture(scope="session")
def pyscript() -> Path:
    """Return the folder of PyScript's modules, from npm, downloaded to the cache on first use."""
    if not shutil.which("npm"):
        pytest.skip("npm is not on PATH")
    found = CDN.search(PYSCRIPT_PAGE)
    assert found
    folder = paths.cache_dir() / found[1].replace("/", "-")
    modules = folder / "node_modules" / "@pyscript" / "core" / "dist"
    if not modules.exists():
        subprocess.run(["npm", "install", "--silent", "--no-save", "--prefix", folder, found[1]], check=True)
    return modules


def test_pyscript_page_of_the_guide(
    page: Page, pyscript: Path, pyodide_dir: Path, pure_wheel: Path, tmp_path: Path
) -> None:
    """With local copies in place of the CDN and the host."""
    (tmp_path / "core").symlink_to(pyscript)
    (tmp_path / "pyodide").symlink_to(pyodide_dir)
    shutil.copy(pure_wheel, tmp_path)
    with serving_plainly(tmp_path) as host:
        text = CDN.sub("core/", PYSCRIPT_PAGE).replace("https://HOST/", host.url)
        config = json.dumps({"interpreter": f"{host.url}pyodide/pyodide.mjs"})[1:-1]
        (tmp_path / "index.html").write_text(text.replace("config='{", f"config='{{{config}, "), encoding="utf-8")
        page.goto(host.url)
        expect(page.locator("body")).to_contain_text("tensor([0.2689, 0.7311])", timeout=START_MS)
