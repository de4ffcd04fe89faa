"""The front page: its story, its weight, its moving pictures, and that it can be installed."""

from __future__ import annotations

import json
import re
import struct
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Response, expect
from support import paths
from tests.browser.conftest import START_MS

MAX_BYTES = 60_000  # of our JavaScript and CSS before Python is wanted
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def idle(browser: Browser) -> Iterator[Page]:
    """A page whose worker never starts."""
    context = browser.new_context()
    page = context.new_page()
    page.route("**/web/worker.js", lambda route: route.fulfill(content_type="text/javascript", body=""))
    yield page
    context.close()


def test_page_is_small_and_loads_no_python(page: Page, site: str) -> None:
    sizes: dict[str, int] = {}

    def count(response: Response) -> None:
        sizes[response.url.removeprefix(site)] = len(response.body())

    page.on("response", count)
    page.goto(site, wait_until="networkidle")
    code = {name: size for name, size in sizes.items() if name.endswith((".js", ".css"))}
    assert {"web/front.js", "web/style.css"} <= set(code)
    assert sum(code.values()) <= MAX_BYTES, code
    assert not [name for name in sizes if name.startswith("runtime/") or "worker" in name]
    assert not page.workers


def test_story_is_told_and_the_kernels_are_measured(page: Page, site: str) -> None:
    """The link below the story tells the same one on the page of stories."""
    page.goto(site)
    page.get_by_test_id("tell").click()
    expect(page.get_by_test_id("tell")).to_have_text("Stop")
    measured = page.get_by_test_id("measured")
    expect(measured).to_have_text(re.compile(r"^matmul 256 × 256: [\d.]+ times NumPy in this tab\."), timeout=START_MS)
    ratio, fast, slow = map(float, re.findall(r"([\d.]+) (?:times|ms)", measured.inner_text()))
    assert ratio > 1
    assert ratio == pytest.approx(slow / fast, rel=0.1)
    expect(page.get_by_test_id("status")).to_have_text(re.compile(r"^Done: \d+ tokens\.$"))
    assert re.fullmatch(r"[\d,]+ tokens/s", page.get_by_test_id("rate").inner_text())
    story = page.get_by_test_id("output").text_content() or ""
    assert story.startswith("Once upon a time")
    assert len(story) > 100
    page.get_by_role("link", name="All settings").click()
    expect(page.get_by_test_id("status")).to_have_text("Ready.", timeout=START_MS)
    page.get_by_test_id("generate").click()
    expect(page.get_by_test_id("status")).to_have_text("Done.", timeout=START_MS)
    assert page.get_by_test_id("output").text_content() == story


def test_text_is_typed_while_python_starts(page: Page, revisited_site: str) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.goto(revisited_site)
    assert not page.workers
    page.get_by_test_id("prompt").focus()
    expect(page.get_by_test_id("progress")).to_contain_text("step")
    page.get_by_test_id("tell").click()
    expect(page.get_by_test_id("status")).to_have_text("The story begins when Python has started.")
    page.get_by_test_id("prompt").fill("Hugo was a brave boy.")
    output = page.get_by_test_id("output")
    expect(output).to_contain_text("Hugo was a brave boy. ", timeout=START_MS)
    expect(page.get_by_test_id("tell")).to_have_text("Tell another", timeout=START_MS)
    story = output.text_content()
    page.get_by_test_id("tell").click()
    expect(output).not_to_have_text(story or "", timeout=START_MS)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_waiting_story_can_be_stopped(idle: Page, site: str) -> None:
    idle.goto(site)
    idle.get_by_test_id("tell").click()
    idle.get_by_test_id("tell").click()
    expect(idle.get_by_test_id("tell")).to_have_text("Tell a story")


def test_failure_is_shown_and_can_be_tried_again(page: Page, revisited_site: str) -> None:
    page.route("**/site.json", lambda route: route.abort())
    page.goto(revisited_site)
    page.get_by_test_id("tell").click()
    expect(page.get_by_test_id("error")).to_contain_text("site.json could not be loaded")
    expect(page.get_by_test_id("tell")).to_have_text("Tell a story")
    page.unroute("**/site.json")
    page.get_by_test_id("tell").click()
    expect(page.get_by_test_id("error")).to_be_hidden()
    expect(page.get_by_test_id("tell")).to_have_text("Stop")


def test_python_starts_by_itself_if_an_earlier_visit_has_stored_it(idle: Page, site: str) -> None:
    idle.goto(site, wait_until="networkidle")
    assert not idle.workers
    idle.evaluate("(async () => (await caches.open('tallow-snapshots')).put('/snapshot', new Response()))()")
    idle.reload()
    expect(idle.get_by_test_id("status")).to_have_text("Python is starting.")


def test_pictures_move_briefly_and_only_on_the_screen(idle: Page, site: str) -> None:
    idle.set_viewport_size(PHONE)  # type: ignore[arg-type]
    idle.goto(site)
    expect(idle.locator(".demo.live")).to_have_count(0)
    for card in idle.locator(".demo").all():
        card.scroll_into_view_if_needed()
        expect(card).to_have_class(re.compile("live"))
        ends = card.evaluate(
            "(it) => it.getAnimations({ subtree: true }).map((one) => one.effect.getComputedTiming().endTime)"
        )
        assert card.locator("canvas").count() or ends
        assert all(end <= 5000 for end in ends)
    idle.evaluate("scrollTo(0, 0)")
    expect(idle.locator(".demo.live")).to_have_count(0)


def test_pictures_rest_if_motion_is_unwanted(idle: Page, site: str) -> None:
    idle.emulate_media(reduced_motion="reduce")
    idle.goto(site)
    picture = "document.querySelector('canvas').toDataURL()"
    idle.locator(".demo canvas").scroll_into_view_if_needed()
    before = idle.evaluate(picture)
    idle.locator(".demo").nth(1).hover()
    assert len(before) > 2000, "it shows its last state"
    assert idle.evaluate("document.getAnimations().length") == 0
    assert idle.evaluate(picture) == before


def test_page_can_be_installed(idle: Page, site: str) -> None:
    idle.goto(site)
    session = idle.context.new_cdp_session(idle)
    manifest = session.send("Page.getAppManifest")
    assert manifest["errors"] == []
    errors = session.send("Page.getInstallabilityErrors")["installabilityErrors"]
    assert [error["errorId"] for error in errors if error["errorId"] != "in-incognito"] == []
    described = json.loads(manifest["data"])
    folder = manifest["url"].rpartition("/")[0]
    for icon in described["icons"]:
        with urllib.request.urlopen(f"{folder}/{icon['src']}") as response:
            side = struct.unpack(">II", response.read(24)[16:])
        assert icon["sizes"] == "{}x{}".format(*side)
    with urllib.request.urlopen(site + described["start_url"].removeprefix("../")) as response:
        assert response.status == 200


def test_picture_of_links_exists() -> None:
    card = (paths.ROOT / "web" / "front" / "pictures" / "card.png").read_bytes()
    assert struct.unpack(">II", card[16:24]) == (1200, 630)
    assert len(card) < 100_000
