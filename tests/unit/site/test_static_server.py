"""The server of `tallow demo`: which files it serves, to which clients, and which requests it rejects.

Expected values are RFC 9110's: section 14 on ranges, 13 on conditions, 7.4 and 15.5.20 on other servers' names.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import NamedTuple

import pytest

from tallow.site import static_server
from tallow.site.byte_range import Unsatisfiable, requested_range
from tallow.site.content_encoding import GzipFiles, accepts_gzip, is_far
from tallow.site.static_server import SiteHandler, SiteServer

pytestmark = pytest.mark.native

CONTENT = bytes(range(100))


class Answer(NamedTuple):
    status: int
    headers: HTTPMessage
    body: bytes


class Client:
    """An HTTP client of one server that opens its own connections."""

    def __init__(self, server: SiteServer) -> None:
        self.server = server

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
        """Send one request, without a client's usual handling of redirects and `..`."""
        connection = HTTPConnection("127.0.0.1", self.server.server_port, timeout=30)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body=body, headers=names)
        response = connection.getresponse()
        answer = Answer(response.status, response.headers, response.read())
        connection.close()
        return answer

    def connect(self, sent: bytes = b"") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.server.server_port), timeout=30)
        connection.sendall(sent)
        return connection

    def send(self, request: bytes) -> bytes:
        """Return the response up to the end of the connection."""
        with self.connect(request) as connection:
            connection.shutdown(socket.SHUT_WR)
            return connection.makefile("rb").read()


@contextlib.contextmanager
def serving(site: Path, host: str = "127.0.0.1", models: dict[str, Path] | None = None) -> Iterator[Client]:
    with SiteServer(site, host=host, port=0, models=models or {}) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield Client(server)
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve") / "site"
    (folder / "runtime" / "1234").mkdir(parents=True)
    (folder / "pages").mkdir()
    for name in ("a.txt", "empty.txt", "runtime/1234/x.js", "pages/index.html"):
        (folder / name).write_bytes(b"" if name == "empty.txt" else CONTENT)
    (folder.parent / "secret").write_text("outside")
    return folder


@pytest.fixture(scope="module")
def client(site: Path) -> Iterator[Client]:
    with serving(site) as client:
        yield client


