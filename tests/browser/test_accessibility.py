"""Accessibility of every page by axe-core: WCAG 2.2 A and AA, and its best practices; in both colour schemes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from support import paths
from tests.browser.axe import LOOKS, Scheme, expect_no_violation, look, violations

PAGES = ["", *sorted(f"wasm_examples/{path.parent.name}/" for path in paths.ROOT.glob("wasm_examples/*/index.html"))]

# Show what a page hides at first: folded sections, errors, progress, results. Other tabs are in the place of the first.
REVEAL = """
() => {
  for (const it of document.querySelectorAll("details")) it.open = true;
  for (const it of document.querySelectorAll("main [hidden]:not([role=tabpanel])")) it.hidden = false;
  const message = "<p>A message.</p><p class='hint'>A hint.</p><button>Try again</button>";
  for (const it of document.querySelectorAll(".problem")) it.innerHTML = message;
  for (const it of document.querySelectorAll("#progress p, #hearing p")) it.textContent = "Fetching Python";
  for (const it of document.querySelectorAll("[role=status]")) it.textContent = "A state.";
}
"""


@pytest.fixture(scope="module")
def idle(browser: Browser) -> Iterator[Page]:
    """A page whose worker never starts, so that it appears at once and does not change."""
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.route("**/web/worker.js", lambda route: route.fulfill(content_type="text/javascript", body=""))
    yield page
    context.close()


@pytest.mark.parametrize("scheme", LOOKS)
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_no_violation(idle: Page, site: str, axe: str, path: str, scheme: Scheme) -> None:
    look(idle, scheme)
    idle.goto(site + path)
    idle.evaluate(axe)
    expect_no_violation(idle, "at first")
    idle.evaluate(REVEAL)
    expect_no_violation(idle, "revealed")
    for tab in idle.get_by_role("tab").all()[1:]:
        tab.click()
        idle.evaluate(REVEAL)
        expect_no_violation(idle, tab.inner_text())


NOTEBOOK = {
    "cells": [
        {
            "cell_type": "markdown",
            "id": "a",
            "metadata": {},
            "source": "# Wax\n\n[link](https://example.org)\n\n|a|\n|-|\n|1|",
        },
        {
            "cell_type": "code",
            "id": "b",
            "metadata": {},
            "execution_count": 1,
            "source": "@flame\ndef melt(x: int = 3):  # why\n    return 'wax'",
            "outputs": [
                {"output_type": "stream", "name": "stderr", "text": "a warning"},
                {"output_type": "error", "ename": "E", "evalue": "", "traceback": ["Traceback", "E: x"]},
            ],
        },
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.mark.parametrize("scheme", LOOKS)
def test_axe_finds_no_violation_in_a_notebook(idle: Page, site: str, axe: str, scheme: Scheme) -> None:
    look(idle, scheme)
    idle.goto(f"{site}wasm_examples/console/")
    idle.get_by_test_id("show-notebook").click()
    file: Any = {"name": "a.ipynb", "mimeType": "", "buffer": json.dumps(NOTEBOOK).encode()}
    idle.get_by_test_id("open-notebook").set_input_files(file)
    idle.locator(".cell h1").wait_for()
    idle.get_by_test_id("add-code").click()
    idle.evaluate(axe)
    idle.evaluate("localStorage.clear()")
    expect_no_violation(idle, "with cells")


def test_axe_finds_a_violation(idle: Page, site: str, axe: str) -> None:
    idle.goto(site)
    idle.evaluate(axe)
    idle.evaluate("document.querySelector('h1').style.color = 'var(--line)'")
    assert any("color-contrast" in violation for violation in violations(idle))
