"""Send a request to a replica over its Unix socket, and pass on the answer as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

import h11

from tallow.serving.http.clients import CLIENT_HEADER

CHUNK_BYTES = 1 << 16
# Headers of one connection, not of the request or the answer.
CONNECTION_HEADERS = frozenset(
    {b"connection", b"keep-alive", b"transfer-encoding", b"te", b"trailer", b"upgrade", b"expect", b"proxy-connection"}
)
# And what the front writes itself or has checked.
REQUEST_HEADERS = CONNECTION_HEADERS | {
    b"content-length",
    b"authorization",
    b"proxy-authorization",
    CLIENT_HEADER.encode(),
}
ANSWER_HEADERS = CONNECTION_HEADERS | {b"date", b"x-request-id"}
Headers: TypeAlias = Sequence[tuple[bytes, bytes]]


@dataclass
class Part:
    """A piece of an answer, as it arrived.

    Attributes:
        head: the status and the headers, in the first part only.
        is_last: the answer is complete.
    """

    head: h11.Response | None = None
    data: bytes = b""
    is_last: bool = False


class ReplicaGone(Exception):
    """The replica died, or was not there, before the end of its answer."""


async def exchange(
    path: str, method: str, target: bytes, headers: Headers = (), body: bytes = b"", client: str = ""
) -> AsyncGenerator[Part, None]:
    """Send a request; yield the answer as it comes.

    Args:
        path: of the socket.
        target: the path of the URL with its query.
        client: who sent the request.

    Raises:  ReplicaGone
    """
    connection = h11.Connection(h11.CLIENT)
    try:
        reader, writer = await asyncio.open_unix_connection(path)
    except OSError as error:
        raise ReplicaGone from error
    try:
        sent = [
            *without(headers, REQUEST_HEADERS),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            (CLIENT_HEADER.encode(), client.encode()),
        ]
        if not any(name == b"host" for name, _ in sent):
            sent.append((b"host", b"localhost"))
        head = connection.send(h11.Request(method=method, target=target, headers=sent)) or b""
        writer.write(head + body)
        connection.send(h11.Data(body))
        connection.send(h11.EndOfMessage())
        await writer.drain()
        part = Part()
        while not part.is_last:
            connection.receive_data(await reader.read(CHUNK_BYTES))
            if (part := _arrived(connection)).head or part.data or part.is_last:
                yield part
    except (OSError, h11.RemoteProtocolError) as error:
        raise ReplicaGone from error
    finally:
        writer.close()


def _arrived(connection: h11.Connection) -> Part:
    """Return what the data that the connection has received adds to the answer.  Raises: h11.RemoteProtocolError"""
    part = Part()
    while (event := connection.next_event()) is not h11.NEED_DATA and not part.is_last:
        if isinstance(event, h11.Response):
            part.head = event
        elif isinstance(event, h11.Data):
            part.data += event.data
        part.is_last = isinstance(event, h11.EndOfMessage)
    return part


async def fetch(path: str, target: bytes) -> tuple[int, bytes]:
    """Return the status and the body of what a replica answers.  Raises: ReplicaGone"""
    status, body = 0, b""
    async for part in exchange(path, "GET", target):
        status = part.head.status_code if part.head else status
        body += part.data
    return status, body


def without(headers: Headers, names: Set[bytes]) -> list[tuple[bytes, bytes]]:
    """Return the headers without those of some names, in lower case."""
    return [(name, value) for name, value in headers if name.lower() not in names]
