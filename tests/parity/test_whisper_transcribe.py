"""Whisper transcripts compared with OpenAI's code: equal segments, times and words, window by window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.whisper_pair import make_pair, noise

from tallow.models.whisper import transcribe

pytest.importorskip("whisper")

# OpenAI's tokenizer leaves its vocabulary file open, its beam search sorts tensors with NumPy, and word times of a
# translation raise a warning.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Word-level timestamps:UserWarning"),
]

OPTIONS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "no context": {"condition_on_previous_text": False},
    "prompt": {"initial_prompt": "Alice met Bob."},
    "prompt of all windows": {"initial_prompt": "Alice met Bob.", "carry_initial_prompt": True},
    "words": {"word_timestamps": True},
    "words of a translation": {"word_timestamps": True, "task": "translate", "language": "ja"},
    "hallucinations": {"word_timestamps": True, "hallucination_silence_threshold": 0.5},
    "clips": {"clip_timestamps": [3.0, 10.0, 20.5]},
    "without timestamps": {"without_timestamps": True, "language": "fr"},
    "beams": {"no_speech_threshold": None, "beam_size": 2, "language": "de"},
    "silence": {"no_speech_threshold": 1e-9, "logprob_threshold": 0.0},
}
SECONDS = {"start", "end", "avg_logprob", "compression_ratio", "no_speech_prob"}


@pytest.fixture(scope="module", params=[(2, 6.0), (3, 3.0)], ids=["sure", "between"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Any:
    seed, spread = request.param
    return make_pair(tmp_path_factory.mktemp("pair"), data_dir, seed=seed, spread=spread)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
def test_options(options: dict[str, Any], pair: Any) -> None:
    reference, model = pair
    audio = noise(37.3)
    expected = reference.transcribe(audio, fp16=False, temperature=0.0, **options)
    got = transcribe(model, audio, temperature=0.0, **options)
    assert got.text == expected["text"]
    assert got.language == expected["language"]
    assert len(got.segments) == len(expected["segments"])
    for ours, theirs in zip(got.segments, expected["segments"], strict=True):
        for name in theirs.keys() - {"words"}:
            value = pytest.approx(theirs[name], abs=1e-4) if name in SECONDS else theirs[name]
            assert getattr(ours, name) == value, name
        assert [word.word for word in ours.words or ()] == [word["word"] for word in theirs.get("words", ())]
        for word, their_word in zip(ours.words or (), theirs.get("words", ()), strict=True):
            for name in ("start", "end", "probability"):
                assert getattr(word, name) == pytest.approx(their_word[name], abs=1e-4), name


@pytest.mark.parametrize("thresholds", [{"logprob_threshold": 0.0}, {"compression_ratio_threshold": 0.5}], ids=str)
def test_fallback(thresholds: dict[str, Any], pair: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No temperature gives a text that is good enough; both draw the second likeliest token."""
    reference, model = pair

    class Categorical:
        def __init__(self, logits: torch.Tensor) -> None:
            self.logits = logits

        def sample(self) -> torch.Tensor:
            return self.logits.topk(2).indices[:, 1]

    monkeypatch.setattr("whisper.decoding.Categorical", Categorical)
    monkeypatch.setattr("tallow.models.whisper.search.draw", lambda logits, _: np.argsort(-logits, -1)[:, 1])
    options = {"temperature": (0.0, 0.4, 0.8), "no_speech_threshold": None, "best_of": 2, "beam_size": 2, **thresholds}
    audio = noise(33.0)
    expected = reference.transcribe(audio, fp16=False, language="de", **options)
    got = transcribe(model, audio, language="de", **options)
    assert 0.8 in {segment.temperature for segment in got.segments}  # a window without words repeats nothing
    assert [segment.tokens for segment in got.segments] == [segment["tokens"] for segment in expected["segments"]]
    assert got.text == expected["text"]
