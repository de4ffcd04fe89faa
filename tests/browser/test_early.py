"""web/boot/early.js: Python's worker starts, and input is kept, before the page's own script has loaded."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect
from tests.browser.conftest import START_MS, wait_for


@pytest.fixture
def loading(page: Page, revisited_site: str) -> Callable[[str], Callable[[], None]]:
    """Return a function that opens a page whose script has not arrived, and returns one that lets it arrive."""

    def opened(name: str) -> Callable[[], None]:
        held: list[Route] = []
        page.route("**/app.js", lambda route: held.append(route))
        page.goto(f"{revisited_site}wasm_examples/{name}/", wait_until="commit")
        expect(page.get_by_test_id("status")).to_have_text(re.compile("starting|starts"))
        wait_for(page, lambda: held)
        return lambda: held[0].continue_()

    return opened


def test_a_story_begins_when_the_page_has_loaded_in_the_worker_that_has_started_before(
    page: Page, loading: Callable[[str], Callable[[], None]]
) -> None:
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    arrive = loading("llama2c")
    page.get_by_test_id("prompt").fill("The dog")
    page.get_by_test_id("steps").fill("8")
    page.get_by_test_id("generate").click()
    expect(page.get_by_test_id("status")).to_have_text("The page is loading. Then it starts.")
    wait_for(page, lambda: page.workers and any(url.endswith(".asm.wasm") for url in requested))
    started = page.workers[0]
    arrive()
    expect(page.get_by_test_id("status")).to_contain_text("Done.", timeout=START_MS)
    assert page.workers[0] == started
    assert len(page.workers) <= 2, "Python's, and that of a thread"
    assert (page.get_by_test_id("output").text_content() or "").startswith("The dog")


def test_the_story_is_by_the_model_that_was_chosen_first(
    page: Page, loading: Callable[[str], Callable[[], None]], model: Path, tokenizer: Path
) -> None:
    arrive = loading("llama2c")
    page.get_by_test_id("model-file").set_input_files(model)
    page.get_by_test_id("tokenizer-file").set_input_files(tokenizer)
    page.get_by_test_id("steps").fill("8")
    page.get_by_test_id("generate").click()
    arrive()
    expect(page.get_by_test_id("status")).to_contain_text("Done.", timeout=START_MS)
    expect(page.get_by_test_id("model-name")).to_contain_text(model.name)


def test_a_cell_runs_once_when_the_page_has_loaded(page: Page, loading: Callable[[str], Callable[[], None]]) -> None:
    arrive = loading("console")
    page.get_by_test_id("prompt").fill("6 * 7")
    for _ in range(2):
        page.get_by_test_id("run").click()
    arrive()
    written = page.get_by_test_id("output").locator(".written").filter(has_text="42")
    expect(written).to_have_count(1, timeout=START_MS)
    expect(page.get_by_test_id("status")).to_have_text("Ready.", timeout=START_MS)
    expect(written).to_have_count(1)


def test_nothing_runs_that_was_not_submitted(page: Page, loading: Callable[[str], Callable[[], None]]) -> None:
    arrive = loading("console")
    page.get_by_test_id("prompt").fill("6 * 7")
    arrive()
    expect(page.get_by_test_id("status")).to_contain_text("Ready: tallow", timeout=START_MS)
    expect(page.get_by_test_id("output").locator(".written")).to_have_count(0)


def test_a_worker_that_cannot_be_loaded_is_reported_and_started_again(page: Page, revisited_site: str) -> None:
    page.route("**/web/worker.js", lambda route: route.abort())
    page.goto(f"{revisited_site}wasm_examples/llama2c/")
    expect(page.get_by_test_id("error")).to_contain_text("web/worker.js could not be loaded")
    page.unroute("**/web/worker.js")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_test_id("status")).to_have_text("Ready.")
