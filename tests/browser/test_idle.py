"""A page that does nothing for ten minutes ends its worker, and starts it again when it is needed."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect
from tests.browser.conftest import START_MS, wait_for
from tests.browser.sentence_folder import write_sentence_folder

IDLE = "10:01"


def finish_story(page: Page) -> str:
    page.get_by_test_id("generate").click()
    expect(page.get_by_test_id("status")).to_contain_text("Done.", timeout=START_MS)
    return page.get_by_test_id("output").text_content() or ""


def test_idle_story_page_frees_its_memory_and_goes_on(
    page: Page, revisited_site: str, model: Path, tokenizer: Path
) -> None:
    """Also with another model."""
    page.clock.install()
    page.goto(f"{revisited_site}wasm_examples/llama2c/")
    page.get_by_test_id("steps").fill("20")
    page.get_by_test_id("seed").fill("1")
    story = finish_story(page)
    page.get_by_test_id("stats").get_by_label("Threads").select_option("1")
    assert page.workers
    page.clock.fast_forward("09:00")
    page.wait_for_timeout(200)
    assert page.workers
    page.clock.fast_forward("01:01")
    expect_no_worker(page)
    assert page.get_by_test_id("output").text_content() == story
    assert finish_story(page) == story
    assert page.get_by_test_id("stats").get_by_label("Threads").input_value() == "1"
    page.clock.fast_forward(IDLE)
    expect_no_worker(page)
    page.get_by_test_id("model-file").set_input_files(model)
    page.get_by_test_id("tokenizer-file").set_input_files(tokenizer)
    expect(page.get_by_test_id("model-name")).to_contain_text("stories260K", timeout=START_MS)
    expect(page.get_by_test_id("status")).to_have_text("Ready.", timeout=START_MS)


def test_results_keep_python(page: Page, revisited_site: str, tmp_path: Path) -> None:
    page.clock.install()
    page.goto(f"{revisited_site}wasm_examples/bert/")
    page.get_by_test_id("model-file").set_input_files(write_sentence_folder(tmp_path / "tiny"))
    expect(page.get_by_test_id("status")).to_have_text("Ready.", timeout=START_MS)
    page.get_by_test_id("embed").click()
    expect(page.get_by_test_id("status")).to_contain_text("Done.", timeout=START_MS)
    page.clock.fast_forward(IDLE)
    page.wait_for_timeout(500)
    assert page.workers
    page.get_by_test_id("query").fill("a cat")
    expect(page.get_by_test_id("results").locator("li").first).to_be_visible()


def expect_no_worker(page: Page) -> None:
    wait_for(page, lambda: not page.workers, "the worker still runs")
