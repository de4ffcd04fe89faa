"""A socket that listens, and takes no more connections than there is room for."""

from __future__ import annotations

import errno
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv6Address, ip_network
from typing import Any

from tallow.serving.http.limits import Room

BACKLOG = 512  # connections that wait to be accepted
# Kernels keep megabytes for a client that does not read; so much is enough for one that does.
UNSENT_BYTES = 128 << 10
LOG_S = 1.0  # between lines about connections that are refused
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
REFUSAL = b"""HTTP/1.1 503 Service Unavailable\r
Content-Type: text/plain\r
Content-Length: 20\r
Retry-After: 1\r
Connection: close\r
\r
too many connections"""
log = logging.getLogger("tallow.serving")


def network_of(address: str) -> str:
    """Return an address, of version 6 the network of 64 bits: one subscriber has all addresses in it."""
    try:
        given = IPv6Address(address)
    except ValueError:  # of version 4, or a proxy's name for it
        return address
    return str(given.ipv4_mapped or ip_network((given, 64), strict=False))


class Listener(socket.socket):
    """A socket for asyncio's servers whose `accept` refuses connections beyond `room` with status 503.

    Args:  says_why: send the status; clients of TLS could not read it.
    """

    def __init__(self, family: int, protocol: int, room: Room, *, says_why: bool = True) -> None:
        # asyncio sends small parts of answers at once (TCP_NODELAY) only if the protocol is named.
        super().__init__(family, socket.SOCK_STREAM, protocol)
        self._room = room
        self._says_why = says_why
        self._open: Counter[object] = Counter()
        self._is_out = False
        self._logged_at = -LOG_S

    def accept(self) -> tuple[socket.socket, Any]:
        """Return a connection and its address.

        Raises:  OSError; ConnectionAbortedError for one that is refused, so that asyncio looks at its other events
        """
        if self._is_out:
            # asyncio waits a second after an error of this kind, but first calls and logs it 2,048 times in a row.
            # https://github.com/python/cpython/blob/v3.13.0/Lib/asyncio/selector_events.py#L170
            self._is_out = False
            raise BlockingIOError
        try:
            plain, address = super().accept()
        except OSError as error:
            self._is_out = error.errno in OUT_OF_FILES
            raise
        client = self.client_of(address)
        if self._open.total() >= self._room.connections:
            self._refuse(plain, f"all {self._room.connections} connections are open (--connections)")
        if client is not None and self._open[client] >= self._room.of_address:
            self._refuse(plain, f"{address[0]} has {self._open[client]} connections (--connections-per-address)")
        self._open[client] += 1
        connection = _Connection(self.family, self.type, self.proto, fileno=plain.detach())
        connection.on_close = lambda: self._leave(client)
        return connection, address

    @staticmethod
    def client_of(address: Any) -> object:
        """Return what the connections of one client have in common, None for Unix sockets."""
        if not isinstance(address, tuple):
            return None
        return network_of(str(address[0]))

    def _refuse(self, connection: socket.socket, reason: str) -> None:
        with connection:
            if time.monotonic() - self._logged_at >= LOG_S:
                self._logged_at = time.monotonic()
                log.warning("refuse a connection: %s", reason)
            connection.setblocking(False)
            try:
                if self._says_why:
                    connection.send(REFUSAL)
                connection.recv(1 << 16)  # what is left unread would take the answer away from the client
            except OSError:
                pass
        raise ConnectionAbortedError

    def _leave(self, client: object) -> None:
        self._open[client] -= 1
        if not self._open[client]:
            del self._open[client]


class _Connection(socket.socket):
    on_close: Callable[[], None] | None = None

    def close(self) -> None:
        super().close()
        on_close, self.on_close = self.on_close, None
        if on_close is not None:
            on_close()


def listen_at(path: str, room: Room) -> Listener:
    """Return a Unix socket that listens.  Raises: OSError"""
    listener = Listener(socket.AF_UNIX, 0, room)
    listener.bind(path)
    listener.listen(BACKLOG)
    return listener


def listen(host: str, port: int, room: Room, *, says_why: bool = True) -> Listener:
    """Return a socket that listens; port 0 chooses a free one.  Raises: OSError, such as for a port in use"""
    family, _, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = Listener(family, protocol, room, says_why=says_why)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # not on Windows
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
