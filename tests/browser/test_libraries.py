"""JavaScript libraries that pages can request: part of the site, and loaded only by those pages."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

from playwright.sync_api import Page, Route
from tests.browser.conftest import START_MS

from tallow.cli import site as site_module

START = """
async () => {
  const runtime = Runtime.create();
  try {
    await runtime.start(window.app, { libraries: ["huggingface_tokenizers"] });
    return "started";
  } catch (error) {
    return `${error.name}: ${error.message}`;
  } finally {
    runtime.close();
  }
}
"""


def address(folder: Path) -> str:
    return json.loads((folder / "site.json").read_text())["libraries"][site_module.TOKENIZERS]


def test_site_has_the_library_and_its_licence(site_dir: Path) -> None:
    file = site_dir / address(site_dir)
    script = importlib.import_module("fetch_tokenizers")
    assert script.VERSION == site_module.TOKENIZERS_VERSION
    assert {path.name for path in file.parent.iterdir()} == {Path(name).name for name in script.FILES}


def test_site_without_a_copy_names_the_cdn(tmp_path: Path, pure_wheel: Path) -> None:
    site_module.build_site(tmp_path / "site", wheel=pure_wheel, pyodide=None)
    assert address(tmp_path / "site") == importlib.import_module("fetch_tokenizers").CDN + "dist/tokenizers.min.mjs"


def test_library_is_loaded_on_demand(page: Page, site: str) -> None:
    requested: list[str] = []
    page.context.on("request", lambda request: requested.append(request.url))
    page.goto(f"{site}wasm_examples/train/")
    page.get_by_test_id("status").get_by_text("Ready.").wait_for(timeout=START_MS)
    assert not [url for url in requested if "tokenizers" in url]
    page.goto(f"{site}standin/")
    assert page.evaluate(START) == "started"
    assert [url for url in requested if "tokenizers" in url]


def test_missing_library(page: Page, site: str) -> None:
    def elsewhere(route: Route) -> None:
        config = route.fetch().json() | {"libraries": {site_module.TOKENIZERS: "runtime/nowhere.mjs"}}
        route.fulfill(json=config)

    page.context.route("**/site.json", elsewhere)
    page.goto(f"{site}standin/")
    result = page.evaluate(START)
    assert result.startswith("RuntimeUnavailable")
    assert "runtime/nowhere.mjs could not be loaded" in result
