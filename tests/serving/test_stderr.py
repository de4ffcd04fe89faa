"""A stderr that is full, or that nobody reads, neither ends nor holds up the server."""

from __future__ import annotations

import argparse
import errno
import io
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
from support.serve_process import ENVIRONMENT
from support.small_server import HANG_S

from tallow.cli import serve
from tallow.cli.patient_stderr import MOST_WAITING, PatientStream, patient_stderr
from tallow.cli.terminal import report
from tallow.errors import CheckpointError


class _Blocked(io.StringIO):
    """A pipe that nobody reads until `is_read` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = threading.Event()

    def write(self, text: str) -> int:
        assert self.is_read.wait(HANG_S)
        return super().write(text)


class _Full(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.tries = 0

    def write(self, text: str) -> int:
        self.tries += 1
        raise OSError(errno.ENOSPC, "No space left on device")


def test_texts_are_written_in_order() -> None:
    stream = io.StringIO()
    patient = PatientStream(stream)
    for i in range(1000):
        print(i, file=patient, flush=True)  # type: ignore[call-overload]
    patient.writelines(["a\n", "b\n"])
    patient.close()
    assert stream.getvalue() == "".join(f"{i}\n" for i in range(1000)) + "a\nb\n"


def test_a_pipe_that_nobody_reads_takes_a_bounded_memory() -> None:
    stream = _Blocked()
    patient = PatientStream(stream)
    line = "x" * 1000 + "\n"
    for _ in range(3 * MOST_WAITING // len(line)):
        patient.write(line)
    assert stream.getvalue() == ""
    stream.is_read.set()
    end = time.monotonic() + HANG_S
    while "texts are left out" not in stream.getvalue():
        assert time.monotonic() < end
        time.sleep(0.01)
    patient.write("later\n")
    patient.close()
    written = stream.getvalue()
    assert written.endswith("later\n")
    assert MOST_WAITING < len(written) < MOST_WAITING + 2 * len(line) + 200


def test_a_full_file_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    full = _Full()
    monkeypatch.setattr(sys, "stderr", full)
    report("a line")
    with patient_stderr() as drain:
        report("another")
        drain()
    assert full.tries > 1
    assert sys.stderr is full


@contextmanager
def serving_to(stderr: int) -> Iterator[tuple[subprocess.Popen[bytes], HTTPConnection]]:
    """Run the command; yield its process and a connection to it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tallow", "serve", "--port", str(port)]
    process = subprocess.Popen(command, stderr=stderr, env=ENVIRONMENT)
    connection = HTTPConnection("127.0.0.1", port, timeout=HANG_S)
    end = time.monotonic() + HANG_S
    try:
        while True:
            assert process.poll() is None
            assert time.monotonic() < end
            try:
                connection.connect()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        yield process, connection
    finally:
        connection.close()
        process.kill()
        process.wait()


@pytest.fixture(params=["full", "unread", "closed"])
def stderr(request: pytest.FixtureRequest) -> Iterator[int]:
    if request.param == "full":
        if not Path("/dev/full").exists():
            pytest.skip("no /dev/full")
        file = os.open("/dev/full", os.O_WRONLY)
        yield file
        os.close(file)
        return
    reader, writer = os.pipe()
    if request.param == "closed":
        os.close(reader)
    yield writer
    os.close(writer)
    if request.param == "unread":
        os.close(reader)


def test_requests_are_answered_whatever_stderr_is(stderr: int) -> None:
    with serving_to(stderr) as (process, connection):
        for _ in range(1000):  # a line of the log each: more than a pipe holds
            connection.request("GET", "/health")
            answer = connection.getresponse()
            assert answer.status == 200
            answer.read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == -signal.SIGTERM


def test_the_socket_is_closed_if_a_model_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened: list[socket.socket] = []
    listen = serve.listen
    monkeypatch.setattr(serve, "listen", lambda *a, **o: opened.append(listen(*a, **o)) or opened[0])
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    with pytest.raises(CheckpointError):
        serve.run(parser.parse_args(["--port", "0", "--model", str(tmp_path)]))
    assert opened[0].fileno() == -1
