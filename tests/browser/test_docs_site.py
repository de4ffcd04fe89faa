"""The site of the documentation, on a phone."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser
from support.serving import serve

WIDTH = 360  # CSS pixels, of a small phone


def test_phone_needs_no_sideways_scroll(browser: Browser, docs_site: Path) -> None:
    """What is wider than a phone, such as a table, scrolls by itself."""
    pages = sorted(page.relative_to(docs_site).as_posix() for page in docs_site.rglob("*.html"))
    context = browser.new_context(viewport={"width": WIDTH, "height": 740}, java_script_enabled=False)
    page = context.new_page()
    widths = {}
    with serve(docs_site) as address:
        for path in pages:
            page.goto(f"{address}{path}")
            widths[path] = page.evaluate("document.documentElement.scrollWidth")
    context.close()
    assert {path: width for path, width in widths.items() if width > WIDTH} == {}
