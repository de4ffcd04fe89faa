"""torch.hub: download weights, and run the entry points of a local folder. Repositories are not downloaded."""

from __future__ import annotations

import hashlib
import io
import os
import re
import runpy
import shutil
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO, cast
from urllib.error import URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import tallow
from tallow.errors import ArgumentError, DatasetError
from tallow.hub import IN_BROWSER, in_browser
from tallow.io.location import MapLocation
from tallow.lazy_names import names_of

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # resnet18-f37072fd.pth: the first digits of the SHA-256
READ_DATA_CHUNK = 128 * 1024
_HINT = "clone the repository, and pass its folder with source='local'"
OF_DOWNLOADS = ("trust_repo", "force_reload", "verbose", "skip_validation")  # options of `load` about repositories
_folder: str | None = None


def _get_torch_home() -> str:
    """Return the folder for downloads: `TORCH_HOME`, or `torch` in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """Return the folder for downloads of this module: that of `set_dir`, or `hub` in `TORCH_HOME`."""
    return _folder if _folder is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the folder for downloads of this module."""
    global _folder
    _folder = os.path.expanduser(os.fspath(d))


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Download a file to the path `dst`, which appears only once the file is whole.

    Args:
        hash_prefix: the first digits of the file's SHA-256.
        progress: print a line to stderr when it begins.

    Raises: RuntimeError if the file has another hash; URLError if it cannot be downloaded.
    """
    path = Path(dst).expanduser()
    digest = hashlib.sha256()
    if progress:
        print(f"Downloading {url} to {path}", file=sys.stderr)
    with _opened(url) as response, NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            while chunk := response.read(READ_DATA_CHUNK):
                file.write(chunk)
                digest.update(chunk)
            file.close()
            found = digest.hexdigest()
            if hash_prefix is not None and not found.startswith(hash_prefix):
                raise DatasetError(f'invalid hash value (expected "{hash_prefix}", got "{found}") of {url}')
            shutil.move(file.name, path)
        finally:
            file.close()
            Path(file.name).unlink(missing_ok=True)


def load(repo_or_dir: str | os.PathLike[str], model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """Return what the function `model` of the file hubconf.py in a folder returns for the arguments.

    Args:
        repo_or_dir: the folder, which is on `sys.path` while the file is run.
        source: "local"; repositories are not downloaded.
        kwargs: of the function; PyTorch's own options, which concern downloads, are left out.

    Raises: ArgumentError for another source; RuntimeError if a package of the file's `dependencies` is missing, or the
        function is.
    """
    for option in OF_DOWNLOADS:
        kwargs.pop(option, None)
    with _hubconf(repo_or_dir, source, "load") as names:
        missing = [name for name in names.get("dependencies", ()) if find_spec(name) is None]
        if missing:
            raise ArgumentError(f"Missing dependencies: {', '.join(missing)}")
        return _entry(names, model)(*args, **kwargs)


def list(github: str | os.PathLike[str], *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """Return the names of the functions in the file hubconf.py of a folder.

    Args:
        github: the folder.
        args, kwargs: options of downloads, which are left out.
        source: "local", as in `load`.

    Raises: ArgumentError for another source.
    """
    with _hubconf(github, source, "list") as names:
        return [name for name, value in names.items() if callable(value) and not name.startswith("_")]


def help(github: str | os.PathLike[str], model: str, *args: Any, source: str = "github", **kwargs: Any) -> str | None:
    """Return the docstring of a function in the file hubconf.py of a folder; the arguments are those of `list`.

    Raises: ArgumentError for another source; RuntimeError if there is no such function.
    """
    with _hubconf(github, source, "help") as names:
        text: str | None = _entry(names, model).__doc__
        return text


@contextmanager
def _hubconf(folder: str | os.PathLike[str], source: str, function: str) -> Iterator[dict[str, Any]]:
    """Run the file hubconf.py of a folder, which is on `sys.path` until the block ends. Yields its names."""
    if source != "local":
        raise ArgumentError(f"torch.hub.{function}: source={source!r} is not supported", hint=_HINT)
    path = os.path.abspath(os.path.expanduser(os.fspath(folder)))
    sys.path.insert(0, path)
    try:
        yield runpy.run_path(os.path.join(path, "hubconf.py"), run_name="hubconf")
    finally:
        sys.path.remove(path)


def _entry(names: dict[str, Any], model: str) -> Any:
    if not callable(names.get(model)):
        raise ArgumentError(f"Cannot find callable {model} in hubconf")
    return names[model]


def _opened(url: str) -> BinaryIO:
    """Return the content of a URL. In a browser, Python has no connections but those of the page."""
    if not IN_BROWSER or not url.startswith(("https:", "http:")):
        return cast("BinaryIO", urlopen(Request(url, headers={"User-Agent": "tallow"})))
    answer = in_browser.request_with_retries(url, None, None)
    if answer.status == 0:
        raise URLError(f"{url} cannot be reached, or its server does not let pages of other sites read it (CORS)")
    if answer.status != 200:
        raise URLError(f"the server of {url} returned status {answer.status}")
    return io.BytesIO(answer.body)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: MapLocation = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool | None = True,
) -> Any:
    """Load a file of weights from a URL. It is downloaded once, to the folder `checkpoints` of `get_dir()`.

    Args:
        model_dir: another folder.
        check_hash: check the file against the digits in its name, `resnet18-f37072fd.pth`.
        file_name: its name in the folder; None means the last part of the URL.
        weights_only: as in `torch.load`.

    A zip archive of one file is unpacked.

    Raises: as in `download_url_to_file` and `torch.load`.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = os.path.basename(urlparse(url).path) if file_name is None else file_name
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, match[1] if match else None, progress=progress)
    member = _only_member(path)
    if member is not None:
        with zipfile.ZipFile(path) as archive:
            path = archive.extract(member, folder)  # inside of the folder, whatever the member's name
    return tallow.load(path, map_location=map_location, weights_only=weights_only)


def _only_member(path: str) -> str | None:
    """Return the file in a zip archive of one. Checkpoints, which are archives too, give None."""
    if not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return names[0] if len(names) == 1 and not names[0].endswith("data.pkl") else None


__getattr__, __dir__ = names_of(__name__, lazy={"tqdm": "tqdm:tqdm"})
