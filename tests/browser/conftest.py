"""Serve the real site as `tallow demo` does, and open it in a real Chromium."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Playwright,
    expect,
    sync_playwright,
)
from support import builds
from tests.browser.hanging import ended_after

from tallow.site.static_server import SiteServer

HERE = Path(__file__).parent
# Python starts in a few seconds; a busy machine may take ten times as long without failing a test.
START_MS = 180_000  # a busy machine takes a minute and more
expect.set_options(timeout=START_MS)
HANG_S = 5 * 60  # no test takes as long
# Browsers log violations of the Content-Security-Policy by a page on the console, but not those by a worker.
POLICY = "Content Security Policy"
REPORT = f"""
addEventListener("securitypolicyviolation", ({{ violatedDirective, blockedURI }}) =>
  console.error(`{POLICY}: the worker violates ${{violatedDirective}}: ${{blockedURI}}`));
"""


# What Chromium prepares for each new window, in a process or two of its own: the list below its address bar. Playwright
# has a list of features that it disables; this one takes its place, so it repeats what matters here.
WITHOUT = (
    *("AimEnabled", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "WebUIOmniboxPopup"),
    *(
        "HttpsUpgrades",
        "LensOverlay",
        "MediaRouter",
        "OptimizationHints",
        "PaintHolding",
        "ThirdPartyStoragePartitioning",
    ),
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "AvoidCorsURLLoaderRestartOnRedirect"),
)

# V8 compiles a function of WebAssembly again, with optimization, when it has run for a while. At a start that is above
# all Python's interpreter: 0.3 to 0.5 s of 2.6 s of processor time. The budget is eight times V8's own, so that it
# happens only on pages that compute.
V8_FLAGS = "--wasm-tiering-budget=100000000"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End a test that hangs, also while its fixtures are set up."""
    with ended_after(HANG_S) if HERE in item.path.parents else nullcontext():
        return (yield)


def wait_until(page: Page, expression: str, arg: object = None) -> None:
    """Wait for a condition. page.wait_for_function polls by eval(), which the pages' policy forbids."""

    def holds() -> bool:
        with suppress(Error):  # a reloading page does not answer
            return bool(page.evaluate(expression, arg))
        return False

    wait_for(page, holds, expression)


def wait_for(page: Page, holds: Callable[[], object], what: str = "") -> None:
    """Wait for a condition of the test, such as a request that the page makes."""
    end = time.monotonic() + START_MS / 1000
    while not holds():
        assert time.monotonic() < end, what
        page.wait_for_timeout(50)


@contextmanager
def serving(folder: Path, models: dict[str, Path] | None = None, port: int = 0) -> Iterator[SiteServer]:
    """Serve `folder` at a free port of this machine."""
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
def site_dir(tmp_path_factory: pytest.TempPathFactory, built_site: Path) -> Path:
    """Return the static site with Pyodide. Tests have standin/ in addition, and short pauses before a retry."""
    folder = builds.linked_copy(built_site, tmp_path_factory.mktemp("browser") / "site")
    shutil.copytree(HERE / "standin", folder / "standin")
    builds.change(folder / "web" / "worker.js", lambda script: script + REPORT)
    builds.change(folder / "web" / "worker.js", lambda script: script.replace("[250, 1000, 3000]", "[25, 100, 300]"))
    return folder


@pytest.fixture(scope="session")
def site(site_dir: Path) -> Iterator[str]:
    """Return the site's address."""
    with serving(site_dir) as server:
        yield server.url


@pytest.fixture(scope="session")
def revisited_dir(site_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site as after a first visit: its pages start Python from the snapshot, in half the time."""
    folder = builds.linked_copy(site_dir, tmp_path_factory.mktemp("revisited") / "site")
    builds.change(folder / "web" / "worker.js", lambda it: it.replace("await isFetched(snapshot)", "true"))
    return folder


@pytest.fixture(scope="session")
def revisited_site(revisited_dir: Path) -> Iterator[str]:
    """Return its address."""
    with serving(revisited_dir) as server:
        yield server.url


@pytest.fixture(scope="session")
def driver() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def violations() -> list[str]:
    """Collect violations of the pages' Content-Security-Policy."""
    return []


@pytest.fixture(autouse=True)
def no_violations(violations: list[str]) -> Iterator[None]:
    """Fail a test if a page violates its policy."""
    violations.clear()
    yield
    assert not violations


@pytest.fixture(scope="session")
def launch(driver: Playwright, chromium: str, violations: list[str]) -> Callable[..., Browser]:
    """Return a function that starts Chromium with additional flags."""
    common = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    common += [f"--disable-features={','.join(WITHOUT)}", f"--js-flags={V8_FLAGS}"]

    def note(message: ConsoleMessage) -> None:
        if POLICY in message.text:
            violations.append(message.text)

    def launched(*flags: str) -> Browser:
        browser = driver.chromium.launch(executable_path=chromium, args=[*common, *flags])
        new_context = browser.new_context

        def watched(**options: Any) -> BrowserContext:
            context = new_context(**options)
            context.set_default_timeout(START_MS)
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
    """A browser profile for one test, with an empty cache."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture(scope="session")
def axe(axe_dir: Path) -> str:
    """Return the script of axe-core."""
    return (axe_dir / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def model(data_dir: Path) -> Path:
    return data_dir / "stories260K.bin"


@pytest.fixture(scope="session")
def tokenizer(data_dir: Path) -> Path:
    return data_dir / "tok512.bin"
