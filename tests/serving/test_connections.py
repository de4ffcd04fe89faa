"""Connections that clients leave half done: they end, and others are answered meanwhile."""

from __future__ import annotations

import asyncio
import json
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from asyncio.constants import SSL_HANDSHAKE_TIMEOUT
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from support.serve_process import serving
from support.small_server import HANG_S, Running, get, running

from tallow.errors import ArgumentError
from tallow.serving.catalog import Catalog
from tallow.serving.http import connections
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access
from tallow.serving.http.body import Held
from tallow.serving.http.clients import CLIENT
from tallow.serving.http.connections import Connection
from tallow.serving.http.limits import Deadlines, Room, room
from tallow.serving.http.listener import Listener

SHORT_S = 1.0
SHORT = Deadlines(SHORT_S, SHORT_S, SHORT_S, SHORT_S)
HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
PIECE = b"x" * (1 << 20)


@pytest.fixture(scope="module")
def hasty() -> Iterator[Running]:
    """A server with short deadlines, a key, and without models."""
    catalog = Catalog()
    with running(make_app(catalog, Access(api_keys=("key",))), catalog, SHORT) as started:
        yield started


def connect(server: Running, source: str = "127.0.0.1", buffer: int | None = None) -> socket.socket:
    address = urlsplit(server.url)
    connection = socket.socket()
    if buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(HANG_S)
    connection.bind((source, 0))
    connection.connect((address.hostname, address.port))
    return connection


def read_all(connection: socket.socket) -> bytes:
    """Return what comes until the server closes the connection."""
    data = b""
    try:
        while piece := connection.recv(1 << 16):
            data += piece
    except ConnectionResetError:
        pass
    return data


HALF_DONE = {
    "half a line": b"GET /hea",
    "half a head": HEAD + b"Content-Le",
    "half a body": HEAD + b"Authorization: Bearer key\r\nContent-Length: 100\r\n\r\nabc",
    "half a chunk": HEAD + b"Authorization: Bearer key\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
}


@pytest.mark.parametrize("data", HALF_DONE.values(), ids=HALF_DONE)
def test_half_a_request_ends_with_408(hasty: Running, data: bytes) -> None:
    with connect(hasty) as connection:
        connection.sendall(data)
        assert get(hasty, "/health")[0] == 200
        assert read_all(connection).startswith(b"HTTP/1.1 408 ")


def test_a_connection_without_a_request_ends(hasty: Running) -> None:
    with connect(hasty) as silent, connect(hasty) as idle:
        idle.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        assert read_all(silent) == b""
        answer = read_all(idle)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.count(b"HTTP/1.1") == 1


SLOW = {
    "head": (b"GET / HTTP/1.1\r\nHost: a\r\nX: ", b"408"),
    "second head": (b"GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET /", b"200"),
    "body": (HEAD + b"Authorization: Bearer key\r\nContent-Length: 1000000\r\n\r\n", b"408"),
    "body of an answered request": (HEAD + b"Content-Length: 1000000\r\n\r\n", b"401"),
}


@pytest.mark.parametrize(("begin", "status"), SLOW.values(), ids=SLOW)
def test_single_bytes_do_not_extend_a_deadline(hasty: Running, begin: bytes, status: bytes) -> None:
    answer = b""
    with connect(hasty) as connection:
        connection.sendall(begin)
        end = time.monotonic() + HANG_S
        while time.monotonic() < end:
            try:
                connection.sendall(b"x")
                if select.select([connection], [], [], 0.1)[0]:
                    piece = connection.recv(1 << 16)
                    answer += piece
                    if not piece:
                        break
            except (ConnectionResetError, BrokenPipeError):
                break
        else:
            raise AssertionError("the connection stays open")
    assert answer.startswith(b"HTTP/1.1 " + status)


SIZE = 3 << 20
REST = b" " * SIZE
KEYED = HEAD + b"Authorization: Bearer key\r\n"
LENGTH = b"Content-Length: %d\r\n" % SIZE
LAST = b"Connection: close\r\n\r\n"
REFUSED = {
    "no key": (HEAD + LENGTH + LAST, 401),
    "another page's": (HEAD + LENGTH + b"Origin: https://example.org\r\n" + LAST, 403),
    "no endpoint": (KEYED.replace(b"completions", b"nothing") + LENGTH + LAST, 404),
    "no method": (KEYED.replace(b"POST", b"PUT") + LENGTH + LAST, 405),
    "too large": (KEYED + b"Content-Length: 99999999\r\n" + LAST, 413),
    "a long line": (b"GET /", 414),
    "a long head": (HEAD + b"a:", 431),
    "two lengths": (KEYED + LENGTH + b"Transfer-Encoding: chunked\r\n\r\n", 400),
    "no HTTP": (b"SSH-2.0\r\n\r\n", 400),
}


