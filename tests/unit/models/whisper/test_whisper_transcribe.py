"""Whisper transcripts of a tiny model: rules, windows, words, formats, and invalid options."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.small_whisper import small_config

import tallow as tl
from tallow.audio import Sound
from tallow.errors import ArgumentError, AudioError
from tallow.models.whisper import (
    DecodingOptions,
    DecodingResult,
    Segment,
    Transcript,
    Transcription,
    Whisper,
    Word,
    decode,
    decoding,
    detect_language,
    transcribe,
)
from tallow.models.whisper.rules import SuppressTokens, TimestampRules
from tallow.models.whisper.search import BeamSearch, Sampling, largest
from tallow.models.whisper.segments import Place, split
from tallow.models.whisper.timing import Aligned, median_filter, merge_marks, time_warp
from tallow.models.whisper.writers import WRITERS, timestamp
from tallow.text.whisper import WhisperTokenizer

RANKS = {bytes([i]): i for i in range(256)} | {b"he": 256, b" w": 257, b"ll": 258}
TOKENIZER = WhisperTokenizer(RANKS, len(RANKS) + 99 + 8 + 1501)
CONFIG = small_config(TOKENIZER.vocab_size)


@pytest.fixture(scope="module")
def model() -> Whisper:
    tl.manual_seed(0)
    model = Whisper(CONFIG).eval()
    model.tokenizer = TOKENIZER
    return model


def noise(seconds: float) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal(int(16000 * seconds)).astype(np.float32) / 10


def test_timestamps_are_pairs_and_increase(model: Whisper) -> None:
    for seed in range(5):
        mel = np.random.default_rng(seed).standard_normal((8, 100)).astype(np.float32)
        tokens = decode(model, mel, temperature=1.0, seed=seed).tokens
        times = [token for token in tokens if token >= TOKENIZER.timestamp_begin]
        assert times == sorted(times)
        assert tokens[0] in range(TOKENIZER.timestamp_begin, TOKENIZER.timestamp_begin + 51)
        assert not any(token in TOKENIZER.non_speech_tokens for token in tokens)
        is_time = [token >= TOKENIZER.timestamp_begin for token in tokens]
        assert not any(all(is_time[i : i + 3]) for i in range(len(tokens) - 2))


def test_rules_one_by_one() -> None:
    begin, first = 3, TOKENIZER.timestamp_begin
    rules = TimestampRules(TOKENIZER, begin, 0.5)

    def allowed(*text: int) -> np.ndarray[Any, Any]:
        logits = np.zeros((1, TOKENIZER.vocab_size), np.float32)
        logits[0, [7, TOKENIZER.eot]] = 20  # so likely that no sum of timestamp probabilities exceeds it
        rules(logits, [[0] * begin + list(text)])
        return np.flatnonzero(logits[0] > -np.inf)

    assert allowed().tolist() == list(range(first, first + 26))
    assert allowed(first + 5).max() < first  # inside a segment: words
    after_word = allowed(first + 5, 7)
    assert 7 in after_word
    assert after_word[after_word >= first].min() == first + 6  # the segment has a duration
    closed = allowed(first + 5, 7, first + 9)
    assert closed.min() == TOKENIZER.eot
    assert closed[closed >= first].min() == first + 9
    logits = np.zeros((1, TOKENIZER.vocab_size), np.float32)
    SuppressTokens(TOKENIZER, [5])(logits, [[]])
    assert np.flatnonzero(logits[0] == -np.inf).tolist() == sorted(
        {5, TOKENIZER.sot, *range(TOKENIZER.translate, TOKENIZER.no_speech + 1)}
    )


def test_beams_find_likelier_texts(model: Whisper) -> None:
    mel = np.random.default_rng(3).standard_normal((8, 100)).astype(np.float32)
    options = {"without_timestamps": True, "sample_len": 6}
    greedy = decode(model, mel, **options)
    beams = decode(model, mel, beam_size=8, **options)
    assert beams.avg_logprob >= greedy.avg_logprob


def test_finished_texts_do_not_use_up_beams() -> None:
    """The second row is so unlikely that both beams continue the first, which has three tokens for them."""
    eot, sources = 9, []
    search = BeamSearch(2, None, eot, sources.append)
    logits = np.full((2, 10), -20, np.float32)
    logits[:, [eot, 5, 7]] = [3, 2, 1]
    sums = np.array([0, -50], np.float32)
    rows, completed = search.update([[0], [1]], logits, sums)
    assert rows == [[0, 5], [0, 7]]
    assert not completed
    assert sources == [[0, 0]]
    (texts,) = search.finish(rows, sums, 2)  # if too few beams have ended, the likeliest of the others count
    assert [text for text, _ in texts] == [[0, eot], [0, 5, eot]]


@pytest.mark.parametrize(("penalty", "length"), [(0.0, 1), (1.0, 7)])
def test_long_texts_are_compared_by_the_formula(
    penalty: float, length: int, model: Whisper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """-1 / ((5 + 1) / 6)^p and -1.95 / ((5 + 7) / 6)^p.  Source: Wu et al. 2016, arXiv:1609.08144, equation 14"""

    def finish(self: BeamSearch, rows: list[list[int]], sums: Any, group: int) -> Any:
        start = rows[0][:-1]
        return [[([*start, *[104] * 1], -1.0), ([*start, *[104] * 7], -1.95)]]

    monkeypatch.setattr(BeamSearch, "finish", finish)
    mel = np.zeros((8, 100), np.float32)
    result = decode(model, mel, language="en", beam_size=2, length_penalty=penalty, sample_len=1)
    assert result.tokens == [104] * length


def test_one_seed_one_text(model: Whisper) -> None:
    mel = np.zeros((2, 8, 100), np.float32)
    texts = [[r.tokens for r in decode(model, mel, temperature=2.0, seed=s)] for s in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert texts[0][0] != texts[0][1]  # each row has its own random numbers


def test_sounds_of_a_batch_have_their_own_language_task_and_context(model: Whisper) -> None:
    mel = np.random.default_rng(1).standard_normal((4, 8, 100)).astype(np.float32)
    kinds = [("en", "transcribe", [104, 105]), ("de", "translate", [1, 2]), ("fr", "transcribe", [7, 7])]
    each = [DecodingOptions(language=language, task=task, prompt=ids) for language, task, ids in [*kinds, kinds[0]]]
    assert len({decoding.batch_key(model, options) for options in each}) == 1
    together = decoding.decode_batch(model, decoding.encode(model, mel), each)
    for sound, options, result in zip(mel, each, together, strict=True):
        alone = decode(model, sound, options)
        assert (result.tokens, result.language) == (alone.tokens, alone.language)  # type: ignore[union-attr]
    other = DecodingOptions(language="en", prompt=[104])
    assert decoding.batch_key(model, other) != decoding.batch_key(model, each[0])
    long, longer = (DecodingOptions(prompt=[1] * count) for count in (30, 31))  # it reads the last 19
    assert decoding.batch_key(model, long) == decoding.batch_key(model, longer)


@pytest.mark.parametrize("group", [1, 2])
def test_sounds_whose_texts_have_ended_leave_the_batch(
    model: Whisper, group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sound 0 ends after one token, 1 after four, 2 and 3 never. The fifth step is without half of them."""
    counts = []
    lengths = [1, 4, 99, 99]

    def update(self: Sampling, rows: list[list[int]], logits: Any, sums: Any) -> Any:
        counts.append(len(rows))
        texts = [row[1:] for row in rows]
        sounds = [text[0] - 97 if text else i // group for i, text in enumerate(texts)]
        rows = [
            [*row, 97 + sound if len(text) < lengths[sound] else self.eot]
            for row, text, sound in zip(rows, texts, sounds, strict=True)
        ]
        return rows, all(row[-1] == self.eot for row in rows)

    monkeypatch.setattr(Sampling, "update", update)
    options: dict[str, Any] = {"temperature": 1.0, "best_of": 2} if group == 2 else {}
    results: Any = decode(model, np.zeros((4, 8, 100), np.float32), language="en", sample_len=9, **options)
    assert [result.tokens for result in results] == [[97], [98] * 4, [99] * 9, [100] * 9]
    assert counts == [4 * group] * 5 + [2 * group] * 4


def test_windows_follow_each_other(model: Whisper) -> None:
    run = Transcription(model, noise(3.3), temperature=0.0, logprob_threshold=None, no_speech_threshold=None)
    positions = []
    for segment in run:
        positions.append(run.position_s)
        assert segment is run.segments[segment.id]
    transcript = run.transcript()
    assert transcript.duration_s == 3.3
    assert run.position_s == 3.3
    assert positions == sorted(positions)
    assert all(0 <= before.start <= after.start for before, after in pairwise(transcript.segments))
    assert transcript.text == "".join(TOKENIZER.decode(segment.tokens) for segment in transcript.segments)


def test_words_are_within_their_segments(model: Whisper) -> None:
    transcript = transcribe(
        model,
        noise(2.5),
        temperature=0.0,
        word_timestamps=True,
        no_speech_threshold=None,
        hallucination_silence_threshold=0.5,
    )
    for segment in transcript.segments:
        for word in segment.words:
            assert 0 <= word.start <= word.end <= 3.6
            assert 0 <= word.probability <= 1


@pytest.mark.parametrize("samples", [np.zeros(0), np.zeros(100), np.zeros(20_000)])
def test_silence_and_very_short_sounds(samples: np.ndarray[Any, Any], model: Whisper) -> None:
    transcript = transcribe(model, samples.astype(np.float32), temperature=0.0)
    assert transcript.duration_s == len(samples) // 160 / 100
    if len(samples) < 160:
        assert transcript == Transcript("", [], "en", 0.0)


def test_sounds_of_every_kind(model: Whisper) -> None:
    samples = noise(1.2)
    expected = transcribe(model, samples, temperature=0.0)
    assert transcribe(model, tl.tensor(samples), temperature=0.0) == expected
    assert transcribe(model, np.array_split(samples, 3), temperature=0.0) == expected
    with pytest.raises(AudioError, match="not a WAV"):
        transcribe(model, b"RIFF....AVI ")
    with pytest.raises(FileNotFoundError):
        transcribe(model, Sound("/nowhere.wav"))
    with pytest.raises(ArgumentError, match="one channel"):
        transcribe(model, np.zeros((2, 100), np.float32))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 2, "best_of": 3, "temperature": 0.0}, "beam_size with"),
        ({"best_of": 2}, "best_of without"),
        ({"patience": 2.0}, "patience=2.0"),
        ({"length_penalty": 2.0}, "a number from 0 to 1"),
        ({"beam_size": 0}, "beam_size=0"),
        ({"temperature": -1.0}, "temperature=-1"),
        ({"temperature": "0"}, "temperature='0'"),
        ({"beam_size": 1.5}, "beam_size=1.5"),
        ({"sample_len": True}, "sample_len=True"),
        ({"temperature": 1.0, "seed": -1}, "seed=-1"),
        ({"temperature": 1.0, "seed": 0.5}, "seed=0.5"),
        ({"beam_size": 2, "patience": float("nan")}, "patience=nan"),
        ({"max_initial_timestamp": "soon"}, "max_initial_timestamp='soon'"),
    ],
)
def test_decoding_options_that_do_not_go_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        DecodingOptions(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hallucination_silence_threshold": 1.0}, "without word_timestamps"),
        ({"language": "klingon"}, "language 'klingon'"),
        ({"prompt": "x"}, "no option prompt"),
        ({"beams": 5}, "no option beams"),
        ({"length_penalty": 7}, "a number from 0 to 1"),
        ({"clip_timestamps": [-1.0]}, "from the start"),
    ],
)
def test_invalid_transcribe_options(options: dict[str, Any], message: str, model: Whisper) -> None:
    with pytest.raises(ArgumentError, match=message):
        transcribe(model, noise(0.1), **options)


