"""Parts of all applications of this folder: who may call them, limits, and the forms of errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from tallow.errors import TallowError
from tallow.serving.http.errors import UNAVAILABLE, ApiError, api_error
from tallow.serving.http.known_fields import HEADER
from tallow.serving.http.metrics import HttpMetrics
from tallow.serving.http.middleware import Guard
from tallow.serving.http.running import ClientGone

MOST_BYTES = 32 << 20  # of an upload; OpenAI's limit for sounds is 25 MB
# Of JSON, which takes several times its bytes while it is parsed and read.
MOST_JSON = 4 << 20
Lifespan: TypeAlias = Callable[[Starlette], AbstractAsyncContextManager[None]]
log = logging.getLogger("tallow.serving")


@dataclass(frozen=True)
class Access:
    """Who may call a server.

    Args:
        api_keys: of which clients must send one; none for no authentication. Several keys tell clients apart.
        most_bytes: of the body of a request with a file.
        most_json: of any other body.
        cors: origins of pages that may call the server; none by default.
        hosts: names under which clients may reach the server, None for any. On this computer alone, other names are
            those of web pages that lead a browser here (DNS rebinding).
        log_bodies: log the text of requests, but for uploads.
        is_replica: the front of replicas has checked all this, and says who the client is.
    """

    api_keys: tuple[str, ...] = ()
    most_bytes: int = MOST_BYTES
    most_json: int = MOST_JSON
    cors: tuple[str, ...] = ()
    hosts: tuple[str, ...] | None = None
    log_bodies: bool = False
    is_replica: bool = False


def application(
    routes: Sequence[BaseRoute],
    lifespan: Lifespan,
    access: Access,
    metrics: HttpMetrics,
    paths: frozenset[str],
    uploads: frozenset[str],
) -> Starlette:
    """Return an ASGI application.

    Args:
        paths: that the metrics and the log name.
        uploads: those that take files.
    """
    guard: Any = Middleware(
        Guard,
        keys=access.api_keys,
        origins=access.cors,
        is_replica=access.is_replica,
        most_bytes=access.most_bytes,
        most_json=access.most_json,
        log_bodies=access.log_bodies,
        metrics=metrics,
        paths=paths,
        uploads=uploads,
    )
    middleware = [guard]
    if access.hosts is not None:
        named: Any = Middleware(TrustedHostMiddleware, allowed_hosts=[*access.hosts, "[::1]"], www_redirect=False)
        middleware.insert(0, named)
    if access.cors:
        headers = ["Authorization", "Content-Type"]
        pages: Any = Middleware(
            CORSMiddleware,
            allow_origins=access.cors,
            allow_methods=["GET", "POST"],
            allow_headers=headers,
            expose_headers=["X-Request-Id", HEADER],
        )
        middleware.insert(0, pages)  # before the key is asked for: a browser's preflight request has none
    handlers: Any = dict.fromkeys((ApiError, TallowError, MemoryError, Exception), _on_error)
    handlers |= {HTTPException: _on_http_error, ClientGone: _on_gone, ClientDisconnect: _on_gone}
    return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=lifespan)


def readiness(is_ready: bool, **more: Any) -> Response:
    """Return 200 once requests can be answered, 503 before and after, with `more` entries."""
    status = "ready" if is_ready else "not ready"
    return JSONResponse({"status": status, **more}, 200 if is_ready else UNAVAILABLE)


async def _on_error(request: Request, error: Exception) -> Response:
    answer = api_error(error)
    if answer.status >= 500 and answer.status != UNAVAILABLE:
        log.error("a request failed", exc_info=error)
    return answer.response(request.url.path)


async def _on_http_error(request: Request, error: HTTPException) -> Response:
    message = f"{error.detail}: {request.method} {request.url.path[:200]}"
    return ApiError(message, status=error.status_code, headers=dict(error.headers or {})).response(request.url.path)


async def _on_gone(request: Request, error: ClientGone) -> Response:
    return Response(status_code=499)  # nobody reads it
