"""Fetching the files of data sets, held to their checksums. It needs the extra `data`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from tallow.errors import DatasetError


def fetch(urls: Sequence[str], path: str, md5: str | None) -> None:
    """Download one file, from the first of the `urls` that answers, unless `path` is there and right already.

    It is written beside `path` and renamed when it is whole.

    Args:
        md5: of the content; None if none is known. Then only the size that the server says is checked.

    Raises:  DatasetError if no server answers, or what it sends is not what it should be
    """
    pooch, requests = _packages()
    folder, name = os.path.split(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    failures = []
    for url in urls:
        try:
            pooch.retrieve(
                url,
                known_hash=None if md5 is None else f"md5:{md5}",
                fname=name,
                path=folder,
                downloader=pooch.HTTPDownloader(progressbar=True, headers={"Accept-Encoding": "identity"}),
            )
            return
        except requests.exceptions.RequestException as error:
            failures.append(f"{url}: {error}")
        except ValueError as error:  # pooch's, for a wrong hash
            raise DatasetError(
                f"{url} is not the file it should be: {error}", mend="try again; if it stays, the file has changed"
            ) from error
    raise DatasetError(
        "download failed:\n  " + "\n  ".join(failures), mend=f"fetch it by other means, and save it as {path}"
    )


def _packages() -> tuple[Any, Any]:
    if sys.platform == "emscripten":
        raise DatasetError(
            "download=True: a browser's Python cannot open connections of its own",
            mend="fetch the files in the page, and write them to the dataset's root",
        )
    try:
        import pooch  # optional: the extra `data`
        import requests  # pooch brings it
        import tqdm  # noqa: F401 - pooch asks for it when it draws the first bar
    except ImportError as error:
        raise ImportError(f"download=True needs {error.name}\n  mend: pip install 'tallow[data]'") from error
    return pooch, requests
