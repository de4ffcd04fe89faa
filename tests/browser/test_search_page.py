"""wasm_examples/search in Chromium: emoji and pictures of the user, found by words and named, with native numbers."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.axe import expect_no_violation
from tests.browser.conftest import START_MS, wait_until
from tests.browser.dropping import drop
from tests.browser.hub import no_hub

from tallow.models.built_in import emoji as built_in

image = pytest.importorskip("PIL.Image")

PAGE = "wasm_examples/search/"
SIDE = 48
ROWS = "(all) => all.map((it) => [it.firstChild.alt ?? it.firstChild.textContent, it.lastChild.textContent])"
REFUSE = """
() => {
  navigator.mediaDevices.getUserMedia = async () => {
    throw new DOMException("", "NotAllowedError");
  };
}
"""


@pytest.fixture(scope="module")
def with_camera(launch: Callable[..., Browser]) -> Iterator[Browser]:
    """A browser whose camera shows a test picture."""
    browser = launch("--use-fake-device-for-media-stream")
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def page(with_camera: Browser, revisited_site: str, emoji: None) -> Iterator[Page]:
    """A page that has searched for its first query, shared by the tests."""
    context = with_camera.new_context(permissions=["camera", "clipboard-read", "clipboard-write"])
    no_hub(context)
    page = context.new_page()
    bugs: list[str] = []
    page.on("pageerror", lambda error: bugs.append(str(error)))
    page.goto(revisited_site + PAGE)
    expect(page.get_by_test_id("result").first).to_be_visible(timeout=START_MS)
    yield page
    context.close()
    assert not bugs


def search(page: Page, query: str) -> list[tuple[str, float]]:
    """Return what the page finds: emoji, or the names of pictures, and scores."""
    page.get_by_test_id("query").fill(query)
    wait_until(page, "(query) => document.querySelector('#results').dataset.query === query", query)
    rows = page.get_by_test_id("result").evaluate_all(ROWS)
    return [(shown.removesuffix("\ufe0f"), float(score)) for shown, score in rows]


def named(page: Page) -> int:
    """Return how often the page has named a picture."""
    return int(page.get_by_test_id("view").get_attribute("data-named") or 0)


def png(colour: str) -> bytes:
    """Return a picture that the page does not resize."""
    file = io.BytesIO()
    image.new("RGB", (SIDE, SIDE), colour).save(file, "PNG")
    return file.getvalue()


def test_words_find_the_emoji_that_they_find_natively(page: Page) -> None:
    encoder, index = built_in.load(), built_in.read_index()
    for query in ("apple", "ein roter Apfel", "космос", "海"):
        scores = index.vectors @ encoder.encode_texts(query)
        found = search(page, query)
        assert [score for _, score in found] == pytest.approx(np.sort(scores)[::-1][: len(found)], abs=0.0051)
        assert found[0][0] == index.emoji[int(scores.argmax())]
    assert "🍎" in [shown for shown, _ in search(page, "red apple")[:5]]
    assert search(page, "...") == []
    expect(page.get_by_test_id("results")).to_have_attribute("data-empty", "This text has no letters.")
    page.get_by_test_id("example").first.click()
    expect(page.get_by_test_id("query")).to_have_value("red fruit")
    expect(page.get_by_test_id("stats")).to_contain_text("ms")


def test_pictures_of_the_user_are_found_and_named(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "mine.png"
    path.write_bytes(png("red"))
    before = named(page)
    page.get_by_test_id("labels").fill("red circle, blue circle, собака")
    drop(page, {path.name: path})
    wait_until(page, f"Number(document.querySelector('#view').dataset.named) > {before}")
    expect(page.get_by_test_id("name")).to_have_count(3)
    shares = page.get_by_test_id("name").locator(".score").all_text_contents()
    assert sum(int(share.removesuffix(" %")) for share in shares) == pytest.approx(100, abs=2)
    vector = built_in.load().encode([_framed()])[0]
    for query in ("red circle", "water"):
        wanted = float(vector @ built_in.load().encode_texts(query))
        found = dict(search(page, query))
        assert found.get("mine.png", wanted) == pytest.approx(wanted, abs=0.02)
    page.get_by_role("button", name="Remove mine.png").click()
    expect(page.get_by_test_id("picture")).to_have_count(0)
    path.write_text("no picture")
    drop(page, {"notes.txt": path})
    expect(page.get_by_test_id("error")).to_contain_text("notes.txt is not a picture")


def _framed() -> np.ndarray:
    """Return the red picture as the page gives it to the model: on white, a little smaller."""
    canvas = image.new("RGB", (SIDE, SIDE), "white")
    size = round(0.94 * SIDE)
    canvas.paste(image.new("RGB", (size, size), "red"), ((SIDE - size) // 2,) * 2)
    return np.asarray(canvas)


def test_the_camera_is_named_live_until_it_is_stopped(page: Page) -> None:
    page.get_by_test_id("camera").click()
    expect(page.get_by_test_id("rate")).to_contain_text("frames a second", timeout=START_MS)
    before = page.get_by_test_id("name").count()
    page.get_by_test_id("labels").fill("pizza, clock, rain, голубь")
    expect(page.get_by_test_id("name")).to_have_count(4)
    assert before != 4
    page.get_by_test_id("stop").click()
    expect(page.get_by_test_id("camera")).to_have_text("Use the camera")
    expect(page.get_by_test_id("rate")).to_have_text("")
    page.evaluate(REFUSE)
    page.get_by_test_id("camera").click()
    expect(page.get_by_test_id("error")).to_contain_text("may not use the camera")


def test_link_has_the_query_and_the_labels(page: Page) -> None:
    page.get_by_test_id("share").click()
    expect(page.get_by_test_id("share-note")).to_contain_text("was copied")
    fragment = page.url.partition("#")[2]
    assert {pair.split("=")[0] for pair in fragment.split("&")} <= {"query", "labels"}
    page.evaluate("location.hash = 'query=Hund'")
    wait_until(page, "document.querySelector('#results').dataset.query === 'Hund'")
    page.evaluate("location.hash = ''")


def test_axe_finds_no_violation_in_results(page: Page, axe: str) -> None:
    search(page, "fruit")
    page.evaluate(axe)
    expect_no_violation(page, "with results")
