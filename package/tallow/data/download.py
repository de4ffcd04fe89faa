"""Download files of data sets and verify their checksums. Needs the extra `data`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from tallow.errors import DatasetError, MissingPackageError
from tallow.io.atomic import made_folder
from tallow.io.regular import regular


def fetch(urls: Sequence[str], path: str, md5: str | None) -> None:
    """Download a file from the first of the `urls` that responds, unless `path` exists and is valid.

    The file is written next to `path` and renamed when it is complete.

    Args:
        md5: checksum of the content; if None, only the size reported by the server is checked.

    Raises:  DatasetError if no server responds, or the content does not match; SpecialFileError if `path` is no
             regular file
    """
    pooch, downloader = _downloader()
    if os.path.exists(path):
        open(path, "rb", opener=regular).close()  # pooch would wait for a pipe
    folder, name = os.path.split(os.path.abspath(path))
    known_hash = None if md5 is None else f"md5:{md5}"
    failures = []
    for url in urls:
        try:
            with made_folder(folder):
                pooch.retrieve(url, known_hash, fname=name, path=folder, downloader=downloader)
            return
        except OSError as error:  # from the connection or the disk
            failures.append(f"{url}: {error}")
        except ValueError as error:  # pooch raises it for a wrong checksum
            raise DatasetError(
                f"{url} does not match its checksum: {error}", hint="try again; if it persists, the file has changed"
            ) from error
    raise DatasetError(
        "\n  ".join(["download failed:", *failures]), hint=f"download it by other means and save it as {path}"
    )


def _downloader() -> tuple[Any, Any]:
    """Return the package pooch and its downloader."""
    if sys.platform == "emscripten":
        raise DatasetError(
            "download=True: Python in a browser cannot open connections",
            hint="fetch the files in the page and write them to the dataset's root",
        )
    try:
        import pooch  # optional: the extra `data`

        # Keep compressed files compressed.
        return pooch, pooch.HTTPDownloader(progressbar=True, headers={"Accept-Encoding": "identity"})
    except (ImportError, ValueError) as error:  # pooch raises ValueError without tqdm
        package = "pooch" if isinstance(error, ImportError) else "tqdm"
        raise MissingPackageError(package, "download=True", "data") from error
