"""The packaged sentence encoder: its files, and that it knows which words are alike."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tallow.cli import main
from tallow.models import SentenceEncoder
from tallow.models.built_in import glosses

pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return glosses.load()


def test_files_are_small() -> None:
    assert sum(path.stat().st_size for path in glosses.FOLDER.iterdir() if path.is_file()) < 1_500_000


def test_card_and_licence(encoder: SentenceEncoder) -> None:
    card = (glosses.FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"{encoder.model.num_parameters():,} parameters" in card
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in (glosses.FOLDER / "LICENSE-WORDNET").read_text()


@pytest.mark.parametrize(
    ("query", "right", "wrong"),
    [
        ("a young cat", "kitten", "A lorry carries goods."),
        ("a place where money is kept", "The bank is closed.", "The soup is hot."),
        ("very angry", "furious", "a wooden chair"),
        ("a doctor who operates on patients", "surgeon", "violin"),
        ("to eat in the evening", "supper", "a shoe with a high heel"),
        ("a vehicle with two wheels", "bicycle", "a love poem"),
    ],
)
def test_similar_meaning_is_nearer(encoder: SentenceEncoder, query: str, right: str, wrong: str) -> None:
    vectors = encoder.encode([query, right, wrong], normalize=True)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1


def test_command_uses_it_by_default(encoder: SentenceEncoder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embed", "a young cat"]) == 0
    output = capsys.readouterr()
    np.testing.assert_allclose(json.loads(output.out)["vector"], encoder.encode("a young cat"), atol=1e-6)
    assert glosses.KNOWS in output.err
