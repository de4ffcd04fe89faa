"""The files of the chat page at the root of the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from tallow.serving.http.errors import NOT_FOUND, ApiError

ADDRESSES = ("/web/{name:path}", "/wasm_examples/{name:path}", "/site.json", "/favicon.ico")
TYPES = {"": "text/html", ".css": "text/css", ".js": "text/javascript", ".json": "application/json"}
HEADERS = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "SAMEORIGIN"}


class Pages:
    """The files, read when the first one is asked for.

    Args:  load: returns them by their paths; that of the page at the root is empty
    """

    def __init__(self, load: Callable[[], Mapping[str, bytes]]) -> None:
        self._load = load

    async def file(self, request: Request) -> Response:
        """Answer with a file.  Raises: ApiError"""
        path = request.url.path.removeprefix("/")
        data = (await run_in_threadpool(self._load)).get(path)
        if data is None:
            raise ApiError(f"Not Found: GET /{path:.200}", status=NOT_FOUND)
        suffix = path[path.rfind(".") :] if "." in path else ""
        return Response(data, media_type=TYPES.get(suffix, "image/svg+xml"), headers=HEADERS)
