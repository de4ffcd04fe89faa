"""The documentation as a part of the site: its layout on a phone, search, and the Run buttons."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from support import builds
from support.guides import RUNS_ANYWHERE, blocks, program
from support.paths import ROOT
from tests.browser.axe import LOOKS, Scheme, expect_no_violation, look
from tests.browser.conftest import START_MS, serving

WIDTH = 360  # CSS pixels, of a small phone
GUIDES = [path for path in sorted((ROOT / "docs").glob("*.md")) if blocks(path, RUNS_ANYWHERE)]
ENDLESS = "while True: pass"
SECONDS = re.compile(r"\d+\.\d s")
MARKS = {"html": "<title>Storyteller", "js": "Runtime", "py": "class Demo"}  # of the blocks of that page
STORY = re.compile(r"Once upon a time\b.{20,}", re.DOTALL)


@pytest.fixture(scope="module")
def whole(revisited_dir: Path, docs_site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site with the documentation in docs/, and in storyteller/ the page of docs/browser.md."""
    folder = builds.linked_copy(revisited_dir, tmp_path_factory.mktemp("whole") / "site")
    builds.linked_copy(docs_site, folder / "docs")
    storyteller = folder / "storyteller"
    storyteller.mkdir()
    for name, language in (("index.html", "html"), ("app.js", "js"), ("app.py", "py")):
        (text,) = (block for block in blocks(ROOT / "docs" / "browser.md", language) if MARKS[language] in block)
        (storyteller / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def address(whole: Path) -> Iterator[str]:
    with serving(whole) as server:
        yield server.url


@pytest.fixture(scope="module")
def docs(address: str) -> str:
    return f"{address}docs/"


@pytest.fixture(scope="module")
def guide(browser: Browser, docs: str) -> Iterator[Page]:
    """The page to start with. Its Python runs from one test to the next."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{docs}docs/getting-started/")
    yield page
    context.close()


def block(page: Page, index: int) -> Locator:
    return page.locator(".runnable").nth(index)


def press(block: Locator) -> None:
    block.get_by_test_id("run").click()


def test_block_opens_in_the_console_with_those_above(browser: Browser, docs: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{docs}docs/getting-started/")
    expect(page.get_by_test_id("open")).to_have_count(page.locator(".runnable").count())
    first, second = (page.locator(".runnable code").nth(i).inner_text().strip() for i in range(2))
    page.get_by_test_id("open").nth(1).click()
    expect(page.get_by_test_id("prompt")).to_have_value(f"{first}\n\n{second}")
    expect(page.get_by_test_id("output")).to_contain_text("came with the link")
    context.close()


def write(block: Locator, code: str) -> None:
    """Replace the code of a block."""
    block.locator("code").evaluate("(element, code) => { element.textContent = code; }", code)


def test_phone_needs_no_sideways_scroll(browser: Browser, docs: str, whole: Path) -> None:
    """Elements wider than a phone, such as tables, scroll by themselves.

    All guides, and of the reference, whose pages consist of the same elements, one page in ten.
    """
    pages = sorted(page.relative_to(whole / "docs").as_posix() for page in (whole / "docs").rglob("*.html"))
    reference = [path for path in pages if path.startswith("api/")]
    pages = [path for path in pages if path not in reference] + reference[::10]
    assert len(pages) > 40
    context = browser.new_context(viewport={"width": WIDTH, "height": 740}, java_script_enabled=False)
    page = context.new_page()
    widths = {}
    for path in pages:
        response = page.goto(f"{docs}{path}")
        assert response
        assert response.ok
        widths[path] = page.evaluate("document.documentElement.scrollWidth")
    context.close()
    assert {path: width for path, width in widths.items() if width > WIDTH} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_code_has_enough_contrast(browser: Browser, docs: str, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{docs}docs/kernels/")
    ratios = page.evaluate("""() => {
      const luminance = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((c) => c / 255)
          .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ratios = {};
      for (const span of document.querySelectorAll(".highlight span")) {
        const ground = getComputedStyle(span.closest(".highlight")).backgroundColor;
        const [low, high] = [getComputedStyle(span).color, ground].map(luminance).sort((a, b) => a - b);
        ratios[span.className] = (high + 0.05) / (low + 0.05);
      }
      return ratios;
    }""")
    context.close()
    assert len(ratios) > 10
    assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("scheme", LOOKS)
def test_axe_finds_no_violation(page: Page, docs: str, axe: str, scheme: Scheme) -> None:
    """One page of each kind: the first, guides with Run buttons and with a table, functions, classes, and a search.

    They are short ones of their kind: the time that axe-core takes grows with the elements.
    """
    look(page, scheme)
    for path in ("", "docs/getting-started/", "docs/embeddings/", "api/tallow.func/", "api/tallow.training/"):
        page.goto(docs + path)
        page.evaluate(axe)
        expect_no_violation(page, path)
        page.evaluate("for (const it of document.querySelectorAll('details')) it.open = true")
        page.evaluate("for (const it of document.querySelectorAll('main [hidden]')) it.hidden = false")
        expect_no_violation(page, f"{path}, revealed")
    page.get_by_test_id("search").fill("softma")
    expect(page.get_by_test_id("results").get_by_role("link").first).to_be_visible(timeout=START_MS)
    expect_no_violation(page, "search")


def test_search_finds_a_function_and_is_driven_by_keys(page: Page, docs: str) -> None:
    page.goto(f"{docs}docs/speed/")
    page.get_by_test_id("search").fill("softma")
    first = page.get_by_test_id("results").get_by_role("link").first
    expect(first).to_contain_text("oftmax", timeout=START_MS)
    page.get_by_test_id("search").fill("")
    page.keyboard.press("Escape")
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("/")
    field = page.get_by_test_id("search")
    expect(field).to_be_focused()
    field.press_sequentially("cross_entropy")
    links = page.get_by_test_id("results").get_by_role("link")
    expect(links.first).to_contain_text("cross_entropy", timeout=START_MS)
    field.press("ArrowDown")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    for _ in range(2):
        page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    link = page.get_by_test_id("results").get_by_role("link", name=re.compile("^cross_entropy tallow"))
    address = link.get_attribute("href")
    assert address
    assert address.endswith("api/tallow.nn.functional/#cross_entropy")
    field.press("Enter")
    page.wait_for_url(re.compile("#cross_entropy$"))


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("softmx", "softmax"),  # a letter is missing
        ("quantise a model", "quanti[sz]e"),
        ("how do I load a gguf?", "GGUF"),
        ("gradient clipping", "Training|clip"),
        ("--top-k", "Commands"),
    ],
)
def test_search_understands_questions_and_slips(guide: Page, query: str, title: str) -> None:
    guide.get_by_test_id("search").fill("")  # hides the results of another query
    expect(guide.get_by_test_id("results")).to_be_hidden()
    guide.get_by_test_id("search").fill(query)
    results = guide.get_by_test_id("results")
    expect(results.get_by_role("link", name=re.compile(title, re.IGNORECASE)).first).to_be_visible(timeout=START_MS)
    first = " ".join(results.get_by_role("link").all_inner_texts()[:5])
    assert re.search(title, first, re.IGNORECASE)
    expect(guide.locator("#found")).to_have_text(re.compile(r"\d+ results"))


def test_run_shows_the_output_of_a_block_and_of_those_above(guide: Page) -> None:
    press(block(guide, 1))
    expect(block(guide, 1).get_by_test_id("output")).to_have_text("16.0 -16.0\n", timeout=START_MS)
    expect(block(guide, 0).get_by_test_id("output")).to_contain_text("tensor([[ 6., 12.]")
    expect(block(guide, 1).get_by_test_id("status")).to_have_text(SECONDS)


def test_error_is_shown_and_ends_what_waits(guide: Page) -> None:
    write(block(guide, 2), "print('before')\n1 / 0")
    press(block(guide, 3))
    expect(block(guide, 2).get_by_test_id("output")).to_contain_text("before", timeout=START_MS)
    expect(block(guide, 2).get_by_test_id("output")).to_contain_text("ZeroDivisionError")
    expect(block(guide, 2).get_by_test_id("status")).to_have_text("Failed.")
    expect(block(guide, 3).get_by_test_id("run")).to_have_text("Run")
    expect(block(guide, 3).get_by_test_id("output")).to_be_hidden()


def test_stop_keeps_the_names(guide: Page) -> None:
    write(block(guide, 2), ENDLESS)
    press(block(guide, 2))
    expect(block(guide, 2).get_by_test_id("status")).to_have_text("Running.", timeout=START_MS)
    expect(block(guide, 2).get_by_test_id("run")).to_have_text("Stop")
    press(block(guide, 2))
    expect(block(guide, 2).get_by_test_id("output")).to_contain_text("KeyboardInterrupt", timeout=START_MS)
    expect(block(guide, 2).get_by_test_id("status")).to_have_text("Stopped.")
    write(block(guide, 2), "w.grad")
    press(block(guide, 2))
    expect(block(guide, 2).get_by_test_id("output")).to_have_text("tensor(-16.)\n", timeout=START_MS)


def test_stop_closes_python_that_does_not_answer(guide: Page) -> None:
    write(block(guide, 0), "while True:\n    try:\n        while True: pass\n    except KeyboardInterrupt: pass")
    press(block(guide, 0))
    expect(block(guide, 0).get_by_test_id("status")).to_have_text("Running.", timeout=START_MS)
    press(block(guide, 0))
    expect(block(guide, 0).get_by_test_id("status")).to_contain_text("variables are gone", timeout=START_MS)
    write(block(guide, 0), "'w' in dir()")
    press(block(guide, 0))
    expect(block(guide, 0).get_by_test_id("output")).to_have_text("False\n", timeout=START_MS)


def test_stop_while_python_starts(page: Page, docs: str) -> None:
    page.goto(f"{docs}docs/data/")
    press(block(page, 0))
    press(block(page, 0))
    expect(block(page, 0).get_by_test_id("status")).to_contain_text("Stopped.", timeout=START_MS)
    expect(block(page, 0).get_by_test_id("output")).to_be_hidden()
    press(block(page, 0))
    expect(block(page, 0).get_by_test_id("output")).to_contain_text("800 rows", timeout=START_MS)


def test_failure_to_start_is_shown(page: Page, docs: str) -> None:
    page.route("**/pyodide.mjs", lambda route: route.abort())
    page.goto(f"{docs}docs/data/")
    press(block(page, 0))
    expect(block(page, 0).get_by_test_id("status")).to_contain_text("Python did not start.", timeout=START_MS)
    page.unroute("**/pyodide.mjs")
    press(block(page, 0))
    expect(block(page, 0).get_by_test_id("output")).to_contain_text("800 rows", timeout=START_MS)


def test_every_block_can_be_copied(page: Page, docs: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{docs}docs/getting-started/")
    code = page.locator("article .highlight")
    copies = code.get_by_test_id("copy")
    expect(copies).to_have_count(code.count())
    for index in (0, -1):
        code.nth(index).hover()
        copies.nth(index).click()
        expect(copies.nth(index)).to_have_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == code.nth(index).locator("code").text_content()


def test_every_block_has_a_button(page: Page, docs: str) -> None:
    for path in GUIDES:
        page.goto(f"{docs}docs/{path.stem}/")
        expect(page.get_by_test_id("run")).to_have_count(len(blocks(path, RUNS_ANYWHERE)))


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_every_block_with_a_button_runs(guide: Page, path: Path) -> None:
    """All in one Python: that of a page starts in seconds, and guides are run apart from each other natively."""
    first = block(guide, 0)
    write(first, program(path, RUNS_ANYWHERE))
    press(first)
    expect(first.get_by_test_id("run")).to_have_text("Run", timeout=START_MS)
    assert first.locator(".run-output .error").all_text_contents() == []
    assert SECONDS.fullmatch(first.get_by_test_id("status").inner_text())


def test_page_of_the_guide_writes_a_story(page: Page, address: str) -> None:
    page.goto(f"{address}storyteller/")
    page.locator("#write").click(timeout=START_MS)
    expect(page.locator("#story")).to_have_text(STORY, timeout=START_MS)
