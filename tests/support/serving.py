"""A web server of a folder, for tests of downloads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


class Short(Quiet):
    """Sends nine bytes of each file, whatever Content-Length it announced."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        outputfile.write(source.read(9))


@contextmanager
def serve(folder: Path, handler: type[Quiet] = Quiet) -> Iterator[str]:
    """Serve a folder within the block and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
