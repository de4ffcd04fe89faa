"""Accessibility of every page by axe-core: WCAG 2.2 A and AA, and its best practices; in both colour schemes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from support import paths

PAGES = ["", *sorted(f"wasm_examples/{path.parent.name}/" for path in paths.ROOT.glob("wasm_examples/*/index.html"))]
LOOKS = {"light": {"width": 1280, "height": 900}, "dark": {"width": 390, "height": 844}}

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
RUN = """
async () => {
  document.body.style.backgroundImage = "none"; // axe computes no contrast over a gradient
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const { violations, passes } = await axe.run(document, { runOnly: tags, resultTypes: ["violations"] });
  const places = ({ id, nodes }) => nodes.map(({ html, any, all, none }) =>
    `${id}: ${html.slice(0, 200)}: ${[...any, ...all, ...none].map(({ message }) => message).join("; ")}`);
  return { checks: passes.length, violations: violations.flatMap(places) };
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


@pytest.fixture(scope="module")
def axe(axe_dir: Path) -> str:
    return (axe_dir / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", LOOKS)
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_no_violation(idle: Page, site: str, axe: str, path: str, scheme: Any) -> None:
    idle.set_viewport_size(LOOKS[scheme])
    idle.emulate_media(color_scheme=scheme)
    idle.goto(site + path)
    idle.evaluate(axe)
    expect_no_violation(idle, "at first")
    idle.evaluate(REVEAL)
    expect_no_violation(idle, "revealed")
    for tab in idle.get_by_role("tab").all()[1:]:
        tab.click()
        idle.evaluate(REVEAL)
        expect_no_violation(idle, tab.inner_text())


def expect_no_violation(page: Page, state: str) -> None:
    found = page.evaluate(RUN)
    assert found["checks"] > 20
    assert found["violations"] == [], state


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
def test_axe_finds_no_violation_in_a_notebook(idle: Page, site: str, axe: str, scheme: Any) -> None:
    idle.set_viewport_size(LOOKS[scheme])
    idle.emulate_media(color_scheme=scheme)
    idle.goto(f"{site}wasm_examples/console/")
    idle.get_by_test_id("show-notebook").click()
    file: Any = {"name": "a.ipynb", "mimeType": "", "buffer": json.dumps(NOTEBOOK).encode()}
    idle.get_by_test_id("open-notebook").set_input_files(file)
    idle.locator(".cell h1").wait_for()
    idle.get_by_test_id("add-code").click()
    idle.evaluate(axe)
    found = idle.evaluate(RUN)
    idle.evaluate("localStorage.clear()")
    assert found["checks"] > 20
    assert found["violations"] == []


def test_axe_finds_a_violation(idle: Page, site: str, axe: str) -> None:
    idle.goto(site)
    idle.evaluate(axe)
    idle.evaluate("document.querySelector('h1').style.color = 'var(--line)'")
    assert any("color-contrast" in violation for violation in idle.evaluate(RUN)["violations"])
