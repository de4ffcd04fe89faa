"""wasm_examples/find in Chromium: a drawn scene, pictures and the camera, with the detector's native numbers."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from support.paths import ROOT
from tests.browser.axe import expect_no_violation
from tests.browser.conftest import START_MS, wait_until
from tests.browser.dropping import drop
from tests.browser.hub import no_hub

from tallow.models.vision.scene_finder import SceneFinder
from tallow.models.vision.scenes import SceneDetector

image = pytest.importorskip("PIL.Image")

PAGE = "wasm_examples/find/"
MODEL = ROOT / PAGE / "model"
SIZE = (256, 192)  # a picture that the page does not resize
# Lets a test disconnect the camera.
KEEP = """
    const original = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = async (wishes) => (window.camera = await original(wishes));
"""
REFUSE = """
() => {
  navigator.mediaDevices.getUserMedia = async () => {
    throw new DOMException("", "NotAllowedError");
  };
}
"""
IS_OFF = "window.camera.getTracks().every(({ readyState }) => readyState === 'ended')"
PASTE = """
(base64) => {
  const clipboardData = new DataTransfer();
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  clipboardData.items.add(new File([bytes], "pasted.png", { type: "image/png" }));
  dispatchEvent(new ClipboardEvent("paste", { clipboardData }));
}
"""
# Keeps the next picture from being decoded, until a test calls `decode`.
HOLD = """
() => {
  const original = window.createImageBitmap.bind(window);
  window.createImageBitmap = (file) => {
    window.createImageBitmap = original;
    const { promise, resolve } = Promise.withResolvers();
    const late = promise.then(() => original(file));
    window.decode = () => (resolve(), late.then(() => {}));
    return late;
  };
}
"""
COLOURS = """
(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let sum = 0;
  for (const value of data) sum = (31 * sum + value) % 1000000007;
  return sum;
}
"""


class Looker:
    """A page object: what a user does and sees."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.status = page.get_by_test_id("status")
        self.error = page.get_by_test_id("error")
        self.counts = page.get_by_test_id("counts")
        self.things = page.get_by_test_id("thing")
        self.view = page.get_by_test_id("view")

    def looks(self) -> int:
        """Return how often the page has looked."""
        return int(self.view.get_attribute("data-found") or 0)

    def has_looked(self, before: int) -> Looker:
        wait_until(self.page, f"Number(document.querySelector('#view').dataset.found) > {before}")
        return self

    def press(self, name: str) -> Looker:
        self.page.get_by_test_id(name).click()
        return self

    def choose(self, data: bytes) -> Looker:
        before = self.looks()
        file = {"name": "some.png", "mimeType": "image/png", "buffer": data}
        self.page.get_by_test_id("picture-file").set_input_files(file)  # type: ignore[arg-type]
        return self.has_looked(before)

    def found(self) -> list[tuple[str, float]]:
        texts = self.things.evaluate_all("(all) => all.map((it) => [...it.children].map((part) => part.textContent))")
        return [(label, float(score)) for label, score in texts]

    def colours(self) -> int:
        """Return a number that is another one when the view shows something else."""
        self.page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
        colours: int = self.view.evaluate(COLOURS)
        return colours

    def fails_with(self, *words: str) -> Looker:
        expect(self.error).to_be_visible()
        for word in words:
            expect(self.error).to_contain_text(word)
        return self


@pytest.fixture(scope="module")
def with_camera(launch: Callable[..., Browser]) -> Iterator[Browser]:
    """A browser whose camera shows a test picture."""
    browser = launch("--use-fake-device-for-media-stream")
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def looker(with_camera: Browser, revisited_site: str, emoji: None) -> Iterator[Looker]:
    """A page that has looked at its first scene, shared by the tests."""
    context = with_camera.new_context(permissions=["camera", "clipboard-read", "clipboard-write"])
    context.add_init_script(KEEP)
    no_hub(context)
    page = context.new_page()
    bugs: list[str] = []
    page.on("pageerror", lambda error: bugs.append(str(error)))
    page.goto(revisited_site + PAGE)
    looker = Looker(page)
    expect(looker.status).to_have_text("Done.", timeout=START_MS)
    yield looker
    context.close()
    assert not bugs


