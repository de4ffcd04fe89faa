"""JavaScript libraries that pages can request: part of the site, and loaded only by those pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fetch_npm
from playwright.sync_api import Page, Route
from tests.browser.conftest import START_MS

from tallow.site import build as site_module

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


def packages() -> dict[str, Any]:
    """Return the npm package of each library."""
    return {
        site_module.TOKENIZERS: fetch_npm.TOKENIZERS,
        site_module.MARKED: fetch_npm.MARKED,
        site_module.DOMPURIFY: fetch_npm.DOMPURIFY,
    }


def addresses(folder: Path) -> dict[str, str]:
    libraries: dict[str, str] = json.loads((folder / "site.json").read_text())["libraries"]
    return libraries


def test_site_has_the_libraries_and_their_licences(site_dir: Path) -> None:
    found = addresses(site_dir)
    assert set(found) == set(packages())
    for name, package in packages().items():
        file = site_dir / found[name]
        assert file.name == package.files[0].name
        assert {each.name for each in package.files} <= {path.name for path in file.parent.iterdir()}


def test_site_without_copies_names_the_cdn(tmp_path: Path, pure_wheel: Path) -> None:
    site_module.build_site(tmp_path / "site", wheel=pure_wheel, pyodide=None)
    assert addresses(tmp_path / "site") == {name: each.cdn + each.files[0].path for name, each in packages().items()}


def test_jinja_of_the_cdn_is_that_of_the_release(pyodide_dir: Path) -> None:
    theirs = json.loads((pyodide_dir / "pyodide-lock.json").read_text())["packages"]
    for name, entry in site_module.LOCK_JINJA.items():
        assert entry == theirs[name] | {"file_name": site_module.CDN + theirs[name]["file_name"]}


def test_library_is_loaded_on_demand(page: Page, revisited_site: str) -> None:
    requested: list[str] = []
    page.context.on("request", lambda request: requested.append(request.url))
    page.goto(f"{revisited_site}wasm_examples/train/")
    page.get_by_test_id("status").get_by_text("Ready.").wait_for(timeout=START_MS)
    assert not [url for url in requested if "tokenizers" in url]
    page.goto(f"{revisited_site}standin/")
    assert page.evaluate(START) == "started"
    assert [url for url in requested if "tokenizers" in url]


def test_missing_library(page: Page, revisited_site: str) -> None:
    def elsewhere(route: Route) -> None:
        config = route.fetch().json() | {"libraries": {site_module.TOKENIZERS: "runtime/nowhere.mjs"}}
        route.fulfill(json=config)

    page.context.route("**/site.json", elsewhere)
    page.goto(f"{revisited_site}standin/")
    result = page.evaluate(START)
    assert result.startswith("RuntimeUnavailable")
    assert "runtime/nowhere.mjs could not be loaded" in result
