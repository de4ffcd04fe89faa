"""Requirements for every page: tab order, contrast, wording of messages. No Python runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

# The main control of each page, by its test id.
FRONT = "front page"
FIRST = {
    FRONT: "prompt",
    "bert": "texts",
    "chat": "prompt",
    "console": "prompt",
    "depth": "camera",
    "describe": "camera",
    "find": "new-scene",
    "llama2c": "prompt",
    "onnx": "run",
    "search": "query",
    "train": "train",
    "whisper": "record",
}
WIDTHS = {"phone": 390, "desk": 1280}


@pytest.fixture(scope="module")
def idle(browser: Browser, site: str) -> Iterator[Page]:
    """A page whose worker never starts, so that it appears at once and does not change."""
    context = browser.new_context()
    page = context.new_page()
    page.route("**/web/worker.js", lambda route: route.fulfill(content_type="text/javascript", body=""))
    page.goto(site)
    yield page
    context.close()


@pytest.fixture(scope="module", params=FIRST)
def name(request: pytest.FixtureRequest, idle: Page, site: str) -> str:
    """Open a page with all folded sections expanded; return its name."""
    name: str = request.param
    idle.goto(site if name == FRONT else f"{site}wasm_examples/{name}/")
    idle.evaluate("for (const it of document.querySelectorAll('details')) it.open = true")
    return name


# Elements in the tab order, with their position on the page.
STOPS = """
() => [...document.querySelectorAll("main :is(a, button, input, select, textarea, summary, [tabindex])")]
  .filter((it) => it.tabIndex >= 0 && it.checkVisibility() && !it.disabled && !it.closest(".problem"))
  .map((it) => {
    const { left, right, top, bottom } = it.getBoundingClientRect();
    return { name: it.dataset.testid ?? it.id, tabIndex: it.tabIndex, left, right, top, bottom };
  })
"""


def test_tab_order_follows_the_layout(idle: Page, name: str) -> None:
    """Tab order follows the layout of a phone from top to bottom, and the main control comes first on every screen."""
    # The prompts of console and chat are at the end; a page with tabs begins with them.
    above = {"interrupt", "clear", "output", "show-console", "show-notebook", "tab-network", "share"}
    for width in WIDTHS.values():
        idle.set_viewport_size({"width": width, "height": 900})
        stops: list[dict[str, Any]] = idle.evaluate(STOPS)
        assert next(stop["name"] for stop in stops if stop["name"] not in above) == FIRST[name]
        assert all(stop["tabIndex"] == 0 for stop in stops), "an element has a positive tabindex"
        if width == WIDTHS["phone"]:
            for stop, after in pairwise(stops):
                is_beside = after["left"] >= stop["left"] and after["bottom"] > stop["top"]
                assert after["top"] >= stop["bottom"] - 1 or is_beside, f"{stop} comes before {after}"


# The outline of the focused element, of what covers it for the pointer, or of what contains it.
OUTLINE = """
() => {
  if (document.activeElement === document.body) return null; // after the last stop
  const widths = [];
  for (let it = document.activeElement; it && it !== document.body; it = it.parentElement) {
    for (const part of [null, "::after"]) {
      const { outlineStyle, outlineWidth } = getComputedStyle(it, part);
      widths.push(outlineStyle === "none" ? 0 : parseFloat(outlineWidth));
    }
  }
  const { id, outerHTML } = document.activeElement;
  return { name: id || outerHTML.slice(0, 80), width: Math.max(0, ...widths) };
}
"""


def test_focus_is_visible(idle: Page, name: str) -> None:
    idle.set_viewport_size({"width": WIDTHS["desk"], "height": 900})
    idle.evaluate("document.activeElement.blur()")
    seen = set()
    for _ in range(12):
        idle.keyboard.press("Escape")  # or the console's prompt takes the next key
        idle.keyboard.press("Tab")
        if focused := idle.evaluate(OUTLINE):
            seen.add(focused["name"])
            assert focused["width"] >= 2, focused
    assert len(seen) > 5


# The colours of a control's border, inside and surroundings, as [r, g, b]; the CSS specification defines how colours
# with an alpha blend.
BORDERS = """
() => {
  const canvas = new OffscreenCanvas(1, 1);
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const layers = (it) => {
    const colours = [];
    for (; it; it = it.parentElement) colours.unshift(getComputedStyle(it).backgroundColor);
    return colours;
  };
  const mixed = (colours) => {
    pen.clearRect(0, 0, 1, 1);
    for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const types = ["checkbox", "radio", "range"];
  return [...document.querySelectorAll("main :is(input, select, textarea, button, #draw-pad), .terminal")]
    .filter((it) => it.checkVisibility() && !types.includes(it.type) && !it.matches(".quiet, .terminal *"))
    .map((it) => {
      const { borderTopColor, borderTopWidth } = getComputedStyle(it);
      const around = layers(it.parentElement);
      const inside = mixed(layers(it));
      const border = parseFloat(borderTopWidth) ? mixed([...layers(it), borderTopColor]) : inside;
      return { name: it.id || it.textContent.trim(), border, inside, around: mixed(around) };
    });
}
"""


def luminance(colour: list[int]) -> float:
    """WCAG 2.2, relative luminance."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (value / 255 for value in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: list[int], other: list[int]) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_edges_of_controls_have_contrast(idle: Page, name: str, scheme: Any) -> None:
    """WCAG 2.2, 1.4.11: contrast of at least 3 to 1 between a control's boundary and its surroundings."""
    idle.emulate_media(color_scheme=scheme)
    borders = idle.evaluate(BORDERS)
    assert len(borders) >= 2
    contrasts = {it["name"]: round(contrast(it["border"], it["around"]), 2) for it in borders}
    assert {name: ratio for name, ratio in contrasts.items() if ratio < 3} == {}


SAY = """
async ([site, message]) => {
  const { ProblemBox } = await import(`${site}web/page.js`);
  const { Problem } = await import(`${site}web/protocol.js`);
  const box = document.createElement("div");
  document.body.append(box);
  new ProblemBox(box).show(new Problem("Test", message));
  return box.firstChild.textContent;
}
"""


def test_message_is_a_sentence_and_an_address_stays_one(idle: Page, site: str) -> None:
    sentences = {
        "https://example.org/a.bin could not be fetched.": "https://example.org/a.bin could not be fetched.",
        "http://127.0.0.1:8000/x: the server answers 404": "http://127.0.0.1:8000/x: the server answers 404.",
        "localhost:8000 is down": "localhost:8000 is down.",
        "model.safetensors is empty": "model.safetensors is empty.",
        "hidden layers: 'x'": "Hidden layers: 'x'.",
        "tokenizer: 3 bytes": "Tokenizer: 3 bytes.",
        "the prompt is long!": "The prompt is long!",
    }
    assert [idle.evaluate(SAY, [site, message]) for message in sentences] == list(sentences.values())
