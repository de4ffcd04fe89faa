"""Python's worker ends, fails or hangs: pages say so, say nothing else, and start Python again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from support import paths
from tests.browser.conftest import START_MS, wait_until

STOPPED = "Python has stopped."
# The modules by which pages start Python; each has a test below.
STARTERS = {
    "web/front/front-story.js",
    "web/page/model-page.js",
    "wasm_examples/console/session.js",
    "wasm_examples/train/app.js",
}
STARTS = "= Runtime.create();"


def end_worker(page: Page) -> None:
    """End the worker of Python as a script in it can."""
    page.workers[0].evaluate("self.close()")


def expect_status(page: Page, text: str) -> None:
    expect(page.get_by_test_id("status")).to_contain_text(text, timeout=START_MS)


def expect_stop(page: Page, reason: str) -> None:
    expect_status(page, STOPPED)
    expect(page.get_by_test_id("error")).to_contain_text(reason)


def restart(page: Page) -> None:
    page.get_by_test_id("error").get_by_role("button", name="Restart Python").click()


def test_every_page_starts_python_by_one_of_these_modules() -> None:
    scripts = {
        path.relative_to(paths.ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in ("web/front", "web/page", "wasm_examples")
        for path in paths.ROOT.glob(f"{folder}/**/*.js")
        if path.name != "tallow.js"  # has the class
    }
    assert {name for name, script in scripts.items() if STARTS in script} == STARTERS
    for page in paths.ROOT.glob("wasm_examples/*/index.html"):
        of_page = [script for name, script in scripts.items() if f"/{page.parent.name}/" in name]
        assert any(STARTS in script or "import { ModelPage" in script for script in of_page), page


@pytest.mark.parametrize("path", ["", "wasm_examples/train/"])
def test_page_whose_worker_ends_offers_a_restart(path: str, page: Page, revisited_site: str) -> None:
    page.goto(f"{revisited_site}{path}")
    if not path:
        page.get_by_test_id("prompt").focus()  # starts Python
    expect_status(page, "Python is ready.")
    end_worker(page)
    expect_stop(page, "its worker has ended")
    restart(page)
    expect_status(page, "Python is ready.")
    expect(page.get_by_test_id("error")).to_be_hidden()


def write_story(page: Page) -> str:
    page.get_by_test_id("generate").click()
    expect_status(page, "Done.")
    return page.get_by_test_id("output").text_content() or ""


def test_worker_that_ends_or_hangs_while_it_writes_is_replaced(page: Page, revisited_site: str) -> None:
    page.goto(f"{revisited_site}wasm_examples/llama2c/")
    page.get_by_test_id("seed").fill("1")
    expect_status(page, "Ready.")
    story, expected = page, write_story(page)
    story.get_by_test_id("generate").click()
    end_worker(story)
    expect_stop(story, "its worker has ended")
    expect(story.locator("body")).not_to_have_class("burning")
    assert write_story(story) == expected  # also without the button
    expect(story.get_by_test_id("error")).to_be_hidden()

    story.workers[0].evaluate("setTimeout(() => { for (;;); })")
    story.get_by_test_id("generate").click()
    story.get_by_test_id("stop").click()
    expect(story.get_by_test_id("error")).to_contain_text("Python does not answer.")
    restart(story)
    expect_status(story, "Ready.")
    assert write_story(story) == expected


def test_console_after_a_trap_and_whose_code_ends_the_worker_is_not_ready(page: Page, revisited_site: str) -> None:
    page.goto(f"{revisited_site}wasm_examples/console/")
    page.get_by_test_id("prompt").fill("import ctypes; ctypes.memset(0xFFFFFFF0, 0, 64)")
    page.get_by_test_id("run").click()
    expect_stop(page, "memory access out of bounds")
    restart(page)
    expect_status(page, "Ready: ")
    page.get_by_test_id("prompt").fill("print(6 * 7)")
    page.get_by_test_id("run").click()
    expect(page.get_by_test_id("output").locator(".written").filter(has_text="42")).to_have_count(1)
    page.get_by_test_id("prompt").fill("import js; js.close()")
    page.get_by_test_id("run").click()
    expect_stop(page, "its worker has ended")


@pytest.fixture(scope="module")
def opened(browser: Browser, revisited_site: str) -> Iterator[Page]:
    """The page of the stand-in."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{revisited_site}standin/")
    wait_until(page, "document.title === 'loaded'")
    yield page
    context.close()


@pytest.fixture
def runtime(opened: Page) -> Page:
    """The page with a runtime, the one of the tests before if that still runs; `stops` are the messages of its ends."""
    opened.evaluate(
        """async () => {
          if (window.stops?.length === 0) return;
          window.runtime?.close();
          window.stops = [];
          window.runtime = Runtime.create();
          runtime.onStop = ({ message }) => stops.push(message);
          await runtime.start(app);
        }"""
    )
    return opened


def test_worker_that_computes_has_not_stopped(runtime: Page) -> None:
    """And it answers when it has computed, as after an error in a timer."""
    runtime.workers[0].evaluate("setTimeout(() => { throw new Error('of a program in the worker') })")
    count = """async () => {
      const counted = runtime.call("count", { to: 300 }, { onEvent() {} });
      await runtime.ping();
      return counted;
    }"""
    assert runtime.evaluate(count) == "counted"
    assert runtime.evaluate("stops") == []


def test_a_request_that_cannot_be_sent_fails_at_once(runtime: Page) -> None:
    failed = "() => runtime.call('count', { to() {} }).catch(({ name }) => name)"
    assert runtime.evaluate(failed) == "DataCloneError"
    assert runtime.evaluate("() => runtime.ping().then(() => 'answered')") == "answered"


def test_requests_to_a_stopped_worker_fail_and_leave_nothing_behind(runtime: Page) -> None:
    runtime.workers[0].evaluate("setTimeout(() => self.close(), 500)")
    failed = runtime.evaluate(
        """async () => {
          const said = ({ name, message }) => `${name}: ${message}`;
          const { signal } = new AbortController();
          let listening = 0;
          for (const [name, by] of [["addEventListener", 1], ["removeEventListener", -1]]) {
            signal[name] = (...given) => {
              listening += by;
              return EventTarget.prototype[name].apply(signal, given);
            };
          }
          const generate = async () => {
            for await (const token of runtime.generate({ count: 1e6, pause_s: 0.01 }, { signal }));
          };
          const failed = [await generate().catch(said)];
          for (const later of [runtime.ping(), runtime.call("fail")]) failed.push(await later.catch(said));
          return [listening, ...failed];
        }"""
    )
    assert failed == [0, *3 * ["PythonStopped: Python has stopped: its worker has ended."]]
    assert runtime.evaluate("stops") == ["Python has stopped: its worker has ended."]


def test_closing_is_no_stop(runtime: Page) -> None:
    runtime.evaluate("runtime.close()")
    runtime.wait_for_timeout(500)
    assert runtime.evaluate("stops") == []
