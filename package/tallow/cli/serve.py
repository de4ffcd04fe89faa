"""The HTTP server of `tallow demo`: static files, isolated from other origins, cheap to load a second time."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import unquote, urlsplit

# Addresses with a version or a hash in them: what they name never changes.
IMMUTABLE = re.compile(r"/runtime/[^/]+/")
MODELS = "/models/"


class SiteHandler(SimpleHTTPRequestHandler):
    """Serves a site folder, and single files as /models/<name>."""

    protocol_version = "HTTP/1.1"  # keeps connections open: a page makes about twenty requests
    extensions_map = {  # noqa: RUF012  the base class has it so
        "": "application/octet-stream",
        ".css": "text/css; charset=utf-8",
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".json": "application/json",
        ".mjs": "text/javascript; charset=utf-8",
        ".py": "text/plain; charset=utf-8",
        ".svg": "image/svg+xml",
        ".wasm": "application/wasm",  # streaming compilation and its cache need this type
        ".zip": "application/zip",
    }

    def __init__(self, *args: object, models: Mapping[str, Path], **kwargs: object) -> None:
        self.models = models
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        name = unquote(urlsplit(path).path)
        if name.startswith(MODELS):
            return str(self.models.get(name.removeprefix(MODELS), Path(self.directory) / "no such model"))
        return super().translate_path(path)

    def send_head(self) -> IO[bytes] | None:  # type: ignore[override]
        """Answer 304 to a browser that has this very file."""
        path = Path(self.translate_path(self.path))
        if "\0" in str(path):  # which the base class would open
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        if path.is_file():
            stat = path.stat()
            self._validator = f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"'
            if self.headers.get("If-None-Match") == self._validator:
                self.send_response(HTTPStatus.NOT_MODIFIED)
                self.end_headers()
                return None
        return cast("IO[bytes] | None", super().send_head())

    def list_directory(self, path: str | os.PathLike[str]) -> None:
        self.send_error(HTTPStatus.NOT_FOUND)

    def end_headers(self) -> None:
        # Isolated pages get threads and exact clocks.
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        immutable = IMMUTABLE.match(self.path)
        self.send_header("Cache-Control", "public, max-age=31536000, immutable" if immutable else "no-cache")
        if validator := self.__dict__.pop("_validator", None):
            self.send_header("ETag", validator)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


class SiteServer(ThreadingHTTPServer):
    """Serves `folder` at http://host:port/ until `shutdown`.

    Raises:  OSError when the port is taken
    """

    daemon_threads = True  # an open connection does not hold up the end

    def __init__(self, folder: Path, *, host: str, port: int, models: Mapping[str, Path]) -> None:
        super().__init__((host, port), partial(SiteHandler, directory=str(folder), models=models))

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]!s}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # browsers drop connections whenever a page closes
            super().handle_error(request, client_address)