def test_an_english_model_detects_no_language(model: Whisper) -> None:
    with pytest.raises(ArgumentError, match="an English-only model"):
        detect_language(model, np.zeros((1, 8, 100), np.float32))


@given(st.integers(1, 6), st.integers(1, 8), st.integers(0, 100))
def test_time_warp_is_the_cheapest_way(tokens: int, places: int, seed: int) -> None:
    cost = np.random.default_rng(seed).random((tokens, places))
    way = list(zip(*(each.tolist() for each in time_warp(cost)), strict=True))
    assert (way[0], way[-1]) == ((0, 0), (tokens - 1, places - 1))
    assert all((i - h, j - g) in {(0, 1), (1, 0), (1, 1)} for (h, g), (i, j) in pairwise(way))
    best = np.full((tokens, places), np.inf)
    for i in range(tokens):
        for j in range(places):
            before = [best[a, b] for a, b in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if a >= 0 and b >= 0]
            best[i, j] = cost[i, j] + min(before, default=0)
    assert sum(cost[step] for step in way) == pytest.approx(best[-1, -1], rel=1e-5)


def test_median_filter() -> None:
    x = np.array([[9.0, 1, 2, 8, 3, 4, 5]], np.float32)
    assert median_filter(x, 3).tolist() == [[1, 2, 2, 3, 4, 4, 4]]
    assert median_filter(x[:, :1], 3).tolist() == [[9]]


