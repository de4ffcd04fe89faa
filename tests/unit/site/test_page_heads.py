"""The heads that the site builder puts into the pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.paths import ROOT

from tallow.site.browser_wheel import SiteError
from tallow.site.page_heads import HEAD, POLICY, completed, policy, write_heads

pytestmark = pytest.mark.native  # reads the checkout

LIBRARIES = {"pyodide": "https://p/", "tokenizers": "https://t/t.mjs", "markdown": "https://m/a.mjs https://m/b.mjs"}
PAGES = [ROOT / "web" / "front" / "index.html", *sorted(ROOT.glob("wasm_examples/*/index.html"))]
PAGE = "<head>\n    <!-- head: demo early -->\n    <title>T</title>\n</head><header><!-- home --></header>"


def test_a_policy_has_the_sources_of_all_words_of_the_page() -> None:
    least = dict(each.split(" ", 1) for each in policy({"all"}, LIBRARIES).split("; "))
    more = dict(each.split(" ", 1) for each in policy({"all", "sound", "markdown"}, LIBRARIES).split("; "))
    assert least["script-src"] == "'self' 'wasm-unsafe-eval' https://p/"
    assert least["connect-src"] == "'self' data: blob:"
    assert more == least | {
        "script-src": "'self' 'wasm-unsafe-eval' https://p/ https://m/a.mjs https://m/b.mjs",
        "media-src": "'self' blob:",
    }


def test_elements_are_in_their_order_and_relative_to_the_page() -> None:
    text = completed(PAGE, "../../", LIBRARIES)
    assert re.findall(r'(?:src|href)="([^"]*)"', text) == [
        *("../../web/flame.svg", "../../web/early.js", "../../web/style.css", "../../web/demo.css"),
        *("../../web/tallow.js", "../../web/protocol.js", "../../"),
    ]
    assert text.index("Content-Security-Policy") < text.index("<link")
    assert "early.js" not in completed(PAGE.replace(" early", ""), "../../", LIBRARIES)


def test_the_front_page_marks_its_link_home() -> None:
    assert '<a class="brand" href="./" aria-current="page">' in completed(PAGE, "", LIBRARIES)
    assert "aria-current" not in completed(PAGE, "../../", LIBRARIES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_no_page_repeats_what_the_builder_adds(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "Content-Security-Policy" in completed(text, "", LIBRARIES)
    for _, line in HEAD:
        assert line.partition("{root}")[2].partition('"')[0] not in text or "{root}" not in line
    assert "Content-Security-Policy" not in text


def test_pages_without_a_place_or_with_unknown_words_are_refused(tmp_path: Path) -> None:
    for page, words in ((PAGE.replace("early", "late"), "late"), (PAGE.replace("<!-- home -->", ""), "home")):
        (tmp_path / "index.html").write_text(page)
        with pytest.raises(SiteError, match=words):
            write_heads(tmp_path, LIBRARIES)
        assert (tmp_path / "index.html").read_text() == page


def test_every_word_is_used_by_a_page() -> None:
    used = {
        word
        for page in (*PAGES, ROOT / "wasm_examples" / "server" / "chat.html")
        for word in re.findall(r"<!-- head:(.*?)-->", page.read_text(encoding="utf-8"))[0].split()
    }
    assert used == (POLICY.keys() | {word for word, _ in HEAD}) - {"all"}
