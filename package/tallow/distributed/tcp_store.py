"""A store that one process holds and the others reach by TCP."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
import weakref
from datetime import timedelta
from typing import Any

from tallow.distributed.frames import packed, unpacked
from tallow.distributed.stores import TIMEOUT, HashStore, Store
from tallow.errors import ArgumentError, DistributedError

USERS = b"init/"  # the key that counts them
RETRY_S = 0.05
POLL_S = 0.1  # how soon the thread of a store ends that is no longer used


class DistNetworkError(DistributedError):
    """A process that does not answer, or a port that is in use."""


class TCPStore(Store):
    """A store that the process with `is_master` holds; the others connect to it.

    Whoever reaches the port can read and change the values, as in PyTorch; name an address of a private network. The
    values are bytes, and nothing of them is executed.

    Args:
        host_name, port: the address of the process that holds the values; 0 for any free port, which is then `port`.
        world_size: the number of users. The process that holds the values waits for all; None for any number.
        is_master: whether this process holds the values.
        timeout: how long to wait for the others, and then for a key.
        wait_for_workers: False, not to wait for the others at the start.
        multi_tenant: whether the stores of this process with the same address share their values.
        master_listen_fd: a socket that is bound to the port already.
        use_libuv: has no effect; it chooses between servers of PyTorch.

    Raises:  DistNetworkError if the port is in use, or nothing answers in time; DistStoreError as in `Store`
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self.set_timeout(timeout)
        self._host, self._port, self._libuv = host_name, port, use_libuv
        self._lock = threading.Lock()
        self._owner = _owner(host_name, port, multi_tenant, master_listen_fd) if is_master else None
        if self._owner is not None:
            self._port = self._owner.port
        self._socket = _connected(self._host, self._port, timeout)
        weakref.finalize(self, self._socket.close)
        users = self.add(USERS, 1)
        if is_master and wait_for_workers and world_size is not None and users < world_size:
            self._until(lambda: int(self._apply("get", USERS)[0]) >= world_size, [USERS], timeout)

    @property
    def host(self) -> str:
        """The name of the machine that holds the values."""
        return self._host

    @property
    def port(self) -> int:
        """The port of the process that holds the values."""
        return self._port

    @property
    def libuvBackend(self) -> bool:
        """The argument `use_libuv`."""
        return self._libuv

    def __repr__(self) -> str:
        return f"TCPStore(host={self._host!r}, port={self._port}, is_master={self._owner is not None})"

    def _apply(self, name: str, *arguments: bytes) -> list[bytes]:
        request = packed([name.encode(), *arguments])
        with self._lock:
            try:
                self._socket.sendall(request)
                reply = unpacked(self._socket.recv)
            except BaseException as error:
                self._socket.close()  # an answer that comes late would be taken for that of the next operation
                if not isinstance(error, OSError | EOFError):
                    raise
                reply = None
        if reply is None:
            raise DistNetworkError(
                f"TCPStore: the process that holds the values, {self._host}:{self._port}, does not answer",
                hint="it must live as long as the others use the store",
            )
        kind, *rest = reply
        if kind == b"error":
            raise ArgumentError(rest[0].decode())
        return rest

    def clone(self) -> TCPStore:
        """Return a further connection to the values."""
        return TCPStore(self._host, self._port, timeout=self.timeout)


class _Server(socketserver.ThreadingTCPServer):
    """Holds the values, and answers each connection in a thread."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, host: str, port: int, listen_fd: int | None) -> None:
        self.store = HashStore()
        super().__init__((host, port), _Connection, bind_and_activate=False)
        self.socket.close()
        if listen_fd is None:
            family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self.socket = socket.create_server(address[:2], family=family, backlog=self.request_queue_size)
        else:
            self.socket = socket.socket(fileno=listen_fd)
            self.server_activate()
        self.server_address = self.socket.getsockname()
        thread = threading.Thread(target=self.serve_forever, args=(POLL_S,), name="TCPStore", daemon=True)
        thread.start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a user that ends within an operation has its own error."""


class _Connection(socketserver.BaseRequestHandler):
    """Answers the operations of one user."""

    server: _Server

    def handle(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while (operation := unpacked(self.request.recv)) is not None:
            try:
                result = self.server.store._apply(operation[0].decode(errors="replace"), *operation[1:])
                reply = packed([b"ok", *result])
            except (ArgumentError, TypeError, IndexError) as error:
                reply = packed([b"error", str(error).encode()])
            self.request.sendall(reply)


class _Owner:
    """Keeps a server as long as a store has this object."""

    def __init__(self, server: _Server) -> None:
        self.port: int = server.server_address[1]
        weakref.finalize(self, _close, server).atexit = False


_shared: weakref.WeakValueDictionary[tuple[str, int], _Owner] = weakref.WeakValueDictionary()


def _owner(host: str, port: int, shared: bool, listen_fd: int | None) -> _Owner:
    """Return the owner of a new server, or of that of this process with the same address."""
    owner = _shared.get((host, port)) if shared else None
    if owner is None:
        try:
            owner = _Owner(_Server(host, port, listen_fd))
        except OSError as error:
            raise DistNetworkError(
                f"TCPStore: cannot listen at {host}:{port}: {error}", hint="use another port; 0 chooses a free one"
            ) from None
    if shared:
        _shared[host, owner.port] = owner
    return owner


def _close(server: _Server) -> None:
    server.shutdown()
    server.server_close()


def _connected(host: str, port: int, timeout: timedelta) -> socket.socket:
    """Return a connection, once something answers. Raises: DistNetworkError"""
    end = time.monotonic() + timeout.total_seconds()
    while True:
        try:
            connection = socket.create_connection((host, port), max(end - time.monotonic(), RETRY_S))
        except OSError as error:
            if time.monotonic() >= end:
                raise DistNetworkError(
                    f"TCPStore: nothing answers at {host}:{port} within {timeout.total_seconds():g} s: {error}",
                    hint="start the process with is_master=True",
                ) from None
            time.sleep(RETRY_S)
        else:
            connection.settimeout(timeout.total_seconds())  # for each answer, which comes at once
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
