"""Authentication, the size limit, the log and the metrics of each request."""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tallow.serving.http.errors import TOO_LARGE, UNAUTHORIZED, ApiError
from tallow.serving.http.metrics import HttpMetrics

OPEN_PATHS = frozenset({"/health", "/ready", "/", "/openapi.json"})  # for probes, and for the page that asks for a key
DRAINED = 4
log = logging.getLogger("tallow.serving.access")


class Guard:
    """Refuses requests without the key and requests that are too large; logs and counts all of them.

    The log has no text of prompts or answers, unless `log_bodies` asks for the former.

    Args:
        key: which clients must send as a bearer token; None for no authentication.
        most_bytes: of a request's body.
        log_bodies: log the text of requests, but for uploads.
        paths: those of the server, for the metrics.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        key: str | None,
        most_bytes: int,
        log_bodies: bool,
        metrics: HttpMetrics,
        paths: frozenset[str],
    ) -> None:
        self._app = app
        self._key = None if key is None else key.encode()
        self._most_bytes = most_bytes
        self._log_bodies = log_bodies
        self._metrics = metrics
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        number = secrets.token_hex(8)
        status = 499  # the client went away, unless an answer begins
        is_upload = Headers(scope=scope).get("content-type", "").startswith("multipart/")
        bodies: list[bytes] | None = [] if self._log_bodies and not is_upload else None

        async def record(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = number
            await send(message)

        try:
            if (error := self._refusal(scope)) is not None:
                await error.response(scope["path"])(scope, receive, record)
            else:
                await self._app(scope, self._limited(receive, bodies), record)
        finally:
            seconds = time.perf_counter() - started
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.answers.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(seconds)
            entry = {"id": number, "method": scope["method"], "path": path, "status": status}
            entry["seconds"] = round(seconds, 4)
            if bodies:
                entry["request"] = b"".join(bodies).decode(errors="replace")
            log.info(json.dumps(entry))

    def _refusal(self, scope: Scope) -> ApiError | None:
        """Return why a request is refused before its body is read, or None."""
        headers = Headers(scope=scope)
        is_open = scope["method"] != "POST" and scope["path"] in OPEN_PATHS
        if self._key is not None and not is_open:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if not hmac.compare_digest(given.strip().encode(), self._key) or scheme.lower() != "bearer":
                return ApiError(
                    "the API key is missing or wrong; send it as Authorization: Bearer KEY",
                    status=UNAUTHORIZED,
                    code="invalid_api_key",
                    headers={"WWW-Authenticate": "Bearer"},
                )
        return None

    def _limited(self, receive: Receive, bodies: list[bytes] | None) -> Receive:
        """Return a `receive` that refuses bodies which are too large, and appends others to `bodies`.

        It reads them to their end, up to DRAINED times the limit: a client that is still sending when the connection
        is closed does not see the answer.
        """
        total = 0

        async def limited() -> Message:
            nonlocal total
            message = await receive()
            total += len(message.get("body", b""))
            if total <= self._most_bytes:
                if bodies is not None:
                    bodies.append(message.get("body", b""))
                return message
            while message.get("more_body") and total < DRAINED * self._most_bytes:
                message = await receive()
                total += len(message.get("body", b""))
            raise ApiError(
                f"the body is larger than {self._most_bytes >> 20} MiB",
                status=TOO_LARGE,
                code="body_too_large",
                headers={"Connection": "close"},
            )

        return limited
