"""wasm_examples/whisper in Chromium: sounds from addresses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.conftest import START_MS, wait_for
from tests.browser.host import Host, hosting
from tests.browser.listening import MOST_WRONG, PAGE, PHRASES, Listener, words_wrong

NAME = "%3Cimg%20src=x%20onerror=alert(1)%3E.wav"
SHOWN = "<img src=x onerror=alert(1)>.wav"


@pytest.fixture(scope="module")
def host(sounds: Path) -> Iterator[Host]:
    sound = (sounds / "0.wav").read_bytes()
    with hosting({"talk.wav": sound, NAME: sound, "page.html": b"<!doctype html>" * 99, "empty.wav": b""}) as host:
        yield host


def fetch(listener: Listener, address: str) -> Listener:
    listener.page.locator("details", has=listener.page.get_by_test_id("address")).evaluate("(it) => it.open = true")
    listener.page.get_by_test_id("address").fill(address)
    listener.page.evaluate("document.getElementById('status').textContent = ''")  # it may say what happened before
    return listener.press("fetch")


@pytest.mark.parametrize("mode", ["plain", "chunked"])
def test_a_sound_of_another_site(mode: str, shared: Listener, host: Host) -> None:
    fetch(shared, host.url(f"{mode}/talk.wav"))
    expect(shared.page.get_by_test_id("sound-name")).to_contain_text("talk.wav, 0:0", timeout=START_MS)
    shared.is_done()
    assert words_wrong(shared.text.text_content(), PHRASES[0]) <= MOST_WRONG
    expect(shared.player).to_be_visible()


def test_a_broken_download_continues(shared: Listener, host: Host) -> None:
    host.breaks_at = 5000
    fetch(shared, host.url("weak/talk.wav"))
    wait_for(shared.page, lambda: host.requests["/weak/talk.wav"] == 2)
    expect(shared.status).to_have_text("Done.", timeout=START_MS)
    assert words_wrong(shared.text.text_content(), PHRASES[0]) <= MOST_WRONG


def test_a_name_is_text(shared: Listener, host: Host) -> None:
    fetch(shared, host.url(f"plain/{NAME}"))
    expect(shared.page.get_by_test_id("sound-name")).to_contain_text(SHOWN, timeout=START_MS)
    shared.is_done()
    expect(shared.page.locator("main img")).to_have_count(0)


@pytest.mark.parametrize(
    ("address", "messages"),
    [
        ("", ("There is no address yet", "https://")),
        ("talk.wav", ("is not the address of a sound", "https://")),
        ("javascript:alert(1)", ("is not the address of a sound",)),
        ("http://example.org/talk.wav", ("is not secure",)),
        ("closed/talk.wav", ("could not be fetched", "CORS")),
        ("plain/nothing.wav", ("the server answers 404",)),
        ("huge/talk.wav", ("more than 1 GiB", "Download it and choose the file")),
        ("cut/talk.wav", ("talk.wav could not be fetched completely", "Try again")),
        ("plain/page.html", ("page.html cannot be read as sound",)),
        ("plain/empty.wav", ("empty.wav is empty",)),
    ],
)
def test_addresses_without_a_sound(address: str, messages: tuple[str, ...], shared: Listener, host: Host) -> None:
    fetch(shared, host.url(address) if "/" in address and ":" not in address else address).fails_with(*messages)
    expect(shared.page.get_by_test_id("hearing")).to_be_hidden()


def test_a_download_is_stopped_and_keeps_the_last_text(shared: Listener, host: Host) -> None:
    fetch(shared, host.url("plain/talk.wav")).is_done()
    expect(shared.page.get_by_test_id("sound-name")).to_contain_text("talk.wav, ")
    text = shared.text.text_content() or ""
    fetch(shared, host.url("slow/talk.wav"))
    expect(shared.page.get_by_test_id("hearing")).to_contain_text("Fetching talk.wav, ")
    shared.press("stop")
    expect(shared.status).to_have_text("Stopped.", timeout=START_MS)
    expect(shared.page.get_by_test_id("hearing")).to_be_hidden()
    expect(shared.text).to_have_text(text)


def test_a_link_names_a_sound_and_fetches_nothing(browser: Browser, site: str, host: Host) -> None:
    context = browser.new_context()
    page = context.new_page()
    before = host.requests.total()
    address = host.url("plain/talk.wav")
    page.goto(f"{site}{PAGE}#sound={address.replace(':', '%3A').replace('/', '%2F')}&live=off")
    expect(page.get_by_test_id("address")).to_be_visible()
    expect(page.get_by_test_id("address")).to_have_value(address)
    expect(page.get_by_test_id("live-on")).to_have_value("off")
    assert host.requests.total() == before
    context.close()
