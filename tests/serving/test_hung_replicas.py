"""A replica that hangs gets no requests, those that wait for it are answered by another, and it is started again."""

from __future__ import annotations

import json
import os
import signal
import socketserver
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support.replicas import children_of, front_of, wait_until
from support.small_server import HANG_S, Running, connected, get, running, story_teller

from tallow.serving import TextRequest
from tallow.serving.catalog import Catalog
from tallow.serving.http import watching
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access
from tallow.serving.http.front import make_front
from tallow.serving.replicas import SILENT_S, STEPS, TIMEOUT_S, Replica, Replicas

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-From: %d\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_a_replica_that_is_stopped(tmp_path: Path) -> None:
    with front_of(tmp_path, "--replica-timeout", "10") as front:
        stopped, _ = children_of(front.process.pid)
        os.kill(stopped, signal.SIGSTOP)
        with ThreadPoolExecutor(4) as pool:
            asked = [
                pool.submit(front.post, "/v1/completions", prompt="Lily", max_tokens=3, seed=1, stream=stream)
                for stream in (False, True, False, True)
            ]
            answers = [each.result(HANG_S) for each in asked]
        assert [answer.status_code for answer in answers] == [200] * 4
        assert all(answer.text.endswith("data: [DONE]\n\n") for answer in answers[1::2])
        given = front.metrics("tallow_replica_requests_total")
        assert given[0] >= 1
        assert sum(given) == 4 + given[0]  # each of those was passed on again, to the other
        assert front.metrics("tallow_replica_up") == [0, 1]
        ready = front.client.get("/ready")
        assert (ready.status_code, ready.json()["replicas"]) == (200, ["hung", "ready"])
        for _ in range(3):
            assert front.post("/v1/completions", prompt="Lily", max_tokens=1).status_code == 200
        assert front.metrics("tallow_replica_requests_total")[0] == given[0]

        os.kill(stopped, signal.SIGCONT)
        wait_until(lambda: front.metrics("tallow_replica_up") == [1, 1])
        assert front.metrics("tallow_replica_starts_total") == [1, 1]

        os.kill(stopped, signal.SIGSTOP)
        wait_until(lambda: front.metrics("tallow_replica_starts_total") == [2, 1])
        wait_until(lambda: front.metrics("tallow_replica_up") == [1, 1])
        wait_until(lambda: front.client.get("/ready").json()["replicas"] == ["ready", "ready"])
        assert stopped not in children_of(front.process.pid)


class FakeReplica(socketserver.ThreadingUnixStreamServer):
    """Answers each request by events, then waits for `go_on`, and ends the answer.

    Args:
        events: the text of those before it waits.
        breaks: it does not end the answer, but dies.
    """

    daemon_threads = True

    def __init__(self, replica: Replica, events: str = "", *, breaks: bool = False) -> None:
        super().__init__(replica.socket, _Handler)
        self.number, self.events, self.breaks, self.step_s = replica.number, events, breaks, 0.0
        self.begun, self.go_on = threading.Event(), threading.Event()


class _Handler(socketserver.StreamRequestHandler):
    server: FakeReplica

    def handle(self) -> None:
        first, *_ = [line.strip() for line in iter(self.rfile.readline, b"\r\n")]
        if first.startswith(b"GET"):
            body = json.dumps({"step_s": self.server.step_s}).encode()
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            return
        self.wfile.write(HEAD % self.server.number)
        if events := self.server.events.encode():
            self.wfile.write(b"%x\r\n%b\r\n" % (len(events), events))
        self.server.begun.set()
        self.server.go_on.wait(HANG_S)
        self.wfile.write(b"not a chunk" if self.server.breaks else b"0\r\n\r\n")


@contextmanager
def front_before(replicas: Replicas, *fakes: FakeReplica) -> Iterator[Running]:
    """Run a front of fake replicas, which it asks often."""
    with ExitStack() as stack:
        for replica, fake in zip(replicas.each, fakes, strict=True):
            replica.is_up = True
            threading.Thread(target=stack.enter_context(fake).serve_forever, daemon=True).start()
            stack.callback(fake.shutdown)
            stack.callback(fake.go_on.set)
        yield stack.enter_context(running(make_front(replicas, Access()), Catalog()))


@pytest.fixture
def replicas(monkeypatch: pytest.MonkeyPatch) -> Replicas:
    monkeypatch.setattr(watching, "ASK_S", 0.05)
    return Replicas(2, ["true"])


def ask(server: Running) -> tuple[str | None, str]:
    """Return the number of the replica that answers, and what it says."""
    with connected(server) as connection:
        connection.request("POST", "/v1/completions", b"{}")
        answer = connection.getresponse()
        return answer.getheader("x-from"), answer.read().decode()


def test_a_request_of_which_nothing_was_sent_is_answered_by_another(replicas: Replicas) -> None:
    first, second = (FakeReplica(replica, events) for replica, events in zip(replicas.each, ("", "b"), strict=True))
    second.go_on.set()
    with front_before(replicas, first, second) as server, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, server)
        assert first.begun.wait(HANG_S)  # the head of its answer has come, and no more
        first.step_s = TIMEOUT_S
        assert asked.result(HANG_S) == ("1", "b")
        assert ask(server)[0] == "1"
        first.step_s = 0.0
        first.go_on.set()
        wait_until(lambda: ask(server)[0] == "0")


def test_an_answer_that_has_begun_is_not_begun_anew(replicas: Replicas) -> None:
    first, second = FakeReplica(replicas.each[0], "data: a\n\n", breaks=True), FakeReplica(replicas.each[1])
    with front_before(replicas, first, second) as server, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, server)
        assert first.begun.wait(HANG_S)
        first.step_s = TIMEOUT_S
        wait_until(lambda: get(server, "/ready")[1]["replicas"] == ["hung", "ready"])
        first.go_on.set()
        number, text = asked.result(HANG_S)
    assert number == "0"
    assert text.startswith("data: a\n\n")
    assert "replica_died" in text
    assert not second.begun.is_set()


def test_a_replica_in_a_long_step_is_the_last_choice() -> None:
    replicas = Replicas(2, ["true"])
    first, second = replicas.each
    first.is_up = second.is_up = True
    first.step_s, second.active = SILENT_S, 10
    assert replicas.choose([]) is second
    second.step_s = SILENT_S  # both may have a large model
    assert replicas.choose([]) is first
    assert replicas.choose([], [first]) is second
    first.step_s = TIMEOUT_S
    assert (first.is_hung, first.is_lost, replicas.choose([])) == (True, False, second)
    first.step_s = STEPS * TIMEOUT_S
    second.silent_s = SILENT_S
    assert (first.is_lost, second.is_lost, replicas.choose([])) == (True, False, None)
    second.silent_s = TIMEOUT_S
    assert second.is_lost
    replicas.stop()


def test_a_server_says_for_how_long_a_step_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, go_on = story_teller(slots=1), threading.Event()
    read = engine._slots.read
    monkeypatch.setattr(engine._slots, "read", lambda *new: (go_on.wait(HANG_S), read(*new))[1])
    catalog = Catalog(texts={"stories": engine})
    with running(make_app(catalog), catalog) as server:
        assert get(server, "/health")[1]["step_s"] == 0
        engine.submit(TextRequest(engine.served.encode("Lily"), 1), lambda update: None)
        wait_until(lambda: get(server, "/health")[1]["step_s"] > 0.01)
        go_on.set()
        wait_until(lambda: get(server, "/health")[1]["step_s"] == 0)
