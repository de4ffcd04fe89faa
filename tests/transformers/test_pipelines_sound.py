"""Speech recognition: the parts of a sound are joined as transformers joins them."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.transformers.both import both
from tests.transformers.folders import Folders

from tallow.errors import ArgumentError, UnsupportedError
from tallow.transformers.pipelines.transcripts import Part, Tokens, Transcript, joined

ENGLISH, GERMAN, BEGIN = 91, 92, 100
SPECIAL = frozenset(range(90, 100))


class Letters:
    """A tokenizer of letters, with the special tokens that transformers' function asks for."""

    all_special_ids = sorted(SPECIAL)

    def convert_tokens_to_ids(self, token: str) -> int:
        return {"<|startofprev|>": 98, "<|startoftranscript|>": 90, "<|notimestamps|>": 99}[token]

    def decode(self, ids: list[int]) -> str:
        names = {ENGLISH: "<|en|>", GERMAN: "<|de|>"}
        return "".join(names.get(i, "<|x|>") if i in SPECIAL else chr(97 + i) for i in ids)

    def _strip_prompt(self, ids: list[int], *marks: int) -> list[int]:
        return ids


def written(rng: random.Random) -> list[int]:
    """Return what a model may write for a part: letters, times that mostly rise, languages and other marks."""
    ids = [rng.choice([ENGLISH, GERMAN])] if rng.random() < 0.6 else []
    time = 0
    for _ in range(rng.randrange(10)):
        kind = rng.random()
        if kind < 0.35:
            time = max(0, min(1500, time + rng.randrange(-20, 300)))
            ids += [BEGIN + time] * rng.choice([1, 2])
        else:
            ids.append(95 if kind < 0.4 else rng.randrange(20))
    return ids


@pytest.mark.parametrize("has_times", [True, False])
@pytest.mark.filterwarnings("ignore:the model wrote no end")
def test_parts_become_passages_as_in_transformers(has_times: bool) -> None:
    whisper = pytest.importorskip("transformers.models.whisper.tokenization_whisper")
    rng = random.Random(0)
    for _ in range(300):
        count = rng.randrange(1, 4)
        strides = [(30.0, 5.0 if i else 0.0, 5.0 if i < count - 1 else 0.0) for i in range(count)]
        parts = [Part(written(rng), [], stride if count > 1 else None) for stride in strides]
        outputs = [
            {"tokens": np.array([part.ids], int)} | ({"stride": part.stride} if part.stride else {}) for part in parts
        ]
        options = {"return_timestamps": has_times, "return_language": True, "time_precision": 0.02}
        text, others = whisper._decode_asr(Letters(), outputs, **options)
        transcript = Transcript(BEGIN, 0.02, 30.0, {ENGLISH: "english", GERMAN: "german"}, SPECIAL, has_times)
        for part in parts:
            transcript.add(part)
        found = [(passage, Letters().decode(joined(passage.tokens).ids)) for passage in transcript.end()]
        assert "".join(each for _, each in found) == text
        expected = [
            (chunk["language"], chunk.get("timestamp", (None, None)), chunk["text"]) for chunk in others["chunks"]
        ]
        times = [(passage.start, passage.end) if has_times else (None, None) for passage, _ in found]
        assert [(p.language, time, text) for (p, text), time in zip(found, times, strict=True)] == expected


def test_overlaps_with_times_are_joined_as_in_transformers() -> None:
    whisper = pytest.importorskip("transformers.models.whisper.tokenization_whisper")
    rng = random.Random(1)
    for _ in range(300):
        parts = []
        for _ in range(rng.randrange(1, 4)):
            ids = [rng.randrange(6) for _ in range(rng.randrange(9))]
            starts = sorted(rng.randrange(40) / 10 for _ in ids)
            parts.append(Tokens(ids, [(start, start + 0.5) for start in starts]))
        ids, times = whisper._find_longest_common_sequence([p.ids for p in parts], [p.times for p in parts])
        assert joined(parts) == (ids, times)


SOUND = np.random.default_rng(0).uniform(-0.3, 0.3, 40000).astype(np.float32)


def test_channels_and_rates() -> None:
    from tallow.transformers.pipelines.inputs import samples_of

    stereo = np.stack([SOUND, -SOUND])
    np.testing.assert_allclose(samples_of(stereo, 16000)[0], 0, atol=1e-7)
    samples, others = samples_of({"raw": SOUND, "sampling_rate": 32000, "id": 3}, 16000)
    assert abs(len(samples) - len(SOUND) / 2) < 10
    assert others == {"id": 3}
    with pytest.raises(ArgumentError, match="transpose"):
        samples_of(stereo.T, 16000)
    with pytest.raises(ArgumentError, match="sampling_rate"):
        samples_of({"array": SOUND}, 16000)


def test_only_whisper_hears() -> None:
    from tallow.transformers.pipelines import AutomaticSpeechRecognitionPipeline

    with pytest.raises(UnsupportedError, match="choose a Whisper"):
        AutomaticSpeechRecognitionPipeline(SimpleNamespace(config=SimpleNamespace(model_type="bert")))


def test_sounds_are_labelled_as_in_transformers(folders: Folders) -> None:
    names = {0: "hum", 1: "buzz", 2: "click"}
    folder = folders("WhisperForAudioClassification", id2label=names, label2id={name: i for i, name in names.items()})
    sound = np.sin(np.arange(8000, dtype=np.float32) / 9)

    def program(tf: Any, torch: Any) -> Any:
        extractor = tf.WhisperFeatureExtractor(chunk_length=1)
        pipe = tf.pipeline("audio-classification", model=folder, feature_extractor=extractor, device=-1)
        again = pipe({"raw": sound, "sampling_rate": 16000}, top_k=2, function_to_apply="sigmoid")
        return [pipe(sound), again, pipe([sound, sound[:4000]], top_k=1)]

    both(program)
