"""The package `huggingface_hub` in a browser: `connect()` lets it download files by `in_browser`.

The Hub redirects requests of large files to another server. A browser follows at once, and Python does not see the
commit and the hash, which only the Hub's own answer to HEAD names. Here that answer is made from the Hub's description
of the repository, and a file comes in parts, with retries. Other requests are sent as before, by the browser's `fetch`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import httpx2
import huggingface_hub

from tallow.errors import CheckpointError
from tallow.hub import in_browser
from tallow.hub.in_browser import Answer
from tallow.io.json_object import parse_object

# /owner/name/resolve/main/folder/model.safetensors
FILE = re.compile(r"/((?:datasets/|spaces/)?)((?:[\w.-]+/)?[\w.-]+)/resolve/([^/]+)/(.+)")
MAX_DEPTH = 64  # of the description, which has the model's config


def connect() -> None:
    """Send the requests of `huggingface_hub` this way from now on."""
    hooks = huggingface_hub.get_session().event_hooks
    huggingface_hub.set_client_factory(
        lambda: httpx2.Client(transport=HubTransport(), event_hooks=hooks, follow_redirects=True, timeout=None)
    )


class Repository(NamedTuple):
    """A repository at a commit: the size and the digest of each file, as in `in_browser.File`."""

    commit: str
    files: dict[str, in_browser.File]


class HubTransport(httpx2.HTTPTransport):
    """Answers requests of files of the Hub; its base class sends the others."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[str, str], Repository] = {}  # by address and revision: a page asks once about each

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request.  Raises: httpx2.ConnectError, httpx2.ReadError"""
        address, endpoint = str(request.url), in_browser.endpoint()
        found = FILE.fullmatch(address.partition("?")[0].removeprefix(endpoint))
        if found is None or not address.startswith(endpoint) or request.method not in ("HEAD", "GET"):
            return super().handle_request(request)
        kind, name, revision, path = found.groups()
        authorization = request.headers.get("authorization")
        token = authorization.removeprefix("Bearer ") if authorization else None
        repository = self._repository(f"{endpoint}/api/{kind or 'models/'}{name}/revision", revision, token, request)
        if isinstance(repository, Answer):
            return _refusal(repository, request)
        file = repository.files.get(unquote(path))
        headers = {"X-Repo-Commit": repository.commit}
        if file is None:
            return httpx2.Response(404, headers={**headers, "X-Error-Code": "EntryNotFound"}, request=request)
        at_commit = f"{endpoint}/{kind}{name}/resolve/{quote(repository.commit, safe='')}/{path}"
        headers |= {"ETag": f'"{file.digest}"', "Content-Length": str(file.size), "Location": at_commit}
        if request.method == "HEAD":
            return httpx2.Response(200, headers=headers, request=request)
        return _content(at_commit, file, token, request)

    def _repository(self, url: str, revision: str, token: str | None, request: httpx2.Request) -> Repository | Answer:
        """Return a repository, or the answer if the Hub does not describe it."""
        if (url, revision) not in self._known:
            answer = in_browser.request_with_retries(f"{url}/{revision}?blobs=true", None, token)
            if answer.status != 200:
                return answer
            try:
                found = _parse(answer.body, url)
            except (CheckpointError, AttributeError, KeyError, TypeError, ValueError) as error:
                raise httpx2.ReadError(f"{url} did not describe a repository: {error!r}", request=request) from error
            self._known[url, revision] = self._known[url, found.commit] = found
        return self._known[url, revision]


def _parse(body: bytes, url: str) -> Repository:
    described = parse_object(body, url, MAX_DEPTH)
    return Repository(described["sha"], {file.name: file for file in map(_file, described["siblings"])})


def _file(entry: dict[str, Any]) -> in_browser.File:
    lfs = entry.get("lfs")
    return in_browser.File(entry["rfilename"], entry["size"], lfs["sha256"] if lfs else entry["blobId"])


def _content(url: str, file: in_browser.File, token: str | None, request: httpx2.Request) -> httpx2.Response:
    """Return the whole file. Its first part is asked for at once: the Hub refuses it if it needs consent."""
    first = in_browser.request_with_retries(url, _part(0, file), token) if file.size else Answer(200, b"")
    if first.status not in (200, 206):
        return _refusal(first, request)

    def parts() -> Iterator[bytes]:
        answer, start = first, 0
        while answer.body:
            yield answer.body
            start += len(answer.body)
            if start >= file.size:
                return
            answer = in_browser.request_with_retries(url, _part(start, file), token)
            if answer.status != 206:
                raise httpx2.ReadError(f"{file.name} stopped at byte {start} of {file.size}", request=request)

    return httpx2.Response(200, headers={"Content-Length": str(file.size)}, content=parts(), request=request)


def _part(start: int, file: in_browser.File) -> range:
    return range(start, min(start + in_browser.PART, file.size))


def _refusal(answer: Answer, request: httpx2.Request) -> httpx2.Response:
    if answer.status == 0:
        raise httpx2.ConnectError("the Hub cannot be reached", request=request)
    headers = {"X-Error-Code": answer.error} if answer.error else {}
    return httpx2.Response(answer.status, headers=headers, request=request)
