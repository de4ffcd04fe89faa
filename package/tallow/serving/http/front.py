"""The front of several replicas: one address, whose requests go to the replica that can answer first."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager, suppress

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from tallow.serving.http.app import PATHS, UPLOADS
from tallow.serving.http.application import Access, application, readiness
from tallow.serving.http.clients import client_of
from tallow.serving.http.errors import UNAVAILABLE, ApiError
from tallow.serving.http.forwarding import ANSWER_HEADERS, Part, ReplicaGone, exchange, fetch, without
from tallow.serving.http.metrics import HttpMetrics
from tallow.serving.http.running import ClientGone, unless_gone
from tallow.serving.http.streaming import error_event
from tallow.serving.http.watching import Watch
from tallow.serving.replicas import BLOCK, MOST_BLOCKS, Replica, Replicas, blocks_of

# The field of the prompt, for requests whose beginning a replica may know.
PROMPTS = {
    "/v1/completions": b"prompt",
    "/v1/chat/completions": b"messages",
    "/v1/responses": b"input",
    "/generate": b"inputs",
    "/generate_stream": b"inputs",
    "/": b"inputs",
}
SALTS, MOST_SALT = (b"cache_salt", b"extra_key"), 1 << 13
_SALT = re.compile(rb'\s*:\s*"((?:[^"\\]|\\.)*)"')
NAMED_EVENTS = "/v1/responses"  # the stream whose events have names
FETCH_S = 1.0  # for a replica to answer about itself
MOST_TRIED = 2  # replicas for a request: one that makes them hang does not make all of them hang
RETRY_AFTER = {"Retry-After": "1"}
log = logging.getLogger("tallow.serving")


def make_front(replicas: Replicas, access: Access, *, shares_prefixes: bool = False) -> Starlette:
    """Return the ASGI application. Its replicas have been started; it ends them.

    Args:  shares_prefixes: as the replicas' engines do
    """
    metrics = HttpMetrics(_Counters(replicas))
    watches = [Watch(replica) for replica in replicas.each]

    async def health(request: Request) -> Response:
        """Answer while the process lives."""
        return JSONResponse({"status": "ok"})

    async def ready(request: Request) -> Response:
        """Answer 200 if one of the replicas is ready, and the state of each."""
        answers = await asyncio.gather(*(_fetched(replica, b"/ready") for replica in replicas.each))
        states = [
            "hung" if replica.is_hung else "ready" if status == 200 else "not ready"
            for replica, (status, _) in zip(replicas.each, answers, strict=True)
        ]
        return readiness("ready" in states, replicas=states)

    async def metrics_text(request: Request) -> Response:
        """Write the metrics of this process and those of the replicas, each with its number."""
        answers = await asyncio.gather(*(_fetched(replica, b"/metrics") for replica in replicas.each))
        texts = {replica.number: body.decode() for replica, (_, body) in zip(replicas.each, answers, strict=True)}
        merged = CollectorRegistry()
        merged.register(_Labelled(texts))
        text = generate_latest(metrics.registry) + generate_latest(merged)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(watch.run()) for watch in watches]
        yield
        for task in tasks:
            task.cancel()
        await run_in_threadpool(replicas.stop)

    own = {"/health": health, "/ready": ready, "/metrics": metrics_text}
    routes = [
        *(Route(path, endpoint) for path, endpoint in own.items()),
        Mount("", _Forward(replicas, watches, shares_prefixes=shares_prefixes)),
    ]
    return application(routes, lifespan, access, metrics, PATHS, UPLOADS)


class ReplicaHung(Exception):
    """The replica hangs, and has sent nothing."""


class _Forward:
    """Passes a request on to a replica, and its answer back."""

    def __init__(self, replicas: Replicas, watches: Sequence[Watch], *, shares_prefixes: bool) -> None:
        self._replicas = replicas
        self._watches = {watch.replica: watch for watch in watches}
        self._shares_prefixes = shares_prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path, body, client = scope["path"], await request.body(), client_of(request)
        blocks = []
        if request.method == "POST":
            blocks = _beginnings(path, body, "" if self._shares_prefixes else client)
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        tried: list[Replica] = []
        while (replica := self._replicas.choose(blocks, tried)) is not None:
            tried.append(replica)
            parts = exchange(replica.socket, request.method, target, scope["headers"], body, client)
            with ExitStack() as work, suppress(ReplicaHung):
                work.enter_context(replica.working())
                await self._answer(request, tried, _Answer(send, path, work.close), parts)
                return
        raise ApiError(
            "no replica of the server is up; try again later",
            status=UNAVAILABLE,
            code="no_replica",
            headers=RETRY_AFTER,
        )

    async def _answer(
        self, request: Request, tried: Sequence[Replica], answer: _Answer, parts: AsyncGenerator[Part, None]
    ) -> None:
        """Pass on the answer of the last replica that was tried.  Raises: ReplicaHung; ClientGone"""
        replica = tried[-1]
        try:
            await unless_gone(request, self._unless_hung(tried, answer, parts))
        except ClientGone:
            if not answer.has_begun:
                raise
        except ReplicaGone as error:
            replica.failed += 1
            log.error("replica %d died during a request", replica.number)
            await answer.fail(
                ApiError(
                    "the replica that computed the answer died; try again",
                    status=UNAVAILABLE,
                    code="replica_died",
                    headers=RETRY_AFTER,
                ),
                error,
            )

    async def _unless_hung(self, tried: Sequence[Replica], answer: _Answer, parts: AsyncGenerator[Part, None]) -> None:
        """Pass on an answer.

        Raises:  ReplicaGone; ReplicaHung if nothing has come, and another replica can answer
        """
        passing = asyncio.ensure_future(answer.pass_on(parts))
        hung = asyncio.ensure_future(self._watches[tried[-1]].is_hung.wait())
        try:
            await asyncio.wait((passing, hung), return_when=asyncio.FIRST_COMPLETED)
            can_move = len(tried) < MOST_TRIED and self._replicas.able(tried)
            if can_move and not passing.done() and not answer.has_begun:
                raise ReplicaHung
            await passing
        finally:
            for each in (passing, hung):
                each.cancel()
            await asyncio.gather(passing, hung, return_exceptions=True)


class _Answer:
    """The answer to one request.

    Args:
        on_last: called when the replica has no more to do, before the client knows: it may ask again at once.

    Attributes:
        has_begun: whether its head has been sent.
    """

    def __init__(self, send: Send, path: str, on_last: Callable[[], None]) -> None:
        self._send = send
        self._path = path
        self._on_last = on_last
        self.has_begun = False
        self._has_events = False

    async def pass_on(self, parts: AsyncGenerator[Part, None]) -> None:
        """Send what a replica answers.  Raises: ReplicaGone"""
        async with aclosing(parts):
            head = None
            async for part in parts:
                if part.is_last:
                    self._on_last()
                head = part.head or head
                if not (part.data or part.is_last):  # of a replica that hangs now, another can answer
                    continue
                if head is not None:
                    self.has_begun = True
                    headers = without(head.headers, ANSWER_HEADERS)
                    self._has_events = any(value.startswith(b"text/event-stream") for _, value in headers)
                    await self._send({"type": "http.response.start", "status": head.status_code, "headers": headers})
                    head = None
                await self._send({"type": "http.response.body", "body": part.data, "more_body": not part.is_last})

    async def fail(self, error: ApiError, cause: Exception) -> None:
        """Send an error, as far as the answer leaves a place for one: a whole answer that has begun just breaks off.

        Raises:  `error`, if the answer has not begun
        """
        if not self.has_begun:
            raise error from cause
        if self._has_events:
            data = error_event(error, self._path, named=self._path == NAMED_EVENTS).encode()
            await self._send({"type": "http.response.body", "body": data})


def _beginnings(path: str, body: bytes, client: str) -> list[int]:
    """Return the blocks by which a replica may know the beginning of a prompt.

    They are taken from the text as it is written, since the replica alone parses it: a field of the same name within
    another only makes a choice worse. Of clients or salts that share no pages in a replica, the blocks differ.
    """
    if (field := PROMPTS.get(path)) is None:
        return []
    salts = [_SALT.match(_after(name, body, MOST_SALT)) for name in SALTS]
    return blocks_of(_after(field, body, BLOCK * MOST_BLOCKS), repr((client, [salt and salt[1] for salt in salts])))


def _after(field: bytes, body: bytes, most: int) -> bytes:
    """Return what follows the name of a field."""
    start = body.find(b'"%b"' % field)
    return b"" if start < 0 else body[start + len(field) + 2 :][:most]


async def _fetched(replica: Replica, target: bytes) -> tuple[int, bytes]:
    """Return what a replica answers, an empty text if it does not."""
    if not replica.can_answer:
        return UNAVAILABLE, b""
    try:
        return await asyncio.wait_for(fetch(replica.socket, target), FETCH_S)
    except (ReplicaGone, TimeoutError):
        return UNAVAILABLE, b""


class _Counters(Collector):
    """The state of the replicas, as this process sees it."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    def collect(self) -> Iterator[Metric]:
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {
            "can_answer": GaugeMetricFamily("tallow_replica_up", "1 if the replica answers", labels=["replica"]),
            "active": GaugeMetricFamily("tallow_replica_active", "requests in progress", labels=["replica"]),
            "requests": CounterMetricFamily("tallow_replica_requests", "requests passed on", labels=["replica"]),
            "failed": CounterMetricFamily("tallow_replica_failed", "requests whose replica died", labels=["replica"]),
            "starts": CounterMetricFamily("tallow_replica_starts", "starts of the process", labels=["replica"]),
        }
        for replica in self._replicas.each:
            for name, family in families.items():
                family.add_metric([str(replica.number)], getattr(replica, name))
        yield from families.values()


class _Labelled(Collector):
    """The metrics of the replicas' engines, each with the label `replica`.

    Args:  texts: what each replica wrote, by its number
    """

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._texts = texts

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for number, text in self._texts.items():
            for found in text_string_to_metric_families(text):
                if found.name.startswith("tallow_http"):  # the front counts requests itself
                    continue
                family = families.setdefault(found.name, Metric(found.name, found.documentation, found.type))
                for sample in found.samples:
                    family.add_sample(sample.name, {**sample.labels, "replica": str(number)}, sample.value)
        yield from families.values()
