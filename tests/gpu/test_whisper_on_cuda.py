"""Whisper on `cuda`: the same texts and word times as on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.small_whisper import small_config

import tallow as tl
from tallow.models.whisper import Whisper, transcribe
from tallow.text.whisper import WhisperTokenizer

TOKENIZER = WhisperTokenizer({bytes([i]): i for i in range(256)}, 256 + 99 + 8 + 1501)
CONFIG = small_config(TOKENIZER.vocab_size)


@pytest.mark.parametrize("options", [{}, {"beam_size": 2}, {"temperature": 1.0, "seed": 3}], ids=str)
def test_transcripts(options: dict[str, Any], cuda: str) -> None:
    tl.manual_seed(0)
    model = Whisper(CONFIG).eval()
    model.tokenizer = TOKENIZER
    noise = np.random.default_rng(0).standard_normal(36_000).astype(np.float32) / 10
    options = {"temperature": 0.0, "word_timestamps": True, "no_speech_threshold": None, **options}
    expected = transcribe(model, noise, **options)
    assert expected.segments
    got = transcribe(model.to(cuda), noise, **options)
    assert got.text == expected.text
    for ours, theirs in zip(got.segments, expected.segments, strict=True):
        assert ours.tokens == theirs.tokens
        assert ours.start == pytest.approx(theirs.start)
        assert [word.end for word in ours.words or ()] == pytest.approx([word.end for word in theirs.words or ()])