@pytest.mark.parametrize(("begin", "status"), REFUSED.values(), ids=REFUSED)
def test_a_client_that_sends_on_reads_why_it_is_refused(hasty: Running, begin: bytes, status: int) -> None:
    with connect(hasty) as connection:
        connection.sendall(begin + REST)
        answer = b""
        while piece := connection.recv(1 << 16):  # no reset
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert len(body) == int(re.findall(rb"(?i)content-length: (\d+)", head)[0])


def test_a_refused_body_is_followed_by_the_next_request(hasty: Running) -> None:
    """The client may go on once its body is over, unless it asked for the end of the connection."""
    with connect(hasty) as connection:
        connection.sendall(HEAD + LENGTH + b"\r\n" + REST + b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        answers = read_all(connection)
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"401", b"200"]


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with short deadlines and TLS."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl, which makes a certificate")
    folder = tmp_path_factory.mktemp("certificate")
    files = {"ssl_keyfile": str(folder / "key.pem"), "ssl_certfile": str(folder / "certificate.pem")}
    names = ["-subj", "/CN=localhost", "-keyout", files["ssl_keyfile"], "-out", files["ssl_certfile"]]
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subprocess.run([openssl, "req", *kind, *names], check=True, capture_output=True)
    catalog = Catalog()
    with running(make_app(catalog, Access(api_keys=("key",))), catalog, SHORT, **files) as started:
        yield started


def wrapped(connection: socket.socket) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(connection)


def test_a_handshake_has_the_time_of_a_head(encrypted: Running) -> None:
    with connect(encrypted) as silent:
        silent.settimeout(SSL_HANDSHAKE_TIMEOUT / 2)  # of asyncio's
        assert silent.recv(1) == b""
    with wrapped(connect(encrypted)) as other:
        other.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert read_all(other).startswith(b"HTTP/1.1 200 ")


def test_a_client_of_tls_that_sends_on_reads_why_it_is_refused(encrypted: Running) -> None:
    with wrapped(connect(encrypted)) as connection:
        connection.sendall(HEAD + LENGTH + LAST + REST)
        answer = b""
        while not answer.endswith(b"}}"):
            piece = connection.recv(1 << 16)
            assert piece
            answer += piece
    assert answer.startswith(b"HTTP/1.1 401 ")


