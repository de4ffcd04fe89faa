"""Threads of the kernels in a real browser: workers on Python's memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from support import builds
from tests.browser.conftest import START_MS, serving, wait_for, wait_until

START = "async () => { window.runtime = Runtime.create(); window.started = await runtime.start(app); }"
MULTIPLY = "async (keywords) => await runtime.call('multiply', keywords)"
# End the other thread again and again, until that hits it in the middle of a part.
KILL = """
async () => {
  const channel = new BroadcastChannel("kill");
  let timer;
  const onEvent = (event) => {
    clearInterval(timer);
    if (event === "begun") timer = setInterval(() => channel.postMessage(""), 500);
  };
  try {
    return await runtime.call("compute_until_lost", {}, { onEvent });
  } finally {
    clearInterval(timer);
  }
}
"""
INTERRUPT = """
async () => {
  const onEvent = () => setTimeout(() => runtime.interrupt(), 200);
  return await runtime.call("multiply_forever", {}, { onEvent });
}
"""
# Python that multiplies until another thread takes part, while the worker receives no events.
UNTIL_OTHERS = """
import time, numpy, tallow
tallow.set_num_threads(2)
square = numpy.ones((320, 320), numpy.float32)
tallow.kernels.run("matmul", square, square)
from tallow.kernels.bindings import tab_threads
end = time.monotonic() + 60
while not tab_threads.parts_of_others() and time.monotonic() < end:
    tallow.kernels.run("matmul", square, square)
print("parts of others:", tab_threads.parts_of_others())
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


def test_threads_are_usable_after_an_interrupt_and_see_memory_that_python_gets_later(
    page: Page, revisited_site: str
) -> None:
    open_standin(page, revisited_site)
    result = multiply(page)
    assert result["others"] == 1
    assert result["summary"] == "wasm relaxed-simd, 2 threads"
    for _ in range(3):
        assert page.evaluate(INTERRUPT) == "interrupted"
        assert multiply(page)["others"] == 1
    for _ in range(3):
        assert any(page.evaluate("runtime.call('multiply_in_new_memory', { size: 500 })") for _ in range(20))


def test_page_that_is_not_isolated_computes_on_one_thread(page: Page, revisited_site: str) -> None:
    def without_isolation(route: Route) -> None:
        response = route.fetch()
        headers = {k: v for k, v in response.headers.items() if not k.lower().startswith("cross-origin-")}
        route.fulfill(response=response, headers=headers)

    page.route(f"{revisited_site}standin/", without_isolation)
    open_standin(page, revisited_site)
    result = multiply(page, attempts=3)
    assert (result["others"], result["threads"]) == (0, 1)
    assert result["summary"] == "wasm relaxed-simd, 1 thread: the page is not cross-origin isolated"


@contextmanager
def changed_site(site_dir: Path, folder: Path, script: str, old: str, new: str) -> Iterator[str]:
    """Serve the site with a change in a script of web/, and yield its address."""
    builds.linked_copy(site_dir, folder)
    assert (folder / "web" / script).read_text(encoding="utf-8").count(old) == 1
    builds.change(folder / "web" / script, lambda source: source.replace(old, new))
    with serving(folder) as server:
        yield server.url


@pytest.mark.parametrize(
    ("script", "old", "new"),
    [
        ("kernel-thread.js", "function compute(work) {", "function compute(work) { throw new Error('no');"),
        ("kernel-supervisor.js", "function supervise(refuse) {", "function supervise(refuse) { throw 'no';"),
        ("kernel-supervisor.js", "export function supervise(", "function supervise("),
        # The pages' policy forbids workers from data: URLs.
        ("kernel-supervisor.js", "new Worker(url", "new Worker('data:text/javascript,'"),
    ],
    ids=["failing thread", "failing supervisor", "broken supervisor", "forbidden thread"],
)
def test_threads_that_do_not_start_are_not_missed(
    page: Page, revisited_dir: Path, tmp_path: Path, violations: list[str], script: str, old: str, new: str
) -> None:
    with changed_site(revisited_dir, tmp_path / "site", script, old, new) as address:
        open_standin(page, address)
        result = multiply(page, attempts=20)
        assert result["others"] == 0
        assert "1 thread: a worker did not start" in result["summary"]
    violations.clear()  # which Chromium reports for the supervisor only


