"""Limits for clients of a server: their time, and their connections."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from tallow.errors import ArgumentError

RESERVED_FILES = 100  # that a server needs for itself: models, libraries, logs
FILES_OF_CONNECTION = 2  # its socket, and that of a replica or a file for an upload
MOST_CONNECTIONS = 4096  # by default, where files have no limit


@dataclass(frozen=True)
class Deadlines:
    """Time that a server waits for its clients.

    For comparison, nginx waits 60 s for each of the first three, and Apache 20 s for heads.

    Args:
        head_s: for the first line and the headers of a request, and for the first request of a connection.
        body_s: for the whole body of a request.
        write_s: for a client that takes nothing of what it is sent.
        idle_s: for another request on a connection.
    """

    head_s: float = 10.0
    body_s: float = 60.0
    write_s: float = 60.0
    idle_s: float = 30.0


NO_DEADLINES = Deadlines(inf, inf, inf, inf)


@dataclass(frozen=True)
class Room:
    """Number of connections that a server has at once.

    Args:
        connections: all of them.
        of_address: those of one client: an IPv4 address, or a network of IPv6 (64 bits), which one subscriber has.
    """

    connections: int
    of_address: int


def room(connections: int | None = None, of_address: int | None = None) -> Room:
    """Return room for as many connections as this process may open files for, half of them for one client.

    Args:    connections, of_address: other numbers
    Raises:  ArgumentError for more than that
    """
    files = _most_files()
    if connections is None:
        free = MOST_CONNECTIONS if files is None else (files - min(RESERVED_FILES, files // 2)) // FILES_OF_CONNECTION
        connections = max(1, min(free, MOST_CONNECTIONS))
    elif files is not None and connections >= files:
        raise ArgumentError(
            f"{connections} connections in a process that may open {files} files",
            hint=f"ulimit -n {FILES_OF_CONNECTION * connections + RESERVED_FILES}",
        )
    return Room(connections, of_address or max(1, connections // 2))


def _most_files() -> int | None:
    try:
        import resource  # not on Windows
    except ModuleNotFoundError:
        return None
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if files == resource.RLIM_INFINITY else files
