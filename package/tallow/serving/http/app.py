"""The application: the APIs of OpenAI and of Hugging Face's servers over the engines of a catalog."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, ProcessCollector, generate_latest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tallow.kernels import library
from tallow.serving.catalog import Catalog
from tallow.serving.engine import TextEngine
from tallow.serving.http import embeddings_inference as tei
from tallow.serving.http import known_fields, open_inference, openapi
from tallow.serving.http.application import Access, application, readiness
from tallow.serving.http.chat import ChatCompletion
from tallow.serving.http.clients import THREADS, in_turn
from tallow.serving.http.completions import Completion, TextApi
from tallow.serving.http.errors import NOT_FOUND, UNAVAILABLE, ApiError
from tallow.serving.http.fields import Fields
from tallow.serving.http.known_fields import Table, UnknownFields
from tallow.serving.http.metrics import Engines, HttpMetrics
from tallow.serving.http.pages import ADDRESSES, Pages
from tallow.serving.http.responses import ModelResponse
from tallow.serving.http.running import Answer
from tallow.serving.http.speaking import spoken
from tallow.serving.http.speech import transcripts
from tallow.serving.http.text_generation import Generation, describe
from tallow.serving.http.vectors import embeddings
from tallow.serving.tensors import TensorWorker
from tallow.serving.worker import Threads

MAX_FORM_FIELDS = 32
GIVE_BACK_S = 10.0  # between two times at which freed memory is given back, in a millisecond or some
PLACEHOLDERS = ("dummy", "tgi", "tei")  # which clients of Hugging Face send if they know only the address
Engine = TypeVar("Engine")


def make_app(
    catalog: Catalog,
    access: Access | None = None,
    *,
    warmup: bool = False,
    version: str = "",
    strict_fields: bool = False,
    pages: Pages | None = None,
) -> Starlette:
    """Return the ASGI application. It starts and stops the engines.

    Args:
        access: who may call it; None for anybody.
        warmup: compute with each model before `/ready` says that the server is.
        version: of the server, for `/info`.
        strict_fields: refuse requests with fields that are unknown.
        pages: the chat page, at the root of a server that writes texts.
    """
    api = Api(catalog, version, UnknownFields(strict=strict_fields), pages)

    async def prepare() -> None:
        if warmup:
            await run_in_threadpool(catalog.warm_up)
        api.is_ready = True

    async def give_memory_back() -> None:
        while True:
            await asyncio.sleep(GIVE_BACK_S)
            await run_in_threadpool(library.give_memory_back)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        catalog.start()
        for threads in api.threads.values():
            threads.start()
        # Meanwhile /health answers, and /ready says no.
        tasks = [asyncio.create_task(work()) for work in (prepare, give_memory_back)]
        yield
        api.is_ready = False
        for task in tasks:
            task.cancel()
        await run_in_threadpool(catalog.stop)
        for threads in api.threads.values():
            await run_in_threadpool(threads.stop)

    app = application(api.routes(), lifespan, access or Access(), api.metrics, PATHS, UPLOADS)
    app.state.threads = api.threads
    return app


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
SPEAKERS = Kind("speakers", "speaks texts", "--speak")
WORDS = Kind("tokenizers", "has a tokenizer of the package tokenizers", "--embed")


class Post(NamedTuple):
    """A kind of request in JSON.

    Args:
        kind: of the model that answers.
        read: reads the fields, and returns what answers with an engine of that kind.
        table: the fields that it does not read.
    """

    kind: Kind
    read: Callable[[Fields, Any], Answer]
    table: Table


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
        threads: that read requests, and grammars.
    """

    def __init__(self, catalog: Catalog, version: str, unknown: UnknownFields, pages: Pages | None = None) -> None:
        self.catalog = catalog
        self._pages = pages
        self._unknown = unknown
        self._version = version
        self.metrics = HttpMetrics(Engines(catalog), ProcessCollector(registry=None))  # memory, files, processor time
        self.is_ready = False
        self.threads = {name: Threads(name, count) for name, count in THREADS.items()}
        self._created = int(time.time())

    def routes(self) -> list[Route]:
        """Return the routes of all endpoints."""
        return [
            *(Route(path, self.answers(post), methods=["POST"]) for path, post in POSTS.items()),
            *(Route(path, self.transcripts(task), methods=["POST"]) for path, task in SOUNDS.items()),
            Route("/", self.root, methods=["POST"]),
            *(Route(path, endpoint_of(self), methods=["GET"]) for path, endpoint_of in GETS.items()),
            *(Route(path, self._pages.file, methods=["GET"]) for path in ADDRESSES if self._pages is not None),
            *(Route(path, endpoint_of(self), methods=["GET"]) for path, endpoint_of in OPEN_INFERENCE.items()),
            *(Route(f"{path}/infer", self.infer, methods=["POST"]) for path in open_inference.RUNNERS),
        ]

    def answers(self, post: Post) -> Answer:
        """Return the endpoint of a kind of request in JSON."""

        async def endpoint(request: Request) -> Response:
            # In a thread: JSON, long prompts and schemas take time, and other streams must go on meanwhile.
            answer, unknown = await in_turn(request, partial(self._read, post, await request.body()))
            return await self._answered(request, unknown, answer)

        return endpoint

    def _read(self, post: Post, body: bytes) -> tuple[Answer, list[str]]:
        """Return what answers a request in JSON, and its unknown fields.  Raises: ApiError"""
        fields = Fields.parse(body)
        answer = post.read(fields, chosen(getattr(self.catalog, post.kind.engines), fields, post.kind))
        return answer, post.table.unknown(fields)

    def transcripts(self, task: str) -> Answer:
        """Return the endpoint of a task of speech: "transcribe" or "translate"."""

        async def endpoint(request: Request) -> Response:
            async with request.form(max_files=1, max_fields=MAX_FORM_FIELDS) as form:
                lists = [name for name in form if name.endswith("[]")]
                fields = Fields({**form, **{name: form.getlist(name) for name in lists}})
                answer = transcripts(fields, chosen(self.catalog.listeners, fields, LISTENERS), task)
                return await self._answered(request, known_fields.SPEECH.unknown(fields), answer)

        return endpoint

    async def _answered(self, request: Request, unknown: Sequence[str], answer: Answer) -> Response:
        """Answer a request whose fields have been read, and say which of them are unknown.  Raises: ApiError"""
        headers = self._unknown.headers(request.url.path, unknown)
        response = await answer(request)
        response.headers.update(headers)
        return response

    async def infer(self, request: Request) -> Response:
        """Run an ONNX model on the tensors of a request."""
        runner, header = self._runner(request), request.headers.get(open_inference.HEADER)
        body = await request.body()
        answer, unknown = await in_turn(request, lambda: open_inference.read(body, header, runner))
        return await self._answered(request, unknown, answer)

    async def server_metadata(self, request: Request) -> Response:
        """Describe the server in the open inference protocol."""
        return JSONResponse({"name": "tallow", "version": self._version, "extensions": open_inference.EXTENSIONS})

    async def live(self, request: Request) -> Response:
        """Answer 200 while the process lives."""
        return JSONResponse({"live": True})

    async def server_ready(self, request: Request) -> Response:
        """Answer 200 once requests can be answered, 503 before and after."""
        return JSONResponse({"ready": self.is_ready}, 200 if self.is_ready else UNAVAILABLE)

    async def runner_metadata(self, request: Request) -> Response:
        """Describe an ONNX model: its inputs and outputs."""
        return JSONResponse(open_inference.metadata(self._runner(request)))

    async def runner_ready(self, request: Request) -> Response:
        """Answer 200 once an ONNX model can run, 503 before and after."""
        name = self._runner(request).name
        return JSONResponse({"name": name, "ready": self.is_ready}, 200 if self.is_ready else UNAVAILABLE)

    def _runner(self, request: Request) -> TensorWorker:
        """Return the ONNX model that a path names.  Raises: ApiError"""
        name, version = request.path_params["name"], request.path_params.get("version", open_inference.VERSION)
        if name not in self.catalog.runners or version != open_inference.VERSION:
            there = ", ".join(self.catalog.runners) or "none; start the server with --onnx NAME=FILE"
            message = f"there is no ONNX model {name!r:.80} of version {version!r:.20}; there is {there}"
            raise ApiError(message, status=NOT_FOUND, code="model_not_found")
        return self.catalog.runners[name]

    async def root(self, request: Request) -> Response:
        """Answer as the servers of Hugging Face do at their root: by the first model that they would have served."""
        catalog = self.catalog
        kinds = ((ENCODERS, "/embed"), (LABELLERS, "/predict"), (WEIGHERS, "/embed_sparse"))
        paths = [path for kind, path in kinds if not catalog.texts and getattr(catalog, kind.engines)]
        return await self.answers(POSTS[paths[0]] if paths else ROOT)(request)

    async def page(self, request: Request) -> Response:
        """Show the chat page, or the one that sends requests if no model writes."""
        if self._pages is None or not self.catalog.texts:
            return await openapi.page(request)
        return await self._pages.file(request)

    async def info(self, request: Request) -> Response:
        """Describe a model: that of the query `model`, or the first."""
        fields = Fields(dict(request.query_params))
        every = {**self.catalog.texts, **self.catalog.row_workers}
        engine = chosen(every, fields, Kind("", "handles text", "--model"))
        if isinstance(engine, TextEngine):
            return JSONResponse(describe(engine, self._version))
        return JSONResponse(tei.describe(engine) | {"version": self._version})

    async def openapi(self, request: Request) -> Response:
        """Describe the endpoints."""
        tables = {path: post.table for path, post in POSTS.items()} | dict.fromkeys(SOUNDS, known_fields.SPEECH)
        return JSONResponse(openapi.document(self._version, tables))

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
        """Describe a model as OpenAI's API does; one that writes also by its length, as vLLM, and by its uses."""
        card = {"id": name, "object": "model", "created": self._created, "owned_by": "tallow"}
        if (engine := self.catalog.texts.get(name)) is not None:
            card |= {"max_model_len": engine.length, "capabilities": engine.served.capabilities}
        return card

    async def health(self, request: Request) -> Response:
        """Answer while the process lives: also for how long an engine has computed one step."""
        return JSONResponse({"status": "ok", "step_s": round(self.catalog.step_s, 3)})

    async def ready(self, request: Request) -> Response:
        """Answer 200 once requests can be answered, 503 before and after."""
        return readiness(self.is_ready)

    async def metrics_text(self, request: Request) -> Response:
        """Write the metrics for Prometheus."""
        return Response(generate_latest(self.metrics.registry), media_type=CONTENT_TYPE_LATEST)


