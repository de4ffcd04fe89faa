"""The Content-Security-Policy of every page: its text, and its enforcement by the browser.

All other tests show that pages need nothing their policy forbids: conftest.py fails tests with a violation.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from support import paths
from tests.browser.conftest import POLICY, START_MS, wait_for, wait_until

from tallow.site.build import CDN, MARKDOWN_CDN, TOKENIZERS_CDN

PAGES = {"index": "index.html"} | {
    path.parent.name: path.relative_to(paths.ROOT).as_posix()
    for path in sorted((paths.ROOT / "wasm_examples").glob("*/index.html"))
}


class Tags(HTMLParser):
    """Collects all tags of a page in order, and the texts of scripts and styles."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.inline: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style") and data.strip():
            self.inline.append(data)

    def policy(self) -> dict[str, list[str]]:
        (content,) = (each["content"] for _, each in self.tags if each.get("http-equiv") == "Content-Security-Policy")
        return {name: sources for name, *sources in map(str.split, content.split(";"))}


@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_a_policy_before_all_that_it_loads(name: str, site_dir: Path) -> None:
    page = Tags(site_dir / PAGES[name])
    kinds = [tag if "http-equiv" not in attributes else "policy" for tag, attributes in page.tags]
    assert kinds[:4] == ["html", "head", "meta", "policy"]
    policy = page.policy()
    assert policy["default-src"] == policy["object-src"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
    allowed = {"'self'", "'wasm-unsafe-eval'", CDN, TOKENIZERS_CDN, *MARKDOWN_CDN.values()}  # of these releases only
    assert policy["script-src"][0] == "'self'"
    assert set(policy["script-src"]) <= allowed
    assert policy["style-src"] == ["'self'"]


@pytest.mark.parametrize("name", PAGES)
def test_no_page_has_scripts_or_styles_of_its_own(name: str, site_dir: Path) -> None:
    page = Tags(site_dir / PAGES[name])
    assert not page.inline
    for tag, attributes in page.tags:
        assert not [each for each in attributes if each == "style" or each.startswith("on")], (tag, attributes)


def all_messages(page: Page) -> None:
    """Wait for the messages that the page has written to its console so far."""
    with page.expect_console_message(lambda message: message.text == "the end"):
        page.evaluate("console.log('the end')")


@pytest.mark.parametrize("name", PAGES)
def test_injected_scripts_do_not_run(name: str, page: Page, site: str, violations: list[str]) -> None:
    page.route("**/pyodide.mjs", lambda route: route.abort())  # not needed here
    page.goto(site if name == "index" else f"{site}wasm_examples/{name}/")
    page.evaluate("""() => {
      window.stopped = [];
      document.addEventListener("securitypolicyviolation", (event) => stopped.push(event.effectiveDirective));
      const script = document.createElement("script");
      script.textContent = "window.ran = true";
      const image = document.createElement("img");
      image.setAttribute("onerror", "window.ran = true");
      image.src = "data:image/png;base64,";
      const foreign = document.createElement("script");
      foreign.src = "https://cdn.jsdelivr.net/npm/other/index.js";
      const base = document.createElement("base");
      base.href = "https://example.org/";
      document.body.append(script, image, foreign, base);
    }""")
    wait_until(page, "stopped.includes('base-uri') && stopped.includes('script-src-attr')")
    wait_until(page, "stopped.filter((directive) => directive === 'script-src-elem').length >= 2")
    assert page.evaluate("window.ran") is None
    all_messages(page)
    assert any(POLICY in text for text in violations)
    violations.clear()


def test_worker_inherits_the_policy_of_its_page(browser: Browser, revisited_site: str, violations: list[str]) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{revisited_site}wasm_examples/console/")
    expect(page.get_by_test_id("status")).to_contain_text("Ready", timeout=START_MS)
    page.get_by_test_id("prompt").fill("import js; js.fetch('http://192.0.2.1/'); js.eval('1')")
    page.get_by_test_id("run").click()
    expect(page.get_by_test_id("output")).to_contain_text("EvalError", timeout=START_MS)
    for name in ("connect-src", "script-src"):  # messages of a worker take a while
        wait_for(page, lambda name=name: any(name in text for text in violations), name)
    context.close()  # no message comes after that
    violations.clear()
