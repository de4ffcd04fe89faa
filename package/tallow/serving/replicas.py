"""Replicas: processes that serve the same models, and the choice among them.

    replicas = Replicas(2, ["tallow", "serve"])
    replicas.start()
    replica = replicas.choose(blocks_of(prompt))
    replicas.stop()

Each process has the models for itself, listens on a Unix socket, and ends when its stdin does, so none outlives this
process. One that dies is started again, and so is one that hangs: that answers nothing, or computes one step for long.
The processes share no MPI job: in a job, the death of one ends all.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tallow.errors import ArgumentError, TallowError
from tallow.kernels.threads import thread_count

SOCKET = "TALLOW_REPLICA_SOCKET"  # the variable that tells a process that it is a replica, and where it listens
READY = "ready\n"  # what a replica writes on stdout when it listens
DELAY_S, LONGEST_DELAY_S = 1.0, 30.0  # before a replica is started again: it doubles while they end soon
SILENT_S = 5.0  # without an answer: the process hangs; a step that takes longer may be one of a large model
TIMEOUT_S = 60.0  # until a process without an answer is started again
STEPS = 10  # times as long for one that answers, but computes one step
END_S = 10.0  # for a replica without requests to end
BLOCK = 128  # bytes; about a page of `tallow.generation.prefix_pages`
MOST_BLOCKS = 256  # of a prompt; further text does not change the choice
KNOWN_BLOCKS = 1 << 14  # that are remembered of each replica
TEXT_BLOCKS = 8.0  # as many blocks take about as long to read as a text takes its neighbours in the batch
log = logging.getLogger("tallow.serving")


class ReplicaError(TallowError, RuntimeError):
    """A replica did not start."""


def blocks_of(text: bytes, salt: str = "") -> list[int]:
    """Return a number for each beginning of a text that is a multiple of BLOCK long, up to MOST_BLOCKS of them.

    Args:  salt: those of another one are other numbers
    """
    numbers: list[int] = []
    for end in range(BLOCK, min(len(text), MOST_BLOCKS * BLOCK) + 1, BLOCK):
        numbers.append(hash((numbers[-1] if numbers else salt, text[end - BLOCK : end])))
    return numbers


def end_with_parent(path: str) -> None:
    """Say that this replica listens at `path`; end it as SIGTERM does once its parent process is gone."""

    def wait_for_end() -> None:
        sys.stdin.read()
        shutil.rmtree(Path(path).parent, ignore_errors=True)  # the other process may have been killed
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait_for_end, name="tallow end", daemon=True).start()
    print(READY, end="", flush=True)


class Replica:
    """One process.

    Args:
        command: starts it.
        folder: for its socket.
        environment: variables that the process gets in addition to those of this one.
        timeout_s: until a process that hangs is started again.

    Attributes:
        silent_s: for how long it has not answered a question.
        step_s: for how long it has computed one step, by its last answer.
        active: the requests in progress.
        requests, failed: how many it was given, and how many ended because it died.
        starts: how many times it was started.
    """

    def __init__(
        self,
        number: int,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.number = number
        self.silent_s = self.step_s = 0.0
        self._timeout_s = timeout_s
        self.active = self.requests = self.failed = self.starts = 0
        self.is_up = False
        self._command = command
        self._folder = folder
        self._environment = environment
        self._known: OrderedDict[int, None] = OrderedDict()  # the last used blocks last
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    @property
    def socket(self) -> str:
        """The path of the socket on which the process listens."""
        return str(self._folder / f"{self.number}-{self.starts}")

    @property
    def is_hung(self) -> bool:
        """True if the process does not answer, or has computed one step for long: it gets no requests."""
        return self.silent_s >= SILENT_S or self.step_s >= self._timeout_s

    @property
    def is_lost(self) -> bool:
        """True if it has hung for so long that it has to be killed."""
        return self.silent_s >= self._timeout_s or self.step_s >= STEPS * self._timeout_s

    @property
    def can_answer(self) -> bool:
        """True if the process listens and does not hang."""
        return self.is_up and not self.is_hung

    def work(self, blocks: Sequence[int]) -> float:
        """Return how much is to do before a prompt with these blocks can be answered: 1 for each request in progress,
        and a part of 1 for each block that the process has not read.
        """
        known = next((i for i, block in enumerate(blocks) if block not in self._known), len(blocks))
        return self.active + (len(blocks) - known) / TEXT_BLOCKS

    def remember(self, blocks: Sequence[int]) -> None:
        """Note that the process reads these blocks."""
        for block in reversed(blocks):  # the first one last, so that it stays the longest
            self._known[block] = None
            self._known.move_to_end(block)
        while len(self._known) > KNOWN_BLOCKS:
            self._known.popitem(last=False)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count a request in progress."""
        self.requests += 1
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1

    def launch(self) -> None:
        """Start the process, unless `end` was called."""
        with self._lock:
            if self._stopping.is_set():
                return
            self.starts += 1
            self.silent_s = self.step_s = 0.0
            self._known = OrderedDict()
            # In a session of its own: Ctrl-C reaches this process alone, which finishes requests first.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | self._environment | {SOCKET: self.socket},
                start_new_session=True,
            )

    def wait_until_up(self) -> bool:
        """Wait until the process listens; return False if it has ended instead."""
        process = self._process
        self.is_up = process is not None and process.stdout is not None and process.stdout.readline() == READY
        return self.is_up

    def watch(self) -> None:
        """Start the process again each time it ends; in a thread of its own."""
        threading.Thread(target=self._watch, name=f"tallow replica {self.number}", daemon=True).start()

    def _watch(self) -> None:
        delay_s = DELAY_S
        while self._process is not None:
            begun = time.monotonic()
            status = self._process.wait()
            self.is_up = False
            if self._stopping.is_set():
                return
            if time.monotonic() - begun > LONGEST_DELAY_S:
                delay_s = DELAY_S
            log.error("replica %d ended with status %d; it starts again in %.0f s", self.number, status, delay_s)
            if self._stopping.wait(delay_s):
                return
            delay_s = min(2 * delay_s, LONGEST_DELAY_S)
            self.launch()
            self.wait_until_up()

    def kill(self) -> None:
        """End the process at once; it is started again."""
        self.is_up = False
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Tell the process to end."""
        with self._lock:
            self._stopping.set()
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):  # it has ended already
                self._process.stdin.close()

    def wait(self, timeout_s: float) -> None:
        """Wait for the process to end, and kill it if it does not."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


