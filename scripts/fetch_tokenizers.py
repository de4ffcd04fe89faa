#!/usr/bin/env python3
"""Make a local copy of Hugging Face's tokenizers in JavaScript, for tests, offline demos and self-hosting.

It is the npm package @huggingface/tokenizers, one file of 37 KB and its licence, from npm's registry or, if that is not
reachable, from a CDN. In both cases the files must have the hashes below.

The copy goes to `huggingface-tokenizers-<version>`, next to the copy of scripts/fetch_pyodide.py. It is made once and
then used offline. The last line printed is its path. Needs Python's standard library.
"""

from __future__ import annotations

import base64
import hashlib
import io
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path

from fetch_pyodide import FetchError, cache_folder

VERSION = "0.2.0"
REGISTRY = f"https://registry.npmjs.org/@huggingface/tokenizers/-/tokenizers-{VERSION}.tgz"
# The package's "integrity" in the registry.
SHA512 = "LidMHe1FpcSYH4vcSjXooda34pC0M8m1gmDOv7SQi6Iv+ib1zX7J3sHBCC9/3FPCkn2k1b55FneVqMRxrr99pg=="
CDN = f"https://cdn.jsdelivr.net/npm/@huggingface/tokenizers@{VERSION}/"
FILES = {
    "dist/tokenizers.min.mjs": "258e46332101335ce8d95aed7745b19ac3b46d37f3e159a89cf894c2ea9b1d3a",
    "LICENSE": "c71d239df91726fc519c6eb72d318ec65820627232b2f796219e87dcf35d0ab4",
}
MAX_BYTES = 4 << 20  # the package has 0.2 MB


def download(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as response:
        return response.read(MAX_BYTES)


def from_registry() -> dict[str, bytes]:
    """Download the package, verify its hash, and return its files."""
    package = download(REGISTRY)
    integrity = base64.b64encode(hashlib.sha512(package).digest()).decode()
    if integrity != SHA512:
        raise FetchError(f"{REGISTRY}: sha512 {integrity}, expected {SHA512}")
    files = {}
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        for name in FILES:
            file = archive.extractfile(f"package/{name}")
            if file is None:
                raise FetchError(f"{REGISTRY}: {name} is not a file")
            files[name] = file.read()
    return files


def from_cdn() -> dict[str, bytes]:
    return {name: download(CDN + name) for name in FILES}


def first_that_answers(*sources: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    reasons = []
    for source in sources:
        try:
            return source()
        except OSError as error:
            reasons.append(str(error))
    raise FetchError(f"neither {REGISTRY} nor {CDN} can be reached: {'; '.join(reasons)}")


def place() -> Path:
    """Return the path of the local copy, whether it exists or not."""
    return cache_folder() / f"huggingface-tokenizers-{VERSION}"


def fetch() -> Path:
    """Return the folder of the local copy; make the copy if it does not exist.

    Raises: FetchError when the download fails or a hash differs; the cache then holds no copy.
    """
    destination = place()
    if destination.is_dir():
        return destination
    files = first_that_answers(from_registry, from_cdn)
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".tokenizers-") as scratch:
        folder = Path(scratch) / "copy"
        folder.mkdir()
        for name, expected in FILES.items():
            digest = hashlib.sha256(files[name]).hexdigest()
            if digest != expected:
                raise FetchError(f"{name}: sha256 {digest}, expected {expected}")
            (folder / Path(name).name).write_bytes(files[name])
        try:
            folder.rename(destination)  # atomic: a copy is either complete or absent
        except OSError:
            if not destination.is_dir():  # another process may have finished first; its copy is the same
                raise
    return destination


def main() -> int:
    try:
        print(fetch())
    except FetchError as error:
        print(f"fetch_tokenizers: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
