"""Download Hugging Face Hub repositories in a browser, where Python can only use the page's connections.

A worker sends synchronous requests, each for one part of a file, so a download can be stopped between parts and resumed
there. Files are stored where `huggingface_hub` would store them, for as long as the page is open.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from tallow.errors import HubError
from tallow.io.json_object import parse_list
from tallow.io.zip_archive import is_inside

PART = 16 << 20  # bytes per request
MAX_DEPTH = 8  # of the list of files
PAUSES_S = (0.25, 1.0, 3.0)  # pauses before retries
HASHES = {64: ("SHA-256", "sha256"), 40: ("Git id", "sha1")}  # by the number of digits


class File(NamedTuple):
    """A file of a repository.

    Attributes:
        size: bytes.
        digest: of the content, in hexadecimal: the SHA-256 of a large file, which the Hub keeps outside Git, or the id
            in Git of another one. None if the server does not report it.
    """

    name: str
    size: int
    digest: str | None


class Answer(NamedTuple):
    """An HTTP response.

    Attributes:
        status: HTTP status; 0 if there was no response.
        error: the Hub's error code, such as GatedRepo.
        content_range: where the body is in its file; None if it is all of it, or if the page may not read where.
    """

    status: int
    body: bytes
    error: str | None = None
    content_range: str | None = None


def snapshot(
    repository: str, patterns: Sequence[str], ignored: Sequence[str], revision: str | None, token: str | None
) -> Path:
    """Download the matching files of a repository and return their folder, as `huggingface_hub.snapshot_download`.

    Raises:  HubError
    """
    folder = _cache() / f"models--{repository.replace('/', '--')}" / _quoted(revision or "main")
    for file in files(repository, revision, token):
        if _matches(file.name, patterns) and not _matches(file.name, ignored):
            _fetch(repository, file, folder / file.name, revision, token)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def files(repository: str, revision: str | None, token: str | None) -> list[File]:
    """Return the files of a repository.  Raises: HubError"""
    url = f"{endpoint()}/api/models/{repository}/tree/{_quoted(revision or 'main')}?recursive=true"
    answer = request_with_retries(url, None, token)
    if answer.status in (401, 404):
        hint = "check the name and the revision; a private repository needs a token"
        raise HubError(f"no folder and no Hub repository {repository}, or no access to it", hint)
    return parse_listing(_content(answer, repository), url)


def parse_listing(answer: bytes, url: str = "the Hub") -> list[File]:
    """Parse the Hub's list of files.  Raises: HubError for any other content"""
    try:
        return list(_entries(parse_list(answer, url, MAX_DEPTH)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HubError(f"{url} did not return a list of files", hint="try again later") from error


def _entries(entries: list[Any]) -> Iterator[File]:
    for entry in entries:
        if entry["type"] == "file":
            path, size, oid = entry["path"], entry["size"], (entry.get("lfs") or entry).get("oid")
            if not is_inside(path) or type(size) is not int or size < 0 or not isinstance(oid, str | None):
                raise ValueError(path)
            yield File(path, size, oid)


def _quoted(text: str, safe: str = "") -> str:
    from urllib.parse import quote  # not at the top: pages start without it

    return quote(text, safe=safe)


def _fetch(repository: str, file: File, path: Path, revision: str | None, token: str | None) -> None:
    if path.exists() and _difference(path, file) is None:
        return
    url = f"{endpoint()}/{repository}/resolve/{_quoted(revision or 'main')}/{_quoted(file.name, safe='/')}"
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    with partial.open("ab") as out:
        while out.tell() < file.size:
            _report(f"\r{file.name}: {out.tell() / 1e6:.1f} of {file.size / 1e6:.1f} MB")
            start = out.tell()
            answer = request_with_retries(url, range(start, min(start + PART, file.size)), token)
            body = _content(answer, f"{repository}: {file.name}")
            if answer.status == 206 and not _is_from(answer.content_range, start, file.size):
                partial.unlink()
                reason = f"byte {start} of {file.size} was asked for, and the part is {answer.content_range}"
                raise HubError(f"{repository}: {file.name} has changed: {reason}", hint="download it again")
            # A server without range support sends the whole file.
            out.write(body if answer.status == 206 else body[start:])
            if out.tell() == start:
                break
        size = out.tell()
    _report(f"\r{file.name}: {size / 1e6:.1f} of {file.size / 1e6:.1f} MB\n")
    wrong = _difference(partial, file)
    if wrong is not None:
        partial.unlink()
        raise HubError(f"{repository}: {file.name} {wrong}", hint="download it again")
    partial.replace(path)


def _difference(path: Path, file: File) -> str | None:
    """Return in which way the content of a path is not the file's; None if it is, as far as the server says."""
    size = path.stat().st_size
    if size != file.size:
        return f"has {size} bytes, not {file.size}"
    if file.digest is None or len(file.digest) not in HASHES:
        return None
    name, algorithm = HASHES[len(file.digest)]
    hashed = hashlib.new(algorithm, b"" if algorithm == "sha256" else b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as content:
        while part := content.read(PART):
            hashed.update(part)
    digest = hashed.hexdigest()
    return None if digest == file.digest else f"has the {name} {digest}, not {file.digest}"


def _is_from(content_range: str | None, start: int, size: int) -> bool:
    """Return whether a part begins there in a file of that size; also if a page may not read where (CORS)."""
    return content_range is None or bool(re.fullmatch(rf"bytes {start}-\d+/{size}", content_range))


def _content(answer: Answer, what: str) -> bytes:
    if answer.error == "GatedRepo":
        hint = "accept its terms on its Hub page, and pass your token"
        raise HubError(f"{what} requires accepting its terms", hint)
    if answer.status not in (200, 206):
        reason = f"the Hub returned status {answer.status}" if answer.status else "the Hub cannot be reached"
        raise HubError(f"{what} download failed: {reason}", hint="try again; the download resumes")
    return answer.body


def request_with_retries(url: str, part: range | None, token: str | None) -> Answer:
    """Send a request, with retries if the server or the connection fails."""
    for pause in PAUSES_S:
        answer = request(url, part, token)
        if answer.status and answer.status < 500:
            return answer
        time.sleep(pause)
    return request(url, part, token)


def request(url: str, part: range | None, token: str | None) -> Answer:
    """Request a byte range of a file, or all of it, synchronously.  Raises: HubError where Python may not block"""
    hint = "run Python in a worker; or fetch the files in the page and write them to a folder"
    try:
        from js import XMLHttpRequest
        from pyodide.ffi import JsException
    except ImportError as error:
        raise HubError(f"{url} cannot be requested here", hint) from error
    xhr = XMLHttpRequest.new()
    xhr.open("GET", url, False)
    try:
        xhr.responseType = "arraybuffer"
    except JsException as error:
        raise HubError(f"the page's main thread cannot wait for {url}", hint) from error
    if part is not None:
        xhr.setRequestHeader("Range", f"bytes={part.start}-{part.stop - 1}")
    if token is not None:
        xhr.setRequestHeader("Authorization", f"Bearer {token}")
    try:
        xhr.send()
    except JsException:
        return Answer(0, b"")
    body = xhr.response.to_bytes() if xhr.response else b""
    return Answer(xhr.status, body, xhr.getResponseHeader("X-Error-Code"), xhr.getResponseHeader("Content-Range"))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _cache() -> Path:
    return Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser() / "hub"


def endpoint() -> str:
    """Return the Hub's address, or that of `HF_ENDPOINT`."""
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def _report(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)
