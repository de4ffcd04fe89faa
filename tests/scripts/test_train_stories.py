"""scripts/train_stories.py: grammar, vocabulary, baseline, and training that can be interrupted."""

from __future__ import annotations

import itertools
import math
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from stories import evaluation, grammar, tokenizer
from stories import vocabulary as words
from stories.corpus import Corpus, Rows
from stories.evaluation import Score
from stories.grammar import Plot
from stories.plots import PLOTS
from stories.settings import Settings
from stories.training import Training, export
from stories.trigram import Trigram
from support.paths import ROOT

import tallow as tl
from tallow.errors import ArgumentError
from tallow.models.built_in import stories as packaged
from tallow.models.decoders.llama import Llama
from tallow.text.llama2c import BOS, Llama2cTokenizer

TINY = Settings(
    stories=200,
    held_out=20,
    tokenizer_stories=180,
    vocab_size=400,
    hidden_size=16,
    intermediate_size=24,
    layers=2,
    heads=2,
    context=640,  # a vocabulary this small splits most words into letters
    steps=6,
    batch_size=2,
    warmup_steps=2,
    validate_every=2,
    validation_rows=3,
    checkpoint_every=3,
)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.make(TINY)


# ---- the grammar


@pytest.fixture(scope="module")
def many() -> list[str]:
    return list(grammar.stories(PLOTS, 20_000, seed=3))


def test_seed_decides_the_stories(many: list[str]) -> None:
    assert list(grammar.stories(PLOTS, 50, seed=3)) == many[:50]
    assert not set(grammar.stories(PLOTS, 50, seed=4)) & set(many[:50])


def test_stories_are_distinct(many: list[str]) -> None:
    assert len(set(many)) == 20_000


def test_stories_are_well_formed(many: list[str]) -> None:
    for story in many:
        assert re.fullmatch(r"""[A-Z][A-Za-z ,.!?'"]*[.!?"]""", story), story
        assert story.count('"') % 2 == 0, story
        assert not re.search(r"  |\b[Aa] [aeiou]|\b[Aa]n (?!hour)[^aeiou]", story), story
        assert not re.search(r"[.!?] [a-z]", re.sub(r'"[^"]*"', "Speech", story)), story


def test_only_the_hero_and_one_friend_have_names(many: list[str]) -> None:
    for story in many:
        assert 1 <= len(names_in(story)) <= 2, story


def templates() -> Iterator[tuple[Plot, str]]:
    for plot in PLOTS:
        for template in itertools.chain(grammar.OPENINGS, *plot.steps):
            yield plot, template


def test_each_template_has_whole_quotes_and_known_slots() -> None:
    for plot, template in templates():
        for variant in plot.variants:
            slots = grammar.cast(plot, random.Random(0)) | variant
            assert template.format_map(slots).count('"') % 2 == 0, template


def test_plots_have_names_of_their_own() -> None:
    assert len({plot.name for plot in PLOTS}) == len(PLOTS)


NAMES = {character.name for character in (*words.CHILDREN, *words.ANIMALS)}


def names_in(story: str) -> set[str]:
    return NAMES & set(re.findall(r"[A-Z][a-z]+", story))


# ---- the vocabulary


ODD_TEXTS = (
    "",
    "Zoë saw a 🐈.",
    "x" * 50,
    "ONCE upon  a  time",
    "a\nb\tc",
    "1, 2, 3",
    '"\'"',
    " leading",
    "trailing ",
    "▁",
)


def test_the_file_encodes_as_tokenizers_does(corpus: Corpus, tmp_path: Path) -> None:
    tokenizer.save_llama2c(corpus.tokenizer, tmp_path / "tokenizer.bin")
    written = Llama2cTokenizer.load(tmp_path / "tokenizer.bin", vocab_size=TINY.vocab_size)
    for text in (*corpus.training, *corpus.held_out):
        assert written.encode(text, bos=False) == corpus.tokenizer.encode(text).ids


def test_text_of_other_characters_comes_back(corpus: Corpus, tmp_path: Path) -> None:
    tokenizer.save_llama2c(corpus.tokenizer, tmp_path / "tokenizer.bin")
    written = Llama2cTokenizer.load(tmp_path / "tokenizer.bin")
    for text in ODD_TEXTS:
        ids = written.encode(text)
        pieces = (written.decode(before, token) for before, token in itertools.pairwise(ids))
        assert b"".join(pieces).decode() == text


def test_the_packaged_vocabulary_is_made_by_the_script(tmp_path: Path) -> None:
    settings = Settings()
    stories = islice(
        grammar.stories(PLOTS, settings.stories, settings.seed), settings.held_out + settings.tokenizer_stories
    )
    learnt = tokenizer.train(list(stories)[settings.held_out :], settings.vocab_size)
    tokenizer.save_llama2c(learnt, tmp_path / "tokenizer.bin")
    assert (tmp_path / "tokenizer.bin").read_bytes() == (packaged.FOLDER / "tokenizer.bin").read_bytes()


# ---- rows


def test_held_out_stories_are_not_trained_on(corpus: Corpus) -> None:
    assert len(corpus.held_out) == TINY.held_out
    assert len(corpus.training) == TINY.stories - TINY.held_out
    assert not set(corpus.held_out) & set(corpus.training)