@pytest.fixture(scope="module")
def picture(emoji: None) -> bytes:
    """A PNG of three things on grey."""
    from scenes.glyphs import of_font

    canvas = image.new("RGB", SIZE, (200, 205, 210))
    for glyph, place in zip(of_font("🐶🍓🚀"), ((14, 20), (96, 90), (170, 30)), strict=True):
        small = glyph.resize((glyph.width // 2, glyph.height // 2))
        canvas.paste(small, place, small)
    file = io.BytesIO()
    canvas.save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def shown(looker: Looker, picture: bytes) -> Looker:
    """The page with that picture."""
    return looker.choose(picture)


def test_a_scene_is_looked_at_at_once(looker: Looker) -> None:
    assert looker.found()
    expect(looker.counts).to_contain_text("thing")
    expect(looker.error).to_be_hidden()
    expect(looker.page.get_by_test_id("stats")).to_contain_text("ms")
    expect(looker.page.get_by_test_id("knows")).to_contain_text("octopus")


def test_things_of_a_scene_move_by_keys(looker: Looker) -> None:
    before = looker.looks()
    looker.press("new-scene").has_looked(before)
    before, colours = looker.looks(), looker.colours()
    looker.view.focus()
    for key in ("Enter", "ArrowRight", "ArrowDown"):
        looker.page.keyboard.press(key)
    expect(looker.status).to_contain_text("The arrow keys move: ")
    looker.has_looked(before)
    assert looker.colours() != colours
    assert looker.page.evaluate("document.activeElement.id") == "view"


def test_things_of_a_scene_are_dragged(looker: Looker) -> None:
    box, mouse = looker.view.bounding_box(), looker.page.mouse
    assert box is not None
    for place in range(16 * 12):
        x, y = box["x"] + box["width"] * (place % 16) / 16, box["y"] + box["height"] * (place // 16) / 12
        mouse.move(x, y)
        if looker.view.evaluate("(it) => it.style.cursor") == "grab":
            break
    else:
        pytest.fail("there is nothing to drag")
    before, colours = looker.looks(), looker.colours()
    mouse.down()
    mouse.move(x + 60, y + 10, steps=3)
    mouse.up()
    looker.has_looked(before)
    assert looker.colours() != colours


def test_link_has_the_scene_and_the_look(looker: Looker) -> None:
    looker.press("share")
    expect(looker.page.get_by_test_id("share-note")).to_contain_text("was copied")
    fragment = looker.page.url.partition("#")[2]
    assert dict(pair.split("=") for pair in fragment.split("&")).keys() == {"scene", "threshold", "masks", "boxes"}
    before, colours = looker.looks(), looker.colours()
    looker.page.evaluate("location.hash = 'scene=12&threshold=0.5'")
    looker.has_looked(before)
    expect(looker.page.get_by_test_id("threshold-shown")).to_have_text("0.50")
    assert looker.colours() != colours
    looker.page.evaluate("location.hash = ''")


def test_a_picture_gives_the_native_numbers(shown: Looker, picture: bytes) -> None:
    finder = SceneFinder(SceneDetector.from_files(MODEL / "config.json", MODEL / "model.safetensors"))
    pixels = np.asarray(image.open(io.BytesIO(picture)))
    threshold = float(shown.page.get_by_test_id("threshold").input_value())
    (wanted,) = finder.find([pixels], threshold)
    expect(shown.things).to_have_count(len(wanted.labels))  # the last look may have been at what was there before
    found = shown.found()
    assert [label for label, _ in found] == [finder.labels[label] for label in wanted.labels]
    assert [score for _, score in found] == pytest.approx(wanted.scores, abs=0.0051)  # the page shows two digits
    assert {"dog", "strawberry", "rocket"} <= {label for label, _ in found}


def test_threshold_masks_and_lights(shown: Looker) -> None:
    page, slider = shown.page, shown.page.get_by_test_id("threshold")
    count, colours = len(shown.found()), shown.colours()
    page.get_by_test_id("masks").select_option("off")
    without = shown.colours()
    assert without != colours
    page.get_by_test_id("masks").select_option("on")
    assert shown.colours() == colours
    shown.things.first.hover()
    assert shown.colours() != colours
    page.mouse.move(0, 0)
    slider.fill("0.95")
    expect(page.get_by_test_id("threshold-shown")).to_have_text("0.95")
    assert len(shown.found()) <= count
    slider.fill("0.15")
    assert len(shown.found()) >= count
    slider.fill("0.4")


def test_the_picture_is_saved_with_its_marks(shown: Looker, picture: bytes) -> None:
    with shown.page.expect_download() as download:
        shown.press("save")
    saved = image.open(download.value.path()).convert("RGB")
    assert saved.size == SIZE
    assert (np.asarray(saved) != np.asarray(image.open(io.BytesIO(picture)))).mean() > 0.02


def test_pictures_are_pasted_and_dropped(looker: Looker, picture: bytes, tmp_path: Path) -> None:
    import base64

    before = looker.looks()
    looker.page.evaluate(PASTE, base64.b64encode(picture).decode())
    found = looker.has_looked(before).found()
    path = tmp_path / "some.png"
    path.write_bytes(picture)
    before = looker.looks()
    drop(looker.page, {path.name: path})
    assert looker.has_looked(before).found() == found
    path.write_text("no picture")
    drop(looker.page, {"notes.txt": path})
    looker.fails_with("notes.txt is not a picture")
    assert looker.found() == found  # nothing is lost


def test_a_picture_that_is_decoded_late_does_not_replace_the_next_choice(looker: Looker, picture: bytes) -> None:
    looker.page.evaluate(HOLD)
    before = looker.looks()
    file = {"name": "late.png", "mimeType": "image/png", "buffer": picture}
    looker.page.get_by_test_id("picture-file").set_input_files(file)  # type: ignore[arg-type]
    looker.press("new-scene").has_looked(before)
    seen = looker.colours()
    looker.page.evaluate("window.decode()")
    assert looker.colours() == seen


def test_the_camera_is_live_until_it_is_stopped(looker: Looker) -> None:
    looker.press("camera")
    expect(looker.page.get_by_test_id("rate")).to_contain_text("frames a second", timeout=START_MS)
    expect(looker.page.get_by_test_id("camera")).to_have_text("Stop the camera")
    expect(looker.status).to_have_text("Looking through the camera.")
    looker.press("stop")
    expect(looker.page.get_by_test_id("camera")).to_have_text("Use the camera")
    expect(looker.page.get_by_test_id("rate")).to_have_text("")
    assert looker.page.evaluate(IS_OFF)
    expect(looker.page.get_by_test_id("stop")).to_be_disabled()


def test_a_camera_that_is_lost_leaves_its_last_picture(looker: Looker) -> None:
    before = looker.looks()
    looker.press("camera").has_looked(before)
    looker.page.evaluate("camera.getTracks()[0].dispatchEvent(new Event('ended'))")
    looker.fails_with("The camera is gone", "press the button again")
    expect(looker.page.get_by_test_id("camera")).to_have_text("Use the camera")
    assert looker.page.evaluate(IS_OFF)


def test_a_refused_camera(looker: Looker, picture: bytes) -> None:
    found = looker.choose(picture).found()
    looker.page.evaluate(REFUSE)
    looker.press("camera").fails_with("may not use the camera", "choose a picture")
    assert looker.found() == found


def test_axe_finds_no_violation_in_results(looker: Looker, axe: str, picture: bytes) -> None:
    looker.choose(picture)
    looker.page.evaluate(axe)
    expect_no_violation(looker.page, "with things")
