"""Download files of npm packages from npm's registry, or else from a CDN, and verify their hashes.

Needs Python's standard library.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fetch_pyodide import FetchError, put

MAX_BYTES = 16 << 20  # the packages have up to 6.6 MB


@dataclass(frozen=True)
class NpmFile:
    """A file of a package.

    Attributes:
        path: its path in the package.
        sha256: its hash, in hexadecimal.
        name: its name in the copy.
    """

    path: str
    sha256: str
    name: str


@dataclass(frozen=True)
class NpmPackage:
    """A version of a package, and the files that are needed of it.

    Attributes:
        sha512: the package's "integrity" in the registry, in base64.
    """

    name: str
    version: str
    sha512: str
    files: tuple[NpmFile, ...]

    @property
    def registry(self) -> str:
        base = self.name.rpartition("/")[2]
        return f"https://registry.npmjs.org/{self.name}/-/{base}-{self.version}.tgz"

    @property
    def cdn(self) -> str:
        return f"https://cdn.jsdelivr.net/npm/{self.name}@{self.version}/"

    def download(self) -> dict[str, bytes]:
        """Return the files by their names in the copy.

        Raises:  FetchError if the download fails or a hash differs
        """
        files = _first_that_answers(self, self._from_registry, self._from_cdn)
        for file in self.files:
            digest = hashlib.sha256(files[file.name]).hexdigest()
            if digest != file.sha256:
                raise FetchError(f"{self.name}, {file.path}: sha256 {digest}, expected {file.sha256}")
        return files

    def _from_registry(self) -> dict[str, bytes]:
        package = download(self.registry)
        integrity = base64.b64encode(hashlib.sha512(package).digest()).decode()
        if integrity != self.sha512:
            raise FetchError(f"{self.registry}: sha512 {integrity}, expected {self.sha512}")
        files = {}
        with tarfile.open(fileobj=io.BytesIO(package)) as archive:
            for needed in self.files:
                file = archive.extractfile(f"package/{needed.path}")
                if file is None:
                    raise FetchError(f"{self.registry}: {needed.path} is not a file")
                files[needed.name] = file.read()
        return files

    def _from_cdn(self) -> dict[str, bytes]:
        return {file.name: download(self.cdn + file.path) for file in self.files}


def download(url: str) -> bytes:
    """Return the content of an address."""
    with urllib.request.urlopen(url, timeout=60) as response:
        return response.read(MAX_BYTES)


def fetch(destination: Path, packages: Sequence[NpmPackage]) -> Path:
    """Copy the files of packages to the folder `destination`, if it does not exist, and return it.

    Raises:  FetchError if a download fails or a hash differs; then there is no copy
    """
    if destination.is_dir():
        return destination
    files = {name: data for package in packages for name, data in package.download().items()}
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".npm-") as scratch:
        folder = Path(scratch) / "copy"
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)
        put(folder, destination)
    return destination


def _first_that_answers(package: NpmPackage, *sources: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    reasons = []
    for source in sources:
        try:
            return source()
        except OSError as error:
            reasons.append(str(error))
    raise FetchError(f"neither {package.registry} nor {package.cdn} can be reached: {'; '.join(reasons)}")
