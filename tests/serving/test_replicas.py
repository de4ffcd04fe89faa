"""Several processes behind one address: each request goes to the one that can answer first, and one may die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from httpx2 import Response
from support.replicas import Front, children_of, front_of, parents, wait_until
from support.serve_process import serving
from support.small_server import HANG_S, story_teller

from tallow.generation import Sampler, decode_stream, generate
from tallow.serving.replicas import BLOCK, MOST_BLOCKS, Replicas, blocks_of

PROMPT = "Once upon a time"


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with front_of(tmp_path_factory.mktemp("front")) as started:
        yield started


def library_text(max_tokens: int, seed: int) -> str:
    served = story_teller().served
    prompt = served.encode(PROMPT)
    tokens = generate(
        served.model, prompt, max_tokens=max_tokens, sample=Sampler(0.9, seed=seed), stop_ids=served.stop_ids
    )
    return "".join(decode_stream(served.words, tokens, previous=prompt[-1]))


def test_both_replicas_answer_as_the_library_does(front: Front) -> None:
    options = {"model": "stories", "prompt": PROMPT, "max_tokens": 40, "temperature": 0.9}

    def ask(seed: int) -> str:
        if seed % 2:
            return str(front.post("/v1/completions", **options, seed=seed).json()["choices"][0]["text"])
        events = front.post("/v1/completions", **options, seed=seed, stream=True).text.split("\n\n")
        assert events[-2:] == ["data: [DONE]", ""]
        return "".join(json.loads(event.removeprefix("data: "))["choices"][0]["text"] for event in events[:-2])

    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(ask, range(8)))
    assert texts == [library_text(40, seed) for seed in range(8)]
    assert min(front.metrics("tallow_replica_requests_total")) >= 2
    assert sum(front.metrics("tallow_text_requests_total")) == 8


def test_a_prompt_goes_where_its_beginning_is_known(front: Front) -> None:
    before = front.metrics("tallow_replica_requests_total")
    cached = []
    for end in range(4):
        prompt = "Lily and Tom went to the park to play with a ball. " * 12 + "They " * end
        usage = front.post("/v1/completions", prompt=prompt, max_tokens=1).json()["usage"]
        cached.append(usage["prompt_tokens_details"]["cached_tokens"])
    assert cached[0] == 0
    assert min(cached[1:]) >= 96
    after = front.metrics("tallow_replica_requests_total")
    assert sorted(now - then for now, then in zip(after, before, strict=True)) == [0, 4]


def test_errors_are_those_of_one_server(front: Front) -> None:
    answer = front.post("/v1/completions", prompt=PROMPT, model="gpt-4")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"
    assert front.post("/nothing").status_code == 404
    assert front.client.post("/v1/completions", json={}, headers={"Authorization": ""}).status_code == 401
    answer = front.client.post("/generate", content="{")
    assert answer.status_code == 422
    assert answer.json()["error_type"] == "validation"


def test_a_client_that_goes_away_frees_its_slot(front: Front) -> None:
    for _ in range(50):  # the text may end before the server hears of it
        answer = front.stream("/v1/completions", prompt=PROMPT, max_tokens=240)
        next(answer.iter_lines())
        answer.close()
        wait_until(lambda: sum(front.metrics("tallow_active_texts") + front.metrics("tallow_replica_active")) == 0)
        if sum(front.metrics("tallow_text_cancelled_total")) == 1:
            return
    raise AssertionError("no text was cancelled")


def streams_of_stopped(front: Front, replica: int) -> list[tuple[str, Response]]:
    """Begin streams, and stop the first replica, a process, before those that it was given have ended."""
    kinds = {"/v1/completions": {"prompt": PROMPT, "max_tokens": 240}, "/v1/responses": {"input": PROMPT}}
    for _ in range(50):
        streams = [(path, front.stream(path, **body)) for path, body in kinds.items() for _ in range(2)]
        os.kill(replica, signal.SIGSTOP)
        wait_until(lambda: front.metrics("tallow_replica_active")[1] == 0)
        time.sleep(0.2)  # for the front to pass on what the replica had written
        if front.metrics("tallow_replica_active")[0] > 0:
            return streams
        os.kill(replica, signal.SIGCONT)  # they had ended: this process was late
        for _, answer in streams:
            answer.read()
    raise AssertionError("all streams ended before the replica could be stopped")


def test_a_replica_that_dies_fails_its_requests_alone(front: Front) -> None:
    stopped = children_of(front.process.pid)[0]
    streams = streams_of_stopped(front, stopped)
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(front.post, "/generate", inputs=PROMPT) for _ in range(6)]
        wait_until(lambda: front.metrics("tallow_replica_active")[1] == 0)
        os.kill(stopped, signal.SIGKILL)
        answers = [each.result() for each in asked]
    assert {answer.status_code for answer in answers} <= {200, 503}
    for answer in answers:
        text = answer.json()["generated_text" if answer.status_code == 200 else "error"]
        assert ("died" in text) == (answer.status_code == 503)
    ends = [(path, answer.read().decode().strip().split("\n\n")[-1]) for path, answer in streams]
    failed = [(path, end) for path, end in ends if "died" in end]  # those that had not ended
    assert 1 <= len(failed) <= 2
    for path, end in failed:
        name, _, data = end.partition("data: ")
        assert (name, "error" in json.loads(data)) == (("event: error\n", False) if "responses" in path else ("", True))
    assert front.post("/v1/completions", prompt=PROMPT, max_tokens=1).status_code == 200
    wait_until(lambda: front.metrics("tallow_replica_up") == [1, 1])
    assert front.metrics("tallow_replica_starts_total") == [2, 1]
    assert front.metrics("tallow_replica_failed_total")[1] == 0


def test_the_end_lets_a_stream_end(front: Front) -> None:
    replicas = children_of(front.process.pid)
    answer = front.stream("/v1/completions", prompt=PROMPT, max_tokens=240)
    front.process.send_signal(signal.SIGTERM)
    assert answer.read().endswith(b"data: [DONE]\n\n")
    assert front.process.wait(HANG_S) == -signal.SIGTERM
    assert len(replicas) == 2
    assert not set(replicas) & set(parents())


def test_replicas_end_with_a_front_that_is_killed(tmp_path: Path) -> None:
    with serving("--replicas", "2", cwd=tmp_path) as (process, _):
        replicas = children_of(process.pid)
    assert len(replicas) == 2
    wait_until(lambda: not set(replicas) & set(parents()))


def test_models_that_cannot_be_loaded(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tallow", "serve", "--port", "0", "--replicas", "2", "--model", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 2
    assert "replica 0 did not start" in done.stderr
    assert "Traceback" not in done.stderr


def test_blocks_are_beginnings() -> None:
    text = "".join(map(chr, range(32, 1000))).encode()
    blocks = blocks_of(text)
    assert len(set(blocks)) == len(text) // BLOCK
    assert blocks_of(text[: 2 * BLOCK]) == blocks[:2]
    assert blocks_of(b"b" + text)[0] != blocks[0]
    assert len(blocks_of(b"a" * (MOST_BLOCKS + 2) * BLOCK)) == MOST_BLOCKS


def test_the_replica_with_the_least_work_is_chosen() -> None:
    replicas = Replicas(3, ["true"])
    first, second, _ = replicas.each
    assert replicas.choose([]) is None
    first.is_up = second.is_up = True
    blocks = blocks_of(b"a long conversation " * 200)
    first.requests, second.active = 5, 1
    assert replicas.choose(blocks) is first  # which is idle; the third is down
    first.active = 3
    assert replicas.choose([]) is second
    assert replicas.choose(blocks) is first  # reading the conversation takes longer than waiting
    first.active = 20
    assert replicas.choose(blocks) is second
    replicas.stop()
