"""The parts that all pages of the site share: the start of their head, with the policy, and the link home.

A page says in a comment what it needs: `<!-- head: demo early sound -->` in its head, with words of `POLICY` and
`HEAD`, and `<!-- home -->` in its bar. The site builder puts the elements in their place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tallow.site.browser_wheel import SiteError

HEAD_PLACE = re.compile(r"<!-- head:(?P<words>[\w ]*)-->")
HOME_PLACE = "<!-- home -->"
ALL = "all"
# Content-Security-Policy: what a page and its worker load and run, by the words of its head. Models of a demo may come
# from any secure address. `{pyodide}` and so on are the addresses of libraries.
POLICY: Mapping[str, Mapping[str, str]] = {
    ALL: {
        "default-src": "'none'",
        "script-src": "'self' 'wasm-unsafe-eval' {pyodide}",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self' data: blob:",
        "worker-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    },
    "front": {"connect-src": "{pyodide}", "manifest-src": "'self'"},
    "demo": {"connect-src": "https: http://localhost:* http://127.0.0.1:*", "img-src": "data: blob:"},
    "sound": {"media-src": "'self' blob:"},
    "server": {},
    "tokenizers": {"script-src": "{tokenizers}"},
    "markdown": {"script-src": "{markdown}"},
}
# The elements by those words, in their order. early.js would wait for the style sheets above it.
HEAD = (
    (ALL, '<meta charset="utf-8" />'),
    (ALL, '<meta http-equiv="Content-Security-Policy" content="{policy}" />'),
    (ALL, '<meta name="viewport" content="width=device-width, initial-scale=1" />'),
    (ALL, '<link rel="icon" href="{root}web/flame.svg" type="image/svg+xml" />'),
    ("early", '<script src="{root}web/early.js"></script>'),
    (ALL, '<link rel="stylesheet" href="{root}web/style.css" />'),
    ("front", '<link rel="stylesheet" href="{root}web/front.css" />'),
    ("demo", '<link rel="stylesheet" href="{root}web/demo.css" />'),
    ("server", '<link rel="stylesheet" href="{root}web/demo.css" />'),
    ("demo", '<link rel="modulepreload" href="{root}web/tallow.js" />'),
    ("demo", '<link rel="modulepreload" href="{root}web/protocol.js" />'),
)
HOME = """\
<a class="brand" href="{home}">
        <svg class="flame" viewBox="0 0 20 32" aria-hidden="true">
          <path class="outer" d="M10 0c1 6 9 11 9 20a9 11 0 0 1-18 0C1 13 8 9 10 0z" />
          <path class="inner" d="M10 15c.6 3 4 5 4 9a4 5 0 0 1-8 0c0-3 3-5 4-9z" />
        </svg>
        tallow
      </a>"""


def write_heads(site: Path, libraries: Mapping[str, str]) -> None:
    """Complete every page of a site.

    Args:
        libraries: addresses by the names in `POLICY`; several are separated by spaces.

    Raises:  SiteError if a page has no place for its head or for the link home, or asks for an unknown word
    """
    for path in sorted((site / "index.html", *site.glob("wasm_examples/*/index.html"))):
        root = Path(os.path.relpath(site, path.parent)).as_posix()
        try:
            text = completed(path.read_text(encoding="utf-8"), "" if root == "." else f"{root}/", libraries)
        except ValueError as error:
            raise SiteError(f"{path}: {error}", hint="see tallow/site/page_heads.py") from None
        path.write_text(text, encoding="utf-8")


def completed(page: str, root: str, libraries: Mapping[str, str]) -> str:
    """Return a page with the elements in the place of its comments. `root` is the relative path of the site's root.

    Raises:  ValueError if a comment is missing or has an unknown word
    """
    place = HEAD_PLACE.search(page)
    if not place or HOME_PLACE not in page:
        raise ValueError(f"no comment '<!-- head: ... -->', or no {HOME_PLACE!r}")
    words = {ALL, *place["words"].split()}
    if unknown := words - POLICY.keys() - {word for word, _ in HEAD}:
        raise ValueError(f"unknown words in the comment of the head: {', '.join(sorted(unknown))}")
    lines = [line.format(root=root, policy=policy(words, libraries)) for word, line in HEAD if word in words]
    home = HOME.format(home=root) if root else HOME.replace('"{home}"', '"./" aria-current="page"')
    return page.replace(place[0], "\n    ".join(lines)).replace(HOME_PLACE, home)


def policy(words: set[str], libraries: Mapping[str, str]) -> str:
    """Return the policy of a page with these words: of each directive the sources of all of them."""
    sources: dict[str, list[str]] = {}
    for word, directives in POLICY.items():
        if word in words:
            for directive, more in directives.items():
                sources.setdefault(directive, []).append(more.format_map(libraries))
    return "; ".join(" ".join([directive, *each]) for directive, each in sources.items())
