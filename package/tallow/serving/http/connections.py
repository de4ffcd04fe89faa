"""Connections of HTTP with deadlines: what a client leaves half done ends, and its place is free for others."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from http import HTTPStatus
from math import inf
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from tallow.serving.http.body import Held
from tallow.serving.http.clients import CLIENT
from tallow.serving.http.limits import Deadlines

MOST_HEAD_BYTES = 64 << 10  # of a request's first line and headers
CHECK_S = 1.0  # between two looks at a connection: deadlines are met to about a second
ENDING_S = 5.0  # the longest deadline while the server ends
# Closing a connection whose client is still sending resets it, which may take the answer away from the client. So what
# it sends is thrown away for a while; the times are nginx's (lingering_time, lingering_timeout).
# Source: RFC 9112, section 9.6
THROWN_BYTES, THROWN_S, SILENT_S = 128 << 20, 30.0, 5.0
# A chunk of a body takes h11 20 microseconds, however short it is; then others have their turn.
PARTS_AT_ONCE = 64
FEW_PARTS, LEAST_PART = 16_384, 64  # more parts than that have to have so many bytes each
MOST_UNSENT = 512 << 20  # bytes of answers that clients have not taken; one client may leave half of them
SMALLEST_BUFFER = 1  # bytes; with 0, asyncio's TLS says that its empty buffer is full
log = logging.getLogger("tallow.serving")


class _Strict(h11.Connection):
    """Refuses requests that give two lengths of a body, for which h11 takes the second, and bodies of tiny parts.

    Where a proxy in front takes the other length, its client could hide a request of another in the body.
    Source: RFC 9112, section 6.3

    Attributes:
        left: how many parts may be read until `next_event` says that there is no more, though there is.
    """

    left = PARTS_AT_ONCE

    def next_event(self) -> Any:
        if self.left == 0:
            return h11.NEED_DATA
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._parts = self._bytes = 0
            names = {name for name, _ in event.headers}
            if names >= {b"content-length", b"transfer-encoding"}:
                raise h11.RemoteProtocolError("Content-Length with Transfer-Encoding")
        elif isinstance(event, h11.Data):
            self.left -= 1
            self._parts += 1
            self._bytes += len(event.data)
            if self._parts > FEW_PARTS + self._bytes // LEAST_PART:
                raise h11.RemoteProtocolError("too many small parts of a body")
        return event


class _Patient:
    """A transport whose `close` may wait for the client.

    Args:  close: called in its place
    """

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport = transport
        self.close = close
        self.waits = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self.waits or self._transport.is_closing()


class Connection(H11Protocol):
    """uvicorn's connection with deadlines, and with the status of heads that are too long.

    A look at the state each second finds what the client is to do next, whatever it was that led there.

    A client that is still sending when it has its answer, such as a status 401, may send on for a while: a connection
    that was to close closes after that, others read the next request.

    Args:
        deadlines: for the client.
        held: counts the bytes of answers that clients have not taken.
    """

    def __init__(self, *arguments: Any, deadlines: Deadlines, held: Held, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._held = held
        self._holder = ""
        self.conn = self._strict = _Strict(h11.SERVER, MOST_HEAD_BYTES)
        self._deadlines = deadlines
        self._is_ending = False
        self._unsent = 0
        self._thrown = 0  # bytes
        self._timer: asyncio.TimerHandle | None = None
        self._goes_on: asyncio.Handle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._socket = transport
        self._patient = _Patient(transport, self._close)
        self.transport = cast(asyncio.Transport, self._patient)
        # The application writes only while nothing waits to be sent, so what waits shrinks if the client takes any.
        transport.set_write_buffer_limits(high=SMALLEST_BUFFER, low=0)
        self._taken_at = self._asked_at = self._received_at = self.loop.time()
        self._asked, _ = self._next()
        self._timer = self.loop.call_later(CHECK_S, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._goes_on is not None:
            self._goes_on.cancel()
        self._held.leave(self._holder, self._unsent)
        self._unsent = 0
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read a part of a request, or throw it away if there is an answer already."""
        self._received_at = self.loop.time()
        self._thrown = self._thrown + len(data) if self._is_answered else 0
        if self._thrown > THROWN_BYTES:
            self._socket.abort()
        elif not self._patient.waits:
            super().data_received(data)

    def handle_events(self) -> None:
        """Read what has arrived, or a part of it; the rest after others had their turn."""
        self._strict.left = PARTS_AT_ONCE
        super().handle_events()
        if self._strict.left == 0 and self._goes_on is None:
            self._socket.pause_reading()
            self._goes_on = self.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._goes_on = None
        if not self.flow.read_paused:
            self._socket.resume_reading()
        if not self.transport.is_closing():
            self.handle_events()

    def shutdown(self) -> None:
        """Close the connection after its request, and have no more patience with its client."""
        self._is_ending = True
        if self._patient.waits:
            self._socket.close()
        elif not self.transport.is_closing():
            super().shutdown()

    def _close(self) -> None:
        """Close the connection, now or when its client has stopped sending."""
        if self._socket.is_closing() or not self._sends:
            self._socket.close()
            return
        self._patient.waits = True
        if self._socket.can_write_eof():
            self._socket.write_eof()
        self.flow.resume_reading()

    @property
    def _sends(self) -> bool:
        """True while the client has not sent all of its request, or sends what is none."""
        state = self.conn.their_state
        return state in (h11.SEND_BODY, h11.ERROR) or (state is h11.IDLE and bool(self.conn.trailing_data[0]))

    @property
    def _is_answered(self) -> bool:
        """True if the answer to what the client sends is given already."""
        is_complete = self.cycle is not None and self.cycle.response_complete
        return self._patient.waits or (is_complete and self.conn.their_state is h11.SEND_BODY)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, and heads that are too long; in an `except` clause."""
        is_long = getattr(sys.exception(), "error_status_hint", 0) == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        if not is_long:
            self._refuse(HTTPStatus.BAD_REQUEST)
        elif self.conn.our_state is h11.IDLE and b"\n" not in self.conn.trailing_data[0]:
            self._refuse(HTTPStatus.REQUEST_URI_TOO_LONG)
        else:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        self.transport.close()

    def _next(self) -> tuple[object, float]:
        """Return what the client is to send next, which differs for each request, and how long that may take."""
        state = self.conn.their_state
        if self._is_answered:
            return (state, self.cycle, self._patient.waits), min(self._deadlines.body_s, THROWN_S)
        if state is h11.SEND_BODY:
            return (state, self.cycle), self._deadlines.body_s
        if state is not h11.IDLE:
            return (state, self.cycle), inf
        is_idle = self.cycle is not None and not self.conn.trailing_data[0]
        return (state, self.cycle, is_idle), self._deadlines.idle_s if is_idle else self._deadlines.head_s

    def _check(self) -> None:
        """End the connection if the client has not sent or taken in time what it should."""
        self._timer = self.loop.call_later(CHECK_S, self._check)
        now = self.loop.time()
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent < self._unsent:
            self._taken_at = now
        if not self._holds(unsent):
            log.warning("end a connection: %s does not take its answers", self._holder)
            self._socket.abort()
            return
        asked, most_s = self._next()
        if asked != self._asked:
            self._asked_at = now
        self._asked = asked
        longest_s = ENDING_S if self._is_ending else inf
        if now - self._taken_at > min(self._deadlines.write_s, longest_s):
            self._socket.abort()
        elif self._socket.is_closing():
            pass
        elif self._is_answered and now - max(self._received_at, self._asked_at) > SILENT_S:
            self._socket.close()
        elif now - self._asked_at > min(most_s, longest_s):
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
            self._socket.close()

    def _holds(self, unsent: int) -> bool:
        """Count the bytes that are not sent; return False if there is no room for so many of this client."""
        self._held.leave(self._holder, self._unsent)
        self._unsent = 0
        self._holder = "" if self.cycle is None else str(self.cycle.scope.get(CLIENT, ""))
        if unsent and not self._held.take(self._holder, unsent):
            return False
        self._unsent = unsent
        return True

    def _refuse(self, status: HTTPStatus) -> None:
        """End the request; say why if it has begun and its answer has not."""
        has_begun = self.conn.their_state is not h11.IDLE or bool(self.conn.trailing_data[0])
        if has_begun and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            text = status.phrase.encode()
            headers = [("content-type", "text/plain"), ("content-length", str(len(text))), ("connection", "close")]
            answer = h11.Response(status_code=status, headers=headers, reason=text)
            for event in (answer, h11.Data(data=text), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:  # it may still wait for the body
            self.cycle.disconnected = True
            self.cycle.message_event.set()
