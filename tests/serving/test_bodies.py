"""Bodies of requests: their limits hold before they are read, and none stops the answers to other clients."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from support.replicas import wait_until
from support.small_server import HANG_S, KEY, Running, connected, get, post, running, story_teller

from tallow.io import json_object
from tallow.serving.catalog import Catalog
from tallow.serving.http import connections, fields, middleware
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access
from tallow.serving.http.body import Held
from tallow.serving.http.front import make_front
from tallow.serving.replicas import Replicas

LIMIT = 1 << 16


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    catalog = Catalog(texts={"stories": story_teller(slots=1)})
    access = Access((KEY,), most_bytes=4 * LIMIT, most_json=LIMIT)
    with running(make_app(catalog, access), catalog) as started:
        yield started


def head(path: str, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {KEY}", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def answer_to(server: Running, data: bytes) -> tuple[int, bytes]:
    """Return the status and the body of the answer to what is no whole request."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=HANG_S) as connection:
        connection.sendall(data)
        received = b""
        while b"}}" not in received:
            part = connection.recv(1 << 16)
            assert part, received
            received += part
    return int(received.split()[1]), received.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/audio/transcriptions"])
def test_a_length_beyond_the_limit_is_refused_before_the_body_comes(server: Running, path: str) -> None:
    status, answer = answer_to(server, head(path, f"Content-Length: {4 * LIMIT + 1}"))
    assert (status, json.loads(answer)["error"]["code"]) == (413, "body_too_large")


def test_chunks_beyond_the_limit_are_refused_before_the_last_one_comes(server: Running) -> None:
    chunk = b"%x\r\n%b\r\n" % (LIMIT // 2, b" " * (LIMIT // 2))
    status, answer = answer_to(
        server, head("/v1/completions", "Transfer-Encoding: chunked") + 2 * chunk + b"1\r\n \r\n"
    )
    assert (status, json.loads(answer)["error"]["code"]) == (413, "body_too_large")


def test_a_client_that_sends_all_of_a_body_sees_that_it_is_too_large(server: Running) -> None:
    status, answer, _ = post(server, "/v1/completions", b" " * (3 * LIMIT))
    assert (status, answer["error"]["code"]) == (413, "body_too_large")


def in_chunks(body: bytes, size: int) -> bytes:
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in [*pieces, b""])


def test_others_are_answered_between_the_parts_of_a_body(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of chunks of a byte each took the event loop for seconds."""
    counts: list[int] = []  # of events, for each turn of the event loop
    begin, read = connections.Connection.handle_events, connections._Strict.next_event
    monkeypatch.setattr(connections.Connection, "handle_events", lambda self: (counts.append(0), begin(self))[1])

    def counted(self: connections._Strict) -> object:
        counts[-1] += 1
        return read(self)

    monkeypatch.setattr(connections._Strict, "next_event", counted)
    body = in_chunks(json.dumps({"prompt": "Lily", "max_tokens": 1}).encode().ljust(5000), 1)
    with connected(server) as connection:
        headers = {"Transfer-Encoding": "chunked", "Authorization": f"Bearer {KEY}"}
        connection.request("POST", "/v1/completions", iter([body]), headers, encode_chunked=False)
        assert connection.getresponse().status == 200
    assert sum(counts) > 5000
    assert max(counts) < 100


@pytest.mark.parametrize(("size", "status"), [(1, 400), (256, 200)])
def test_bodies_of_too_many_tiny_parts_are_refused(server: Running, size: int, status: int) -> None:
    body = json.dumps({"prompt": "Lily", "max_tokens": 1}).encode().ljust(20_000)
    headers = {"Transfer-Encoding": "chunked", "Authorization": f"Bearer {KEY}"}
    with connected(server) as connection:
        connection.request("POST", "/v1/completions", iter([in_chunks(body, size)]), headers, encode_chunked=False)
        assert connection.getresponse().status == status


def test_json_has_a_limit_of_its_own(server: Running) -> None:
    upload = {"Content-Type": "multipart/form-data; boundary=x"}
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + b" " * LIMIT + b"\r\n--x--\r\n"
    assert post(server, "/v1/audio/transcriptions", form, **upload)[0] == 404  # it was read: there is no such model
    assert post(server, "/v1/completions", form, **upload)[0] == 413


def test_a_client_holds_as_many_bytes_of_bodies_as_are_free() -> None:
    held = Held(100)
    assert held.take("a", 50)
    assert not held.take("a", 1)
    assert held.take("b", 25)
    assert not held.take("b", 1)
    held.leave("a", 50)
    assert held.take("b", 24)
    held.leave("b", 49)
    assert held.take("a", 50)


def test_bodies_in_memory_are_bounded_and_leave_room_for_other_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "MOST_HELD", LIMIT)
    catalog = Catalog(texts={"stories": story_teller(slots=1)})
    with running(make_app(catalog, Access(("one", "two"))), catalog) as server:
        half = json.dumps({"prompt": "Lily", "max_tokens": 1}).encode().ljust(LIMIT // 2 - 10)
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port), timeout=HANG_S) as connection:
            start = f"POST /v1/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer one\r\nContent-Length: {LIMIT}"
            connection.sendall(f"{start}\r\n\r\n".encode() + half)  # and the rest does not come
            wait_until(lambda: post(server, "/v1/completions", half, key="one")[0] == 429)
            status, answer, headers = post(server, "/v1/completions", half, key="one")
            assert (status, answer["error"]["code"], headers["retry-after"]) == (429, "bodies_full", "1")
            assert post(server, "/v1/completions", half[: LIMIT // 4], key="two")[0] == 200
        wait_until(lambda: post(server, "/v1/completions", half, key="one")[0] == 200)


def test_json_of_too_many_values_is_refused_before_it_is_parsed(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fields, "MAX_COST", 1000)
    monkeypatch.setattr(json_object, "_unique", lambda pairs: 1 // 0)  # called while it is parsed
    for body in (b'{"a": [%b]}' % (b"1," * 1000), b'{"a": [%b]}' % (b"[]," * 120), b"{%b}" % (b'"a":1,' * 120)):
        status, answer, _ = post(server, "/v1/completions", body)
        assert (status, answer["error"]["code"]) == (400, "invalid_json")
        assert "too many values" in answer["error"]["message"]


def test_others_are_answered_while_a_body_is_parsed(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    is_parsing, go_on = threading.Event(), threading.Event()

    def parse(*arguments: object, **options: object) -> object:
        is_parsing.set()
        assert go_on.wait(HANG_S), "nobody else is answered"
        return json_object.parse_object(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(fields, "parse_object", parse)
    statuses: list[int] = []
    asked = threading.Thread(target=lambda: statuses.append(post(server, "/v1/completions", {"prompt": "Lily"})[0]))
    asked.start()
    assert is_parsing.wait(HANG_S)
    assert get(server, "/health")[0] == 200
    go_on.set()
    asked.join(HANG_S)
    assert statuses == [200]


def test_the_front_of_replicas_does_not_parse_what_a_replica_parses() -> None:
    with running(make_front(Replicas(1, ["true"]), Access()), Catalog()) as front, connected(front) as connection:
        connection.request("POST", "/v1/completions", b"{")
        answer = json.loads(connection.getresponse().read())
    assert answer["error"]["code"] == "no_replica"
