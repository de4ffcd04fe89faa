"""Run inside Pyodide by test_whisper_in_pyodide.py: spectrograms, logits and texts match openai-whisper.

support.whisper_pair.write_cases wrote /cases.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.whisper_options import DECODING, TRANSCRIBING

import tallow as tl
from tallow.audio import MelWindows, log_mel_spectrogram
from tallow.models import Whisper
from tallow.models.whisper import decode, transcribe

CASES = Path("/cases")
SOUND = np.load(CASES / "sound.npy")
ARRAYS = dict(np.load(CASES / "expected.npz"))
EXPECTED = json.loads((CASES / "expected.json").read_text())
WINDOW = ARRAYS["mel"][:, :3000]
MEL_ATOL = 1e-5
# Both compute in float32; the logits are sums of a few dozen terms.
LOGITS_ATOL = 1e-3


@pytest.fixture(scope="module")
def model() -> Whisper:
    model = Whisper.from_pretrained(CASES / "tiny.pt")
    model.folder = Path("/data")  # for the vocabulary files
    return model


def test_spectrogram() -> None:
    np.testing.assert_allclose(log_mel_spectrogram(SOUND, padding=480_000)[:, :4100], ARRAYS["mel"], atol=MEL_ATOL)
    windows = MelWindows(np.array_split(SOUND, 9))
    np.testing.assert_allclose(windows.window(1000), ARRAYS["mel"][:, 1000:4000], atol=MEL_ATOL)


def test_logits(model: Whisper) -> None:
    with tl.no_grad():
        logits = model(tl.tensor(WINDOW[None]), tl.tensor(ARRAYS["tokens"])).numpy()
    np.testing.assert_allclose(logits, ARRAYS["logits"], atol=LOGITS_ATOL)


@pytest.mark.parametrize("name", DECODING)
def test_decoded(name: str, model: Whisper) -> None:
    got: Any = decode(model, WINDOW, language="de", **DECODING[name])
    expected = EXPECTED["decoded"][name]
    assert got.tokens == expected["tokens"]
    assert got.text == expected["text"]
    assert got.avg_logprob == pytest.approx(expected["avg_logprob"], abs=1e-4)


def test_transcript(model: Whisper) -> None:
    got = transcribe(model, SOUND, **TRANSCRIBING)
    assert got.language == EXPECTED["language"]
    assert [segment.tokens for segment in got.segments] == [tokens for _, _, tokens, _ in EXPECTED["segments"]]
    for segment, (start, end, _, text) in zip(got.segments, EXPECTED["segments"], strict=True):
        assert [segment.start, segment.end] == pytest.approx([start, end], abs=1e-6)
        assert segment.text == text