def test_threads_start_while_python_computes(page: Page, site: str) -> None:
    """As in a cell of the console that trains a model, sent before Python has started: it is the first to run."""
    load_standin(page, site)
    result = page.evaluate("""async () => {
      const runtime = Runtime.create();
      const [, result] = await Promise.all([runtime.start(app), runtime.call("multiply_without_pause", { size: 320 })]);
      return result;
    }""")
    assert result == {"before": 0, "others": 1}


def test_pages_have_threads_from_the_first_line_on(page: Page, revisited_dir: Path, tmp_path: Path) -> None:
    """Its Python computes when it is imported, which is before anything that a user asks for."""
    builds.linked_copy(revisited_dir, tmp_path / "site")
    builds.change(tmp_path / "site" / "wasm_examples" / "chat" / "app.py", lambda source: source + UNTIL_OTHERS)
    printed: list[str] = []
    page.on("console", lambda message: printed.append(message.text))
    with serving(tmp_path / "site") as server:
        page.goto(f"{server.url}wasm_examples/chat/")
        wait_for(page, lambda: any(text.startswith("parts of others:") for text in printed))
    assert "parts of others: 1" in printed


def test_a_cell_that_is_sent_before_the_console_is_ready_has_threads(page: Page, site: str) -> None:
    page.goto(f"{site}wasm_examples/console/", wait_until="commit")
    page.get_by_test_id("prompt").fill(UNTIL_OTHERS)
    page.get_by_test_id("run").click()
    expect(page.get_by_test_id("output").locator(".written").last).to_contain_text("parts of others: 1")


def test_thread_that_is_ended_from_outside_is_noticed(page: Page, revisited_dir: Path, tmp_path: Path) -> None:
    """The part that it was computing is lost. The next call does without it, and later ones have another thread."""
    old = "thread.onerror = (event) => event.preventDefault();"
    killed = f"{old} new BroadcastChannel('kill').onmessage = () => thread.terminate();"
    with changed_site(revisited_dir, tmp_path / "site", "kernel-supervisor.js", old, killed) as address:
        open_standin(page, address)
        multiply(page)
        result = page.evaluate(KILL)
        assert "ended early in another thread" in result["error"]
        assert result["seconds"] < 50, "that is nearly the limit after which a thread counts as lost"
        assert result["same"]
        later = multiply(page)
        assert (later["others"], later["summary"]) == (1, "wasm relaxed-simd, 2 threads")


def test_two_pages_at_once(page: Page, revisited_site: str) -> None:
    other = page.context.new_page()
    for each in (page, other):
        open_standin(each, revisited_site)
    for each in (page, other, page):
        assert multiply(each)["others"] == 1
    other.close()
    assert multiply(page)["others"] == 1


def test_restarts_leave_no_worker_behind(page: Page, revisited_site: str) -> None:
    """Python's worker and those of its threads end with the runtime."""
    load_standin(page, revisited_site)
    for _ in range(2):
        page.evaluate(START)
        assert multiply(page)["others"] == 1
        assert len(page.workers) == 2  # Python and a thread
        page.evaluate("runtime.close()")
        wait_for(page, lambda: not page.workers)


def test_the_console_and_training_pages_have_the_choice(page: Page, revisited_site: str) -> None:
    for name, ready in (("train", "Training|ready|Ready"), ("console", "Ready: tallow")):
        page.goto(f"{revisited_site}wasm_examples/{name}/")
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


def test_the_number_of_threads_is_chosen_on_the_page(
    page: Page, revisited_site: str, model: Path, tokenizer: Path
) -> None:
    page.goto(f"{revisited_site}wasm_examples/llama2c/")
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