@pytest.fixture(autouse=True)
def no_tracebacks(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """The server must not print a traceback, whatever a client sends."""
    yield
    assert capfd.readouterr() == ("", "")


# ---- addresses


@pytest.mark.parametrize(
    "path",
    [
        *("/../secret", "/%2e%2e/secret", "/..%2fsecret", "//../secret", "/models/../../secret", "/models/secret"),
        *("/", "/runtime/", "/a%00.txt", "/%00", "/a.txt/", "/a.txt/b", "/%ff", "/%", "/%zz", "/a.txt%0d%0aX:y"),
        *("/" + "a" * 256, "/" + "a/" * 3000, "/models/" + "a" * 300, "/a.txt;b", "/A.TXT", "//a.txt/..", "/\\a.txt"),
    ],
)
def test_unknown_addresses_are_not_found(client: Client, path: str) -> None:
    answer = client.ask(path)
    assert answer.status == 404
    assert b"outside" not in answer.body
    assert answer.headers["Cache-Control"] == "no-store"


def test_files_and_folders_with_an_index_are_served(client: Client) -> None:
    assert client.ask("/a.txt?v=1#x").body == CONTENT
    assert client.ask("/%61.txt").body == CONTENT
    page = client.ask("/pages/")
    assert (page.body, page.headers["Content-Type"]) == (CONTENT, "text/html; charset=utf-8")
    moved = client.ask("/pages?q=1")
    assert (moved.status, moved.headers["Location"]) == (301, "/pages/?q=1")
    assert client.ask("/a.txt", "HEAD").headers["Content-Length"] == "100"


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"GET /a.txt HTTP/1.1", 200),
        (b"GET http://localhost/a.txt HTTP/1.1", 200),
        (b"GET http://[ HTTP/1.1", 400),
        (b"GET //[ HTTP/1.1", 404),
        (b"GET /a.txt HTTP/1.1 x", 400),
        (b"GET /a.txt HTTP/9.9", 505),
        (b"GET /a.txt HTTP/1.x", 400),
        (b"GET * HTTP/1.1", 400),
        (b"GET a.txt HTTP/1.1", 400),
        (b"GET ftp://localhost/a.txt HTTP/1.1", 400),
        (b"CONNECT localhost:80 HTTP/1.1", 501),
        (b"\xff\xfe\x00 / HTTP/1.1", 501),
        (b"GET /\xff\xfe HTTP/1.1", 404),
        (b"POST /a.txt HTTP/1.1", 501),
        (b"GET", 400),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1", 414),
    ],
)
def test_unusual_request_lines_get_a_response(client: Client, line: bytes, status: int) -> None:
    answer = client.send(line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    # a request line without a known version counts as HTTP/0.9, whose responses are a body alone
    assert answer.startswith(b"HTTP/1.1 %d " % status) or b"Error code: %d<" % status in answer


@pytest.mark.parametrize(
    "request_",
    [
        *(b"", b"\r\n", b"\r\n\r\n", b"\0" * 100, b"GET /a.txt", b"GET /\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00"),
        b"GET /a.txt HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"GET /a.txt HTTP/1.1\r\nHost: " + b"a" * 70_000 + b"\r\n\r\n",
        b"GET /a.txt HTTP/1.1\r\nno header\r\n\r\n",
        b"GET /a.txt HTTP/1.1\r\nHost: localhost\r\nRange: bytes=" + b"9" * 9000 + b"-\r\nConnection: close\r\n\r\n",
        b"GET /a.txt HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: x\r\n\r\nbody",
    ],
)
def test_unusual_requests_terminate(client: Client, request_: bytes) -> None:
    client.send(request_)
    assert client.ask("/a.txt").status == 200


def test_a_body_is_not_read_as_the_next_request(client: Client) -> None:
    hidden = b"GET /pages/ HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = b"GET /a.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(hidden)
    assert client.send(head + hidden).count(b"HTTP/1.1") == 1


def test_a_deleted_file_is_not_found(tmp_path: Path) -> None:
    site, model = tmp_path / "site", tmp_path / "model.bin"
    site.mkdir()
    model.write_bytes(CONTENT)
    with serving(site, models={"model.bin": model, os.fsdecode(b"\xff.bin"): model}) as client:
        assert client.ask("/models/model.bin").body == CONTENT
        assert client.ask("/models/%FF.bin").body == CONTENT
        model.unlink()
        assert client.ask("/models/model.bin").status == 404


# ---- names


@pytest.mark.parametrize("name", ["localhost", "LocalHost:1", "127.0.0.1", "127.0.0.1:65535", "[::1]", "[::1]:8000"])
def test_its_names_are_accepted_with_any_port(client: Client, name: str) -> None:
    assert client.ask("/a.txt", Host=name).status == 200


FOREIGN = ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::2]"]


@pytest.mark.parametrize("name", [*FOREIGN, "evil@localhost", "localhost:80:80", "localhost/", "", ":80", "[::1", "*"])
def test_other_names_are_rejected(client: Client, name: str) -> None:
    """A page at evil.example whose name resolves to 127.0.0.1 could read the responses (DNS rebinding)."""
    answer = client.ask("/a.txt", Host=name)
    assert answer.status == 421
    assert CONTENT not in answer.body


