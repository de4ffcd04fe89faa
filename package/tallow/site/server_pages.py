"""The chat page of `tallow serve`, with the server's models.

Its files have the addresses that they have on a site, because its modules import each other by them.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tallow.site.build import DESCRIPTION, LIBRARIES, MARKDOWN_CDN
from tallow.site.page_heads import completed
from tallow.site.pages import SERVER, copy_pages

PAGE = f"{SERVER}/chat.html"
FOLDERS = ("web", "wasm_examples/chat", SERVER)
KINDS = (".css", ".js", ".svg")


@cache
def server_pages() -> dict[str, bytes]:
    """Return the files of the page by their paths; that of the page itself is empty.

    Raises:  SiteError if this tallow has no pages
    """
    with TemporaryDirectory() as folder:
        site = Path(folder)
        copy_pages(site)
        found = [path for part in FOLDERS for path in sorted((site / part).glob("*"))]
        files = {path.relative_to(site).as_posix(): path.read_bytes() for path in found if path.suffix in KINDS}
        files[""] = completed((site / PAGE).read_text(encoding="utf-8"), "", LIBRARIES).encode()
    files["favicon.ico"] = files["web/flame.svg"]
    return files | {DESCRIPTION: json.dumps({"libraries": MARKDOWN_CDN}).encode()}
