"""`tallow serve --replicas 2` as a process, and the processes that it starts."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from httpx2 import Client, Response

from support.serve_process import serving
from support.small_server import HANG_S


@dataclass
class Front:
    """A server of two replicas, and a client of it."""

    process: subprocess.Popen[str]
    client: Client

    def post(self, path: str, **body: Any) -> Response:
        return self.client.post(path, json=body)

    def stream(self, path: str, **body: Any) -> Response:
        """Return an answer after its head, before its events."""
        return self.client.send(self.client.build_request("POST", path, json=body | {"stream": True}), stream=True)

    def metrics(self, name: str) -> list[float]:
        """Return the values of a metric, replica by replica."""
        text = self.client.get("/metrics").text
        found = dict(re.findall(rf'^{name}{{.*?replica="(\d)"}} (\S+)$', text, re.MULTILINE))
        return [float(found[number]) for number in sorted(found)]


@contextmanager
def front_of(cwd: Path, *options: str) -> Iterator[Front]:
    """Run the command with two replicas."""
    headers = {"Authorization": "Bearer a key"}
    with (
        serving("--replicas", "2", "--api-key", "a key", *options, cwd=cwd) as (process, url),
        Client(base_url=url.removesuffix("/v1"), headers=headers, timeout=HANG_S) as client,
    ):
        yield Front(process, client)


def parents() -> dict[int, int]:
    """Return the parents of all processes that run."""
    if Path("/proc/self/stat").exists():  # not every Linux has ps
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended meanwhile
                state, parent, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
                found[int(folder.name)] = int(parent) if state != "Z" else -1
        return {pid: parent for pid, parent in found.items() if parent != -1}
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    return {int(pid): int(parent) for pid, parent, state in rows if not state.startswith("Z")}


def children_of(pid: int) -> list[int]:
    """Return the processes that a process started, the oldest first."""
    return sorted(child for child, parent in parents().items() if parent == pid)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
