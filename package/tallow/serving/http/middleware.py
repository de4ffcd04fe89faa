"""Authentication, the size limit, the log and the metrics of each request."""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import time
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tallow.serving.http.body import MOST_HELD, Body, Held
from tallow.serving.http.clients import CLIENT, CLIENT_HEADER, address_of
from tallow.serving.http.errors import FORBIDDEN, UNAUTHORIZED, ApiError
from tallow.serving.http.metrics import HttpMetrics
from tallow.serving.http.open_inference import LABEL, PATH
from tallow.serving.http.origins import foreign_origin

# For probes, and for the pages that ask for a key.
OPEN_PATHS = frozenset({"/health", "/ready", "/", "/requests", "/openapi.json", "/site.json", "/favicon.ico"})
OPEN_FOLDERS = ("/web/", "/wasm_examples/")
log = logging.getLogger("tallow.serving.access")


def is_key(given: str, key: str) -> bool:
    """Return whether a header has a key, in a time that does not depend on where they differ.

    Args:
        given: the header's text, a character for each byte (Latin-1, as in ASGI); a key beyond ASCII is sent as UTF-8.
        key: as the environment or the command line has it, where bytes that are not UTF-8 are surrogates.
    """
    return hmac.compare_digest(given.encode("latin-1"), key.encode(errors="surrogateescape"))


class Guard:
    """Refuses requests without the key, from pages of other sites, and too large ones; logs and counts all of them.

    The log has no text of prompts or answers, unless `log_bodies` asks for the former.

    Args:
        keys: of which clients must send one as a bearer token; none for no authentication.
        origins: whose pages may call the server, besides its own.
        is_replica: the front of replicas says who the client is.
        most_bytes: of the body of an upload, or of tensors.
        most_json: of any other body: JSON takes much more time and memory than its bytes.
        log_bodies: log the text of requests, but for uploads.
        paths: those of the server, for the metrics.
        uploads: the paths that take files.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: Sequence[str],
        origins: Sequence[str],
        is_replica: bool,
        most_bytes: int,
        most_json: int,
        log_bodies: bool,
        metrics: HttpMetrics,
        paths: frozenset[str],
        uploads: frozenset[str],
    ) -> None:
        self._app = app
        self._keys = keys
        self._origins = origins
        self._is_replica = is_replica
        self._most_bytes = most_bytes
        self._most_json = most_json
        self._log_bodies = log_bodies
        self._metrics = metrics
        self._paths = paths
        self._uploads = uploads
        self._held = Held(MOST_HELD)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        number = secrets.token_hex(8)
        status = 499  # the client went away, unless an answer begins
        is_upload = scope["path"] in self._uploads
        has_tensors = PATH.fullmatch(scope["path"]) is not None
        most_bytes = self._most_bytes if is_upload or has_tensors else self._most_json
        keep = self._log_bodies and not is_upload and not has_tensors
        body = Body(scope, receive, most_bytes, self._held, spools=is_upload, keep=keep)

        async def record(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = number
            await send(message)

        try:
            if (error := self._refusal(scope) or body.error) is not None:
                await error.response(scope["path"])(scope, receive, record)
            else:
                await self._app(scope, body.receive, record)
        finally:
            body.leave()
            seconds = time.perf_counter() - started
            path = LABEL if has_tensors else scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.answers.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(seconds)
            entry = {"id": number, "method": scope["method"], "path": path, "status": status}
            entry["seconds"] = round(seconds, 4)
            if body.kept:
                entry["request"] = b"".join(body.kept).decode(errors="replace")
            log.info(json.dumps(entry))

    def _refusal(self, scope: Scope) -> ApiError | None:
        """Return why a request is refused before its body is read, or None; note who the client is."""
        headers = Headers(scope=scope)
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # All keys are compared: the time does not depend on which of them it is.
        own = [number for number, key in enumerate(self._keys) if is_key(given.strip(), key)]
        is_known = bool(own) and scheme.lower() == "bearer"
        address = headers.get(CLIENT_HEADER, "") if self._is_replica else address_of(scope)
        scope[CLIENT] = f"key {own[0]}" if is_known and len(self._keys) > 1 else address
        if not self._is_replica and (site := foreign_origin(scope["method"], headers, self._origins)) is not None:
            return ApiError(
                f"pages of another site ({site!r:.80}) may not call this server; its option --cors ORIGIN allows one",
                status=FORBIDDEN,
                code="foreign_origin",
            )
        path = scope["path"]
        is_open = scope["method"] != "POST" and (path in OPEN_PATHS or path.startswith(OPEN_FOLDERS))
        if not self._keys or is_known or is_open:
            return None
        return ApiError(
            "the API key is missing or wrong; send it as Authorization: Bearer KEY",
            status=UNAUTHORIZED,
            code="invalid_api_key",
            headers={"WWW-Authenticate": "Bearer"},
        )
