"""Errors in the form of OpenAI's API."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from tallow.errors import ArgumentError, AudioError, GrammarError, NumericError, TallowError, TokenizerError
from tallow.serving.queue import Busy, Closed

BAD_REQUEST, UNAUTHORIZED, NOT_FOUND, TOO_LARGE, TOO_MANY, FAILED, UNAVAILABLE = 400, 401, 404, 413, 429, 500, 503
TYPES = {UNAUTHORIZED: "authentication_error", TOO_MANY: "rate_limit_error", UNAVAILABLE: "service_unavailable"}
INPUT_ERRORS = (ArgumentError, AudioError, GrammarError, TokenizerError)


class ApiError(Exception):
    """A request that cannot be answered.

    Args:
        param: the field of the request that is wrong.
        code: a word for programs.
    """

    def __init__(
        self,
        message: str,
        param: str | None = None,
        *,
        status: int = BAD_REQUEST,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        kind = TYPES.get(status, "server_error" if status >= FAILED else "invalid_request_error")
        self.body: dict[str, Any] = {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def response(self) -> Response:
        """Return the response."""
        return JSONResponse(self.body, self.status, self.headers)


def api_error(error: Exception, param: str | None = None) -> ApiError:
    """Return the error that a client sees for an exception of an engine or of the library."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, Busy):
        after = {"Retry-After": str(error.retry_after_s)}
        return ApiError(str(error), status=TOO_MANY, code="queue_full", headers=after)
    if isinstance(error, Closed):
        return ApiError(str(error), status=UNAVAILABLE, code="shutting_down")
    if isinstance(error, NumericError):
        return ApiError(str(error), status=FAILED, code="not_a_number")
    if isinstance(error, INPUT_ERRORS):
        return ApiError(str(error), param)
    if isinstance(error, TallowError | MemoryError):
        return ApiError(str(error) or "out of memory", status=FAILED)
    return ApiError("internal error", status=FAILED)  # its text may be of any module: it goes to the log only
