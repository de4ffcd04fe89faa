"""The real site, served as `tallow demo` serves it, in a real Chromium."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Playwright, sync_playwright

from tallow.cli.serve import SiteServer
from tallow.cli.site import build_site

HERE = Path(__file__).parent
# Python starts in a few seconds; a busy machine may take ten times as long, and must not fail a test for it.
START_MS = 180_000  # a busy machine takes a minute and more
# Browsers write on the console what a Content-Security-Policy has stopped in a page, but not what it has in a worker.
POLICY = "Content Security Policy"
REPORT = f"""
addEventListener("securitypolicyviolation", ({{ violatedDirective, blockedURI }}) =>
  console.error(`{POLICY}: the worker violates ${{violatedDirective}}: ${{blockedURI}}`));
"""


def wait_until(page: Page, expression: str, arg: object = None) -> None:
    """As page.wait_for_function, which looks again by eval(); the policy of the pages forbids that."""
    end = time.monotonic() + START_MS / 1000
    while True:
        with suppress(Error):  # a page that loads anew has no answer
            if page.evaluate(expression, arg):
                return
        assert time.monotonic() < end, expression
        page.wait_for_timeout(50)


@contextmanager
def serving(folder: Path, models: dict[str, Path] | None = None, port: int = 0) -> Iterator[SiteServer]:
    """`folder` at a free port of this machine."""
    server = SiteServer(folder, host="127.0.0.1", port=port, models=models or {})
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="session")
def site_dir(
    tmp_path_factory: pytest.TempPathFactory, pure_wheel: Path, pyodide_dir: Path, tokenizers_dir: Path
) -> Path:
    """The static site with Pyodide in it; standin/ is added for the tests of the runtime alone."""
    folder = tmp_path_factory.mktemp("site")
    build_site(folder, wheel=pure_wheel, pyodide=pyodide_dir, tokenizers=tokenizers_dir)
    shutil.copytree(HERE / "standin", folder / "standin")
    worker = folder / "web" / "worker.js"
    worker.write_text(worker.read_text(encoding="utf-8") + REPORT, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def site(site_dir: Path) -> Iterator[str]:
    """The site's address."""
    with serving(site_dir) as server:
        yield server.url


@pytest.fixture(scope="session")
def driver() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def violations() -> list[str]:
    """What pages have said of their Content-Security-Policy."""
    return []


@pytest.fixture(autouse=True)
def no_violations(violations: list[str]) -> Iterator[None]:
    """Whatever a test does with a page, its policy allows."""
    violations.clear()
    yield
    assert not violations


@pytest.fixture(scope="session")
def launch(driver: Playwright, chromium: str, violations: list[str]) -> Callable[..., Browser]:
    """Starts Chromium, with these flags too."""
    common = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]

    def note(message: ConsoleMessage) -> None:
        if POLICY in message.text:
            violations.append(message.text)

    def launched(*flags: str) -> Browser:
        browser = driver.chromium.launch(executable_path=chromium, args=[*common, *flags])
        new_context = browser.new_context

        def watched(**options: Any) -> BrowserContext:
            context = new_context(**options)
            context.on("console", note)
            return context

        browser.new_context = watched  # type: ignore[method-assign]
        return browser

    return launched


@pytest.fixture(scope="session")
def browser(launch: Callable[..., Browser]) -> Iterator[Browser]:
    browser = launch()
    yield browser
    browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser profile of the test's own: nothing is cached in it."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    page = context.new_page()
    page.set_default_timeout(START_MS)
    return page


@pytest.fixture(scope="session")
def model(data_dir: Path) -> Path:
    return data_dir / "stories260K.bin"


@pytest.fixture(scope="session")
def tokenizer(data_dir: Path) -> Path:
    return data_dir / "tok512.bin"
