"""Whisper decoding compared with OpenAI's code: equal tokens, texts and probabilities for every option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.whisper_pair import make_pair, noise

from tallow.audio import log_mel_spectrogram
from tallow.models.whisper import decode, detect_language, search

openai = pytest.importorskip("whisper")

# OpenAI's tokenizer leaves its vocabulary file open, and its beam search sorts tensors with NumPy.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning"),
]

OPTIONS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "translate": {"task": "translate"},
    "without timestamps": {"without_timestamps": True},
    "beams": {"beam_size": 3},
    "patience and length penalty": {"beam_size": 2, "patience": 2.0, "length_penalty": 0.5},
    "prompt and prefix": {"prompt": "Hello there.", "prefix": "So it", "sample_len": 20},
    "ids as prompt": {"prompt": list(range(1000, 1060)), "prefix": [2000]},
    "nothing suppressed": {"suppress_tokens": None, "suppress_blank": False, "sample_len": 25},
    "some suppressed": {"suppress_tokens": [*range(100, 30000), 50260]},
    "any first time": {"max_initial_timestamp": None},
    "early first time": {"max_initial_timestamp": 0.1},
}


@pytest.fixture(scope="module", params=[(0, 3.0), (2, 6.0), (3, 3.0)])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Any:
    return make_pair(tmp_path_factory.mktemp("pair"), data_dir, seed=request.param[0], spread=request.param[1])


@pytest.fixture(scope="module")
def mels() -> np.ndarray[Any, Any]:
    return np.stack([log_mel_spectrogram(noise(30, seed), padding=0) for seed in (0, 1)])


def check(got: Any, expected: Any) -> None:
    assert got.tokens == expected.tokens
    assert got.text == expected.text
    assert got.language == expected.language
    assert got.temperature == expected.temperature
    assert got.avg_logprob == pytest.approx(expected.avg_logprob, abs=1e-4)
    assert got.no_speech_prob == pytest.approx(expected.no_speech_prob, abs=1e-5)
    assert got.compression_ratio == pytest.approx(expected.compression_ratio)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
def test_options(options: dict[str, Any], pair: Any, mels: Any) -> None:
    reference, model = pair
    for got, mel in zip(decode(model, mels, language="de", **options), mels, strict=True):  # both at once
        check(got, reference.decode(torch.tensor(mel), openai.DecodingOptions(fp16=False, language="de", **options)))


def test_the_models_end_texts_and_emit_timestamps(pair: Any, mels: Any) -> None:
    """Check the model itself: otherwise the comparison would test nothing."""
    results = [decode(pair[1], mel, language=language) for mel in mels for language in ("de", "en")]
    begin = pair[1].tokenizer.timestamp_begin
    assert all(any(token >= begin for token in result.tokens) for result in results)
    assert any(len(result.tokens) < 32 for result in results)


def test_language_detection(pair: Any, mels: Any) -> None:
    reference, model = pair
    _, expected = reference.detect_language(torch.tensor(mels))
    for ours, theirs in zip(detect_language(model, mels), expected, strict=True):
        assert ours.keys() == theirs.keys()
        assert all(ours[code] == pytest.approx(theirs[code], abs=1e-5) for code in ours)
    check(decode(model, mels[0]), reference.decode(torch.tensor(mels[0]), openai.DecodingOptions(fp16=False)))


@pytest.mark.parametrize("options", [{"temperature": 0.7}, {"temperature": 1.0, "best_of": 3}])
def test_draws(options: dict[str, Any], pair: Any, mels: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both draw with the same random numbers."""
    reference, model = pair

    class Categorical:
        def __init__(self, logits: torch.Tensor) -> None:
            self.logits = logits

        def sample(self) -> torch.Tensor:
            return torch.tensor(search.draw(self.logits.numpy(), rng))

    monkeypatch.setattr("whisper.decoding.Categorical", Categorical)
    rng = np.random.default_rng(5)
    expected = reference.decode(torch.tensor(mels[0]), openai.DecodingOptions(fp16=False, language="de", **options))
    check(decode(model, mels[0], language="de", seed=5, **options), expected)


def test_a_model_of_english(tmp_path: Path, data_dir: Path, mels: Any) -> None:
    reference, model = make_pair(tmp_path, data_dir, multilingual=False)
    options = openai.DecodingOptions(fp16=False, language="en")
    check(decode(model, mels[0]), reference.decode(torch.tensor(mels[0]), options))
