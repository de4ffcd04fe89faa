"""scripts/train_spoken.py: phrases, voices, rows of audio and text, and training that can be interrupted."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from spoken import augment, evaluation, phrases, training, vocabulary, voices
from spoken.corpus import Clip, Corpus, utterances
from spoken.espeak import Espeak, Voice
from spoken.settings import Settings
from spoken.training import Training, export
from spoken.windows import IGNORED, Plan, Windows
from support.paths import ROOT

import tallow as tl
from tallow.audio.sound import SAMPLE_RATE_HZ
from tallow.errors import ArgumentError, TallowError
from tallow.models.whisper import Whisper
from tallow.text.whisper import WhisperTokenizer

TINY = Settings(
    clips=24,
    held_out=6,
    width=16,
    heads=2,
    encoder_layers=1,
    encoder_inner=16,
    decoder_layers=1,
    decoder_inner=16,
    steps=6,
    batch_size=2,
    pool=2,
    warmup_steps=2,
    validate_every=2,
    validation_clips=2,
    checkpoint_every=3,
)


@pytest.fixture(scope="module")
def corpus(espeak: Espeak, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus.make(TINY, tmp_path_factory.mktemp("speech"))


@pytest.fixture(scope="module")
def tokenizer() -> WhisperTokenizer:
    return vocabulary.tokenizer()


# ---- phrases


@pytest.mark.parametrize(
    ("n", "text", "british"),
    [
        (0, "zero", "zero"),
        (7, "seven", "seven"),
        (13, "thirteen", "thirteen"),
        (40, "forty", "forty"),
        (99, "ninety nine", "ninety nine"),
        (100, "one hundred", "one hundred"),
        (305, "three hundred five", "three hundred and five"),
        (999, "nine hundred ninety nine", "nine hundred and ninety nine"),
    ],
)
def test_numbers_in_words(n: int, text: str, british: str) -> None:
    assert " ".join(phrases.number(n)) == text
    assert " ".join(phrases.number(n, british=True)) == british


def test_all_numbers_differ() -> None:
    assert len({phrases.number(n) for n in range(1000)}) == 1000


def test_phrases_are_of_known_words_and_held_out_ones_are_others() -> None:
    rng = random.Random(0)
    trained, held_out = (
        {phrases.phrase(rng, held_out=held_out, longest=11) for _ in range(3000)} for held_out in (False, True)
    )
    assert not trained & held_out
    assert {word for phrase in trained for word in phrase} == set(phrases.WORDS)
    assert {len(phrase) for phrase in trained | held_out} <= set(range(1, 12))
    assert all(len(phrase) > 1 for phrase in held_out)


# ---- the vocabulary


def test_each_word_is_one_token(tokenizer: WhisperTokenizer) -> None:
    ids = [tokenizer.encode(f" {word}") for word in phrases.WORDS]
    assert ids == [[vocabulary.BYTES + i] for i in range(len(phrases.WORDS))]
    assert tokenizer.decode(tokenizer.encode("Zoë, naïve: 9")) == "Zoë, naïve: 9"
    assert tokenizer.languages == ("en",)


def test_the_file_encodes_as_the_vocabulary(tokenizer: WhisperTokenizer, tmp_path: Path) -> None:
    vocabulary.save(tmp_path / "vocab.json")
    row_text = WhisperTokenizer.load(tmp_path / "vocab.json", tokenizer.vocab_size)
    text = " ".join(["", *phrases.WORDS, "Zoë\n\t¡"])
    assert row_text.encode(text) == tokenizer.encode(text)


# ---- voices


def test_voices_are_installed_and_say_where_words_begin(espeak: Espeak) -> None:
    variants = [f"en-us+{variant}" for variant in (*voices.VARIANTS, *voices.HELD_OUT) if variant]
    sounds = {name: espeak.say(("red",), Voice(name)).samples for name in (*voices.ACCENTS, *variants)}
    assert all(len(samples) > 0.1 * espeak.sample_rate_hz for samples in sounds.values())
    assert len({samples.tobytes() for samples in sounds.values()}) == len(sounds)  # unknown variants change nothing
    speech = espeak.say(("turn", "on", "the", "light"), Voice("en-us"))
    assert all(before <= after for before, after in pairwise(speech.word_starts))
    assert 0 <= speech.word_starts[0] < speech.word_starts[3] < len(speech.samples)
    slow = espeak.say(("turn", "on", "the", "light"), Voice("en-us", rate=100))
    assert len(slow.samples) > 1.3 * len(speech.samples)
    with pytest.raises(TallowError, match="no voice nobody"):
        espeak.say(("red",), Voice("nobody"))


def test_several_share_the_library(espeak: Espeak) -> None:
    Espeak().say(("blue",), Voice("en-us"))
    gc.collect()
    assert len(espeak.say(("red",), Voice("en-us")).samples) > 0


def test_held_out_voices_are_not_trained_on() -> None:
    assert not set(voices.VARIANTS) & set(voices.HELD_OUT)
    trained = {utterance.voice.name for utterance in utterances(replace(TINY, clips=3000), held_out=False)}
    tested = {utterance.voice.name for utterance in utterances(replace(TINY, held_out=300), held_out=True)}
    assert not trained & tested
    assert all(name.partition("+")[2] in voices.HELD_OUT for name in tested)


# ---- clips


def test_clips_are_kept(corpus: Corpus, tmp_path: Path) -> None:
    again = Corpus.make(TINY, tmp_path)
    files = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    Corpus.make(TINY, tmp_path)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files
    assert len(corpus.training) == TINY.clips
    assert len(corpus.held_out) == TINY.held_out
    for i in range(TINY.clips):
        mine, other = corpus.training[i], again.training[i]
        assert mine.words == other.words  # the audio differs slightly each time
        assert len(mine.samples) == corpus.training.lengths[i] == pytest.approx(len(other.samples), rel=0.1)


def test_clips_begin_and_end_with_speech(corpus: Corpus) -> None:
    for i in range(TINY.clips):
        clip = corpus.training[i]
        assert len(clip.word_starts) == len(clip.words)
        assert all(0 <= before <= after < len(clip.samples) for before, after in pairwise(clip.word_starts))
        edge = SAMPLE_RATE_HZ // 20
        assert min(np.abs(part).max() for part in (clip.samples[:edge], clip.samples[-edge:])) > 0


# ---- rows


class StubClips:
    """Stub for `Clips`: two phrases of one second each, with words starting every half and every quarter second."""

    lengths = (SAMPLE_RATE_HZ, SAMPLE_RATE_HZ)
    clips = (
        Clip(np.ones(SAMPLE_RATE_HZ, np.float32), ("turn", "left"), (0, 8000)),
        Clip(np.ones(SAMPLE_RATE_HZ, np.float32), ("one", "two", "three", "four"), (0, 4000, 8000, 12000)),
    )

    def __len__(self) -> int:
        return len(self.clips)

    def __getitem__(self, i: int) -> Clip:
        return self.clips[i]


def row_text(tokenizer: WhisperTokenizer, end_s: float, *, with_times: bool, **plan: object) -> str:
    """Return the text in the row of a plan."""
    windows = Windows(StubClips(), tokenizer, TINY)  # type: ignore[arg-type]
    settled = Plan(**({"skipped": 0, "speed": 1.0, "samples": round(end_s * SAMPLE_RATE_HZ), "seed": 0} | plan))  # type: ignore[arg-type]
    _, placed = windows._place(settled, np.random.default_rng(0))
    return tokenizer.decode_with_timestamps(windows._write(placed, settled.samples, with_times))


@pytest.mark.parametrize(
    ("end_s", "plan", "expected", "words"),
    [
        (3, {"clips": (0,), "gaps_s": (0.5, 0)}, "<|0.50|> turn left<|1.50|>", " turn left"),
        (3, {"clips": (0,), "gaps_s": (1.4, 0)}, "<|1.00|> turn left<|2.40|>", " turn left"),  # by Whisper's rule
        (3, {"clips": (0,), "gaps_s": (0, 0), "skipped": 1}, "<|0.00|> left<|0.60|>", " left"),
        (3, {"clips": (0,), "gaps_s": (0.5, 0), "speed": 2.0}, "<|0.50|> turn left<|1.00|>", " turn left"),
        (
            4,
            {"clips": (0, 1), "gaps_s": (0.2, 0.3, 0)},
            "<|0.20|> turn left<|1.20|><|1.50|> one two three four<|2.50|>",
            " turn left one two three four",
        ),
        # the second phrase is cut off: only its beginning is written
        (2.1, {"clips": (0, 1), "gaps_s": (0.2, 0.3, 0)}, "<|0.20|> turn left<|1.20|><|1.50|>", " turn left one two"),
        # barely audible
        (1.55, {"clips": (0, 1), "gaps_s": (0.2, 0.3, 0)}, "<|0.20|> turn left<|1.20|>", " turn left"),
        # the only phrase is cut off: its complete words are written, and the next window starts after them
        (1.3, {"clips": (1,), "gaps_s": (0.5, 0)}, "<|0.50|> one two three<|1.20|><|1.20|>", " one two three"),
    ],
)
def test_rows_tell_what_is_said_and_when(
    end_s: float, plan: dict[str, object], expected: str, words: str, tokenizer: WhisperTokenizer
) -> None:
    assert row_text(tokenizer, end_s, with_times=True, **plan) == expected
    assert row_text(tokenizer, end_s, with_times=False, **plan) == words


def test_spoken_words_stand_where_they_are_said(tokenizer: WhisperTokenizer) -> None:
    windows = Windows(StubClips(), tokenizer, TINY)  # type: ignore[arg-type]
    row = windows.render(Plan((0,), (0.5, 0), skipped=0, speed=1.0, samples=2 * SAMPLE_RATE_HZ, seed=0))
    names = ["", *phrases.WORDS]
    words = [names[i] for i in row.spoken]
    assert words == [""] * 25 + ["turn"] * 25 + ["left"] * 25 + [""] * 25


def test_decoder_reads_what_it_is_to_write(corpus: Corpus, tokenizer: WhisperTokenizer) -> None:
    windows = Windows(corpus.training, tokenizer, TINY)
    rng = np.random.default_rng(0)
    rows = [windows.render(windows.plan(rng)) for _ in range(60)]
    for row in rows:
        start = row.inputs.index(tokenizer.sot)
        assert len(row.inputs) == len(row.targets) <= TINY.context
        assert row.targets[:start] == [IGNORED] * start
        assert start == 0 or row.inputs[0] == tokenizer.sot_prev
        assert row.targets[-1] == tokenizer.eot
        assert len(row.spoken) == row.mel.shape[1] // 2
        if row.spoken.any():
            assert row.inputs[start + 1 :] == row.targets[start:-1]
        else:
            assert row.targets[start] == tokenizer.no_speech
        assert row.mel.shape[1] <= 2 * TINY.positions
    kinds = [bool(row.spoken.any()) for row in rows]
    assert any(kinds)
    assert not all(kinds)


def test_batches_depend_on_their_number_alone(corpus: Corpus, tokenizer: WhisperTokenizer) -> None:
    windows = Windows(corpus.training, tokenizer, TINY)
    first = windows.batch(1, full=False)
    other = windows.batch(4, full=True)
    assert other.mel.shape == (2, 80, 500)
    for mine, again in zip(first, windows.batch(1, full=False), strict=True):
        np.testing.assert_array_equal(mine, again)


def test_noise_is_of_power_one_and_echoes_follow() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        assert np.mean(augment.noise(rng, 5000) ** 2) == pytest.approx(1, rel=1e-3)
    click = np.zeros(8000, np.float32)
    click[2000] = 1
    echo = augment.in_room(click, rng)
    np.testing.assert_allclose(echo[:2000], 0, atol=1e-6)
    assert echo[2000] == pytest.approx(1)
    assert 0.1 < np.linalg.norm(echo[2001:]) < 0.9


# ---- evaluation


@pytest.mark.parametrize(
    ("reference_text", "recognized", "errors"),
    [("a b c", "a b c", 0), ("a b c", "a c", 1), ("a b c", "a x c d", 2), ("a b", "", 2), ("a b", "b a", 2)],
)
def test_errors_by_hand(reference_text: str, recognized: str, errors: int) -> None:
    assert evaluation.edits(reference_text.split(), recognized.split()) == errors


def test_rate_is_of_all_words() -> None:
    score = evaluation.Score()
    score.add(("a", "b", "c"), "a c")
    score.add(("d",), "d")
    assert score.rate == 1 / 4
    assert score.row("x") == "| x | 2 | 25.0% | 50.0% |"


# ---- training


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "run.safetensors"


def test_encoder_of_a_whole_window_is_the_models() -> None:
    model = Whisper(TINY.whisper_config(vocabulary.tokenizer().vocab_size))
    mel = tl.randn(2, 80, 2 * TINY.positions)
    with tl.no_grad():
        assert tl.equal(training.encode(model.encoder, mel), model.encoder(mel))
        assert training.encode(model.encoder, mel[..., :120]).shape == (2, 60, TINY.width)


def test_interrupted_run_goes_on_bit_for_bit(corpus: Corpus, checkpoint: Path, tmp_path: Path) -> None:
    uninterrupted = Training(TINY, corpus, tmp_path / "other.safetensors")
    losses = list(uninterrupted.run())
    assert len(losses) == TINY.steps

    first = Training(TINY, corpus, checkpoint)
    assert list(islice(first.run(), 5)) == losses[:5]  # the fourth and the fifth step are lost
    tl.manual_seed(99)
    second = Training(TINY, corpus, checkpoint)
    second.resume()
    assert second.step == 3
    assert list(second.run()) == losses[3:]
    assert second.curve == uninterrupted.curve
    for mine, other in zip(second.model.parameters(), uninterrupted.model.parameters(), strict=True):
        assert tl.equal(mine, other)

    other_settings = Training(replace(TINY, learning_rate=1e-4), corpus, checkpoint)
    with pytest.raises(ArgumentError, match="other settings"):
        other_settings.resume()


def test_losses_fall_and_the_curve_has_their_means(
    corpus: Corpus, checkpoint: Path, tokenizer: WhisperTokenizer
) -> None:
    settings = replace(TINY, steps=20, validate_every=10, learning_rate=1e-2)
    run = Training(settings, corpus, checkpoint)
    batch = Windows(corpus.training, tokenizer, replace(settings, batch_size=8)).batch(0, full=False)
    before = run.losses(batch)
    losses = list(run.run())
    after = run.losses(batch)
    assert after.text.item() < before.text.item()
    assert after.spoken.item() < before.spoken.item()
    assert [row[0] for row in run.curve] == [10, 20]
    assert run.curve[0][1:3] == pytest.approx([sum(kind) / 10 for kind in zip(*losses[:10], strict=True)])


def test_exported_model_is_the_trained_one_in_half_precision(corpus: Corpus, checkpoint: Path, tmp_path: Path) -> None:
    run = Training(TINY, corpus, checkpoint)
    next(run.run())
    export(run.model, tmp_path / "out")
    loaded = Whisper.from_pretrained(tmp_path / "out", dtype=tl.float32)
    assert loaded.config == run.model.config
    assert loaded.tokenizer.encode(" turn left") == run.model.tokenizer.encode(" turn left")
    for mine, other in zip(loaded.parameters(), run.model.parameters(), strict=True):
        assert tl.equal(mine, other.half().float())


# ---- the script


def script(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "train_spoken.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_script_prints_phrases() -> None:
    process = script("--phrases", "3", "--seed", "7")
    assert process.returncode == 0, process.stderr
    rng = random.Random(7)
    sentences = [" ".join(phrases.phrase(rng, held_out=False, longest=Settings().longest_phrase)) for _ in range(3)]
    assert process.stdout.splitlines() == sentences
