"""Threads of the kernels in a real browser: workers on Python's memory."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page
from tests.browser.conftest import wait_until

START = "async () => { window.runtime = Runtime.create(); window.started = await runtime.start(app); }"
TWO_PROCESSORS = "Object.defineProperty(WorkerNavigator.prototype, 'hardwareConcurrency', { get: () => 2 });"


def open_standin(page: Page, site: str) -> None:
    page.goto(f"{site}standin/")
    wait_until(page, "document.title === 'loaded'")
    page.evaluate(START)


def multiply(page: Page, **keywords: Any) -> dict[str, Any]:
    result: dict[str, Any] = page.evaluate(
        "async (keywords) => await runtime.call('multiply', keywords)", {"size": 320, **keywords}
    )
    return result


def test_another_thread_computes_the_same(page: Page, site: str) -> None:
    open_standin(page, site)
    result = multiply(page)
    assert result["same"]
    assert result["others"] == 1
    assert result["summary"].startswith("wasm relaxed-simd, 2 threads")
