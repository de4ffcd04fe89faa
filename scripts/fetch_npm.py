#!/usr/bin/env python3
"""Make local copies of libraries in JavaScript, for tests, offline demos and self-hosting:

scripts/fetch_npm.py tokenizers    Hugging Face's tokenizers, with which pages read tokenizer.json
scripts/fetch_npm.py markdown      marked, which parses Markdown, and dompurify, which removes unsafe HTML: for chats
scripts/fetch_npm.py axe           axe-core, with which the tests check the accessibility of the pages; no page loads it

Each is of npm packages, some files and their licences; see `npm_package`. A copy goes to a folder with the versions in
its name, next to the copy of scripts/fetch_pyodide.py. It is made once and then used offline. The last line printed is
its path. Needs Python's standard library.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import npm_package
from fetch_pyodide import FetchError, cache_folder
from npm_package import NpmFile, NpmPackage

TOKENIZERS = NpmPackage(
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
AXE = NpmPackage(
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


@dataclass(frozen=True)
class Copy:
    """A local copy of packages.

    Attributes:
        label: the beginning of the folder's name; the versions follow.
    """

    label: str
    packages: tuple[NpmPackage, ...]

    @property
    def place(self) -> Path:
        """The folder of the copy, whether it exists or not."""
        return cache_folder() / "-".join([self.label, *(package.version for package in self.packages)])

    def fetch(self) -> Path:
        """Make the copy if it does not exist; return its folder.

        Raises: FetchError when a download fails or a hash differs; the cache then holds no copy.
        """
        return npm_package.fetch(self.place, self.packages)


COPIES = {
    "tokenizers": Copy("huggingface-tokenizers", (TOKENIZERS,)),
    "markdown": Copy("markdown", (MARKED, DOMPURIFY)),
    "axe": Copy("axe-core", (AXE,)),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=COPIES)
    name = parser.parse_args().name
    try:
        print(COPIES[name].fetch())
    except FetchError as error:
        print(f"fetch_npm: {name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
