"""Fixtures of the console: a page with a session that the tests of a file share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page
from tests.browser.consoles import Console


@pytest.fixture(scope="session")
def site(revisited_site: str) -> str:
    """Return the address of pages that start Python from the snapshot, in half the time."""
    return revisited_site


@pytest.fixture(scope="module")
def opened(browser: Browser, site: str) -> Iterator[Page]:
    """A page with a session, shared by the tests of a file. It accepts all dialogs."""
    context = browser.new_context()
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    Console(page).open(site)
    yield page
    context.close()


@pytest.fixture
def watched(opened: Page) -> Iterator[Page]:
    """The shared page; an uncaught error on it fails the test."""
    bugs: list[str] = []
    note = lambda error: bugs.append(str(error))  # noqa: E731  named, to be removed again
    opened.on("pageerror", note)
    yield opened
    opened.remove_listener("pageerror", note)
    assert not bugs


@pytest.fixture
def console(watched: Page, site: str) -> Console:
    """The shared page, idle and cleared."""
    console = Console(watched)
    if console.status.text_content() in ("Running.", "Interrupting."):  # left by a test that failed
        console.open(site)
    console.run("pass")
    console.click("clear").prompt.fill("")
    return console
