"""The HTTP server of `tallow demo`: static files, cross-origin isolated, with caching.

It extends http.server. tallow depends on NumPy only, so `tallow demo` has no other server; libraries that serve files
well (Starlette, werkzeug) would be new dependencies for every user. This module adds what http.server lacks: a limit on
threads, a timeout for requests, ranges, compression, and a check of the Host header.
"""

from __future__ import annotations

import io
import ipaddress
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote, urlsplit

from tallow.io.regular import regular
from tallow.site.build import CDN, MARKDOWN_CDN, TOKENIZERS_CDN
from tallow.site.byte_range import Unsatisfiable, requested_range
from tallow.site.content_encoding import SUFFIXES, GzipFiles, accepts_gzip, is_far

MODELS = "/models/"
CHUNK_BYTES = 1 << 16

# URLs that contain a version or a hash: their content never changes.
IMMUTABLE = re.compile(r"/runtime/[^/]+/")

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".flac": "audio/flac",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".py": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",  # streaming compilation and its cache need this type
    ".webmanifest": "application/manifest+json",
    ".zip": "application/zip",
}
OTHER_TYPE = "application/octet-stream"

POLICY = "; ".join(
    (
        "default-src 'self'",
        f"script-src 'self' 'wasm-unsafe-eval' {CDN} {' '.join((TOKENIZERS_CDN, *MARKDOWN_CDN.values()))}",
        "worker-src 'self' blob:",
        "connect-src 'self' https: http: data: blob:",  # pages load models from any URL that the user enters
        "img-src 'self' data: blob:",
        "media-src 'self' data: blob:",
        "style-src 'self' 'unsafe-inline'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'self'",
    )
)
HEADERS = {
    # Cross-origin isolated pages get threads and precise timers.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
}

# A host name or a bracketed IPv6 address, then an optional port.
AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^][:@/?#\\\s]+)(?::[0-9]*)?", re.IGNORECASE)


class SiteHandler(BaseHTTPRequestHandler):
    """Answer GET and HEAD requests from the server's table of files. Paths outside the table give 404, so no URL can
    reach other files."""

    protocol_version = "HTTP/1.1"  # keeps connections open: a page makes about twenty requests
    server_version, sys_version = "tallow", ""  # do not reveal Python's version
    server: SiteServer

    request_s = 10.0  # time limit for a whole request, and for the next one on an open connection
    write_s = 30.0  # time limit for the client to receive CHUNK_BYTES

    _caching = "no-store"

    def setup(self) -> None:
        """Read the connection through a stream with a deadline."""
        super().setup()
        self.rfile.close()
        self._input = _TimedInput(self.connection)
        self.rfile = io.BufferedReader(self._input)

    def handle_one_request(self) -> None:
        self._input.deadline = time.monotonic() + self.request_s
        super().handle_one_request()  # closes the connection after a TimeoutError

    def handle_expect_100(self) -> bool:
        return True  # request bodies are not read, so send the response at once

    def send_response_only(self, code: int, message: str | None = None) -> None:
        self.connection.settimeout(self.write_s)
        super().send_response_only(code, message)

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Cache-Control", self._caching)
        self._caching = SiteHandler._caching
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        """Send the headers of the file that the URL names."""
        self.do_GET()

    def do_GET(self) -> None:
        """Send the file that the URL names; for HEAD requests, its headers only."""
        if "Content-Length" in self.headers or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # the next bytes are a body, not a request
        try:
            authority, path, query = self._target()
        except ValueError:
            return self.send_error(HTTPStatus.BAD_REQUEST)
        if not self.server.answers_to(authority):
            return self.send_error(
                HTTPStatus.MISDIRECTED_REQUEST,
                explain=f"This server answers to localhost and the name in --host, not to {authority}.",
            )
        if f"{path}/" in self.server.files:
            return self._redirect(f"{quote(path, errors='surrogateescape')}/{query}")
        try:
            file = open(self.server.files[path], "rb", opener=regular)  # noqa: SIM115 - its errors are not those of sending
        except (KeyError, OSError):  # unknown, or deleted since
            return self.send_error(HTTPStatus.NOT_FOUND)
        with file:
            self._send(path, file)

    def _target(self) -> tuple[str, str, str]:
        """Return the request's authority, its decoded path, and its query with the question mark.

        Raises:  ValueError if the URL is invalid or has no single authority
        """
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1:
            raise ValueError("expected one Host header")
        target, mark, query = self.path.partition("?")
        authority = hosts[0].strip()
        if not target.startswith("/"):  # the absolute form, which RFC 9112 requires servers to accept
            scheme, authority, target, _, _ = urlsplit(target)
            if scheme != "http":
                raise ValueError("not a URL of this server")
        return authority, unquote(target or "/", errors="surrogateescape"), mark + query

    def _redirect(self, location: str) -> None:
        self.send_response(HTTPStatus.MOVED_PERMANENTLY)
        self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, path: str, file: IO[bytes]) -> None:
        stat = os.fstat(file.fileno())
        version = f"{stat.st_mtime_ns:x}-{stat.st_size:x}"
        packed = self._packed(path, stat.st_size, version)
        if packed is not None:
            file, version = io.BytesIO(packed), f"{version}-gzip"
        size = stat.st_size if packed is None else len(packed)
        validator = f'"{version}"'
        part = None
        status = HTTPStatus.OK
        if self._has(validator):
            status = HTTPStatus.NOT_MODIFIED
        elif self.command == "GET" and self.headers.get("If-Range", validator).strip() == validator:
            try:
                part = requested_range(self.headers.get("Range"), size)
            except Unsatisfiable:
                status = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
        positions = range(size)
        if part is not None:
            status, positions = HTTPStatus.PARTIAL_CONTENT, part

        self._caching = "public, max-age=31536000, immutable" if IMMUTABLE.match(path) else "no-cache"
        self.send_response(status)
        self.send_header("ETag", validator)
        self.send_header("Accept-Ranges", "bytes")
        if self.server.files[path].suffix in SUFFIXES:
            self.send_header("Vary", "Accept-Encoding")
        if packed is not None:
            self.send_header("Content-Encoding", "gzip")
        if status is HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            self.send_header("Content-Range", f"bytes */{size}")
            positions = range(0)
        elif status is HTTPStatus.PARTIAL_CONTENT:
            self.send_header("Content-Range", f"bytes {positions[0]}-{positions[-1]}/{size}")
        if status is not HTTPStatus.NOT_MODIFIED:
            kind = TYPES.get(self.server.files[path].suffix, OTHER_TYPE)  # the path in the URL may be a folder
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(positions)))
        if self.close_connection or self.server.is_full:  # another client may wait for this thread
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "GET" and status is not HTTPStatus.NOT_MODIFIED:
            self._copy(file, positions)

    def _packed(self, path: str, size: int, version: str) -> bytes | None:
        """Return the file compressed, if the client wants it so. Parts of files, and models, are sent as they are."""
        whole = "Range" not in self.headers and not path.startswith(
            MODELS
        )  # pages show how much of a model has arrived
        accepted = whole and accepts_gzip(self.headers.get("Accept-Encoding"))
        if not accepted or not is_far(self.client_address[0]):
            return None
        try:
            return self.server.gzip_files.read(self.server.files[path], size, version)
        except OSError:  # deleted since: what was opened can still be sent
            return None

    def _has(self, validator: str) -> bool:
        """Return whether the client has this version of the file."""
        tags = [tag.strip().removeprefix("W/") for tag in self.headers.get("If-None-Match", "").split(",")]
        return validator in tags or tags == ["*"]

    def _copy(self, file: IO[bytes], positions: range) -> None:
        file.seek(positions.start)
        remaining = len(positions)
        while remaining:
            chunk = file.read(min(remaining, CHUNK_BYTES))
            if not chunk:  # the file was truncated; a short body tells the client
                self.close_connection = True
                return
            self.wfile.write(chunk)
            remaining -= len(chunk)


