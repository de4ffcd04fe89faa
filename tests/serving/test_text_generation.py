"""The endpoints of text-generation-inference, for HTTP and for `huggingface_hub`."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import OverloadedError, ValidationError
from support.small_server import KEY, Running, get, post, running, story_teller

from tallow.generation import Sampler, decode_stream, generate
from tallow.serving.catalog import Catalog
from tallow.serving.http.app import make_app

PROMPT = "Once upon a time"


@pytest.fixture
def hub(server: Running) -> InferenceClient:
    return InferenceClient(server.url, token=KEY)


def library_text(server: Running, count: int, sample: Sampler | None = None) -> str:
    served = server.engine.served
    prompt = served.encode(PROMPT)
    tokens = generate(served.model, prompt, max_tokens=count, sample=sample, stop_ids=served.stop_ids)
    return "".join(decode_stream(served.words, tokens, previous=prompt[-1]))


def test_a_text(server: Running, hub: InferenceClient) -> None:
    wanted = library_text(server, 40)
    assert hub.text_generation(PROMPT, max_new_tokens=40) == wanted
    assert hub.text_generation(PROMPT, max_new_tokens=40, return_full_text=True) == PROMPT + wanted
    drawn = library_text(server, 30, Sampler(0.8, top_k=20, top_p=0.9, seed=4))
    assert hub.text_generation(PROMPT, max_new_tokens=30, temperature=0.8, top_k=20, top_p=0.9, seed=4) == drawn


def test_details(server: Running, hub: InferenceClient) -> None:
    answer = hub.text_generation(PROMPT, max_new_tokens=12, details=True, top_n_tokens=3)
    assert answer.generated_text == library_text(server, 12)
    assert (answer.details.finish_reason, answer.details.generated_tokens) == ("length", 12)
    assert "".join(token.text for token in answer.details.tokens) == answer.generated_text
    for token, tops in zip(answer.details.tokens, answer.details.top_tokens, strict=True):
        assert len(tops) == 3
        assert (token.id, token.logprob) == (tops[0]["id"], tops[0]["logprob"])
        assert sum(np.exp(top["logprob"]) for top in tops) <= 1 + 1e-5


def test_a_stream(server: Running, hub: InferenceClient) -> None:
    wanted = library_text(server, 40)
    assert "".join(hub.text_generation(PROMPT, max_new_tokens=40, stream=True)) == wanted
    events = list(hub.text_generation(PROMPT, max_new_tokens=40, stream=True, details=True))
    assert [event.index for event in events] == list(range(1, 41))
    assert events[-1].generated_text == wanted
    assert events[-1].details.finish_reason == "length"
    assert all(event.generated_text is None for event in events[:-1])


def test_the_end_of_a_text(server: Running, hub: InferenceClient) -> None:
    whole = library_text(server, 40)
    stop = whole[12:15]
    answer = hub.text_generation(PROMPT, max_new_tokens=40, stop=[stop], details=True)
    assert answer.generated_text == whole[: whole.index(stop)]
    assert answer.details.finish_reason == "stop_sequence"
    options = {"max_new_tokens": 240, "grammar": {"type": "regex", "value": "(yes|no)"}}
    events = list(hub.text_generation(PROMPT, **options, stream=True, details=True))
    assert events[-1].details.finish_reason == "eos_token"
    assert events[-1].generated_text in ("yes", "no")
    assert "".join(event.token.text for event in events) == events[-1].generated_text


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_grammars(hub: InferenceClient) -> None:
    text = hub.text_generation(PROMPT, max_new_tokens=60, grammar={"type": "json", "value": SCHEMA})
    assert list(json.loads(text)) == ["n"]
    date = hub.text_generation(PROMPT, max_new_tokens=60, grammar={"type": "regex", "value": r"\d{4}-\d\d"})
    assert re.fullmatch(r"\d{4}-\d\d", date)


def test_chats_of_the_hub_package(server: Running, hub: InferenceClient) -> None:
    messages = [{"role": "user", "content": PROMPT}]
    answer = hub.chat_completion(messages, max_tokens=20, temperature=0)
    assert answer.choices[0].message.content == library_text(server, 20)
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
    answer = hub.chat_completion(messages, max_tokens=60, temperature=0, response_format=form)
    assert list(json.loads(answer.choices[0].message.content)) == ["n"]


def test_the_root_and_info(server: Running) -> None:
    body = {"inputs": PROMPT, "parameters": {"max_new_tokens": 5}}
    status, answer, _ = post(server, "/", body)
    assert (status, post(server, "/generate", body)[1]) == (200, answer[0])
    info = get(server, "/info")[1]
    assert (info["model_id"], info["max_total_tokens"]) == ("stories", 256)


BAD: dict[str, dict[str, Any]] = {
    "no text": {},
    "a list": {"inputs": ["a"]},
    "several texts": {"inputs": "a", "parameters": {"best_of": 3}},
    "typical": {"inputs": "a", "parameters": {"typical_p": 1.5}},
    "the prompt's details as a word": {"inputs": "a", "parameters": {"decoder_input_details": "yes"}},
    "a watermark": {"inputs": "a", "parameters": {"watermark": True}},
    "no tokens": {"inputs": "a", "parameters": {"max_new_tokens": 0}},
    "a negative temperature": {"inputs": "a", "parameters": {"temperature": -1}},
    "too long": {"inputs": "dog " * 300},
    "an unknown grammar": {"inputs": "a", "parameters": {"grammar": {"type": "yaml", "value": "a"}}},
    "no pattern": {"inputs": "a", "parameters": {"grammar": {"type": "regex", "value": "("}}},
    "no schema": {"inputs": "a", "parameters": {"grammar": {"type": "json", "value": 3}}},
    "parameters that are none": {"inputs": "a", "parameters": [1]},
}


@pytest.mark.parametrize("path", ["/generate", "/generate_stream"])
@pytest.mark.parametrize("name", BAD)
def test_errors(server: Running, name: str, path: str) -> None:
    status, answer, _ = post(server, path, BAD[name])
    assert (status, answer["error_type"]) == (422, "validation")


def test_errors_of_the_hub_package(hub: InferenceClient) -> None:
    with pytest.raises(ValidationError, match="best_of"):
        hub.text_generation("a", best_of=3)
    engine = story_teller(slots=1, queue=1)
    catalog = Catalog(texts={"stories": engine})
    with running(make_app(catalog), catalog) as server:
        engine.line.limit = 0
        with pytest.raises(OverloadedError):
            InferenceClient(server.url).text_generation("a")
