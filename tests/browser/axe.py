"""Accessibility by axe-core: WCAG 2.2 A and AA, and its best practices."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from playwright.sync_api import Page, ViewportSize

Scheme: TypeAlias = Literal["light", "dark"]
LOOKS: dict[Scheme, ViewportSize] = {"light": {"width": 1280, "height": 900}, "dark": {"width": 390, "height": 844}}

RUN = """
async () => {
  document.body.style.backgroundImage = "none"; // axe computes no contrast over a gradient
  // What observes the sizes of elements, as to let the keyboard scroll them, runs after the first frame.
  for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const { violations, passes } = await axe.run(document, { runOnly: tags, resultTypes: ["violations"] });
  const places = ({ id, nodes }) => nodes.map(({ html, any, all, none }) =>
    `${id}: ${html.slice(0, 200)}: ${[...any, ...all, ...none].map(({ message }) => message).join("; ")}`);
  return { checks: passes.length, violations: violations.flatMap(places) };
}
"""


def look(page: Page, scheme: Scheme) -> None:
    """Set the colours, and the size of a desktop or of a phone."""
    page.set_viewport_size(LOOKS[scheme])
    page.emulate_media(color_scheme=scheme)


def violations(page: Page) -> list[str]:
    """Return the rules that a page with axe-core violates, with the elements."""
    return _run(page)["violations"]


def expect_no_violation(page: Page, state: str) -> None:
    """Fail if a page with axe-core violates a rule; `state` describes the page."""
    found = _run(page)
    assert found["checks"] > 20
    assert not found["violations"], f"{state}: {found['violations']}"


def _run(page: Page) -> Any:
    return page.evaluate(RUN)
