"""A plain static host, as http.server is, which can be stopped."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class PlainHost:
    """Serves a site in a folder, below the root of the host.

    Args:  headers: sent with every answer

    `says` replaces what is sent for a path that ends like a key, `fails` has the statuses of errors in place of it;
    `requests` has the paths that were asked for.
    """

    def __init__(self, folder: Path, headers: Mapping[str, str]) -> None:
        self.says: dict[str, bytes] = {}
        self.fails: dict[str, int] = {}
        self.requests: list[str] = []
        says, fails, requests = self.says, self.fails, self.requests

        class Handler(SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                requests.append(self.path)
                for end, status in fails.items():
                    if self.path.endswith(end):
                        return self.send_error(status)
                for end, content in says.items():
                    if self.path.endswith(end):
                        self.send_response(200)
                        self.end_headers()
                        self.wfile.write(content)
                        return
                super().do_GET()

            def end_headers(self) -> None:
                for name, value in headers.items():
                    self.send_header(name, value)
                super().end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder.parent)))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}/{folder.name}/"

    def stop(self) -> None:
        """Refuse connections from now on."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


@contextmanager
def serving_plainly(folder: Path, headers: Mapping[str, str] | None = None) -> Iterator[PlainHost]:
    host = PlainHost(folder, headers or {})
    try:
        yield host
    finally:
        host.stop()
