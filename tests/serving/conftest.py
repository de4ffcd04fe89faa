"""Servers for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from openai import OpenAI
from support.paths import ROOT
from support.small_encoder import small_encoder
from support.small_server import KEY, Running, running, story_teller
from support.small_speaker import small_speaker

import tallow as tl
from tallow.models.encoders.sentence import SentenceEncoder
from tallow.serving.catalog import Catalog, built_in_speech
from tallow.serving.encoding import embedder
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access
from tallow.serving.speaking import SpeakingWorker


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Compute on one thread: with small models on a busy machine, threads of a kernel wait for each other."""
    threads = tl.get_num_threads()
    tl.set_num_threads(1)
    yield
    tl.set_num_threads(threads)


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    """A server of the built-in models, as `tallow serve` starts it."""
    speech = built_in_speech()
    catalog = Catalog(texts={"stories": story_teller()}, listeners={speech.name: speech})
    catalog.encoders["encoder"] = embedder("encoder", small_encoder())
    catalog.speakers["voice"] = SpeakingWorker("voice", small_speaker())
    with running(make_app(catalog, Access((KEY,), most_bytes=1 << 20, most_json=1 << 20)), catalog) as started:
        yield started


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[OpenAI]:
    with server.client() as opened:
        yield opened


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return small_encoder()


@pytest.fixture(scope="module")
def sound() -> Path:
    return ROOT / "wasm_examples/whisper/samples/numbers.flac"
