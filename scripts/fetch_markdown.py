#!/usr/bin/env python3
"""Make a local copy of the libraries that render Markdown on the chat page, for tests, offline demos and self-hosting.

They are the npm packages marked, which parses Markdown, and dompurify, which removes unsafe HTML; see `npm_package`.

The copy goes to `markdown-<version of marked>-<version of dompurify>`, next to the copy of scripts/fetch_pyodide.py. It
is made once and then used offline. The last line printed is its path. Needs Python's standard library.
"""

from __future__ import annotations

import sys
from pathlib import Path

import npm_package
from fetch_pyodide import FetchError, cache_folder
from npm_package import NpmFile, NpmPackage

MARKED = NpmPackage(
    "marked",
    "18.2.1",
    "ii4bxCTCqqwpT86XZWgJNs+ZnAIZksmLGYMViWA7PDIXYIeNo1x6cDdX3JOip9NM/cI6p8z57FxliACboTruMA==",
    (
        NpmFile(
            "lib/marked.esm.js", "5371fea86fd0656b4fc7bea7c94c663109d82789b69433eeee78d42895aa44de", "marked.esm.js"
        ),
        NpmFile("LICENSE", "8e3a3f82f59a60958f56ca08f445647c32a4733dc7ca6c2c46f6eb898471ab9c", "LICENSE-marked"),
    ),
)
DOMPURIFY = NpmPackage(
    "dompurify",
    "3.4.18",
    "ofe3wI/uNm68HInABYFJYqQxRw1EaKAjNdrFVKqjUY+UZurvNd2L/HuQe097s/4RivWiZyP6tT7aoT8atjfhwg==",
    (
        NpmFile(
            "dist/purify.es.mjs", "1a06b721ad8b46d6174b21f22ea70290aaf3e5a81d65af3b7178113953f7c9b1", "purify.es.mjs"
        ),
        NpmFile("LICENSE", "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30", "LICENSE-dompurify"),
    ),
)


def place() -> Path:
    """Return the path of the local copy, whether it exists or not."""
    return cache_folder() / f"markdown-{MARKED.version}-{DOMPURIFY.version}"


def fetch() -> Path:
    """Return the folder of the local copy; make the copy if it does not exist.

    Raises: FetchError when a download fails or a hash differs; the cache then holds no copy.
    """
    return npm_package.fetch(place(), [MARKED, DOMPURIFY])


def main() -> int:
    try:
        print(fetch())
    except FetchError as error:
        print(f"fetch_markdown: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