def test_punctuation_joins_words() -> None:
    words = [Aligned(word, [i], i, i + 1, 1.0) for i, word in enumerate([" He", " said", ",", ' "', "Hi", "!", '"'])]
    merge_marks(words, "\"'([{", "\"'.,!?")
    assert [word.word for word in words if word.word] == [" He", " said,", ' "Hi!"']
    assert [word.tokens for word in words if word.word] == [[0], [1, 2], [3, 4, 5, 6]]


def test_formats() -> None:
    parts = {"tokens": [1], "temperature": 0.0, "avg_logprob": -0.5, "compression_ratio": 1.0, "no_speech_prob": 0.1}
    segments = [
        Segment(id=0, seek=0, start=0.0, end=1.5, text=" Hello --> you\t.", words=[Word(" Hello", 0, 1, 0.9)], **parts),
        Segment(id=1, seek=0, start=2.0, end=4.0, text=" ", **parts),  # silence
        Segment(id=2, seek=0, start=3661.25, end=3662.0, text=" Bye.", **parts),
    ]
    files = {name: write(Transcript("", segments, "en", 4000.0)) for name, write in WRITERS.items()}
    assert files["txt"] == "Hello --> you\t.\nBye.\n"
    assert files["srt"] == (
        "1\n00:00:00,000 --> 00:00:01,500\nHello -> you\t.\n\n2\n01:01:01,250 --> 01:01:02,000\nBye.\n\n"
    )
    assert files["vtt"].startswith("WEBVTT\n\n00:00.000 --> 00:01.500\nHello -> you")
    assert "01:01:01.250 --> 01:01:02.000\nBye." in files["vtt"]
    assert files["tsv"] == "start\tend\ttext\n0\t1500\tHello --> you .\n3661250\t3662000\tBye.\n"
    assert json.loads(files["json"])["segments"][0]["words"][0]["word"] == " Hello"
    assert len(json.loads(files["json"])["segments"]) == 3
    assert timestamp(59.9996) == "01:00.000"


