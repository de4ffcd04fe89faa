"""The page wasm_examples/whisper, as a user sees it, and speech for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import BrowserContext, Page, expect
from spoken import corpus
from spoken.espeak import Espeak, Voice
from spoken.evaluation import edits
from tests.browser.conftest import START_MS
from tests.browser.hub import no_hub

PAGE = "wasm_examples/whisper/"
RATE = 16000
PHRASES = ("turn left", "set the timer to twenty minutes", "three hundred forty two", "open the red door")
MOST_WRONG = 1  # of 15 words; the model card states the error rate


def say(espeak: Espeak, phrase: str) -> np.ndarray[Any, Any]:
    """Synthesize speech with eSpeak NG, with silence around it, in a voice the packaged model was not trained on."""
    samples, _, _ = corpus.say(espeak, corpus.Utterance(tuple(phrase.split()), Voice("en-us+f3")))
    return np.pad(samples / 32768, RATE // 2)


def words_wrong(text: str | None, spoken: str) -> int:
    return edits(spoken.split(), (text or "").split())


class Listener:
    """A page object: what a user does and sees."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.status = page.get_by_test_id("status")
        self.error = page.get_by_test_id("error")
        self.name = page.get_by_test_id("model-name")
        self.text = page.get_by_test_id("transcript")
        self.segments = page.get_by_test_id("segment")
        self.stats = page.get_by_test_id("stats")
        self.player = page.get_by_test_id("player")

    def open(self, site: str) -> Listener:
        self.page.goto(site + PAGE)
        expect(self.status).to_have_text("Ready.", timeout=START_MS)
        return self

    def press(self, name: str) -> Listener:
        self.page.get_by_test_id(name).click()
        return self

    def choose(self, *files: Path) -> Listener:
        self.page.get_by_test_id("model-file").set_input_files(files)
        return self

    def hear(self, file: Path) -> Listener:
        self.page.get_by_test_id("audio-file").set_input_files(file)
        return self.press("transcribe")

    def is_done(self) -> Listener:
        expect(self.status).to_contain_text("Done.", timeout=START_MS)
        expect(self.error).to_be_hidden()
        return self

    def fails_with(self, *words: str) -> Listener:
        expect(self.error).to_be_visible(timeout=START_MS)
        for word in words:
            expect(self.error).to_contain_text(word)
        assert "Traceback" not in (self.error.text_content() or "")
        return self

    def saved(self, kind: str) -> str:
        with self.page.expect_download() as download:
            self.press(f"download-{kind}")
        return download.value.path().read_text(encoding="utf-8")


def open_page(context: BrowserContext, site: str) -> Iterator[Listener]:
    no_hub(context)
    page = context.new_page()
    bugs: list[str] = []
    page.on("pageerror", lambda error: bugs.append(str(error)))
    yield Listener(page).open(site)
    context.close()
    assert not bugs