def test_parts_of_an_answer_are_sent_at_once(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without TCP_NODELAY, the body of an answer would wait for the client's acknowledgement of the head: 40 ms."""
    undelayed: list[int] = []
    usual = Connection.connection_made

    def connection_made(self: Connection, transport: Any) -> None:
        usual(self, transport)
        undelayed.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(Connection, "connection_made", connection_made)
    assert get(server, "/health")[0] == 200
    assert undelayed == [1]


def test_an_answer_that_nobody_takes_ends() -> None:
    begun, ended = threading.Event(), threading.Event()

    async def large(request: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            try:
                for _ in range(100):
                    begun.set()
                    yield PIECE
            finally:
                ended.set()

        return StreamingResponse(pieces())

    app = Starlette(routes=[Route("/", large), Route("/health", lambda _: PlainTextResponse('{"status": "ok"}'))])
    with running(app, Catalog(), SHORT) as server, connect(server, buffer=4096) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert begun.wait(HANG_S)
        assert get(server, "/health")[0] == 200
        assert ended.wait(HANG_S)
        assert len(read_all(connection)) < 100 * len(PIECE)


class _Clock:
    """A loop whose time goes on when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0
        self.later: list[Any] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Any) -> asyncio.TimerHandle:
        self.later = [call]
        return SimpleNamespace(cancel=self.later.clear)  # type: ignore[return-value]

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for call in self.later:
            call()


class _Transport:
    """A connection whose client leaves `unsent` bytes."""

    def __init__(self) -> None:
        self.unsent = 0
        self.written = b""
        self.is_half_closed = False
        self.ended = ""

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        assert (high, low) == (1, 0)

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def get_extra_info(self, name: str) -> None:
        return None

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.is_half_closed = True

    def is_closing(self) -> bool:
        return self.ended != ""

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        self.ended = "aborted"

    def close(self) -> None:
        self.ended = self.ended or "closed"


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def transport() -> _Transport:
    return _Transport()


def connection_of(clock: _Clock, transport: _Transport, held: Held | None = None) -> Connection:
    config: Any = SimpleNamespace(
        loaded=True, loaded_app=None, h11_max_incomplete_event_size=1000, ws_protocol_class=None, root_path=""
    )
    config.asgi_version, config.limit_concurrency, config.timeout_keep_alive = "3.0", None, 5
    state: Any = SimpleNamespace(connections=set(), tasks=set(), default_headers=[])
    options: Any = {"deadlines": Deadlines(head_s=10, body_s=20, write_s=30, idle_s=40), "held": held or Held(1000)}
    made = Connection(config, state, {}, clock, **options)
    made.connection_made(transport)  # type: ignore[arg-type]
    return made


@pytest.fixture
def connection(clock: _Clock, transport: _Transport) -> Connection:
    return connection_of(clock, transport)


def test_answers_that_a_client_does_not_take_are_bounded() -> None:
    """It may leave as many bytes as are free: others find room for theirs."""
    held, clock = Held(100), _Clock()
    clients = {"a": 40, "a again": 21, "b": 29, "c": 15}
    transports = {name: _Transport() for name in clients}
    looks: list[Any] = []
    for name, unsent in clients.items():
        made = connection_of(clock, transports[name], held)
        made.conn.receive_data(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        made.conn.next_event()
        made.cycle = SimpleNamespace(scope={CLIENT: name[0]}, response_complete=False)  # type: ignore[assignment]
        transports[name].unsent = unsent
        looks += clock.later
    for look in looks:
        look()
    assert [name for name, transport in transports.items() if transport.ended] == ["a again"]


def test_an_answer_that_is_taken_leaves_room(clock: _Clock, transport: _Transport) -> None:
    held = Held(100)
    made = connection_of(clock, transport, held)
    for unsent in (50, 10, 50, 0, 50):
        transport.unsent = unsent
        clock.pass_time(1)
        assert not transport.ended
    made.connection_lost(None)
    assert held.take("another", 50)


def test_a_client_that_takes_a_little_may_go_on(connection: Connection, clock: _Clock, transport: _Transport) -> None:
    connection.conn.receive_data(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    connection.conn.next_event()
    connection.conn.next_event()
    for unsent in range(100, 90, -1):
        transport.unsent = unsent
        clock.pass_time(29)
        assert not transport.ended
    clock.pass_time(29)
    assert not transport.ended
    clock.pass_time(2)
    assert transport.ended == "aborted"


def test_the_end_waits_for_no_client_that_does_nothing(
    connection: Connection, clock: _Clock, transport: _Transport
) -> None:
    connection.conn.receive_data(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    connection.conn.next_event()
    connection.conn.next_event()
    connection.cycle = SimpleNamespace(response_complete=False, keep_alive=True, scope={})  # type: ignore[assignment]
    transport.unsent = 100
    clock.pass_time(1)
    connection.shutdown()
    clock.pass_time(4)
    assert not transport.ended
    clock.pass_time(2)
    assert transport.ended == "aborted"


def test_a_closed_connection_does_not_wait_for_what_is_unsent(
    connection: Connection, clock: _Clock, transport: _Transport
) -> None:
    connection.data_received(b"GET\r\n\r\n")
    assert (transport.is_half_closed, transport.written[:13]) == (True, b"HTTP/1.1 400 ")
    transport.unsent = 100
    clock.pass_time(1)
    clock.pass_time(6)
    assert transport.ended == "closed"
    clock.pass_time(31)
    assert transport.ended == "aborted"


def test_what_follows_a_refusal_is_thrown_away_for_a_while(
    connection: Connection, clock: _Clock, transport: _Transport
) -> None:
    connection.data_received(b"GET\r\n\r\n")
    for _ in range(5):  # the first look begins the time of a body, 20 s
        clock.pass_time(4.9)
        assert (transport.is_half_closed, transport.ended) == (True, "")
        connection.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    clock.pass_time(1)
    assert transport.ended == "closed"
    assert transport.written.count(b"HTTP/1.1") == 1


def test_not_more_than_some_bytes_are_thrown_away(
    connection: Connection, transport: _Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "THROWN_BYTES", 100)
    connection.data_received(b"GET\r\n\r\n")
    connection.data_received(b"x" * 100)
    assert transport.ended == ""
    connection.data_received(b"x")
    assert transport.ended == "aborted"


def test_the_end_does_not_wait_for_a_client_that_has_its_answer(connection: Connection, transport: _Transport) -> None:
    connection.data_received(b"GET\r\n\r\n")
    connection.shutdown()
    assert transport.ended == "closed"


def test_one_address_does_not_take_all_connections() -> None:
    catalog = Catalog()
    with running(make_app(catalog), catalog, free=Room(4, 2)) as server, ExitStack() as opened:
        held = [opened.enter_context(connect(server)) for _ in range(2)]
        for connection in held:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        with connect(server) as third:
            assert read_all(third).startswith(b"HTTP/1.1 503 ")
        others = [opened.enter_context(connect(server, "127.0.0.2")) for _ in range(2)]
        for connection in others:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        with connect(server, "127.0.0.3") as fifth:
            assert read_all(fifth).startswith(b"HTTP/1.1 503 ")
        held[0].close()
        wait_until_answered(server)


def wait_until_answered(server: Running) -> None:
    end = time.monotonic() + HANG_S
    while time.monotonic() < end:
        try:
            if get(server, "/health")[0] == 200:
                return
        except (ValueError, OSError):  # the refusal is no JSON
            time.sleep(0.05)
    raise AssertionError("no answer")


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_a_network_of_ipv6_is_one_client() -> None:
    with Listener(socket.AF_INET6, socket.IPPROTO_TCP, Room(3, 3)) as listener:
        same = {listener.client_of((f"2001:db8:0:1::{i}", 1, 0, 0)) for i in range(5)}
        other = listener.client_of(("2001:db8:0:2::1%eth0", 1, 0, 0))
        mapped = {listener.client_of((f"::ffff:192.0.2.{i}", 1, 0, 0)) for i in range(3)}
    assert len(same) == 1
    assert other not in same
    assert len(mapped) == 3


def test_connections_are_fewer_than_the_files_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    for files, wanted in {1024: 462, 64: 16, 1: 1, resource.RLIM_INFINITY: 4096}.items():
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert room().connections == wanted
        assert room().of_address == max(1, wanted // 2)
    assert room(10, 10) == Room(10, 10)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    with pytest.raises(ArgumentError, match="ulimit -n"):
        room(2000)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of files")
def test_out_of_files_is_a_line_a_second(tmp_path: Path) -> None:
    """The connections take all files; when they are closed, the server answers again."""
    files = ("bash", "-c", 'ulimit -n 64; exec "$@"', "bash")
    options = ("--connections", "63", "--connections-per-address", "63", "--head-timeout", "600")
    with serving(*options, cwd=tmp_path, launcher=files) as (process, url), ExitStack() as opened:
        server = Running(url.removesuffix("/v1"), Catalog())
        begun = time.monotonic()
        held = [opened.enter_context(connect(server)) for _ in range(100)]
        log = tmp_path / "log"
        lines: list[str] = []
        while len(lines) < 3:
            assert time.monotonic() < begun + HANG_S
            time.sleep(0.1)
            lines = re.findall("out of system resource.*", log.read_text())
            assert len(lines) <= time.monotonic() - begun + 2
        assert "Too many open files" in lines[0]
        assert "Traceback" not in log.read_text()
        for connection in held:
            connection.close()
        wait_until_answered(server)
        process.send_signal(signal.SIGTERM)
        process.wait(HANG_S)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGTERM")
def test_sigterm_waits_for_no_stream_that_nobody_reads(tmp_path: Path) -> None:
    """It ends long before the time that streams have to end."""
    body = json.dumps({"prompt": "Lily", "max_tokens": 240, "n": 16, "stream": True, "logprobs": 20}).encode()
    with serving("--drain-timeout", "3600", cwd=tmp_path) as (process, url):
        server = Running(url.removesuffix("/v1"), Catalog())
        with connect(server, buffer=4096) as silent:
            silent.sendall(
                HEAD.replace(b"Host: a", b"Host: localhost") + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
            )
            assert silent.recv(10) == b"HTTP/1.1 2"
            process.send_signal(signal.SIGTERM)
            assert process.wait(HANG_S) == -signal.SIGTERM
