"""Threads of the kernels in a real browser: workers on Python's memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, Route, expect
from support import builds
from tests.browser.conftest import START_MS, serving, wait_until

START = "async () => { window.runtime = Runtime.create(); window.started = await runtime.start(app); }"
MULTIPLY = "async (keywords) => await runtime.call('multiply', keywords)"
INTERRUPT = """
async () => {
  const onEvent = () => setTimeout(() => runtime.interrupt(), 200);
  return await runtime.call("multiply_forever", {}, { onEvent });
}
"""


def load_standin(page: Page, site: str) -> None:
    page.goto(f"{site}standin/")
    wait_until(page, "document.title === 'loaded'")


def open_standin(page: Page, site: str) -> None:
    load_standin(page, site)
    page.evaluate(START)


def multiply(page: Page, **keywords: Any) -> dict[str, Any]:
    result: dict[str, Any] = page.evaluate(MULTIPLY, {"size": 320, **keywords})
    assert result["same"]
    return result


def test_an_interrupted_product_leaves_the_threads_usable(page: Page, site: str) -> None:
    open_standin(page, site)
    result = multiply(page)
    assert result["others"] == 1
    assert result["summary"] == "wasm relaxed-simd, 2 threads"
    for _ in range(3):
        assert page.evaluate(INTERRUPT) == "interrupted"
        assert multiply(page)["others"] == 1


def test_page_that_is_not_isolated_computes_on_one_thread(page: Page, site: str) -> None:
    def without_isolation(route: Route) -> None:
        response = route.fetch()
        headers = {k: v for k, v in response.headers.items() if not k.lower().startswith("cross-origin-")}
        route.fulfill(response=response, headers=headers)

    page.route(f"{site}standin/", without_isolation)
    open_standin(page, site)
    result = multiply(page, attempts=3)
    assert (result["others"], result["threads"]) == (0, 1)
    assert result["summary"] == "wasm relaxed-simd, 1 thread: the page is not cross-origin isolated"


def test_threads_that_do_not_start_are_not_missed(page: Page, site_dir: Path, tmp_path: Path) -> None:
    folder = builds.linked_copy(site_dir, tmp_path / "site")
    begin = "export function compute(work) {"
    builds.change(folder / "web" / "kernel-thread.js", lambda it: it.replace(begin, f"{begin} throw new Error('no');"))
    with serving(folder) as server:
        open_standin(page, server.url)
        result = multiply(page, attempts=20)
        assert result["others"] == 0
        assert "1 thread: a worker did not start" in result["summary"]


def test_two_pages_at_once(page: Page, site: str) -> None:
    other = page.context.new_page()
    for each in (page, other):
        open_standin(each, site)
    for each in (page, other, page):
        assert multiply(each)["others"] == 1
    other.close()
    assert multiply(page)["others"] == 1


def test_restarts_leave_no_worker_behind(page: Page, site: str) -> None:
    """Python's worker and those of its threads end with the runtime."""
    load_standin(page, site)
    for _ in range(3):
        page.evaluate(START)
        assert multiply(page)["others"] == 1
        assert len(page.workers) == 2
        page.evaluate("runtime.close()")
        for _ in range(200):
            if not page.workers:
                break
            page.wait_for_timeout(50)
        assert not page.workers


def test_the_console_and_training_pages_have_the_choice(page: Page, site: str) -> None:
    for name, ready in (("train", "Training|ready|Ready"), ("console", "Ready: tallow")):
        page.goto(f"{site}wasm_examples/{name}/")
        expect(page.get_by_test_id("status")).to_contain_text(re.compile(ready), timeout=START_MS)
        processors = min(page.evaluate("navigator.hardwareConcurrency"), 16)
        if processors == 1:
            expect(page.get_by_test_id("stats")).to_contain_text("1: this machine has one processor")
            continue
        choice = page.get_by_label("Threads", exact=True)
        expect(choice.locator("option:checked")).to_have_text(f"{processors} of {processors}")
        choice.select_option("1")
    if processors > 1:
        page.get_by_test_id("prompt").fill("print('threads:', tl.get_num_threads())")
        page.get_by_test_id("run").click()
        expect(page.get_by_test_id("output").locator(".written")).to_contain_text("threads: 1")


def test_the_number_of_threads_is_chosen_on_the_page(page: Page, site: str, model: Path, tokenizer: Path) -> None:
    page.goto(f"{site}wasm_examples/llama2c/")
    page.get_by_test_id("model-file").set_input_files(model)
    page.get_by_test_id("tokenizer-file").set_input_files(tokenizer)
    status, stats = page.get_by_test_id("status"), page.get_by_test_id("stats")
    expect(status).to_have_text("Ready.", timeout=START_MS)
    processors = min(page.evaluate("navigator.hardwareConcurrency"), 16)
    if processors == 1:
        expect(stats).to_contain_text("1: this machine has one processor")
        return
    choice = page.get_by_label("Threads")
    expect(choice.locator("option:checked")).to_have_text(f"{processors} of {processors}")
    stories = []
    for threads in (processors, 1):
        choice.select_option(str(threads))
        page.get_by_test_id("temperature").fill("0")
        page.get_by_test_id("generate").click()
        expect(status).to_contain_text("Done.", timeout=START_MS)
        stories.append(page.get_by_test_id("output").text_content())
    assert stories[0]
    assert stories[0] == stories[1]
