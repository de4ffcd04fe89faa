"""The application: OpenAI's API over the engines of a catalog."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tallow.errors import TallowError
from tallow.serving.catalog import Catalog
from tallow.serving.http.completions import ChatCompletion, Completion, TextApi
from tallow.serving.http.errors import NOT_FOUND, UNAVAILABLE, ApiError, api_error
from tallow.serving.http.fields import Fields
from tallow.serving.http.metrics import Metrics
from tallow.serving.http.middleware import Guard
from tallow.serving.http.running import ClientGone
from tallow.serving.http.speech import transcripts
from tallow.serving.http.vectors import embeddings

MOST_BYTES = 32 << 20  # of a body; OpenAI's limit for sounds is 25 MB
MAX_FORM_FIELDS = 32
log = logging.getLogger("tallow.serving")
Engine = TypeVar("Engine")


def make_app(
    catalog: Catalog,
    *,
    api_key: str | None = None,
    most_bytes: int = MOST_BYTES,
    cors: tuple[str, ...] = (),
    hosts: tuple[str, ...] | None = None,
) -> Starlette:
    """Return the ASGI application. It starts and stops the engines.

    Args:
        api_key: which clients must send; None for no authentication.
        most_bytes: of a request's body.
        cors: origins of pages that may call the server; none by default.
        hosts: names under which clients may reach the server, None for any. On this computer alone, other names are
            those of web pages that lead a browser here (DNS rebinding).
    """
    api = Api(catalog)
    routes = api.routes()
    paths = frozenset(route.path for route in routes)
    guard: Any = Middleware(Guard, key=api_key, most_bytes=most_bytes, metrics=api.metrics, paths=paths)
    middleware = [guard]
    if hosts is not None:
        named: Any = Middleware(TrustedHostMiddleware, allowed_hosts=[*hosts, "[::1]"], www_redirect=False)
        middleware.insert(0, named)
    if cors:
        headers = ["Authorization", "Content-Type"]
        pages: Any = Middleware(
            CORSMiddleware, allow_origins=cors, allow_methods=["GET", "POST"], allow_headers=headers
        )
        middleware.insert(0, pages)  # before the key is asked for: a browser's preflight request has none

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        catalog.start()
        api.is_ready = True
        yield
        api.is_ready = False
        await run_in_threadpool(catalog.stop)

    handlers: Any = dict.fromkeys((ApiError, TallowError, MemoryError, Exception), _on_error)
    handlers |= {HTTPException: _on_http_error, ClientGone: _on_gone}
    return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=lifespan)


class Api:
    """The endpoints.

    Attributes:
        is_ready: whether the engines have started.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.metrics = Metrics(catalog)
        self.is_ready = False
        self._created = int(time.time())

    def routes(self) -> list[Route]:
        """Return the routes of all endpoints."""
        posts: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/v1/completions": self.completions,
            "/v1/chat/completions": self.chat,
            "/v1/embeddings": self.embeddings,
            "/v1/audio/transcriptions": self.transcriptions,
            "/v1/audio/translations": self.translations,
        }
        gets = {
            "/v1/models": self.models,
            "/v1/models/{name:path}": self.model,
            "/health": self.health,
            "/ready": self.ready,
            "/metrics": self.metrics_text,
        }
        return [
            *(Route(path, endpoint, methods=["POST"]) for path, endpoint in posts.items()),
            *(Route(path, endpoint, methods=["GET"]) for path, endpoint in gets.items()),
        ]

    async def completions(self, request: Request) -> Response:
        """Continue texts."""
        return await self._texts(request, Completion)

    async def chat(self, request: Request) -> Response:
        """Answer a conversation."""
        return await self._texts(request, ChatCompletion)

    async def _texts(self, request: Request, kind: type[TextApi]) -> Response:
        fields = Fields.parse(await request.body())
        engine = self._chosen(self.catalog.texts, fields, "generates texts", "--model")
        # In a thread: long prompts and schemas take time, and other streams must go on meanwhile.
        texts = await run_in_threadpool(kind, fields, engine)
        return await texts.respond(request)

    async def embeddings(self, request: Request) -> Response:
        """Compute vectors of texts."""
        fields = Fields.parse(await request.body())
        worker = self._chosen(self.catalog.encoders, fields, "computes embeddings", "--embed")
        return await embeddings(request, fields, worker)

    async def transcriptions(self, request: Request) -> Response:
        """Transcribe a sound."""
        return await self._transcripts(request, "transcribe")

    async def translations(self, request: Request) -> Response:
        """Translate a sound to English."""
        return await self._transcripts(request, "translate")

    async def _transcripts(self, request: Request, task: str) -> Response:
        async with request.form(max_files=1, max_fields=MAX_FORM_FIELDS) as form:
            fields = Fields({"model": form.get("model")})
            worker = self._chosen(self.catalog.listeners, fields, "transcribes speech", "--transcribe")
            return await transcripts(request, form, worker, task)

    def _chosen(self, engines: dict[str, Engine], fields: Fields, does: str, option: str) -> Engine:
        """Return the engine of the field `model`, by default the first."""
        if not engines:
            raise ApiError(
                f"no model of this server {does}; start it with {option} MODEL",
                "model",
                status=NOT_FOUND,
                code="model_not_found",
            )
        name = fields.text("model")
        if name is None:
            return next(iter(engines.values()))
        if name not in engines:
            raise ApiError(
                f"the model {name!r:.80} does not exist, or is of another kind; choose {', '.join(engines)}",
                "model",
                status=NOT_FOUND,
                code="model_not_found",
            )
        return engines[name]

    async def models(self, request: Request) -> Response:
        """List the models."""
        return JSONResponse({"object": "list", "data": [self._card(name) for name in self.catalog.names]})

    async def model(self, request: Request) -> Response:
        """Describe one model."""
        name = request.path_params["name"]
        if name not in self.catalog.names:
            raise ApiError(f"the model {name!r:.80} does not exist", status=NOT_FOUND, code="model_not_found")
        return JSONResponse(self._card(name))

    def _card(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._created, "owned_by": "tallow"}

    async def health(self, request: Request) -> Response:
        """Answer while the process lives."""
        return JSONResponse({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Answer 200 once requests can be answered, 503 before and after."""
        if not self.is_ready:
            return JSONResponse({"status": "not ready"}, UNAVAILABLE)
        return JSONResponse({"status": "ready"})

    async def metrics_text(self, request: Request) -> Response:
        """Write the metrics for Prometheus."""
        return Response(generate_latest(self.metrics.registry), media_type=CONTENT_TYPE_LATEST)


async def _on_error(request: Request, error: Exception) -> Response:
    answer = api_error(error)
    if answer.status >= 500 and answer.status != UNAVAILABLE:
        log.error("a request failed", exc_info=error)
    return answer.response()


async def _on_http_error(request: Request, error: HTTPException) -> Response:
    message = f"{error.detail}: {request.method} {request.url.path[:200]}"
    return ApiError(message, status=error.status_code, headers=dict(error.headers or {})).response()


async def _on_gone(request: Request, error: ClientGone) -> Response:
    return Response(status_code=499)  # nobody reads it
