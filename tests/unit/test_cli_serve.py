"""The server of `tallow demo`: what it serves, and what it does not."""

from __future__ import annotations

import http.client
import threading
from pathlib import Path

import pytest

from tallow.cli.serve import SiteServer

pytestmark = pytest.mark.native


def test_nothing_outside_of_the_site_is_served(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.txt").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    escapes = ["/../secret", "/%2e%2e/secret", "/..%2fsecret", "//../secret", "/models/../../secret", "/models/secret"]
    with SiteServer(site, host="127.0.0.1", port=0, models={}) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
            for address in ("/a.txt", *escapes, "/", "/a%00.txt", "/%00"):
                connection.request("GET", address)
                answer = connection.getresponse()
                body = answer.read()
                assert (answer.status, body == b"inside") == ((200, True) if address == "/a.txt" else (404, False))
            connection.close()
        finally:
            server.shutdown()
            thread.join()
