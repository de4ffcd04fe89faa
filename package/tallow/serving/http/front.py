"""The front of several replicas: one address, whose requests go to the replica that can answer first."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, aclosing, asynccontextmanager

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from tallow.serving.http.app import PATHS
from tallow.serving.http.application import Access, application, health, readiness
from tallow.serving.http.errors import UNAVAILABLE, ApiError
from tallow.serving.http.fields import Fields
from tallow.serving.http.forwarding import ANSWER_HEADERS, Part, ReplicaGone, exchange, fetch, without
from tallow.serving.http.metrics import HttpMetrics
from tallow.serving.http.running import ClientGone, unless_gone
from tallow.serving.http.streaming import error_event
from tallow.serving.replicas import Replica, Replicas, blocks_of

# The field of the prompt, for requests whose beginning a replica may know.
PROMPTS = {
    "/v1/completions": "prompt",
    "/v1/chat/completions": "messages",
    "/v1/responses": "input",
    "/generate": "inputs",
    "/generate_stream": "inputs",
    "/": "inputs",
}
NAMED_EVENTS = "/v1/responses"  # the stream whose events have names
FETCH_S = 1.0  # for a replica to answer about itself
RETRY_AFTER = {"Retry-After": "1"}
log = logging.getLogger("tallow.serving")


def make_front(replicas: Replicas, access: Access) -> Starlette:
    """Return the ASGI application. Its replicas have been started; it ends them."""
    metrics = HttpMetrics(_Counters(replicas))

    async def ready(request: Request) -> Response:
        """Answer 200 if one of the replicas is ready."""
        answers = await asyncio.gather(*(_fetched(replica, b"/ready") for replica in replicas.each))
        return readiness(any(status == 200 for status, _ in answers))

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
        yield
        await run_in_threadpool(replicas.stop)

    own = {"/health": health, "/ready": ready, "/metrics": metrics_text}
    routes = [*(Route(path, endpoint) for path, endpoint in own.items()), Mount("", _Forward(replicas))]
    return application(routes, lifespan, access, metrics, PATHS)


class _Forward:
    """Passes a request on to a replica, and its answer back."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path, body = scope["path"], await request.body()
        replica = self._replicas.choose(blocks_of(_prompt(path, body)) if request.method == "POST" else [])
        if replica is None:
            raise ApiError(
                "no replica of the server is up; try again later",
                status=UNAVAILABLE,
                code="no_replica",
                headers=RETRY_AFTER,
            )
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        parts = exchange(replica.socket, request.method, target, scope["headers"], body)
        with ExitStack() as work:
            work.enter_context(replica.working())
            await self._answer(request, replica, _Answer(send, path, work.close), parts)

    async def _answer(
        self, request: Request, replica: Replica, answer: _Answer, parts: AsyncGenerator[Part, None]
    ) -> None:
        try:
            await unless_gone(request, answer.pass_on(parts))
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
            async for part in parts:
                if part.is_last:
                    self._on_last()
                if part.head is not None:
                    self.has_begun = True
                    headers = without(part.head.headers, ANSWER_HEADERS)
                    self._has_events = any(value.startswith(b"text/event-stream") for _, value in headers)
                    status = part.head.status_code
                    await self._send({"type": "http.response.start", "status": status, "headers": headers})
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


def _prompt(path: str, body: bytes) -> str:
    """Return the text of a request by which a replica may know its beginning.  Raises: ApiError for broken JSON"""
    field = PROMPTS.get(path)
    return "" if field is None else json.dumps(Fields.parse(body).get(field))


async def _fetched(replica: Replica, target: bytes) -> tuple[int, bytes]:
    """Return what a replica answers, an empty text if it does not."""
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
            "is_up": GaugeMetricFamily("tallow_replica_up", "1 if the replica listens", labels=["replica"]),
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
