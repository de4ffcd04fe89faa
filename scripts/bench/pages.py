"""Open a page of a site in Chromium, for benchmarks of whole pages."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import prerequisites
from playwright.sync_api import Page, expect, sync_playwright

from bench.places import CHROMIUM_FLAGS
from tallow.site.static_server import SiteServer

WAIT_MS = 600_000


@contextmanager
def opened(site: Path, path: str, models: Mapping[str, Path] | None = None) -> Iterator[tuple[Page, str]]:
    """Serve a site, with `models` at models/; yield its page at `path`, before it is ready, and the site's address."""
    server = SiteServer(site, host="127.0.0.1", port=0, models=models or {})
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=prerequisites.chromium(), args=CHROMIUM_FLAGS)
        page = chromium.new_page()
        page.set_default_timeout(WAIT_MS)
        page.goto(server.url + path)
        yield page, server.url
        chromium.close()


def expect_status(page: Page, text: str) -> None:
    """Wait until the page's status contains a text."""
    expect(page.get_by_test_id("status")).to_contain_text(text, timeout=WAIT_MS)
