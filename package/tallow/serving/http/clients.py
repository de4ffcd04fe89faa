"""Who sends a request, and threads in which the requests of all clients take turns.

A client is one of several keys, or else an address: who shares one shares its turns.
"""

from __future__ import annotations

from asyncio import wrap_future
from collections.abc import Callable
from typing import TypeVar

from starlette.requests import Request
from starlette.types import Scope

from tallow.serving.http.listener import network_of
from tallow.serving.http.running import unless_gone
from tallow.serving.worker import Threads

CLIENT = "tallow.client"  # the entry of the scope
CLIENT_HEADER = "x-tallow-client"  # by which the front of replicas tells them
REQUESTS, READERS = "requests", "grammars"
# What they do is mostly Python's, of which one thread runs at a time; tokenizers run beside it. A grammar may take
# seconds, and waits for other grammars only.
THREADS = {REQUESTS: 4, READERS: 1}
R = TypeVar("R")


def address_of(scope: Scope) -> str:
    """Return the address from which a request comes, of version 6 the network."""
    return network_of(scope["client"][0]) if scope.get("client") else ""


def client_of(request: Request) -> str:
    """Return who sent a request."""
    client: str = request.scope[CLIENT]
    return client


async def in_turn(request: Request, function: Callable[[], R], *, threads: str = REQUESTS) -> R:
    """Return what a function returns, in a thread: other requests are answered meanwhile. Clients take turns.

    Args:    threads: which; REQUESTS or READERS
    Raises:  as the function; ClientGone if the client has left: the function is not called then, or goes on for nobody
    """
    pool: Threads = request.app.state.threads[threads]
    return await unless_gone(request, _result(pool, function, client_of(request)))


async def _result(threads: Threads, call: Callable[[], R], client: str) -> R:
    result: R = await wrap_future(threads.submit(call, client))
    return result
