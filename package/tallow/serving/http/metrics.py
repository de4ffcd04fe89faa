"""Metrics in the form of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tallow.serving.catalog import Catalog

BUCKETS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)  # seconds
COUNTERS = {
    "requests": "texts that were begun",
    "failed": "texts that failed",
    "cancelled": "texts whose client went away",
    "prompt_tokens": "tokens of prompts",
    "hits": "texts whose prompt began with known tokens",
    "cached": "tokens of prompts that were known from earlier requests",
    "generated_tokens": "generated tokens",
    "steps": "steps of the engine",
    "first_token_s": "seconds to the first token, of all texts together",
    "generation_s": "seconds to the last token, of all texts together",
}
OF_KNOWN = ("hits", "cached")  # which confirm a guess of what others have sent


class HttpMetrics:
    """The counters of requests.

    Args:  collectors: of other metrics of the server
    Attributes:
        registry: of this server; `prometheus_client.generate_latest` writes it.
    """

    def __init__(self, *collectors: Collector) -> None:
        self.registry = CollectorRegistry()
        for each in collectors:
            self.registry.register(each)
        self.answers = Counter("tallow_http_requests", "answers", ["path", "status"], registry=self.registry)
        self.seconds = Histogram(
            "tallow_http_request_seconds", "time of an answer", ["path"], buckets=BUCKETS, registry=self.registry
        )


class Engines(Collector):
    """Reads the counters of the engines when the metrics are fetched, so that a step does not wait for them."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def collect(self) -> Iterator[Metric]:
        queue = GaugeMetricFamily("tallow_queue", "requests that wait", labels=["model"])
        active = GaugeMetricFamily("tallow_active_texts", "texts that are being generated", labels=["model"])
        known = GaugeMetricFamily(
            "tallow_prefix_cache_bytes", "keys and values of known beginnings of prompts", labels=["model"]
        )
        families = {
            name: CounterMetricFamily(f"tallow_text_{name}", meaning, labels=["model"])
            for name, meaning in COUNTERS.items()
        }
        for engine, name in zip(self._catalog.engines, self._catalog.names, strict=True):
            queue.add_metric([name], len(engine.line))
        for name, listener in self._catalog.listeners.items():
            active.add_metric([name], listener.active)
        for name, texts in self._catalog.texts.items():
            active.add_metric([name], texts.active)
            if texts.reports_cached:
                known.add_metric([name], texts.pages.nbytes)
            for counter, family in families.items():
                if texts.reports_cached or counter not in OF_KNOWN:
                    family.add_metric([name], getattr(texts.counters, counter))
        yield from (queue, active, known, *families.values())