def test_windows_at_once(model: Whisper) -> None:
    """Each sound is decoded as if alone, whatever else is in the batch; the last one is half as long."""
    sound = noise(4.5)
    options = {"language": "en", "temperature": 0.0, "logprob_threshold": None, "no_speech_threshold": None}
    run = Transcription(model, sound, batch_size=2, **options)
    two, three = list(run), transcribe(model, sound, batch_size=3, **options).segments
    assert [segment.tokens for segment in two] == [segment.tokens for segment in three]
    assert run.position_s == 4.5
    for start in range(5):
        alone = transcribe(model, sound, batch_size=2, clip_timestamps=[start, min(start + 1, 4.5)], **options)
        own = [segment for segment in two if segment.seek == 100 * start]
        assert [(each.start, each.end, each.tokens) for each in own] == [
            (each.start, each.end, each.tokens) for each in alone.segments
        ]
        assert all(start <= segment.start <= segment.end for segment in own)


def test_what_follows_the_last_pair_of_times_is_said_in_a_whole_window() -> None:
    begin = TOKENIZER.timestamp_begin
    place = Place(seek=300, size=80, offset_s=3.0, end_s=4.0, content_frames=380)
    tokens = [begin, 104, begin + 10, begin + 12, 105, 106]
    result = DecodingResult(tl.zeros(1), "en", tokens, "", -0.5, 0.1, 0.0, 1.0)
    part, full = split(result, place, TOKENIZER), split(result, place, TOKENIZER, whole=True)
    assert [(each.start, each.end, each.text) for each in part.segments] == [(3.0, 3.2, "h")]
    assert part.seek == 320
    assert [(each.start, each.end, each.text) for each in full.segments] == [(3.0, 3.2, "h"), (3.24, 3.8, "ij")]
    assert full.seek == 380


