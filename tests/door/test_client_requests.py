"""Requests in the form in which the documents of other servers and clients show them, on a strict server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from openai import OpenAI
from support.small_server import KEY, Running, post, running, story_teller

import tallow as tl
from tallow.serving.catalog import Catalog
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access

TEXT = "/v1/completions"
CHAT = "/v1/chat/completions"
PEOPLE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
EMAIL = r"[a-z]{1,9}@[a-z]{1,9}\.com"
SQL = 'root ::= "SELECT " column " FROM " table\ncolumn ::= "id" | "name"\ntable ::= "users" | "orders"'
ONE = {"role": "user", "content": "Who is the girl?"}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Compute on one thread: with small models on a busy machine, threads of a kernel wait for each other."""
    threads = tl.get_num_threads()
    tl.set_num_threads(1)
    yield
    tl.set_num_threads(threads)


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    catalog = Catalog(texts={"stories": story_teller(length=256, by_priority=True)})
    with running(make_app(catalog, Access((KEY,)), strict_fields=True), catalog) as started:
        yield started


def text_of(answer: Any) -> str:
    if "generated_text" in answer:
        return answer["generated_text"]
    choice = answer["choices"][0]
    return choice["text"] if "text" in choice else choice["message"]["content"]


# The path, the request, and a pattern of the whole answer.
REQUESTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "vLLM: sampling": (
        TEXT,
        {
            "model": "stories", "prompt": ["Lily has a", "The dog"], "max_tokens": 7, "temperature": 0, "top_k": -1,
            "min_p": 0.0, "repetition_penalty": 1.05, "stop_token_ids": [], "include_stop_str_in_output": False,
            "ignore_eos": False, "min_tokens": 0, "skip_special_tokens": True, "spaces_between_special_tokens": True,
            "length_penalty": 1.0, "use_beam_search": False, "add_special_tokens": True, "request_id": "cmpl-1",
        },
        ".*",
    ),
    "vLLM: a choice": (
        CHAT,
        {"model": "stories", "messages": [ONE], "structured_outputs": {"choice": ["positive", "negative"]}},
        "positive|negative",
    ),
    "vLLM: a regular expression": (
        CHAT,
        {"messages": [ONE], "structured_outputs": {"regex": EMAIL}, "stop": ["\n"], "max_tokens": 60},
        EMAIL,
    ),
    "vLLM: a grammar": (CHAT, {"messages": [ONE], "structured_outputs": {"grammar": SQL}}, "SELECT (id|name) FROM .*"),
    "vLLM: before 0.12": (
        TEXT,
        {"prompt": "A girl as JSON:", "guided_json": PEOPLE, "guided_decoding_backend": "xgrammar", "max_tokens": 90},
        r"\{.*\}",
    ),
    "vLLM: thinking": (
        CHAT,
        {
            "messages": [ONE], "max_tokens": 3, "chat_template_kwargs": {"enable_thinking": False}, "priority": 1,
            "truncate_prompt_tokens": 100, "stream_options": None, "logprobs": False, "top_logprobs": 0,
        },
        ".*",
    ),
    "SGLang: a regular expression": (
        CHAT,
        {
            "model": "stories", "messages": [ONE], "temperature": 0, "max_tokens": 90,
            "regex": "(France|England)", "separate_reasoning": False, "rid": "1",
        },
        "France|England",
    ),
    "SGLang: a grammar": (TEXT, {"prompt": "The capital", "ebnf": SQL, "max_tokens": 40}, "SELECT (id|name) FROM .*"),
    "SGLang: a schema": (TEXT, {"prompt": "A girl", "json_schema": json.dumps(PEOPLE), "max_tokens": 90}, r"\{.*\}"),
    "SGLang: penalties": (
        TEXT,
        {
            "prompt": "A girl", "max_tokens": 8, "frequency_penalty": 0.2, "presence_penalty": 0.2, "min_tokens": 4,
            "top_k": -1, "no_stop_trim": False, "stop": None, "lora_path": None, "return_hidden_states": False,
        },
        ".*",
    ),
    "SGLang: a continued message": (
        CHAT,
        {
            "messages": [ONE, {"role": "assistant", "content": "The girl is"}], "continue_final_message": True,
            "max_tokens": 5, "reasoning_effort": "none", "extra_key": "a", "cache_salt": None,
        },
        ".*",
    ),
    "llama.cpp: a completion": (
        TEXT,
        {
            "prompt": "Building a house can be done in 10 simple steps:", "n_predict": 8, "temperature": 0.8,
            "dynatemp_range": 0.0, "dynatemp_exponent": 1.0, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "n_keep": 0,
            "typical_p": 1.0, "repeat_penalty": 1.1, "repeat_last_n": 64, "presence_penalty": 0.0, "seed": -1,
            "dry_multiplier": 0.0, "dry_base": 1.75, "dry_allowed_length": 2, "xtc_probability": 0.0, "mirostat": 0,
            "mirostat_tau": 5.0, "mirostat_eta": 0.1, "logit_bias": [], "n_probs": 0, "min_keep": 0, "id_slot": -1,
            "cache_prompt": True, "samplers": [], "timings_per_token": False, "post_sampling_probs": False,
        },
        ".*",
    ),
    "llama.cpp: a grammar": (
        CHAT,
        {"messages": [ONE], "grammar": 'root ::= "a"{5,5}', "max_tokens": 20},
        "aaaaa",
    ),
    "llama.cpp: a schema": (TEXT, {"prompt": "A girl", "json_schema": PEOPLE, "max_tokens": 90}, r"\{.*\}"),
    "llama.cpp: a schema of a chat": (
        CHAT,
        {"messages": [ONE], "response_format": {"type": "json_object", "schema": {"const": "42"}}, "max_tokens": 20},
        '"42"',
    ),
    "llama.cpp: biases": (TEXT, {"prompt": "A girl", "logit_bias": [[400, -1.0], [401, False]], "n_predict": 4}, ".*"),
    "OpenAI: an answer sent back": (
        CHAT,
        {
            "model": "stories",
            "messages": [
                {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
                {"role": "user", "name": "ann", "content": [{"type": "text", "text": "Hi"}]},
                {
                    "role": "assistant", "content": None, "refusal": None, "audio": None, "annotations": [],
                    "function_call": None,
                    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "warm"}]},
            ],
            "max_completion_tokens": 4, "store": False, "metadata": {"a": "b"}, "service_tier": "auto", "user": "me",
            "modalities": ["text"], "safety_identifier": "me", "prompt_cache_key": "a", "parallel_tool_calls": True,
            "logit_bias": {}, "n": 1, "stream": False, "top_p": 1, "presence_penalty": 0,
        },
        ".*",
    ),
    "OpenAI: a schema": (
        CHAT,
        {
            "messages": [ONE], "max_tokens": 90,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "person", "strict": True, "description": "A person.", "schema": PEOPLE},
            },
        },
        r"\{.*\}",
    ),
    "OpenAI: a completion": (
        TEXT,
        {
            "model": "stories", "prompt": "Say this is a test", "suffix": None, "max_tokens": 7, "temperature": 0,
            "best_of": 1, "logprobs": None, "echo": False, "user": "", "stop": None, "seed": 3,
        },
        ".*",
    ),
    "Hugging Face: a text": (
        "/generate",
        {
            "inputs": "My name is Lily and I",
            "parameters": {
                "best_of": 1, "decoder_input_details": True, "details": True, "do_sample": True, "max_new_tokens": 8,
                "repetition_penalty": 1.03, "frequency_penalty": 0.1, "return_full_text": False, "seed": None,
                "stop": ["photographer"], "temperature": 0.5, "top_k": 10, "top_n_tokens": 5, "top_p": 0.95,
                "truncate": None, "typical_p": 0.95, "watermark": False, "adapter_id": None, "grammar": None,
            },
        },
        ".*",
    ),
    "Hugging Face: a schema": (
        "/generate",
        {"inputs": "A girl:", "parameters": {"max_new_tokens": 90, "grammar": {"type": "json", "value": PEOPLE}}},
        r"\{.*\}",
    ),
    "Hugging Face: a chat": (
        CHAT,
        {"model": "tgi", "messages": [ONE], "max_tokens": 90, "response_format": {"type": "json", "value": PEOPLE}},
        r"\{.*\}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_as_documents_show_them(server: Running, name: str) -> None:
    path, body, pattern = REQUESTS[name]
    status, answer, headers = post(server, path, body)
    assert status == 200, answer
    assert re.fullmatch(pattern, text_of(answer), re.DOTALL), text_of(answer)
    assert "x-tallow-ignored" not in {header.lower() for header in headers}


def test_extra_fields_of_the_package(server: Running) -> None:
    with server.client() as client:
        assert isinstance(client, OpenAI)
        options: Any = {"model": "stories", "messages": [ONE], "max_tokens": 40}
        for extra, pattern in (
            ({"guided_choice": ["yes", "no"]}, "yes|no"),
            ({"structured_outputs": {"regex": EMAIL}}, EMAIL),
            ({"grammar": 'root ::= "cat" | "dog"'}, "cat|dog"),
        ):
            answer = client.chat.completions.create(**options, extra_body=extra)
            assert re.fullmatch(pattern, answer.choices[0].message.content or "")
            parts = client.chat.completions.create(**options, extra_body=extra, stream=True)
            assert re.fullmatch(pattern, "".join(part.choices[0].delta.content or "" for part in parts))
