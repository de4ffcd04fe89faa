"""Watch the replicas of a server: ask each of them how it is, and tell those who wait for it if it hangs."""

from __future__ import annotations

import asyncio
import json
import logging
import time

from tallow.serving.http.forwarding import ReplicaGone, fetch
from tallow.serving.replicas import SILENT_S, Replica

ASK_S = 1.0  # between an answer and the next question
log = logging.getLogger("tallow.serving")


class Watch:
    """The state of a replica, as its answers tell.

    Attributes:
        replica: which it is.
        is_hung: set while it hangs.
    """

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.is_hung = asyncio.Event()

    async def run(self) -> None:
        """Ask again and again; kill the process if it hangs for too long."""
        while True:
            started = time.monotonic()
            await asyncio.sleep(ASK_S)
            if self.replica.is_up:
                await self._ask(started)
                if self.replica.is_lost:
                    log.error("replica %d hangs; it is killed and starts again", self.replica.number)
                    self.replica.kill()
            self.tell()

    async def _ask(self, started: float) -> None:
        replica = self.replica
        try:
            _, body = await asyncio.wait_for(fetch(replica.socket, b"/health"), SILENT_S)
            replica.silent_s, replica.step_s = 0.0, float(json.loads(body)["step_s"])
        except (ReplicaGone, TimeoutError, ValueError, KeyError, TypeError):
            # No more than was waited: this process may have been stopped itself.
            replica.silent_s += min(time.monotonic() - started, ASK_S + SILENT_S)

    def tell(self) -> None:
        """Set or clear `is_hung`."""
        if self.replica.is_hung and not self.is_hung.is_set():
            log.error("replica %d does not answer, or computes one step for long", self.replica.number)
            self.is_hung.set()
        elif not self.replica.is_hung and self.is_hung.is_set():
            log.error("replica %d answers again", self.replica.number)
            self.is_hung.clear()