def test_windows_at_once_know_the_first_prompt_only(model: Whisper, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = []

    def decode_batch(model: Whisper, audio: tl.Tensor, options: Sequence[DecodingOptions]) -> Any:
        prompts.append((audio.shape[0], options[0].prompt))
        return decoding.decode_batch(model, audio, options)

    monkeypatch.setattr(sys.modules[Transcription.__module__], "decode_batch", decode_batch)
    options = {"language": "en", "temperature": 0.0, "no_speech_threshold": None, "initial_prompt": "hello"}
    transcribe(model, noise(2.5), batch_size=2, **options)
    prompt = TOKENIZER.encode(" hello")
    assert prompts == [(2, prompt), (1, prompt)]


@pytest.mark.parametrize(("temperature", "is_context"), [(0.5, True), (0.6, False)])
def test_a_text_of_high_temperature_is_no_context(
    temperature: float, is_context: bool, model: Whisper, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = []

    def decode_batch(model: Whisper, audio: tl.Tensor, options: Sequence[DecodingOptions]) -> Any:
        prompts.append(list(options[0].prompt or ()))
        return decoding.decode_batch(model, audio, options)

    monkeypatch.setattr(sys.modules[Transcription.__module__], "decode_batch", decode_batch)
    thresholds = {"compression_ratio_threshold": None, "logprob_threshold": None, "no_speech_threshold": None}
    clips = [0.0, 1.0, 1.0, 2.0]
    transcribe(model, noise(2), language="en", temperature=temperature, seed=0, clip_timestamps=clips, **thresholds)
    assert len(prompts) > 1
    assert any(prompts) == is_context


def test_only_bad_windows_are_decoded_again(model: Whisper, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def decode_batch(model: Whisper, audio: tl.Tensor, options: Sequence[DecodingOptions]) -> Any:
        sizes.append(audio.shape[0])
        results = decoding.decode_batch(model, audio, options)
        return [
            replace(result, compression_ratio=9.0 if i == len(results) - 1 else 1.0) for i, result in enumerate(results)
        ]

    monkeypatch.setattr(sys.modules[Transcription.__module__], "decode_batch", decode_batch)
    options = {"language": "en", "temperature": (0.0, 0.5), "logprob_threshold": None, "no_speech_threshold": None}
    segments = transcribe(model, noise(3.0), batch_size=3, **options).segments
    assert sizes == [3, 1]
    assert {segment.temperature for segment in segments} == {0.0, 0.5}
    assert all((segment.temperature == 0.5) == (segment.seek == 200) for segment in segments)


@pytest.mark.parametrize(
    ("silence", "logprob", "tries", "is_heard"),
    [(0.9, -0.5, 1, True), (0.9, -2.0, 1, False), (0.1, -2.0, 2, True)],
    ids=["likely", "silent", "unlikely"],
)
def test_silence_is_where_the_text_is_unlikely_too(
    silence: float, logprob: float, tries: int, is_heard: bool, model: Whisper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window like this has no text and is not decoded again.  Source: Radford et al. 2022, section 4.5"""
    calls = []

    def decode_batch(model: Whisper, audio: tl.Tensor, options: Sequence[DecodingOptions]) -> Any:
        calls.append(options[0].temperature)
        results = decoding.decode_batch(model, audio, options)
        certainty = {"no_speech_prob": silence, "avg_logprob": logprob, "compression_ratio": 1.0}
        return [replace(result, **certainty) for result in results]

    monkeypatch.setattr(sys.modules[Transcription.__module__], "decode_batch", decode_batch)
    segments = transcribe(model, noise(1.0), batch_size=2, language="en", temperature=(0.0, 0.5)).segments
    assert calls == [0.0, 0.5][:tries]
    assert bool(segments) == is_heard


@pytest.mark.parametrize("size", [7, 300, 3000])
def test_the_largest_are_sorted(size: int) -> None:
    rng = np.random.default_rng(size)
    for values in (rng.standard_normal(size), rng.integers(0, 9, size), np.full(size, -np.inf)):
        x = values.astype(np.float32)
        x[rng.integers(0, size, size // 2)] = -np.inf
        np.testing.assert_array_equal(largest(x, 6), np.argsort(-x, kind="stable")[:6])


@pytest.mark.parametrize(
    "options", [{"batch_size": 0}, {"batch_size": 2, "word_timestamps": True, "hallucination_silence_threshold": 1.0}]
)
def test_invalid_batches(options: dict[str, Any], model: Whisper) -> None:
    with pytest.raises(ArgumentError, match="batch_size"):
        transcribe(model, noise(1.0), **options)
