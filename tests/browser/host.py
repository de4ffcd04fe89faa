"""A server of models on another origin, which can fail in many ways."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Host(ThreadingHTTPServer):
    """Serves `files` by path; the first part of the path selects how:

    /plain/   unchanged             /cut/      half of it, then the connection drops
    /chunked/ without their size    /slow/     a kilobyte every 20 ms
    /closed/  to no other origin    /huge/     with a size of 4 GB in the header
    /weak/    from the requested byte; but the connection drops at `breaks_at`, once
    """

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.requests: Counter[str] = Counter()
        self.ranges: list[str | None] = []  # requested ranges
        self.version: str | None = "Sat, 21 Nov 2026 12:00:00 GMT"  # Last-Modified of the files
        self.breaks_at: int | None = None
        self.goes_down = False  # of the connection
        self.is_down = False
        self.knows_ranges = True
        self.then: dict[str, bytes] = {}  # replaces files after the next answer
        self.content_range: str | None = None  # of partial answers, with {start}, {before}, {end}, {size} and {larger}

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Some tests are about a browser that closes the connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Host

    def do_GET(self) -> None:
        self.server.requests[self.path] += 1
        mode, _, name = self.path[1:].partition("/")
        if name not in self.server.files:
            return self.send_error(404)
        if mode == "weak":
            return self.send_weakly(self.server.files[name])
        data = self.server.files[name]
        size = 4 << 30 if mode == "huge" else len(data)
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        if mode == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
            data = b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)
        else:
            self.send_header("Content-Length", str(size))
        if mode != "closed":
            self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        if mode == "slow":
            for start in range(0, len(data), 1024):
                self.wfile.write(data[start : start + 1024])
                time.sleep(0.02)
        elif mode == "cut":
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
        else:
            self.wfile.write(data)
            self.close_connection = mode == "huge"

    def do_HEAD(self) -> None:
        name = self.path[1:].partition("/")[2]
        self.send_error(200 if name in self.server.files else 404)

    def send_weakly(self, data: bytes) -> None:
        if self.server.is_down:
            return self.send_error(503)
        requested = self.headers["Range"]
        self.server.ranges.append(requested)
        if not self.server.knows_ranges:
            requested = None
        start = int(requested.removeprefix("bytes=").removesuffix("-")) if requested else 0
        end, self.server.breaks_at = self.server.breaks_at or len(data), None
        self.send_response(206 if requested else 200)
        self.send_header("Access-Control-Allow-Origin", "*")
        if self.server.version:
            self.send_header("Last-Modified", self.server.version)
        body = data[start:end]
        if requested and self.server.content_range:
            size = len(data)
            place = {"start": start, "before": start - 1, "end": size - 1, "size": size, "larger": size + 1}
            said = self.server.content_range.format_map(place)
            if said != f"bytes {start}-{size - 1}/{size}":
                body = bytes(len(body))  # of another part
            self.send_header("Access-Control-Expose-Headers", "Content-Range")
            self.send_header("Content-Range", said)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(body)
        self.server.files |= self.server.then
        self.server.then = {}
        self.close_connection = end < len(data)
        self.server.is_down = self.close_connection and self.server.goes_down

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        self.send_response(code)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def hosting(files: dict[str, bytes]) -> Iterator[Host]:
    host = Host(files)
    thread = threading.Thread(target=host.serve_forever)
    thread.start()
    try:
        yield host
    finally:
        host.shutdown()
        thread.join()
        host.server_close()
