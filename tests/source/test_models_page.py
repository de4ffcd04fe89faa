"""docs/models.md lists the architectures of the tables that load them."""

from __future__ import annotations

import build_models_page


def test_the_page_is_that_of_the_tables() -> None:
    text = build_models_page.FILE.read_text(encoding="utf-8")
    assert text == build_models_page.page(), "run `python scripts/build_models_page.py`"
    assert (
        "| `smollm3` | labels texts, labels tokens, answers, writes, embeddings | `smollm3` | fused | texts |" in text
    )
