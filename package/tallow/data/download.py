"""Fetching the files of data sets, held to their checksums. It needs the extra `data`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from tallow.errors import DatasetError, MissingPackageError


def fetch(urls: Sequence[str], path: str, md5: str | None) -> None:
    """Download one file, from the first of the `urls` that answers, unless `path` is there and right already.

    It is written beside `path` and renamed when it is whole.

    Args:
        md5: of the content; None if none is known. Then only the size that the server says is checked.

    Raises:  DatasetError if no server answers, or what it sends is not what it should be
    """
    pooch, downloader = _downloader()
    folder, name = os.path.split(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    known_hash = None if md5 is None else f"md5:{md5}"
    failures = []
    for url in urls:
        try:
            pooch.retrieve(url, known_hash, fname=name, path=folder, downloader=downloader)
            return
        except OSError as error:  # of the connection or of the disk
            failures.append(f"{url}: {error}")
        except ValueError as error:  # pooch's, for another hash
            raise DatasetError(
                f"{url} is not the file it should be: {error}", mend="try again; if it stays, the file has changed"
            ) from error
    raise DatasetError(
        "\n  ".join(["download failed:", *failures]), mend=f"fetch it by other means, and save it as {path}"
    )


def _downloader() -> tuple[Any, Any]:
    """pooch, and what it is to download with."""
    if sys.platform == "emscripten":
        raise DatasetError(
            "download=True: a browser's Python cannot open connections of its own",
            mend="fetch the files in the page, and write them to the dataset's root",
        )
    try:
        import pooch  # optional: the extra `data`

        # Files that are compressed are wanted as they are.
        return pooch, pooch.HTTPDownloader(progressbar=True, headers={"Accept-Encoding": "identity"})
    except (ImportError, ValueError) as error:  # ValueError is pooch's where there is no tqdm
        package = "pooch" if isinstance(error, ImportError) else "tqdm"
        raise MissingPackageError(package, "download=True", "data") from error
