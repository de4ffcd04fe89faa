"""Log-probabilities of prompts, as programs that score texts ask for them: those of the model's own logits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.small_server import KEY, Running, connected, post, running, story_teller

import tallow as tl
from tallow.serving.catalog import Catalog
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access

PROMPT = "Once upon a time there was a girl"
LONG = "Lily and Tom went to the park. They saw a big dog and a red ball. " * 7  # several chunks


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Compute on one thread: with small models on a busy machine, threads of a kernel wait for each other."""
    threads = tl.get_num_threads()
    tl.set_num_threads(1)
    yield
    tl.set_num_threads(threads)


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    catalog = Catalog(texts={"stories": story_teller(prefix_bytes=8 << 20)})
    with running(make_app(catalog, Access((KEY,)), strict_fields=True), catalog) as started:
        yield started


def model_logprobs(server: Running, tokens: list[int]) -> Any:
    """Return the log-probabilities (T - 1, V) of each token but the first, by one pass of the modules."""
    with tl.no_grad():
        logits = server.engine.served.model(tl.tensor([tokens])).numpy()[0, :-1].astype(np.float64)
    return (
        logits
        - np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True))
        - logits.max(1, keepdims=True)
    )


def complete(server: Running, **fields: Any) -> Any:
    status, answer, _ = post(server, "/v1/completions", {"temperature": 0, **fields})
    assert status == 200, answer
    return answer


def check(server: Running, logprobs: Any, tokens: list[int], text: str, top: int) -> None:
    """Compare a choice's lists with the model's log-probabilities of `tokens`."""
    wanted = model_logprobs(server, tokens)
    served = server.engine.served
    assert logprobs["tokens"] == [served.token_text(token)[0] for token in tokens]
    assert logprobs["token_logprobs"][0] is None
    assert logprobs["top_logprobs"][0] is None
    np.testing.assert_allclose(logprobs["token_logprobs"][1:], wanted[range(len(wanted)), tokens[1:]], atol=2e-4)
    for row, tops, token in zip(wanted, logprobs["top_logprobs"][1:], logprobs["tokens"][1:], strict=True):
        best = [served.token_text(int(i))[0] for i in np.argsort(-row, kind="stable")[:top]]
        assert set(tops) == ({*best, token} if top else set())
    offsets = logprobs["text_offset"]
    assert offsets[0] == 0
    assert offsets == sorted(offsets)
    for i in range(2, len(tokens)):  # BOS has no text, and the first word no space
        assert text[offsets[i] :].startswith(logprobs["tokens"][i])


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("top", [0, 1, 5])
def test_an_echo_has_the_tokens_of_the_prompt(server: Running, top: int, count: int) -> None:
    tokens = server.engine.served.encode(PROMPT)
    choice = complete(server, prompt=PROMPT, max_tokens=count, echo=True, logprobs=top)["choices"][0]
    plain = complete(server, prompt=PROMPT, max_tokens=count)["choices"][0]["text"]
    assert choice["text"] == PROMPT + plain
    assert choice["finish_reason"] == "length"
    new = choice["logprobs"]["tokens"][len(tokens) :]
    assert "".join(new) == plain
    assert len(new) == count
    check(server, choice["logprobs"], tokens + ids_of(server, new), choice["text"], top)


def ids_of(server: Running, pieces: list[str]) -> list[int]:
    texts = [each.decode() if each else None for each in server.engine.served.words.token_bytes()[259:]]
    return [259 + texts.index(piece) for piece in pieces]


def test_prompts_of_many_tokens_and_of_ids(server: Running) -> None:
    tokens = server.engine.served.encode(LONG)
    assert 128 < len(tokens) < 250
    for prompt in (LONG, tokens, [float(token) for token in tokens], [tokens], [LONG]):
        for _ in range(2):  # the second time, pages of the prompt are known
            choice = complete(server, prompt=prompt, max_tokens=1, echo=True, logprobs=1)["choices"][0]
            assert choice["text"].startswith(LONG)
            new = ids_of(server, choice["logprobs"]["tokens"][len(tokens) :])
            check(server, choice["logprobs"], tokens + new, choice["text"], 1)


