"""Repositories of the Hugging Face Hub for a browser's Python, which has no connections but those of its page.

A worker asks with requests that it waits for, a part of a file each: it can be stopped between two, and goes on there
when it is asked again. What has come lies where `huggingface_hub` would have it, for as long as the page is open.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from tallow.errors import HubError
from tallow.io.json_object import parse_list
from tallow.io.zip_archive import is_inside

PART = 16 << 20  # bytes asked for at once
MAX_DEPTH = 8  # of the list of files
PAUSES_S = (0.25, 1.0, 3.0)  # before another try of what failed


class File(NamedTuple):
    """Attributes:
    size: bytes.
    sha256: of the content, which the Hub tells of large files only.
    """

    name: str
    size: int
    sha256: str | None


class Answer(NamedTuple):
    """Attributes:
    status: of HTTP; 0 where no answer came.
    error: the Hub's own word for it, such as GatedRepo.
    """

    status: int
    body: bytes
    error: str | None = None


def snapshot(
    repository: str, patterns: Sequence[str], left_out: Sequence[str], revision: str | None, token: str | None
) -> Path:
    """The folder that holds the repository's files that match, as `huggingface_hub.snapshot_download`.

    Raises:  HubError
    """
    folder = _cache() / f"models--{repository.replace('/', '--')}" / quote(revision or "main", safe="")
    for file in files(repository, revision, token):
        if _matches(file.name, patterns) and not _matches(file.name, left_out):
            _fetch(repository, file, folder / file.name, revision, token)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def files(repository: str, revision: str | None, token: str | None) -> list[File]:
    """What the repository holds.  Raises: HubError"""
    url = f"{_endpoint()}/api/models/{repository}/tree/{quote(revision or 'main', safe='')}?recursive=true"
    answer = _asked(url, None, token)
    if answer.status in (401, 404):
        mend = "check the name and the revision; a private one needs a token"
        raise HubError(f"the Hub has no repository {repository}, or not for you; nor is there such a folder", mend)
    return listed(_content(answer, repository), url)


def listed(answer: bytes, url: str = "the Hub") -> list[File]:
    """The files that the Hub's answer lists.  Raises: HubError for any other answer"""
    try:
        return list(_entries(parse_list(answer, url, MAX_DEPTH)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HubError(f"{url} answers with no list of files", mend="try again later") from error


def _entries(entries: list[Any]) -> Iterator[File]:
    for entry in entries:
        if entry["type"] == "file":
            path, size, oid = entry["path"], entry["size"], (entry.get("lfs") or {}).get("oid")
            if not is_inside(path) or type(size) is not int or size < 0 or not isinstance(oid, str | None):
                raise ValueError(path)
            yield File(path, size, oid)


def _fetch(repository: str, file: File, path: Path, revision: str | None, token: str | None) -> None:
    if path.exists() and path.stat().st_size == file.size:
        return
    url = f"{_endpoint()}/{repository}/resolve/{quote(revision or 'main', safe='')}/{quote(file.name)}"
    path.parent.mkdir(parents=True, exist_ok=True)
    partly = path.with_name(path.name + ".part")
    with partly.open("ab") as out:
        while out.tell() < file.size:
            _report(f"\r{file.name}: {out.tell() / 1e6:.1f} of {file.size / 1e6:.1f} MB")
            start = out.tell()
            answer = _asked(url, range(start, min(start + PART, file.size)), token)
            body = _content(answer, f"{repository}: {file.name}")
            # A server that knows no ranges sends all of it.
            out.write(body if answer.status == 206 else body[start:])
            if out.tell() == start:
                break
        size = out.tell()
    _report(f"\r{file.name}: {size / 1e6:.1f} of {file.size / 1e6:.1f} MB\n")
    wrong = None if size == file.size else f"has {size} bytes, not {file.size}"
    if wrong is None and file.sha256 is not None:
        with partly.open("rb") as made:
            digest = hashlib.file_digest(made, "sha256").hexdigest()
        wrong = None if digest == file.sha256 else f"has the SHA-256 {digest}, not {file.sha256}"
    if wrong is not None:
        partly.unlink()
        raise HubError(f"{repository}: {file.name} {wrong}", mend="fetch it again")
    partly.replace(path)


def _content(answer: Answer, what: str) -> bytes:
    if answer.error == "GatedRepo":
        mend = "accept its terms on its page of the Hub, and pass your token"
        raise HubError(f"{what} is open only to those who have accepted its terms", mend)
    if answer.status not in (200, 206):
        said = f"the Hub answers {answer.status}" if answer.status else "the Hub cannot be reached"
        raise HubError(f"{what} could not be fetched: {said}", mend="try again; what has come is kept")
    return answer.body


def _asked(url: str, part: range | None, token: str | None) -> Answer:
    """An answer, after further tries where the server or the connection fails."""
    for pause in PAUSES_S:
        answer = request(url, part, token)
        if answer.status and answer.status < 500:
            return answer
        time.sleep(pause)
    return request(url, part, token)


def request(url: str, part: range | None, token: str | None) -> Answer:
    """Ask for some bytes of a file, or for all, and wait for them.  Raises: HubError where Python may not wait"""
    mend = "run Python in a worker; or fetch the files in the page, and write them to a folder"
    try:
        from js import XMLHttpRequest
        from pyodide.ffi import JsException
    except ImportError as error:
        raise HubError(f"{url} cannot be asked for from here", mend) from error
    asked = XMLHttpRequest.new()
    asked.open("GET", url, False)
    try:
        asked.responseType = "arraybuffer"
    except JsException as error:
        raise HubError(f"a page's own thread cannot wait for {url}", mend) from error
    if part is not None:
        asked.setRequestHeader("Range", f"bytes={part.start}-{part.stop - 1}")
    if token is not None:
        asked.setRequestHeader("Authorization", f"Bearer {token}")
    try:
        asked.send()
    except JsException:
        return Answer(0, b"")
    body = asked.response.to_bytes() if asked.response else b""
    return Answer(asked.status, body, asked.getResponseHeader("X-Error-Code"))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _cache() -> Path:
    return Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser() / "hub"


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def _report(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)