def test_the_name_in_an_absolute_address_counts(client: Client) -> None:
    """RFC 9112, 3.2.2: an absolute address takes precedence over the Host header."""
    answer = client.send(b"GET http://evil.example/a.txt HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize("hosts", [b"", b"Host: localhost\r\nHost: evil.example\r\n"])
def test_a_request_names_one_host(client: Client, hosts: bytes) -> None:
    assert client.send(b"GET /a.txt HTTP/1.1\r\n" + hosts + b"\r\n").startswith(b"HTTP/1.1 400 ")


def test_bound_to_all_addresses_it_accepts_each(site: Path) -> None:
    with serving(site, host="0.0.0.0") as client:
        assert client.server.url == f"http://127.0.0.1:{client.server.server_port}/"
        for name in ("0.0.0.0:8000", "192.168.1.5:8000", "[fe80::1]", "localhost"):
            assert client.ask("/a.txt", Host=name).status == 200
        assert client.ask("/a.txt", Host="evil.example").status == 421


def test_the_given_host_name_is_accepted(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look_up = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *a, **k: look_up(host.replace("MyBox.lan", "127.0.0.1"), *a, **k)
    )
    with serving(site, host="MyBox.lan") as client:
        assert client.ask("/a.txt", Host="mybox.lan:8000").status == 200
        assert client.ask("/a.txt", Host="box.lan:8000").status == 421


def test_ipv6(site: Path) -> None:
    if not socket.has_ipv6:
        pytest.skip("this Python has no IPv6")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with SiteServer(site, host="::1", port=0, models={}) as server:
        assert server.url == f"http://[::1]:{server.server_port}/"


# ---- ranges and caching


@pytest.mark.parametrize(
    ("header", "positions"),
    [
        ("bytes=0-0", range(1)),
        ("bytes=10-19", range(10, 20)),
        ("bytes=90-", range(90, 100)),
        ("bytes=90-1000", range(90, 100)),
        ("bytes=-10", range(90, 100)),
        ("bytes=-1000", range(100)),
        ("Bytes= 5-6 ", range(5, 7)),
    ],
)
def test_a_range_returns_that_part(client: Client, header: str, positions: range) -> None:
    answer = client.ask("/a.txt", Range=header)
    assert answer.status == 206
    assert answer.body == bytes(positions)
    assert answer.headers["Content-Range"] == f"bytes {positions[0]}-{positions[-1]}/100"
    assert answer.headers["Content-Length"] == str(len(positions))
    assert answer.headers["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize(
    "header",
    ["bytes=0-1,5-6", "bytes=5-2", "bytes=", "bytes=-", "bytes", "lines=1-2", "bytes=a-b", "bytes=1-2-3", "bytes=+1-2"],
)
def test_invalid_ranges_are_ignored(client: Client, header: str) -> None:
    answer = client.ask("/a.txt", Range=header)
    assert (answer.status, answer.body) == (200, CONTENT)


@pytest.mark.parametrize(
    ("path", "header", "size"),
    [
        ("/a.txt", "bytes=100-", 100),
        ("/a.txt", "bytes=500-600", 100),
        ("/a.txt", "bytes=-0", 100),
        ("/empty.txt", "bytes=0-", 0),
    ],
)
def test_a_range_outside_the_file_returns_its_length(client: Client, path: str, header: str, size: int) -> None:
    answer = client.ask(path, Range=header)
    assert (answer.status, answer.body) == (416, b"")
    assert answer.headers["Content-Range"] == f"bytes */{size}"


def test_a_range_of_another_version_returns_the_whole_file(client: Client) -> None:
    tag = client.ask("/a.txt").headers["ETag"]
    assert client.ask("/a.txt", Range="bytes=0-9", If_Range=tag).status == 206
    for other in ('"older"', f"W/{tag}", "Sat, 21 Nov 2026 12:00:00 GMT"):
        answer = client.ask("/a.txt", Range="bytes=0-9", If_Range=other)
        assert (answer.status, answer.body) == (200, CONTENT)


def test_ranges_apply_to_get_only(client: Client) -> None:
    assert client.ask("/a.txt", "HEAD", Range="bytes=0-9").status == 200


def test_a_cached_file_is_not_sent(client: Client) -> None:
    tag = client.ask("/a.txt").headers["ETag"]
    for tags in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        for method in ("GET", "HEAD"):
            answer = client.ask("/a.txt", method, If_None_Match=tags, Range="bytes=0-9")
            assert (answer.status, answer.body) == (304, b"")
            assert answer.headers["ETag"] == tag
    assert client.ask("/a.txt", If_None_Match='"other"').status == 200


def test_requested_range_of_a_file_without_end() -> None:
    assert requested_range("bytes=5-", 1 << 50) == range(5, 1 << 50)
    assert requested_range(None, 10) is None
    with pytest.raises(Unsatisfiable):
        requested_range("bytes=1-", 1)


# ---- compression

TEXT = b"text " * 1000


@pytest.fixture
def far_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client that the server takes for one on another computer."""
    monkeypatch.setattr(static_server, "is_far", lambda address: True)
    for name in ("text.js", "text.gguf", "empty.js"):
        (tmp_path / name).write_bytes(b"" if name == "empty.js" else TEXT)
    (tmp_path / "random.js").write_bytes(os.urandom(5000))
    with serving(tmp_path, models={"text.json": tmp_path / "text.js"}) as client:
        yield client


def test_files_are_compressed_for_another_computer(far_client: Client) -> None:
    answer = far_client.ask("/text.js", Accept_Encoding="br, gzip;q=0.5")
    assert (answer.headers["Content-Encoding"], answer.headers["Vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(answer.body) == TEXT
    plain = far_client.ask("/text.js")
    assert (plain.body, plain.headers["Content-Encoding"]) == (TEXT, None)
    assert plain.headers["ETag"] != answer.headers["ETag"]
    again = far_client.ask("/text.js", Accept_Encoding="gzip", If_None_Match=answer.headers["ETag"])
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("path", ["/text.gguf", "/empty.js", "/random.js", "/models/text.json"])
def test_what_does_not_gain_is_sent_as_it_is(far_client: Client, path: str) -> None:
    answer = far_client.ask(path, Accept_Encoding="gzip")
    assert (answer.status, answer.headers["Content-Encoding"]) == (200, None)


def test_a_part_is_one_of_the_file_as_it_is(far_client: Client) -> None:
    answer = far_client.ask("/text.js", Accept_Encoding="gzip", Range="bytes=0-3")
    assert (answer.status, answer.body, answer.headers["Content-Encoding"]) == (206, b"text", None)


def test_on_this_computer_nothing_is_compressed(tmp_path: Path) -> None:
    (tmp_path / "text.js").write_bytes(TEXT)
    with serving(tmp_path) as client:
        assert client.ask("/text.js", Accept_Encoding="gzip").body == TEXT


def test_a_changed_file_is_compressed_again(tmp_path: Path) -> None:
    path = tmp_path / "text.js"
    files = GzipFiles()
    for version, text in (("1", TEXT), ("2", TEXT[::-1])):
        path.write_bytes(text)
        packed = files.read(path, len(text), version)
        assert packed
        assert gzip.decompress(packed) == text


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        *(("gzip", True), ("br, GZIP ;q=1", True), ("*", True), ("x-gzip", True), ("identity, *;q=0.001", True)),
        *((None, False), ("", False), ("br", False), ("gzip;q=0", False), ("*, gzip;q=0.000", False)),
        *(("gzipped", False), ("gzip;q=2", False), ("gzip;q=x", False), (",;,", False)),
    ],
)
def test_accepted_codings(header: str | None, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


@pytest.mark.parametrize(
    ("address", "far"),
    [("127.0.0.1", False), ("::1", False), ("::ffff:127.0.0.1", False), ("192.0.2.1", True), ("fe80::1%eth0", True)],
)
def test_clients_on_this_computer(address: str, far: bool) -> None:
    assert is_far(address) is far


# ---- headers


@pytest.mark.parametrize("path", ["/a.txt", "/pages", "/nothing"])
def test_every_response_has_security_headers(client: Client, path: str) -> None:
    headers = client.ask(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'self'"
    assert "'unsafe-eval'" not in policy["script-src"]
    assert "'unsafe-inline'" not in policy["script-src"]
    assert policy["frame-ancestors"] == "'self'"
    assert "Python" not in headers["Server"]


def test_only_existing_files_are_immutable(client: Client) -> None:
    assert "immutable" in client.ask("/runtime/1234/x.js").headers["Cache-Control"]
    assert client.ask("/runtime/1234/y.js").headers["Cache-Control"] == "no-store"
    assert client.ask("/runtime/1234/x.js", Host="evil.example").headers["Cache-Control"] == "no-store"
    assert client.ask("/a.txt").headers["Cache-Control"] == "no-cache"


# ---- slow clients


def server_threads(before: set[threading.Thread]) -> int:
    return len(set(threading.enumerate()) - before)


def test_incomplete_requests_hold_few_threads_and_time_out(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SiteServer, "max_connections", 4)
    monkeypatch.setattr(SiteHandler, "request_s", 0.2)
    before = set(threading.enumerate())
    with serving(site) as client, contextlib.ExitStack() as stack:
        for _ in range(16):
            stack.enter_context(client.connect(b"GET /a.txt HTTP/1.1\r\nHost: loc"))
        assert client.ask("/a.txt").body == CONTENT  # after the server has finished with them
        assert server_threads(before) <= 4 + 1  # including the thread that accepts


def test_a_request_byte_by_byte_meets_the_deadline(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SiteHandler, "request_s", 0.3)
    closed = contextlib.suppress(ConnectionError, TimeoutError)
    with serving(site) as client, client.connect() as connection, closed:
        for _ in range(600):
            connection.sendall(b"G")
            time.sleep(0.05)
        pytest.fail("the server still waits")


def test_a_client_that_reads_nothing_is_disconnected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SiteHandler, "write_s", 0.3)
    (tmp_path / "site").mkdir()
    large = tmp_path / "large"
    large.touch()
    os.truncate(large, 1 << 28)  # more than the sockets' buffers hold
    before = set(threading.enumerate())
    requests = b"GET /models/large HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(tmp_path / "site", models={"large": large}) as client, client.connect(requests):
        end = time.monotonic() + 60
        while server_threads(before) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        while server_threads(before) > 1 and time.monotonic() < end:
            time.sleep(0.01)
        assert server_threads(before) == 1


def test_the_server_ends_while_connections_wait(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SiteServer, "max_connections", 1)
    with contextlib.ExitStack() as stack:
        with serving(site) as client:
            for _ in range(3):
                stack.enter_context(client.connect(b"GET"))
            while not client.server.is_full:
                time.sleep(0.01)
        assert client.server.is_full  # it did not wait for the first of them