def test_rows_begin_with_stories_and_go_on_with_the_next() -> None:
    rows = Rows([[BOS, 5, 6, BOS], [BOS, 7, BOS], [BOS, 8, 9, BOS]], length=5)
    assert len(rows) == 3
    expected = [[BOS, 5, 6, BOS, 7], [BOS, 7, BOS, 8, 9], [BOS, 8, 9, BOS, 5]]
    assert rows[np.array([0, 1, 2])].tolist() == expected
    with pytest.raises(ValueError, match="context of 2"):
        Rows([[BOS, 5, 6, BOS]], length=2)


# ---- the baseline


def test_kneser_ney_by_hand() -> None:
    """Two texts over the ids 0 to 3, where 0 is the separator: 0 1 2 0 and 0 1 3 0; the discount is 1/2."""
    trigram = Trigram([[0, 1, 2, 0], [0, 1, 3, 0]], vocab_size=4, discount=0.5)
    # Distinct contexts of 0, 1, 2, 3 among the bigrams (1 after 0; 2, 3 after 1; 0 after 2, 3): 2, 1, 1, 1; one more.
    lowest = np.array([3, 2, 2, 2]) / 9
    middle = (1 - 0.5) / 2 + 0.5 * 2 / 2 * lowest[2]  # 2 after 1, which 2 and 3 follow, each in one context
    highest = (1 - 0.5) / 2 + 0.5 * 2 / 2 * middle  # 2 after 0 1, which 2 and 3 follow, once each
    assert trigram.log_probabilities([0, 1, 2, 0])[1] == pytest.approx(math.log(highest))
    unknown = (1 - 0.5) / 1 + 0.5 * 1 / 1 * lowest[1]  # 1 after 0, in the unseen context 3 0
    assert trigram.log_probabilities([3, 0, 1])[1] == pytest.approx(math.log(unknown))


def test_trigram_probabilities_sum_to_one(corpus: Corpus) -> None:
    texts = corpus.encode(corpus.training)
    trigram = Trigram(texts, TINY.vocab_size)
    contexts = [texts[0][5:7], texts[1][:2], [399, 398]]
    for context in contexts:
        total = sum(math.exp(trigram.log_probabilities([*context, token])[-1]) for token in range(TINY.vocab_size))
        assert total == pytest.approx(1)


# ---- evaluation


def test_perplexity_of_a_uniform_model(corpus: Corpus) -> None:
    model = Llama(TINY.llama_config())
    for parameter in model.parameters():
        tl.nn.init.zeros_(parameter)
    score = evaluation.model_score(model, corpus, corpus.held_out)
    assert score.per_token == pytest.approx(TINY.vocab_size, rel=1e-5)
    assert score.tokens == sum(len(text) - 1 for text in corpus.encode(corpus.held_out))


def test_scores_by_hand() -> None:
    score = Score(nats=12 * math.log(2), tokens=6, words=3, characters=24)
    assert score.per_token == pytest.approx(4)
    assert score.per_word == pytest.approx(16)
    assert score.bits_per_character == pytest.approx(0.5)


def test_the_packaged_model_is_far_better_than_a_trigram() -> None:
    corpus = Corpus.make(replace(Settings(), stories=22_000))
    sample = corpus.held_out[:60]
    model, _ = packaged.load()
    score, baseline = evaluation.model_score(model, corpus, sample), evaluation.trigram_score(corpus, sample)
    assert score.nats < 0.4 * baseline.nats


# ---- training


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "run.safetensors"


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


def test_checkpoint_of_other_settings_is_refused(corpus: Corpus, checkpoint: Path) -> None:
    Training(TINY, corpus, checkpoint).save()
    other = Training(replace(TINY, learning_rate=1e-4), corpus, checkpoint)
    with pytest.raises(ArgumentError, match="other settings"):
        other.resume()


def test_loss_falls_and_the_curve_says_so(corpus: Corpus, checkpoint: Path) -> None:
    training = Training(replace(TINY, steps=20, validate_every=10), corpus, checkpoint)
    losses = [loss for (loss,) in training.run()]
    assert [row[0] for row in training.curve] == [10, 20]
    assert training.curve[0][1] == pytest.approx(sum(losses[:10]) / 10)
    assert training.curve[1][2] == training.validate() < training.curve[0][2] < math.log(TINY.vocab_size) + 0.1


def test_exported_model_is_the_trained_one_in_half_precision(corpus: Corpus, checkpoint: Path, tmp_path: Path) -> None:
    training = Training(TINY, corpus, checkpoint)
    list(training.run())
    export(training.model, corpus, tmp_path / "out")
    loaded = Llama.from_pretrained(tmp_path / "out", dtype=tl.float32)
    assert loaded.config == training.model.config
    for mine, other in zip(loaded.parameters(), training.model.parameters(), strict=True):
        assert tl.equal(mine, other.half().float())


# ---- the script


def script(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "train_stories.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_script_tells_stories() -> None:
    process = script("--tell", "2", "--seed", "7")
    assert process.returncode == 0, process.stderr
    assert process.stdout == "\n\n".join(grammar.stories(PLOTS, 2, seed=7)) + "\n"


def test_script_names_the_folder_that_has_no_model(tmp_path: Path) -> None:
    process = script("--evaluate", "--out", str(tmp_path))
    assert process.returncode == 2
    assert str(tmp_path) in process.stderr
    assert "Traceback" not in process.stderr
