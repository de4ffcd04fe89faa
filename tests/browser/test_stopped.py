"""Python's worker ends, fails or hangs: pages say so, say nothing else, and start Python again."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import START_MS, wait_until

STOPPED = "Python has stopped."
# The page, the status when Python runs, and the start of the status after a restart.
PAGES = {
    "": ("Python is ready.", "Python is ready."),
    "wasm_examples/llama2c/": ("Ready.", "Ready."),
    "wasm_examples/chat/": ("Ready.", "Ready."),
    "wasm_examples/bert/": ("Done.", "Ready."),
    "wasm_examples/whisper/": ("Ready.", "Ready."),
    "wasm_examples/train/": ("Python is ready. Press Train.", "Python is ready. Press Train."),
    "wasm_examples/console/": ("Ready: ", "Ready: "),
    "wasm_examples/find/": ("Done.", "Done."),
    "wasm_examples/onnx/": ("Done in", "Ready."),
}


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


@pytest.mark.parametrize("path", PAGES)
def test_page_whose_worker_ends_offers_a_restart(path: str, page: Page, revisited_site: str) -> None:
    ready, again = PAGES[path]
    page.goto(f"{revisited_site}{path}")
    if not path:
        page.get_by_test_id("prompt").focus()  # starts Python
    expect_status(page, ready)
    end_worker(page)
    expect_stop(page, "its worker has ended")
    restart(page)
    expect_status(page, again)
    expect(page.get_by_test_id("error")).to_be_hidden()


def write_story(page: Page) -> str:
    page.get_by_test_id("generate").click()
    expect_status(page, "Done.")
    return page.get_by_test_id("output").text_content() or ""


@pytest.fixture
def story(page: Page, revisited_site: str) -> Page:
    """The story page with its model."""
    page.goto(f"{revisited_site}wasm_examples/llama2c/")
    page.get_by_test_id("seed").fill("1")
    expect_status(page, "Ready.")
    return page


def test_worker_that_ends_while_it_writes(story: Page) -> None:
    expected = write_story(story)
    story.get_by_test_id("generate").click()
    end_worker(story)
    expect_stop(story, "its worker has ended")
    expect(story.locator("body")).not_to_have_class("burning")
    assert write_story(story) == expected  # also without the button
    expect(story.get_by_test_id("error")).to_be_hidden()


def test_worker_that_hangs_is_replaced_after_stop(story: Page) -> None:
    expected = write_story(story)
    story.workers[0].evaluate("setTimeout(() => { for (;;); })")
    story.get_by_test_id("generate").click()
    story.get_by_test_id("stop").click()
    expect(story.get_by_test_id("error")).to_contain_text("Python does not answer.")
    restart(story)
    expect_status(story, "Ready.")
    assert write_story(story) == expected


def test_console_after_a_trap_is_not_ready(page: Page, revisited_site: str) -> None:
    page.goto(f"{revisited_site}wasm_examples/console/")
    page.get_by_test_id("prompt").fill("import ctypes; ctypes.memset(0xFFFFFFF0, 0, 64)")
    page.get_by_test_id("run").click()
    expect_stop(page, "memory access out of bounds")
    restart(page)
    expect_status(page, "Ready: ")
    page.get_by_test_id("prompt").fill("print(6 * 7)")
    page.get_by_test_id("run").click()
    expect(page.get_by_test_id("output").locator(".written").filter(has_text="42")).to_have_count(1)


def test_console_whose_code_ends_the_worker(page: Page, revisited_site: str) -> None:
    page.goto(f"{revisited_site}wasm_examples/console/")
    page.get_by_test_id("prompt").fill("import js; js.close()")
    page.get_by_test_id("run").click()
    expect_stop(page, "its worker has ended")


@pytest.fixture
def runtime(page: Page, revisited_site: str) -> Page:
    """The page of the stand-in with a runtime; `stops` are the messages of its ends."""
    page.goto(f"{revisited_site}standin/")
    wait_until(page, "document.title === 'loaded'")
    page.evaluate(
        """async () => {
          window.stops = [];
          window.runtime = Runtime.create();
          runtime.onStop = ({ message }) => stops.push(message);
          await runtime.start(app);
        }"""
    )
    return page


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


def test_requests_to_a_stopped_worker_fail(runtime: Page) -> None:
    runtime.workers[0].evaluate("setTimeout(() => self.close(), 500)")
    failed = runtime.evaluate(
        """async () => {
          const said = ({ name, message }) => `${name}: ${message}`;
          const generate = async () => {
            for await (const token of runtime.generate({ count: 1e6, pause_s: 0.01 }));
          };
          const failed = [await generate().catch(said)];
          for (const later of [runtime.ping(), runtime.call("fail")]) failed.push(await later.catch(said));
          return failed;
        }"""
    )
    assert failed == 3 * ["PythonStopped: Python has stopped: its worker has ended."]
    assert runtime.evaluate("stops") == ["Python has stopped: its worker has ended."]


def test_a_request_leaves_nothing_behind_when_its_worker_ends(runtime: Page) -> None:
    runtime.workers[0].evaluate("setTimeout(() => self.close(), 500)")
    listening = runtime.evaluate(
        """async () => {
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
          await generate().catch(() => {});
          return listening;
        }"""
    )
    assert listening == 0


def test_a_request_that_cannot_be_sent_fails_at_once(runtime: Page) -> None:
    failed = "() => runtime.call('count', { to() {} }).catch(({ name }) => name)"
    assert runtime.evaluate(failed) == "DataCloneError"
    assert runtime.evaluate("() => runtime.ping().then(() => 'answered')") == "answered"


def test_closing_is_no_stop(runtime: Page) -> None:
    runtime.evaluate("runtime.close()")
    runtime.wait_for_timeout(500)
    assert runtime.evaluate("stops") == []
