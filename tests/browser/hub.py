"""A stand-in for the Hugging Face Hub: `context.route("https://huggingface.co/**", Hub(...))`."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Route


def no_hub(context: BrowserContext) -> None:
    """Refuse requests to the Hub, before a page starts. A test may then add a route to a `Hub` at any time.

    The first route of a context makes Playwright wait for an answer of all workers, and threads of kernels that wait
    for work give none.
    """
    context.route("https://huggingface.co/**", lambda route: route.abort())


COMMIT = "c" * 40  # of the main branch of each repository


class Hub:
    """Answers as the Hub does, for repositories of `owner`: files by path."""

    def __init__(self, owner: str = "who", **repositories: dict[str, bytes]) -> None:
        self.owner = owner
        self.repositories = repositories
        self.served: dict[str, bytes] = {}  # replaces the content in the list
        self.gated: set[str] = set()

    def __call__(self, route: Route) -> None:
        status, content = self.reply(urlsplit(route.request.url).path)
        headers = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "X-Error-Code"}
        headers |= {"X-Error-Code": "GatedRepo"} if status == 403 else {}
        route.fulfill(status=status, body=content, headers=headers)

    def reply(self, path: str) -> tuple[int, bytes]:
        is_described = path.startswith("/api/models/")
        name, _, rest = path.removeprefix("/api/models").removeprefix(f"/{self.owner}/").partition("/")
        files = self.repositories.get(name)
        if files is None:
            return 401, b""
        if is_described and rest == "revision/main":
            siblings = [
                {"rfilename": file, "size": len(content), "blobId": "5" * 40, **_lfs(file, content, "sha256")}
                for file, content in files.items()
            ]
            return 200, json.dumps({"sha": COMMIT, "siblings": siblings}).encode()
        if is_described:
            entries: list[dict[str, Any]] = [{"type": "directory", "path": "1_Pooling"}]
            for file, content in files.items():
                entries.append({"type": "file", "path": file, "size": len(content), **_lfs(file, content, "oid")})
            return 200, json.dumps(entries).encode()
        file = rest.removeprefix("resolve/main/").removeprefix(f"resolve/{COMMIT}/")
        if name in self.gated and file.endswith(".safetensors"):
            return 403, b""
        return 200, self.served.get(file, files[file])


def _lfs(file: str, content: bytes, key: str) -> dict[str, Any]:
    """Return the entry of a file that the Hub keeps outside Git; none for others."""
    if not file.endswith((".safetensors", ".gguf", ".bin")):
        return {}
    return {"lfs": {key: hashlib.sha256(content).hexdigest()}}