class SiteServer(ThreadingHTTPServer):
    """HTTP server for the files of `folder` at http://host:port/ and `models`, by name, at /models/.

    It serves the files that exist at construction, or at the last `refresh`. A page of another site can point its own
    host name to this computer (DNS rebinding) and would then read the responses; so requests must use this server's
    host name.

    Raises:  OSError if the port is in use, or `host` is not an address of this computer
    """

    daemon_threads = True  # open connections do not delay the exit
    request_queue_size = 128  # connections waiting to be accepted
    max_connections = 128  # one thread each; a browser opens six

    def __init__(self, folder: Path, *, host: str, port: int, models: Mapping[str, Path]) -> None:
        self._folder, self._models = folder, {MODELS + name: path for name, path in models.items()}
        self.refresh()
        self.gzip_files = GzipFiles()
        self._free = threading.Semaphore(self.max_connections)
        self._ending = threading.Event()
        (self.address_family, _, _, _, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        super().__init__((str(address[0]), port), SiteHandler)
        self._bound = ipaddress.ip_address(str(self.server_address[0]).partition("%")[0])
        self._names = {"localhost", "127.0.0.1", "[::1]", _bracketed(host).lower(), _bracketed(str(self._bound))}

    def refresh(self) -> None:
        """Serve the files that exist now."""
        self.files = _site_files(self._folder) | self._models

    @property
    def url(self) -> str:
        """The URL of the server for a browser on this computer."""
        name = _bracketed(str(self._bound))
        # Browsers isolate pages at loopback addresses only; 0.0.0.0 is not one.
        return f"http://{({'0.0.0.0': '127.0.0.1', '[::]': '[::1]'}).get(name, name)}:{self.server_port}/"

    def answers_to(self, authority: str) -> bool:
        """Return whether `authority`, a host name with an optional port, is this server's."""
        match = AUTHORITY.fullmatch(authority)
        if match is None:
            return False
        name = match[1].lower()
        # A server bound to all addresses is reachable by each of them; DNS rebinding needs a name.
        return name in self._names or (self._bound.is_unspecified and _is_address(name))

    @property
    def is_full(self) -> bool:
        """Return whether the next connection has to wait until another one closes."""
        is_free = self._free.acquire(blocking=False)
        if is_free:
            self._free.release()
        return not is_free

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread, or wait until one ends. Other connections wait in the system's queue meanwhile."""
        while not self._free.acquire(timeout=0.2):
            if self._ending.is_set():
                return self.shutdown_request(request)
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def shutdown(self) -> None:
        self._ending.set()
        super().shutdown()

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Browsers drop connections when a page closes, and leave them idle for long.
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class _TimedInput(io.RawIOBase):
    """Raw input of a socket until `deadline`, a time of time.monotonic.

    A socket's own timeout restarts with each byte, so a client that sends single bytes slowly would never reach it.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.deadline = 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        remaining = self.deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self._connection.settimeout(remaining)
        return self._connection.recv_into(buffer)


def _site_files(folder: Path) -> dict[str, Path]:
    """Return every file below `folder` by its URL path; each index.html also by its folder's path."""
    files = {f"/{path.relative_to(folder).as_posix()}": path for path in folder.rglob("*") if path.is_file()}
    indexes = {address.removesuffix("index.html"): path for address, path in files.items() if path.name == "index.html"}
    return files | indexes


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _bracketed(host: str) -> str:
    """Return `host` as URLs write it: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host
