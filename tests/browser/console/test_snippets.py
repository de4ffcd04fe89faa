"""The section Snippets of the console: programs in transformers' names run at once, on models of the page."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from support import paths
from tests.browser.consoles import Console

SNIPPETS = sorted(path.name for path in (paths.ROOT / "wasm_examples" / "console" / "snippets").glob("*.py"))
CARD = """
pip install -q transformers
from transformers import pipeline
pipe = pipeline("zero-shot-classification")
result = pipe("The orchestra played a symphony.", candidate_labels=["music", "cooking"])
print(result["labels"][0])
"""


def test_every_snippet_is_offered_and_runs(console: Console) -> None:
    snippets = console.page.get_by_test_id("snippet")
    expect(snippets).to_have_count(len(SNIPPETS))
    for snippet in snippets.all():
        console.click("clear").prompt.fill("")
        snippet.click()
        expect(console.prompt).to_have_value(re.compile("^# "))
        if "timer.wav" in console.prompt.input_value():
            expect(console.page.get_by_test_id("files")).to_contain_text("timer.wav")
        console.click("run")
        expect(console.output.locator(".given")).to_have_count(1)
        console.ready()
        expect(console.output.locator(".error")).to_have_count(0)
        expect(console.output.locator(".written").filter(has_text=re.compile(r"\S"))).not_to_have_count(0)
    assert "twenty minutes" in console.run('print(transcriber("timer.wav")["text"])')


def test_pasted_card_installs_nothing(console: Console) -> None:
    cell = console.run(CARD.strip())
    assert "transformers: tallow has its names" in cell
    assert cell.endswith("music\n"), cell


@pytest.mark.parametrize(
    ("line", "says"), [("pip install peft transformers", ["peft: tallow", "transformers: tallow"])]
)
def test_pip_of_own_names_says_so(console: Console, line: str, says: list[str]) -> None:
    cell = console.run(line)
    assert all(text in cell for text in says)
