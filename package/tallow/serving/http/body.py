"""The body of a request, up to a limit, and the bytes of all bodies that a server holds."""

from __future__ import annotations

from collections import Counter

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from tallow.serving.http.clients import CLIENT
from tallow.serving.http.errors import TOO_LARGE, TOO_MANY, ApiError

MOST_HELD = 256 << 20  # bytes of all bodies in memory, until their requests are answered
SPOOLED = 1 << 20  # of a file are in memory; the rest is on disk


class Held:
    """Count of the bytes that a server holds of requests, or of answers. A client may hold as many as are free.

    Args:  most: of all clients
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._total = 0
        self._of: Counter[str] = Counter()  # clients

    def take(self, client: str, count: int) -> bool:
        """Count more bytes of a client, unless there is no room for them."""
        if self._of[client] + count > self._most - self._total:
            return False
        self._of[client] += count
        self._total += count
        return True

    def leave(self, client: str, count: int) -> None:
        """Count bytes no longer."""
        self._total -= count
        self._of[client] -= count
        if not self._of[client]:
            del self._of[client]


class Body:
    """The body of a request.

    Args:
        most_bytes: of the body.
        held: counts what is in memory, until `leave`.
        spools: what exceeds SPOOLED is written to a file.
        keep: note what is received in `kept`.

    Attributes:
        error: what the client is told if the body is too large; None so far.
        kept: the bytes received.
    """

    def __init__(
        self, scope: Scope, receive: Receive, most_bytes: int, held: Held, *, spools: bool, keep: bool
    ) -> None:
        self._scope = scope
        self._held = held
        self._most_held = SPOOLED if spools else most_bytes
        self._taken = 0
        self.error: ApiError | None = None
        self.kept: list[bytes] = []
        self._receive = receive
        self._most_bytes = most_bytes
        self._keeps = keep
        self._bytes = 0
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared) > most_bytes:
            self._refuse()

    async def receive(self) -> Message:
        """Return the next message.  Raises: ApiError as soon as the body is too large, or there is no memory for it"""
        message = await self._receive()
        self._bytes += len(message.get("body", b""))
        if self._bytes > self._most_bytes:
            raise self._refuse()
        new = min(self._bytes, self._most_held) - self._taken
        if new and not self._held.take(self._scope[CLIENT], new):
            self.error = ApiError(
                "the server has too many large requests; try again later",
                status=TOO_MANY,
                code="bodies_full",
                headers={"Connection": "close", "Retry-After": "1"},
            )
            raise self.error
        self._taken += new
        if self._keeps:
            self.kept.append(message.get("body", b""))
        return message

    def leave(self) -> None:
        """Say that the body is no longer in memory."""
        if self._taken:
            self._held.leave(self._scope[CLIENT], self._taken)

    def _refuse(self) -> ApiError:
        self.error = ApiError(
            f"the body is larger than {self._most_bytes / (1 << 20):g} MiB",
            status=TOO_LARGE,
            code="body_too_large",
            headers={"Connection": "close"},
        )
        return self.error
