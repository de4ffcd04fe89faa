"""The packaged speech model loads on every platform, and writes nothing for silence."""

from __future__ import annotations

import numpy as np
import pytest

import tallow as tl
from tallow.models.built_in import spoken
from tallow.models.whisper import Whisper, transcribe

SAMPLE_RATE_HZ = 16000


@pytest.fixture(scope="module")
def model() -> Whisper:
    return spoken.load()


def test_files_are_small() -> None:
    assert sum(path.stat().st_size for path in spoken.FOLDER.iterdir() if path.is_file()) < 3_000_000


def test_weights_are_widened_and_fit_the_vocabulary(model: Whisper) -> None:
    assert {parameter.dtype for parameter in model.parameters()} == {tl.float32}
    assert model.tokenizer.vocab_size == model.config.vocab_size
    assert not model.tokenizer.is_multilingual
    assert {parameter.dtype for parameter in spoken.load(dtype=tl.float16).parameters()} == {tl.float16}


def test_card_states_the_number_of_parameters(model: Whisper) -> None:
    card = (spoken.FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters" in card


@pytest.mark.parametrize("text", ["turn left ninety degrees", "set the alarm for Wednesday at eleven forty five"])
def test_each_word_is_a_token(model: Whisper, text: str) -> None:
    ids = model.tokenizer.encode(f" {text}")
    assert len(ids) == len(text.split())
    assert model.tokenizer.decode(ids) == f" {text}"


@pytest.mark.parametrize(("seconds", "loudness"), [(0.0, 0.0), (0.5, 1e-3), (12.0, 0.0), (6.0, 1e-3)])
def test_silence_and_faint_noise_give_no_text(model: Whisper, seconds: float, loudness: float) -> None:
    noise = np.random.default_rng(0).standard_normal(round(seconds * SAMPLE_RATE_HZ)).astype(np.float32)
    assert transcribe(model, noise * np.float32(loudness)).text.strip() == ""
