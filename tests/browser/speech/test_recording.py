"""wasm_examples/whisper in Chromium: the microphone, the text while one speaks, and what can go wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Browser, Dialog, Page, Route, expect
from spoken.espeak import Espeak
from tests.browser.conftest import START_MS, wait_for, wait_until
from tests.browser.dropping import drop
from tests.browser.listening import MOST_WRONG, PAGE, PHRASES, RATE, Listener, open_page, say, words_wrong

from tallow.audio import write_wav

SPOKEN = " ".join(PHRASES[:2])
NOTHING = "Nothing was recorded."
# Lets a test disconnect the microphone, and suspend the recording as phones do.
KEEP = """
    const original = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = async (wishes) => (window.microphone = await original(wishes));
    window.AudioContext = class extends AudioContext {
      constructor(...options) { super(...options); window.recorder = this; }
    };
"""


@pytest.fixture(scope="module")
def spoken_once(tmp_path_factory: pytest.TempPathFactory, espeak: Espeak) -> Path:
    path = tmp_path_factory.mktemp("sounds") / "microphone.wav"
    phrases = [say(espeak, phrase) for phrase in PHRASES[:2]]
    write_wav(path, np.concatenate([np.zeros(RATE // 2), *phrases]), RATE)
    return path


@pytest.fixture(scope="module")
def with_microphone(launch: Callable[..., Browser], spoken_once: Path) -> Iterator[Browser]:
    """A browser whose microphone plays two phrases, once each time it is opened, then silence."""
    browser = launch("--use-fake-device-for-media-stream", f"--use-file-for-fake-audio-capture={spoken_once}%noloop")
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def shared(with_microphone: Browser, site: str) -> Iterator[Listener]:
    """A page with the packaged model and access to the microphone, shared by the tests."""
    context = with_microphone.new_context(permissions=["microphone"])
    context.add_init_script(KEEP)
    yield from open_page(context, site)


@pytest.fixture
def fresh(with_microphone: Browser, site: str) -> Iterator[Page]:
    """A page that has not been opened, for a test that changes what it loads or what the browser offers."""
    context = with_microphone.new_context(permissions=["microphone"])
    page = context.new_page()
    yield page
    context.close()


def start(listener: Listener, seconds: int = 1) -> Listener:
    listener.press("record")
    lasts(listener.page, seconds)
    expect(listener.page.get_by_test_id("record")).to_have_text("End")
    return listener


def lasts(page: Page, seconds: int) -> None:
    """Wait until a recording has lasted that long. Each second is shown for a second only."""
    wait_until(page, f"document.querySelector('[data-testid=elapsed]').textContent >= '0:0{seconds}'")


def test_text_while_one_speaks_and_of_the_whole_recording(shared: Listener, tmp_path: Path) -> None:
    live, wave = shared.page.get_by_test_id("live"), shared.page.get_by_test_id("wave")
    steady, draft = shared.page.get_by_test_id("live-steady"), shared.page.get_by_test_id("live-draft")
    colours = "(it) => getComputedStyle(it).color"
    wrong, wrong_live = [], []
    for _ in range(3):  # a busy machine drops some of the microphone's audio
        start(shared)
        expect(shared.status).to_have_text("Recording. Press End to transcribe it.")
        expect(live).to_be_visible()
        expect(live).to_contain_text("Grey words may still change.")
        expect(steady).to_contain_text("minutes", timeout=START_MS)
        wrong_live.append(words_wrong(steady.text_content(), SPOKEN))
        assert steady.evaluate(colours) != draft.evaluate(colours)
        expect(wave).to_be_visible()
        shared.press("record").is_done()
        expect(live).to_be_hidden()
        wrong.append(words_wrong(shared.text.text_content(), SPOKEN))
        if max(wrong[-1], wrong_live[-1]) <= MOST_WRONG:
            break
    assert min(wrong) <= MOST_WRONG
    assert min(wrong_live) <= MOST_WRONG + 1  # each part of it is heard alone
    expect(shared.player).to_be_visible()
    with shared.page.expect_download() as download:
        shared.press("save-sound")
    saved = tmp_path / "recording.wav"
    download.value.save_as(saved)
    assert soundfile.info(saved).duration == pytest.approx(float(wave.get_attribute("data-seconds") or 0), abs=0.1)


def test_live_text_is_a_setting(shared: Listener) -> None:
    shared.page.get_by_test_id("live-on").select_option("off")
    start(shared, 3)
    expect(shared.page.get_by_test_id("live")).to_be_hidden()
    expect(shared.page.get_by_test_id("live-steady")).to_have_text("")
    shared.press("stop").is_done()  # which ends it as well
    shared.page.get_by_test_id("live-on").select_option("on")


def test_an_idle_microphone_keeps_the_last_text(shared: Listener) -> None:
    """Two presses at once, and the sound of before is still there."""
    shared.page.get_by_test_id("sample").first.click()
    expect(shared.page.get_by_test_id("sound-name")).to_contain_text("timer.flac, ", timeout=START_MS)
    shared.is_done()
    text, seconds = shared.text.text_content(), shared.page.get_by_test_id("wave").get_attribute("data-seconds")
    assert text
    shared.page.get_by_test_id("record").evaluate("(it) => { it.click(); it.click(); }")
    expect(shared.status).to_contain_text(NOTHING)
    wait_until(shared.page, "window.microphone.getTracks().every(({ readyState }) => readyState === 'ended')")
    expect(shared.page.get_by_test_id("record")).to_have_text("Record")
    expect(shared.text).to_have_text(text)
    expect(shared.page.get_by_test_id("wave")).to_have_attribute("data-seconds", seconds or "")
    expect(shared.error).to_be_hidden()


def test_other_sounds_do_not_replace_a_recording(shared: Listener, spoken_once: Path) -> None:
    start(shared)
    drop(shared.page, {"other.wav": spoken_once})
    expect(shared.status).to_have_text("This would replace the recording. Press End first.")
    shared.page.get_by_test_id("sample").first.click()
    shared.page.get_by_test_id("audio-file").set_input_files(spoken_once)
    expect(shared.page.get_by_test_id("record")).to_have_text("End")
    shared.press("transcribe").is_done()  # ends it
    expect(shared.page.get_by_test_id("sound-name")).to_contain_text("recording.wav, 0:0")


def test_a_model_loaded_during_a_recording(shared: Listener) -> None:
    start(shared)
    shared.page.get_by_test_id("model").evaluate("(it) => it.dispatchEvent(new Event('change'))")
    expect(shared.status).to_have_text("Recording. Press End to transcribe it.")
    expect(shared.page.get_by_test_id("live-steady")).to_contain_text("minutes", timeout=START_MS)
    shared.press("record").is_done()
    assert (shared.text.text_content() or "").strip()


def test_microphone_that_is_unplugged(shared: Listener) -> None:
    start(shared)
    shared.page.evaluate("microphone.getTracks()[0].dispatchEvent(new Event('ended'))")
    shared.is_done()
    expect(shared.status).to_contain_text("The microphone is gone")
    expect(shared.page.get_by_test_id("record")).to_have_text("Record")
    assert shared.page.evaluate("microphone.getTracks()[0].readyState") == "ended"


def test_a_recording_that_the_browser_suspends_continues_when_the_page_is_seen(shared: Listener) -> None:
    start(shared)
    shared.page.evaluate("recorder.suspend()")
    shared.page.evaluate("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))")
    lasts(shared.page, 4)
    shared.press("record").is_done()


def test_the_browser_asks_before_a_recording_is_lost(shared: Listener) -> None:
    start(shared)
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    shared.page.once("dialog", stay)
    shared.page.evaluate("setTimeout(() => location.reload())")
    wait_for(shared.page, lambda: asked)
    assert asked == ["beforeunload"]
    shared.press("record").is_done()


def test_microphone_that_is_refused(with_microphone: Browser, site: str, spoken_once: Path) -> None:
    for listener in open_page(with_microphone.new_context(viewport={"width": 360, "height": 740}), site):
        listener.press("record").fails_with("may not use the microphone", "Allow it")
        expect(listener.status).to_have_text(NOTHING)
        listener.hear(spoken_once).is_done()
        width: Any = listener.page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360  # a phone's


NO_MICROPHONE = "async () => { throw new DOMException('', 'NotFoundError'); }"
MUTED = "async () => new AudioContext().createMediaStreamDestination().stream"


@contextmanager
def microphone(listener: Listener, given: str) -> Iterator[None]:
    """Let the browser give another microphone."""
    devices = "navigator.mediaDevices"
    listener.page.evaluate(f"() => {{ window.given = {devices}.getUserMedia; {devices}.getUserMedia = {given}; }}")
    yield
    listener.page.evaluate(f"() => {{ {devices}.getUserMedia = window.given; }}")


def test_no_microphone(shared: Listener) -> None:
    with microphone(shared, NO_MICROPHONE):
        shared.press("record").fails_with("There is no microphone.", "Connect one")
        expect(shared.status).to_have_text(NOTHING)


def test_a_muted_microphone(shared: Listener) -> None:
    with microphone(shared, MUTED):
        shared.press("record")
        expect(shared.status).to_contain_text("the microphone gives no sound", timeout=START_MS)
        shared.press("record").is_done()
    expect(shared.status).to_have_text("Done. No speech was found.")


def test_a_recording_outlives_its_live_text(fresh: Page, site: str) -> None:
    def refuse(route: Route) -> None:
        route.abort()

    fresh.route("**/live.js", refuse)
    listener = Listener(fresh).open(site)
    listener.press("record").fails_with("There is no live text", "The recording goes on")
    lasts(fresh, 5)
    listener.press("record").is_done()
    assert (listener.text.text_content() or "").strip()


def test_a_recording_begins_while_python_starts(fresh: Page, site: str) -> None:
    fresh.goto(site + PAGE)
    listener = start(Listener(fresh)).press("record").is_done()
    expect(listener.page.get_by_test_id("sound-name")).to_contain_text("recording.wav, 0:0")
