"""Programs as model cards have them return and print the same under transformers with PyTorch and under tallow."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.transformers.both import both
from tests.transformers.cards import chats, embeddings, labels, pictures, training, translations
from tests.transformers.cards.card import CARDS
from tests.transformers.folders import Folders

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.native]  # one card starts a thread
FILES = (chats, embeddings, labels, pictures, training, translations)
# Cards that differ, with the reason.
DIFFERENT: dict[str, str] = {}


@pytest.mark.parametrize("name", CARDS)
def test_card(name: str, folders: Folders, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if name in DIFFERENT:
        request.applymarker(pytest.mark.xfail(reason=DIFFERENT[name]))
    card = CARDS[name]
    both(card, card.folder(folders, tmp_path))


def test_nearly_all_are_equal() -> None:
    assert len(CARDS) >= 40
    assert all(any(hasattr(file, name) for file in FILES) for name in CARDS)
    assert len(DIFFERENT) <= len(CARDS) * 0.05