def _text(parse: Callable[[Fields, TextEngine], TextApi | ModelResponse | Generation], table: Table) -> Post:
    return Post(TEXTS, lambda fields, engine: parse(fields, engine).respond, table)


# The endpoints by path; the front of several replicas needs the paths only.
POSTS: dict[str, Post] = {
    "/v1/completions": _text(Completion, known_fields.COMPLETIONS),
    "/v1/chat/completions": _text(ChatCompletion, known_fields.CHAT),
    "/v1/responses": _text(ModelResponse, known_fields.RESPONSES),
    "/v1/audio/speech": Post(SPEAKERS, spoken, known_fields.SPOKEN),
    "/v1/embeddings": Post(ENCODERS, embeddings, known_fields.EMBEDDINGS),
    "/embed": Post(ENCODERS, tei.embed, known_fields.EMBED),
    "/embed_all": Post(ENCODERS, tei.embed_all, known_fields.EMBED_ALL),
    "/similarity": Post(ENCODERS, tei.similarity, known_fields.SIMILARITY),
    "/embed_sparse": Post(WEIGHERS, tei.embed_sparse, known_fields.EMBED_ALL),
    "/rerank": Post(LABELLERS, tei.rerank, known_fields.RERANK),
    "/predict": Post(LABELLERS, tei.predict, known_fields.PREDICT),
    "/tokenize": Post(WORDS, tei.tokenize, known_fields.TOKENIZE),
    "/decode": Post(WORDS, tei.decode, known_fields.DECODE),
    "/generate": _text(partial(Generation, stream=False), known_fields.GENERATE),
    "/generate_stream": _text(partial(Generation, stream=True), known_fields.GENERATE),
}
ROOT = _text(partial(Generation, stream=None), known_fields.GENERATE)
SOUNDS = {"/v1/audio/transcriptions": "transcribe", "/v1/audio/translations": "translate"}
GETS: dict[str, Callable[[Api], Answer]] = {
    "/": lambda api: api.page,
    "/requests": lambda api: openapi.page,
    "/openapi.json": lambda api: api.openapi,
    "/v1/models": lambda api: api.models,
    "/v1/models/{name:path}": lambda api: api.model,
    "/info": lambda api: api.info,
    "/health": lambda api: api.health,
    "/ready": lambda api: api.ready,
    "/metrics": lambda api: api.metrics_text,
}
OPEN_INFERENCE: dict[str, Callable[[Api], Answer]] = {
    "/v2": lambda api: api.server_metadata,
    "/v2/health/live": lambda api: api.live,
    "/v2/health/ready": lambda api: api.server_ready,
    **dict.fromkeys(open_inference.RUNNERS, lambda api: api.runner_metadata),
    **{f"{path}/ready": lambda api: api.runner_ready for path in open_inference.RUNNERS},
}
PATHS = frozenset({*POSTS, *SOUNDS, *GETS, *OPEN_INFERENCE})
UPLOADS = frozenset(SOUNDS)
