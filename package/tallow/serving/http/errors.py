"""Errors: what a client sees of an exception, in the form of the API that it called."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from tallow.errors import ArgumentError, AudioError, GrammarError, NumericError, TallowError, TokenizerError
from tallow.serving.queue import Busy, Closed

BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, TOO_LARGE, TOO_MANY, FAILED, UNAVAILABLE = (
    400,
    401,
    403,
    404,
    413,
    429,
    500,
    503,
)
INPUT_ERRORS = (ArgumentError, AudioError, GrammarError, TokenizerError)
TOO_LONG = "context_length_exceeded"

OPENAI_TYPES = {UNAUTHORIZED: "authentication_error", TOO_MANY: "rate_limit_error", UNAVAILABLE: "service_unavailable"}
# The servers of Hugging Face have other statuses for some errors, and a word for each.
TEI_TYPES = {
    BAD_REQUEST: (422, "Tokenizer"),
    TOO_LARGE: (413, "Validation"),
    TOO_MANY: (429, "Overloaded"),
    FAILED: (424, "Backend"),
    UNAVAILABLE: (503, "Unhealthy"),
}
TGI_TYPES = {
    BAD_REQUEST: (422, "validation"),
    TOO_LARGE: (413, "validation"),
    TOO_MANY: (429, "overloaded"),
    FAILED: (424, "generation"),
    UNAVAILABLE: (503, "unhealthy"),
}
TEI_PATHS = frozenset(
    {"/embed", "/embed_all", "/embed_sparse", "/rerank", "/predict", "/similarity", "/tokenize", "/decode"}
)
OPEN_INFERENCE = "/v2"  # the protocol's errors are one text
TGI_PATHS = frozenset({"/", "/generate", "/generate_stream", "/info"})


class ApiError(Exception):
    """A request that cannot be answered.

    Args:
        param: the field of the request that is wrong.
        status: in OpenAI's API; see `form`.
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
        self.param = param
        self.code = code
        self.headers = headers or {}

    def form(self, path: str) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the answer, in the form of the API that has the path."""
        if path.startswith(OPEN_INFERENCE):
            return self.status, {"error": str(self)}
        if path in TEI_PATHS:
            status = TOO_LARGE if self.code in (TOO_LONG, "too_many_items") else self.status
            status, kind = TEI_TYPES.get(status, (status, "Validation"))
            return status, {"error": str(self), "error_type": kind}
        if path in TGI_PATHS:
            status, kind = TGI_TYPES.get(self.status, (self.status, "validation"))
            return status, {"error": str(self), "error_type": kind}
        kind = OPENAI_TYPES.get(self.status, "server_error" if self.status >= FAILED else "invalid_request_error")
        return self.status, {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}

    def response(self, path: str) -> Response:
        """Return the response to a request for a path."""
        status, body = self.form(path)
        return JSONResponse(body, status, self.headers)


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