class Replicas:
    """A number of processes.

    Args:
        command: starts one; it finds the path of its socket in the variable SOCKET.
        timeout_s: until one that hangs is started again.

    Raises:  ArgumentError where there are no Unix sockets
    """

    def __init__(self, count: int, command: Sequence[str], timeout_s: float = TIMEOUT_S) -> None:
        if not hasattr(socket, "AF_UNIX"):
            raise ArgumentError(f"{count} replicas on {sys.platform}", hint="start several servers instead")
        self._folder = tempfile.TemporaryDirectory(prefix="tallow-")
        # Otherwise each process would use all processors.
        environment = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or str(max(1, thread_count() // count))}
        folder = Path(self._folder.name)
        self.each = [Replica(number, command, folder, environment, timeout_s) for number in range(count)]

    def start(self) -> None:
        """Start the processes, and wait until they listen.  Raises: ReplicaError"""
        try:
            for replica in self.each:
                replica.launch()
            for replica in self.each:
                if not replica.wait_until_up():
                    raise ReplicaError(f"replica {replica.number} did not start", hint="its error is above")
        except BaseException:
            self.stop()
            raise
        for replica in self.each:
            replica.watch()

    def stop(self) -> None:
        """End the processes; requests in progress fail."""
        for replica in self.each:
            replica.end()
        for replica in self.each:
            replica.wait(END_S)
        self._folder.cleanup()

    def able(self, but: Collection[Replica] = ()) -> list[Replica]:
        """Return the processes that can answer, except some."""
        return [replica for replica in self.each if replica.can_answer and replica not in but]

    def choose(self, blocks: Sequence[int], but: Collection[Replica] = ()) -> Replica | None:
        """Return the process that can answer a prompt with these blocks first; None if none can.

        One that has computed a step for longer than SILENT_S is chosen if all others have.

        Args:  but: those that are not wanted
        """
        if not (able := self.able(but)):
            return None
        chosen = min(able, key=lambda each: (each.step_s >= SILENT_S, each.work(blocks), each.requests))
        chosen.remember(blocks)
        return chosen
