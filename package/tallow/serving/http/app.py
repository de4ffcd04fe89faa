"""The application: the APIs of OpenAI and of Hugging Face's servers over the engines of a catalog."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeAlias, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, ProcessCollector, generate_latest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tallow.serving.catalog import Catalog
from tallow.serving.engine import TextEngine
from tallow.serving.http import embeddings_inference, openapi
from tallow.serving.http.application import Access, application, health, readiness
from tallow.serving.http.chat import ChatCompletion
from tallow.serving.http.completions import Completion, TextApi
from tallow.serving.http.errors import NOT_FOUND, ApiError
from tallow.serving.http.fields import Fields
from tallow.serving.http.metrics import Engines, HttpMetrics
from tallow.serving.http.responses import ModelResponse
from tallow.serving.http.speech import transcripts
from tallow.serving.http.text_generation import Generation, describe
from tallow.serving.http.vectors import embeddings
from tallow.text.tokenizer import Tokenizer

MAX_FORM_FIELDS = 32
PLACEHOLDERS = ("dummy", "tgi", "tei")  # which clients of Hugging Face send if they know only the address
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
Engine = TypeVar("Engine")


def make_app(catalog: Catalog, access: Access | None = None, *, warmup: bool = False, version: str = "") -> Starlette:
    """Return the ASGI application. It starts and stops the engines.

    Args:
        access: who may call it; None for anybody.
        warmup: compute with each model before `/ready` says that the server is.
        version: of the server, for `/info`.
    """
    api = Api(catalog, version)

    async def prepare() -> None:
        if warmup:
            await run_in_threadpool(catalog.warm_up)
        api.is_ready = True

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        catalog.start()
        task = asyncio.create_task(prepare())  # meanwhile /health answers, and /ready says no
        yield
        api.is_ready = False
        task.cancel()
        await run_in_threadpool(catalog.stop)

    return application(api.routes(), lifespan, access or Access(), api.metrics, PATHS)


class Kind(NamedTuple):
    """A kind of model: its attribute of the catalog, what it does, and the option that loads one."""

    engines: str
    does: str
    option: str


TEXTS = Kind("texts", "generates texts", "--model")
ENCODERS = Kind("encoders", "computes embeddings", "--embed")
LABELLERS = Kind("labellers", "labels texts", "--rerank")
WEIGHERS = Kind("weighers", "computes sparse vectors", "--sparse")
LISTENERS = Kind("listeners", "transcribes speech", "--transcribe")
WORDS = Kind("tokenizers", "has a tokenizer of the package tokenizers", "--embed")


def chosen(engines: Mapping[str, Engine], fields: Fields, kind: Kind) -> Engine:
    """Return the engine of the field `model`, by default the first.  Raises: ApiError"""
    if not engines:
        raise ApiError(
            f"no model of this server {kind.does}; start it with {kind.option} MODEL",
            "model",
            status=NOT_FOUND,
            code="model_not_found",
        )
    name = fields.text("model")
    if name is None or (name in PLACEHOLDERS and name not in engines):
        return next(iter(engines.values()))
    if name not in engines:
        raise ApiError(
            f"the model {name!r:.80} does not exist, or is of another kind; choose {', '.join(engines)}",
            "model",
            status=NOT_FOUND,
            code="model_not_found",
        )
    return engines[name]


class Api:
    """The endpoints.

    Attributes:
        is_ready: whether the engines have started.
    """

    def __init__(self, catalog: Catalog, version: str) -> None:
        self.catalog = catalog
        self._version = version
        self.metrics = HttpMetrics(Engines(catalog), ProcessCollector(registry=None))  # memory, files, processor time
        self.is_ready = False
        self._created = int(time.time())

    def routes(self) -> list[Route]:
        """Return the routes of all endpoints."""
        return [
            *(Route(path, endpoint_of(self), methods=["POST"]) for path, endpoint_of in POSTS.items()),
            *(Route(path, endpoint_of(self), methods=["GET"]) for path, endpoint_of in GETS.items()),
        ]

    def texts(self, kind: Callable[[Fields, TextEngine], TextApi | ModelResponse]) -> Endpoint:
        """Return the endpoint of a kind of request for texts."""

        async def endpoint(request: Request) -> Response:
            fields = Fields.parse(await request.body())
            engine = chosen(self.catalog.texts, fields, TEXTS)
            # In a thread: long prompts and schemas take time, and other streams must go on meanwhile.
            texts = await run_in_threadpool(kind, fields, engine)
            return await texts.respond(request)

        return endpoint

    def generate(self, *, stream: bool | None) -> Endpoint:
        """Return the endpoint of text-generation-inference; if `stream` is None, the request says whether to stream."""

        async def endpoint(request: Request) -> Response:
            fields = Fields.parse(await request.body())
            engine = chosen(self.catalog.texts, fields, TEXTS)
            text = await run_in_threadpool(Generation, fields, engine)
            if fields.flag("stream") if stream is None else stream:
                return text.stream(request)
            answer = await text.whole(request)
            return JSONResponse(answer if stream is not None else [answer])

        return endpoint

    def rows(self, answer: Callable[[Request, Fields, Any], Awaitable[Response]], kind: Kind) -> Endpoint:
        """Return an endpoint that passes a request to `answer`, with the engine of a kind."""

        async def endpoint(request: Request) -> Response:
            fields = Fields.parse(await request.body())
            return await answer(request, fields, chosen(getattr(self.catalog, kind.engines), fields, kind))

        return endpoint

    def words(self, answer: Callable[[Request, Fields, Tokenizer], Awaitable[Response]]) -> Endpoint:
        """Return an endpoint that passes a request to `answer`, with a tokenizer."""

        async def endpoint(request: Request) -> Response:
            fields = Fields.parse(await request.body())
            return await answer(request, fields, chosen(self.catalog.tokenizers, fields, WORDS))

        return endpoint

    def transcripts(self, task: str) -> Endpoint:
        """Return the endpoint of a task of speech: "transcribe" or "translate"."""

        async def endpoint(request: Request) -> Response:
            async with request.form(max_files=1, max_fields=MAX_FORM_FIELDS) as form:
                fields = Fields({"model": form.get("model")})
                return await transcripts(request, form, chosen(self.catalog.listeners, fields, LISTENERS), task)

        return endpoint

    async def root(self, request: Request) -> Response:
        """Answer as the servers of Hugging Face do at their root: by the first model that they would have served."""
        tei, catalog = embeddings_inference, self.catalog
        if catalog.texts or not catalog.row_workers:
            return await self.generate(stream=None)(request)
        if catalog.encoders:
            return await self.rows(tei.embed, ENCODERS)(request)
        if catalog.labellers:
            return await self.rows(tei.predict, LABELLERS)(request)
        return await self.rows(tei.embed_sparse, WEIGHERS)(request)

    async def info(self, request: Request) -> Response:
        """Describe a model: that of the query `model`, or the first."""
        fields = Fields(dict(request.query_params))
        every = {**self.catalog.texts, **self.catalog.row_workers}
        engine = chosen(every, fields, Kind("", "handles text", "--model"))
        if isinstance(engine, TextEngine):
            return JSONResponse(describe(engine, self._version))
        return JSONResponse(embeddings_inference.describe(engine) | {"version": self._version})

    async def openapi(self, request: Request) -> Response:
        """Describe the endpoints."""
        return JSONResponse(openapi.document(self._version))

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

    async def ready(self, request: Request) -> Response:
        """Answer 200 once requests can be answered, 503 before and after."""
        return readiness(self.is_ready)

    async def metrics_text(self, request: Request) -> Response:
        """Write the metrics for Prometheus."""
        return Response(generate_latest(self.metrics.registry), media_type=CONTENT_TYPE_LATEST)


# The endpoints by path; the front of several replicas needs the paths only.
POSTS: dict[str, Callable[[Api], Endpoint]] = {
    "/v1/completions": lambda api: api.texts(Completion),
    "/v1/chat/completions": lambda api: api.texts(ChatCompletion),
    "/v1/responses": lambda api: api.texts(ModelResponse),
    "/v1/embeddings": lambda api: api.rows(embeddings, ENCODERS),
    "/v1/audio/transcriptions": lambda api: api.transcripts("transcribe"),
    "/v1/audio/translations": lambda api: api.transcripts("translate"),
    "/embed": lambda api: api.rows(embeddings_inference.embed, ENCODERS),
    "/embed_all": lambda api: api.rows(embeddings_inference.embed_all, ENCODERS),
    "/similarity": lambda api: api.rows(embeddings_inference.similarity, ENCODERS),
    "/embed_sparse": lambda api: api.rows(embeddings_inference.embed_sparse, WEIGHERS),
    "/rerank": lambda api: api.rows(embeddings_inference.rerank, LABELLERS),
    "/predict": lambda api: api.rows(embeddings_inference.predict, LABELLERS),
    "/tokenize": lambda api: api.words(embeddings_inference.tokenize),
    "/decode": lambda api: api.words(embeddings_inference.decode),
    "/generate": lambda api: api.generate(stream=False),
    "/generate_stream": lambda api: api.generate(stream=True),
    "/": lambda api: api.root,
}
GETS: dict[str, Callable[[Api], Endpoint]] = {
    "/": lambda api: openapi.page,
    "/openapi.json": lambda api: api.openapi,
    "/v1/models": lambda api: api.models,
    "/v1/models/{name:path}": lambda api: api.model,
    "/info": lambda api: api.info,
    "/health": lambda api: health,
    "/ready": lambda api: api.ready,
    "/metrics": lambda api: api.metrics_text,
}
PATHS = frozenset({*POSTS, *GETS})
