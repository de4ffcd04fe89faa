"""Python code that computes in slices between the steps of an engine, and stops when nobody wants its result."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.replicas import wait_until
from support.small_server import HANG_S, KEY, Running, connected, post, running, story_teller

from tallow.errors import GrammarError
from tallow.generation.constrain import grammars as constrain_grammars
from tallow.serving.catalog import Catalog
from tallow.serving.http import grammars
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access
from tallow.serving.slices import Slices, Unwanted


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


class Counting:
    """Code that counts, with a call each time, up to a number."""

    def __init__(self, most: int) -> None:
        self.count = 0
        self._most = most

    def _one(self) -> None:
        self.count += 1

    def __call__(self) -> int:
        while self.count < self._most:
            self._one()
        return self.count

    @property
    def stands_still(self) -> bool:
        """True if the code waits, by its count in a tenth of a second."""
        before = self.count
        threading.Event().wait(0.1)
        return self.count == before


def test_code_computes_in_the_slices_that_it_is_given(pool: ThreadPoolExecutor) -> None:
    slices, endless, wanted = Slices(), Counting(sys.maxsize), threading.Event()
    wanted.set()
    slices.give(0)
    call = pool.submit(slices.call, endless, wanted.is_set)
    wait_until(lambda: slices._calls == 1)
    wait_until(lambda: endless.stands_still)
    before = endless.count
    wait_until(lambda: (slices.give(0.01), endless.count > before)[1])  # on a busy machine some slices may pass
    wait_until(lambda: endless.stands_still)
    slices.free()
    before = endless.count
    wait_until(lambda: endless.count > before)
    wanted.clear()
    with pytest.raises(Unwanted):
        call.result(HANG_S)
    assert slices._calls == 0


def test_code_that_waits_stops_when_its_result_is_not_wanted(pool: ThreadPoolExecutor) -> None:
    slices, endless, wanted = Slices(), Counting(sys.maxsize), threading.Event()
    wanted.set()
    slices.give(0)
    call = pool.submit(slices.call, endless, wanted.is_set)
    wait_until(lambda: slices._calls == 1)
    wanted.clear()
    with pytest.raises(Unwanted):
        call.result(HANG_S)


def test_a_call_returns_or_raises_what_the_function_does() -> None:
    slices = Slices()
    assert slices.call(Counting(1000), lambda: True) == 1000
    with pytest.raises(ZeroDivisionError):
        slices.call(lambda: 1 // 0, lambda: True)
    assert sys.getprofile() is None
    slices.give(HANG_S)  # without a call there is nothing to wait for


def test_an_end_of_the_code_ends_the_sleep(pool: ThreadPoolExecutor) -> None:
    slices = Slices()
    slices.give(0)
    call = pool.submit(slices.call, Counting(1000), lambda: True)
    wait_until(lambda: slices._calls == 1)
    slices.give(10 * HANG_S)
    assert call.result(HANG_S) == 1000


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    catalog = Catalog(texts={"stories": story_teller(slots=2)})
    with running(make_app(catalog, Access((KEY,))), catalog) as started:
        yield started


class Reader:
    """A reader of patterns that goes on until a test says so, or its thread is stopped."""

    def __init__(self) -> None:
        self.begun, self.go_on, self.stopped = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, pattern: str) -> constrain_grammars.Grammar:
        self.begun.set()
        try:
            while not self.go_on.is_set():
                pass
        except Unwanted:
            self.stopped.set()
            raise
        raise GrammarError(pattern)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    made = Reader()
    monkeypatch.setattr(grammars, "regex", made)
    yield made
    made.go_on.set()


def test_a_grammar_that_is_read_for_long_holds_up_nobody_else(
    server: Running, reader: Reader, pool: ThreadPoolExecutor
) -> None:
    asked = [
        pool.submit(post, server, "/v1/completions", {"prompt": "Lily", "regex": text, "stream": True}) for text in "ab"
    ]
    assert reader.begun.wait(HANG_S)
    for _ in range(5):  # more than there are threads for requests
        assert post(server, "/v1/completions", {"prompt": "Lily", "max_tokens": 5})[0] == 200
    assert not reader.stopped.is_set()
    reader.go_on.set()
    assert [call.result(HANG_S)[0] for call in asked] == [400, 400]  # also of a stream


def test_a_grammar_is_read_no_longer_once_its_client_has_left(server: Running, reader: Reader) -> None:
    with connected(server) as connection:
        body = json.dumps({"prompt": "Lily", "regex": "a"})
        connection.request("POST", "/v1/completions", body, {"Authorization": f"Bearer {KEY}"})
        assert reader.begun.wait(HANG_S)
    assert reader.stopped.wait(HANG_S)
    wait_until(lambda: server.engine.slices._calls == 0)
