#!/usr/bin/env python3
"""Make a local copy of axe-core, with which the tests check the accessibility of the pages. No page loads it.

It is the npm package axe-core, one file of 0.7 MB and its licences; see `npm_package`.

The copy goes to `axe-core-<version>`, next to the copy of scripts/fetch_pyodide.py. It is made once and then used
offline. The last line printed is its path. Needs Python's standard library.
"""

from __future__ import annotations

import sys
from pathlib import Path

import npm_package
from fetch_pyodide import FetchError, cache_folder
from npm_package import NpmFile, NpmPackage

PACKAGE = NpmPackage(
    "axe-core",
    "4.14.1",
    "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
    (
        NpmFile("axe.min.js", "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c", "axe.min.js"),
        NpmFile("LICENSE", "af175b9d96ee93c21a036152e1b905b0b95304d4ae8c2c921c7609100ba8df7e", "LICENSE"),
        NpmFile(
            "LICENSE-3RD-PARTY.txt",
            "4f8563870d0fca38bbc3e00b6f670cb7fa9f380ba9f26a7f7d1184a6b18b1653",
            "LICENSE-3RD-PARTY.txt",
        ),
    ),
)


def place() -> Path:
    """Return the path of the local copy, whether it exists or not."""
    return cache_folder() / f"axe-core-{PACKAGE.version}"


def fetch() -> Path:
    """Return the folder of the local copy; make the copy if it does not exist.

    Raises: FetchError when the download fails or a hash differs; the cache then holds no copy.
    """
    return npm_package.fetch(place(), [PACKAGE])


def main() -> int:
    try:
        print(fetch())
    except FetchError as error:
        print(f"fetch_axe: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