def test_several_prompts_and_choices(server: Running) -> None:
    prompts = [PROMPT, "Tom", LONG[:100]]
    answer = complete(server, prompt=prompts, n=2, max_tokens=0, echo=True, logprobs=2)
    assert answer["usage"]["completion_tokens"] == 0
    for i, choice in enumerate(answer["choices"]):
        assert (choice["index"], choice["text"]) == (i, prompts[i // 2])
        check(server, choice["logprobs"], server.engine.served.encode(prompts[i // 2]), choice["text"], 2)


def test_an_echo_without_log_probabilities(server: Running) -> None:
    tokens = server.engine.served.encode(PROMPT)
    for prompt in (PROMPT, tokens):
        choice = complete(server, prompt=prompt, max_tokens=0, echo=True)["choices"][0]
        assert (choice["text"], choice["logprobs"], choice["finish_reason"]) == (PROMPT, None, "length")
    cut = complete(server, prompt=PROMPT, max_tokens=0, echo=True, truncate_prompt_tokens=3)["choices"][0]
    assert cut["text"].strip() == "was a girl"


def test_a_single_token(server: Running) -> None:
    choice = complete(server, prompt=[400], max_tokens=0, echo=True, logprobs=1)["choices"][0]
    assert choice["logprobs"]["token_logprobs"] == choice["logprobs"]["top_logprobs"] == [None]
    choice = complete(server, prompt=[400], max_tokens=1, echo=True, logprobs=1)["choices"][0]
    check(server, choice["logprobs"], [400, *ids_of(server, choice["logprobs"]["tokens"][1:])], choice["text"], 1)


@pytest.mark.parametrize("count", [0, 4])
def test_streams(server: Running, count: int) -> None:
    body = {"prompt": [PROMPT, LONG], "max_tokens": count, "temperature": 0, "echo": True, "logprobs": 2}
    whole = complete(server, **body)["choices"]
    with connected(server) as connection:
        headers = {"Authorization": f"Bearer {KEY}"}
        connection.request("POST", "/v1/completions", json.dumps(body | {"stream": True}), headers)
        lines = connection.getresponse().read().decode().split("\n\n")
    parts = [json.loads(line[6:])["choices"][0] for line in lines if line.startswith("data: {")]
    for wanted in whole:
        own = [part for part in parts if part["index"] == wanted["index"]]
        assert "".join(part["text"] for part in own) == wanted["text"]
        for name, values in wanted["logprobs"].items():
            assert [value for part in own for value in part["logprobs"][name]] == values
        assert own[-1]["finish_reason"] == "length"


def test_no_tokens(server: Running) -> None:
    chat = {"messages": [{"role": "user", "content": PROMPT}]}
    for path, body in (("/v1/completions", {"prompt": PROMPT}), ("/v1/chat/completions", chat)):
        for name in ("max_tokens", "max_completion_tokens", "n_predict"):
            status, answer, _ = post(server, path, body | {name: 0})
            assert status == 200, answer
            choice = answer["choices"][0]
            assert (choice.get("text", ""), choice["finish_reason"]) == ("", "length")
            assert choice.get("message", {"content": ""})["content"] == ""
            assert (answer["usage"]["completion_tokens"], answer["usage"]["prompt_tokens"] > 5) == (0, True)
    assert post(server, "/generate", {"inputs": PROMPT, "parameters": {"max_new_tokens": 0}})[0] == 422


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
@pytest.mark.parametrize("top", [0, 3])
def test_the_list_of_vllm(server: Running, path: str, top: int) -> None:
    tokens = server.engine.served.encode(PROMPT)
    prompt = {"prompt": PROMPT} if path == "/v1/completions" else {"messages": [{"role": "user", "content": PROMPT}]}
    status, answer, _ = post(server, path, {**prompt, "max_tokens": 2, "prompt_logprobs": top})
    assert status == 200, answer
    holder = answer["choices"][0] if path == "/v1/completions" else answer
    first, *listed = holder["prompt_logprobs"]
    assert first is None
    for row, entries, token in zip(model_logprobs(server, tokens), listed, tokens[1:], strict=True):
        best = np.argsort(-row, kind="stable")[:top].tolist()
        assert set(entries) == {str(i) for i in (*best, token)}
        for key, entry in entries.items():
            assert entry["logprob"] == pytest.approx(row[int(key)], abs=2e-4)
            assert entry["rank"] == (row > row[int(key)]).sum() + 1
            assert entry["decoded_token"] == server.engine.served.token_text(int(key))[0]
    status, answer, _ = post(server, path, {**prompt, "prompt_logprobs": top, "stream": True})
    assert (status, answer["error"]["param"]) == (400, "prompt_logprobs")


def test_an_answer_of_millions_of_log_probabilities_is_refused(server: Running) -> None:
    fields = {"prompt": [[5] * 200] * 64, "n": 16, "max_tokens": 1, "echo": True, "logprobs": 20}
    status, answer, _ = post(server, "/v1/completions", fields)
    assert (status, answer["error"]["param"]) == (400, "prompt")
    assert "4300800 log-probabilities of prompts; the limit is 2097152" in answer["error"]["message"]


def test_more_tokens_than_a_text_can_have(server: Running) -> None:
    status, answer, _ = post(server, "/v1/completions", {"prompt": PROMPT, "min_tokens": 1 << 62})
    assert (status, answer["error"]["param"]) == (400, "min_tokens")


def test_the_details_of_text_generation_inference(server: Running) -> None:
    tokens = server.engine.served.encode(PROMPT)
    body = {"inputs": PROMPT, "parameters": {"max_new_tokens": 1, "details": True, "decoder_input_details": True}}
    status, answer, _ = post(server, "/generate", body)
    assert status == 200, answer
    prefill = answer["details"]["prefill"]
    assert [entry["id"] for entry in prefill] == tokens
    assert prefill[0]["logprob"] is None
    wanted = model_logprobs(server, tokens)[range(len(tokens) - 1), tokens[1:]]
    np.testing.assert_allclose([entry["logprob"] for entry in prefill[1:]], wanted, atol=2e-4)
    assert post(server, "/generate_stream", body)[0] == 422


def test_the_package_of_openai(server: Running) -> None:
    with server.client(strict=False) as client:
        options: Any = {"model": "stories", "prompt": PROMPT, "max_tokens": 1, "echo": True, "logprobs": 1}
        choice = client.completions.create(**options).choices[0]
    assert choice.logprobs is not None
    assert choice.logprobs.token_logprobs[0] is None


def test_scores_of_lm_evaluation_harness(server: Running) -> None:
    # The requests of its model `local-completions` (0.4.13): ids of the context and a choice; the sum over the choice's
    # entries, without the last one of the lists, which is that of the one new token.
    served = server.engine.served
    context = "Tom and his mom went to the"
    for choice in (" park", " moon", " store and bought an apple"):
        tokens = served.encode(context + choice, special=False)
        start = len(served.encode(context, special=False))
        body = {"model": "stories", "prompt": [tokens], "temperature": 0, "max_tokens": 1, "logprobs": 1}
        wanted = model_logprobs(server, tokens)[range(start - 1, len(tokens) - 1), tokens[start:]].sum()
        ends = {"logit_bias": {str(min(served.stop_ids)): 100}}  # the new token may be one that ends the text
        for fields in ({}, ends):
            answer = complete(server, **body, seed=1234, echo=True, **fields)
            lists = answer["choices"][0]["logprobs"]
            assert sum(lists["token_logprobs"][start:-1]) == pytest.approx(wanted, abs=1e-3)
            assert {len(values) for values in lists.values()} == {len(tokens) + 1}
            is_greedy = [
                logprob == max(top.values())
                for logprob, top in zip(lists["token_logprobs"][start:-1], lists["top_logprobs"][start:-1], strict=True)
            ]
            rows = model_logprobs(server, tokens)[start - 1 :]
            assert is_greedy == [row.argmax() == token for row, token in zip(rows, tokens[start:], strict=True)]
        assert answer["choices"][0]["finish_reason"] == "stop"
