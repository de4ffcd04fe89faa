"""Fixtures of the speech page: sounds, models, and a page that the tests of a file share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser
from spoken.espeak import Espeak
from support.whisper_files import CONFIG, ggml
from tests.browser.listening import PHRASES, RATE, Listener, open_page, say

import tallow as tl
from tallow.audio import write_wav
from tallow.models import Whisper


@pytest.fixture(scope="session")
def site(revisited_site: str) -> str:
    return revisited_site


@pytest.fixture(scope="session")
def sounds(tmp_path_factory: pytest.TempPathFactory, espeak: Espeak) -> Path:
    """A folder of phrases, with `several.wav`, which has all, `long.wav`, which repeats them, and `silence.wav`."""
    folder = tmp_path_factory.mktemp("sounds")
    recordings = [say(espeak, phrase) for phrase in PHRASES]
    for i, samples in enumerate(recordings):
        write_wav(folder / f"{i}.wav", samples, RATE)
    write_wav(folder / "several.wav", np.concatenate(recordings), RATE)
    write_wav(folder / "long.wav", np.tile(np.concatenate(recordings), 20), RATE)
    write_wav(folder / "silence.wav", np.zeros(3 * RATE), RATE)
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained model in whisper.cpp's format, of 8 bits."""
    tl.manual_seed(0)
    path = tmp_path_factory.mktemp("models") / "tiny.bin"
    path.write_bytes(ggml(Whisper(CONFIG), kind=8))
    return path


@pytest.fixture(scope="module")
def shared(browser: Browser, site: str) -> Iterator[Listener]:
    """A page with the packaged model, shared by the tests of a file."""
    yield from open_page(browser.new_context(), site)
