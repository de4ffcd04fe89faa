"""Check the links of a folder of HTML pages, including anchors."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The links and the anchors of one HTML page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = {"", "top"}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src"):
                self.links.add(value or "")
            elif name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value or "")


def dead_links(site: Path) -> list[str]:
    """Return broken links of the pages below `site`, each as "page -> link": missing files and missing anchors.

    Links to other hosts are not checked.
    """
    pages = {path.resolve(): _Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert pages
    return [
        f"{page.relative_to(site.resolve())} -> {link}"
        for page, parsed in sorted(pages.items())
        for link in sorted(parsed.links)
        if not _leads_somewhere(link, page, site.resolve(), pages)
    ]


def _leads_somewhere(link: str, page: Path, site: Path, pages: dict[Path, _Page]) -> bool:
    scheme, host, path, _, anchor = urlsplit(link)
    if scheme or host:
        return scheme in ("http", "https", "mailto", "data", "blob")
    path = unquote(path)
    start = site if path.startswith("/") else page.parent
    target = (start / path.lstrip("/")).resolve() if path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_file() or not target.is_relative_to(site):
        return False
    return target not in pages or unquote(anchor) in pages[target].anchors
