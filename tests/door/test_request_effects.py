"""Effects of the fields of requests that vLLM, SGLang, llama.cpp, Hugging Face and OpenAI define."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.chats import CHATML, save_tokenizer
from support.small_server import KEY, Running, connected, post, running, story_teller

import tallow as tl
from tallow.generation import LogitBias, RepetitionPenalty, Sampler, decode_stream, generate
from tallow.generation.rules import MinNewTokens, NoRepeatedNgram, OfLastTokens, SuppressTokens, no_words
from tallow.models.generation_config import GenerationConfig
from tallow.serving import TextModel
from tallow.serving.catalog import Catalog
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access
from tallow.serving.http.chat import chat_prompt, messages_of, rendering_of
from tallow.serving.http.fields import Fields
from tallow.text import Tokenizer

PROMPT = "Once upon a time"
COMPLETIONS, CHAT, RESPONSES, GENERATE = "/v1/completions", "/v1/chat/completions", "/v1/responses", "/generate"


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Compute on one thread: with small models on a busy machine, threads of a kernel wait for each other."""
    threads = tl.get_num_threads()
    tl.set_num_threads(1)
    yield
    tl.set_num_threads(threads)


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    catalog = Catalog(texts={"stories": story_teller()})
    with running(make_app(catalog, Access((KEY,)), strict_fields=True), catalog) as started:
        yield started


def body_of(path: str, count: int, **fields: Any) -> dict[str, Any]:
    if path == GENERATE:
        return {"inputs": PROMPT, "parameters": {"max_new_tokens": count, **fields}}
    length = {"max_output_tokens" if path == RESPONSES else "max_tokens": count, "temperature": 0}
    prompts: dict[str, Any] = {
        COMPLETIONS: {"prompt": PROMPT},
        CHAT: {"messages": [{"role": "user", "content": PROMPT}]},
        RESPONSES: {"input": PROMPT},
    }
    return {**prompts[path], **length, **fields}


def text_of(path: str, answer: Any) -> str:
    if path == GENERATE:
        return answer["generated_text"]
    if path == RESPONSES:
        return answer["output"][0]["content"][0]["text"]
    choice = answer["choices"][0]
    return choice["text"] if path == COMPLETIONS else choice["message"]["content"]


def ask(server: Running, path: str, count: int = 30, **fields: Any) -> str:
    status, answer, _ = post(server, path, body_of(path, count, **fields))
    assert status == 200, answer
    return text_of(path, answer)


def streamed(server: Running, path: str, count: int = 30, **fields: Any) -> str:
    """Return the text of a stream."""
    with connected(server) as connection:
        body = json.dumps(body_of(path, count, **fields) | {"stream": True})
        connection.request("POST", path, body, {"Authorization": f"Bearer {KEY}"})
        lines = connection.getresponse().read().decode().split("\n\n")
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    choices = [event["choices"][0] for event in events]
    return "".join(each["text"] if path == COMPLETIONS else each["delta"].get("content", "") for each in choices)


def library(server: Running, count: int = 30, *, stop_ids: Any = None, sample: Any = None, processors: Any = ()) -> str:
    served = server.engine.served
    prompt = served.encode(PROMPT)
    stops = served.stop_ids if stop_ids is None else stop_ids
    tokens = generate(served.model, prompt, max_tokens=count, stop_ids=stops, sample=sample, processors=processors)
    return "".join(decode_stream(served.words, tokens, previous=prompt[-1]))


def refusal(server: Running, path: str, **fields: Any) -> str:
    status, answer, _ = post(server, path, body_of(path, 5, **fields))
    assert status in (400, 422), answer
    return answer["error"] if isinstance(answer["error"], str) else answer["error"]["message"]


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
JSON, WORD, CHOICE = r'\{\s*"n"\s*:\s*-?\d+\s*\}', "(yes|no|maybe)", "red|green"
GBNF = 'root ::= word ("," word){2}\nword ::= "yes" | "no"'
WORDS = "(yes|no),(yes|no),(yes|no)"
CONSTRAINED: dict[str, tuple[dict[str, Any], str]] = {
    "guided_json": ({"guided_json": SCHEMA}, JSON),
    "guided_json as text": ({"guided_json": json.dumps(SCHEMA)}, JSON),
    "guided_choice": ({"guided_choice": ["red", "green"]}, CHOICE),
    "guided_regex": ({"guided_regex": WORD}, WORD),
    "guided_grammar": ({"guided_grammar": GBNF}, WORDS),
    "structured json": ({"structured_outputs": {"json": SCHEMA}}, JSON),
    "structured choice": ({"structured_outputs": {"choice": ["red", "green"]}}, CHOICE),
    "structured regex": ({"structured_outputs": {"regex": WORD}}, WORD),
    "structured grammar": ({"structured_outputs": {"grammar": GBNF}}, WORDS),
    "llama.cpp's grammar": ({"grammar": GBNF}, WORDS),
    "llama.cpp's schema": ({"json_schema": SCHEMA}, JSON),
    "SGLang's schema": ({"json_schema": json.dumps(SCHEMA)}, JSON),
    "SGLang's regex": ({"regex": WORD}, WORD),
    "SGLang's ebnf": ({"ebnf": GBNF}, WORDS),
    "OpenAI's": ({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}}, JSON),
    "llama.cpp's json_object": ({"response_format": {"type": "json_object", "schema": SCHEMA}}, JSON),
    "llama.cpp's json_schema": ({"response_format": {"type": "json_schema", "schema": SCHEMA}}, JSON),
    "TGI's json": ({"response_format": {"type": "json", "value": SCHEMA}}, JSON),
    "TGI's json_schema": ({"response_format": {"type": "json_schema", "value": {"name": "a", "schema": SCHEMA}}}, JSON),
    "TGI's regex": ({"response_format": {"type": "regex", "value": WORD}}, WORD),
}


@pytest.mark.parametrize("name", CONSTRAINED)
def test_what_a_text_is(server: Running, name: str) -> None:
    fields, pattern = CONSTRAINED[name]
    for path in (COMPLETIONS, CHAT):
        text = ask(server, path, 60, **fields)
        assert re.fullmatch(pattern, text), text
        assert streamed(server, path, 60, **fields) == text


def test_texts_of_several_clients_keep_to_their_own_fields(server: Running) -> None:
    wanted = library(server, 40)
    bodies = [fields for fields, _ in CONSTRAINED.values()]

    def each(i: int) -> str:
        return ask(server, COMPLETIONS, 40, **(bodies[i // 2] if i % 2 else {}))

    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(each, range(2 * len(bodies))))
    assert texts[::2] == [wanted] * len(bodies)
    assert all(
        re.fullmatch(pattern, text) for (_, pattern), text in zip(CONSTRAINED.values(), texts[1::2], strict=True)
    )


def test_grammars_that_are_none(server: Running) -> None:
    for fields, message in (
        ({"guided_regex": "("}, "guided_regex|"),
        ({"grammar": "root = a"}, "line 1 of the grammar"),
        ({"guided_choice": [3]}, "guided_choice: expected a string"),
        ({"guided_choice": ["a"] * 2000}, "guided_choice: 2000 items"),
        ({"guided_json": 3}, "guided_json: expected a JSON schema"),
        ({"guided_json": "{"}, ""),
        ({"guided_regex": "a" * 300_000}, "guided_regex: 300000 characters"),
        ({"guided_regex": "a", "grammar": GBNF}, "guided_regex and grammar both say what the text is"),
        ({"structured_outputs": {"structural_tag": "{}"}}, "structured_outputs.structural_tag is not supported"),
        ({"structured_outputs": {"jsonn": {}}}, "unknown fields: structured_outputs.jsonn"),
        ({"guided_regex": "a", "ignore_eos": True}, "ignore_eos: a text by guided_regex must be able to end"),
        ({"guided_choice": ["yes"], "min_tokens": 20}, "the fields of the request rule out every token"),
    ):
        for path in (COMPLETIONS, CHAT):
            assert re.match(message, refusal(server, path, max_tokens=30, **fields)), fields
    for fields in (
        {"grammar": ""},
        {"guided_json": None},
        {"guided_choice": []},
        {"response_format": {"type": "text"}},
    ):
        assert ask(server, COMPLETIONS, 5, **fields) == library(server, 5)


def ids(server: Running, text: str) -> list[int]:
    return server.engine.served.encode(text, special=False)


@pytest.mark.parametrize("path", [COMPLETIONS, CHAT, RESPONSES, GENERATE])
def test_samplers(server: Running, path: str) -> None:
    served = server.engine.served
    first = next(iter(generate(served.model, served.encode(PROMPT), max_tokens=1)))
    for fields, options in (
        ({"repetition_penalty": 1.3}, {"sample": Sampler(0, repetition_penalty=1.3)}),
        ({"frequency_penalty": 1.5}, {"sample": Sampler(0, frequency_penalty=1.5)}),
        ({"presence_penalty": 1.5}, {"sample": Sampler(0, presence_penalty=1.5)}),
        ({"repeat_penalty": 1.5, "repeat_last_n": -1}, {"processors": [RepetitionPenalty(1.5)]}),
        ({"repeat_penalty": 1.5}, {"processors": [OfLastTokens(RepetitionPenalty(1.5), 64)]}),
        ({"repeat_penalty": 1.5, "repeat_last_n": 5}, {"processors": [OfLastTokens(RepetitionPenalty(1.5), 5)]}),
        ({"repeat_penalty": 1.5, "repeat_last_n": 0}, {}),
        ({"no_repeat_ngram_size": 2}, {"processors": [NoRepeatedNgram(2)]}),
        ({"logit_bias": {str(first): -100}}, {"processors": [LogitBias({first: -100})]}),
        ({"logit_bias": [[first, False]]}, {"processors": [LogitBias({first: -100})]}),
        ({"allowed_token_ids": [300, 301, 302]}, {"processors": [only(served, [300, 301, 302])]}),
        ({"bad_words": ["was", "a girl"]}, {"processors": [no_words(words(served, "was", "a girl"))]}),
        ({"ignore_eos": True}, {"processors": [SuppressTokens(served.stop_ids)]}),
    ):
        count = 90 if "repeat_penalty" in fields else 40
        assert ask(server, path, count, **fields) == library(server, count, **options), fields
    drawn = {"temperature": 0.9, "typical_p": 0.4, "seed": 3}
    assert ask(server, path, **drawn) == library(server, sample=Sampler(0.9, typical_p=0.4, seed=3))


def test_a_seed_of_minus_one_is_any_seed(server: Running) -> None:
    texts = {ask(server, COMPLETIONS, 40, temperature=1, seed=-1) for _ in range(3)}
    assert len(texts) > 1
    assert len({ask(server, COMPLETIONS, 40, temperature=1, seed=-2) for _ in range(3)}) == 1


def only(served: TextModel, allowed: Sequence[int]) -> SuppressTokens:
    return SuppressTokens(set(range(served.model.vocab_size)) - set(allowed))


def words(served: TextModel, *texts: str) -> list[list[int]]:
    return [served.encode(space + text, special=False) for text in texts for space in ("", " ")]


def test_words_that_are_ruled_out_do_not_come(server: Running) -> None:
    plain = library(server, 60)
    common = max(set(re.findall(r"\w{3,}", plain)), key=plain.count)
    assert common not in re.findall(r"\w+", ask(server, COMPLETIONS, 60, bad_words=[common]))


@pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
def test_tokens_that_end_a_text(server: Running, path: str) -> None:
    served = server.engine.served
    tokens = list(generate(served.model, served.encode(PROMPT), max_tokens=40))
    stop = tokens[12]
    wanted = library(server, 40, stop_ids={stop})
    assert 0 < len(wanted) < len(library(server, 40))
    status, answer, _ = post(server, path, body_of(path, 40, stop_token_ids=[stop, 5.0]))
    assert (status, text_of(path, answer), answer["choices"][0]["finish_reason"]) == (200, wanted, "stop")
    piece = served.token_text(stop)[0]
    for name in ("include_stop_str_in_output", "no_stop_trim"):  # vLLM, SGLang
        assert ask(server, path, 40, stop_token_ids=[stop], **{name: True}) == wanted + piece
        assert ask(server, path, 40, stop=[wanted[5:9]], **{name: True}) == wanted[: wanted.index(wanted[5:9]) + 4]
        assert streamed(server, path, 40, stop=[wanted[5:9]], **{name: True}) == wanted[: wanted.index(wanted[5:9]) + 4]
    later = ask(server, path, 40, stop_token_ids=[stop], min_tokens=20)
    assert later == library(server, 40, stop_ids={stop}, processors=[MinNewTokens(20, {stop, *served.stop_ids})])
    assert len(later) > len(wanted)
    string = wanted[3:7]
    text = ask(server, path, 40, stop=[string], min_tokens=8)
    assert text.startswith(library(server, 8)), "strings do not end a text before min_tokens"
    assert "stop_token_ids: expected ids" in refusal(server, path, stop_token_ids=[10**6])
    assert "2000 items" in refusal(server, path, stop_token_ids=[1] * 2000)


def test_the_least_tokens_of_generate(server: Running) -> None:
    served = server.engine.served
    end = min(served.stop_ids)
    for least in (0, 25):
        bias = {"logit_bias": {str(end): 100}}  # it ends as soon as it may
        body = body_of(GENERATE, 40, min_new_tokens=least, details=True, **bias)
        assert post(server, GENERATE, body)[1]["details"]["generated_tokens"] == least


def test_lengths(server: Running) -> None:
    for path in (COMPLETIONS, CHAT):
        body = body_of(path, 5)
        del body["max_tokens"]
        for fields, count in (({"n_predict": 7}, 7), ({"n_predict": 7, "max_tokens": 3}, 3), ({"max_tokens": 4.0}, 4)):
            _, answer, _ = post(server, path, body | fields)
            assert answer["usage"]["completion_tokens"] == count
        _, answer, _ = post(server, path, body | {"n_predict": -1})
        assert answer["usage"]["completion_tokens"] == (
            16 if path == COMPLETIONS else answer["usage"]["completion_tokens"]
        )


def test_prompts_that_are_cut(server: Running) -> None:
    served = server.engine.served
    tokens = served.encode(PROMPT)
    counted = post(server, COMPLETIONS, body_of(COMPLETIONS, 5, truncate_prompt_tokens=3))[1]
    assert counted["usage"]["prompt_tokens"] == 3

    def by_ids(kept: list[int]) -> str:
        return post(server, COMPLETIONS, {"prompt": kept, "max_tokens": 5, "temperature": 0})[1]["choices"][0]["text"]

    assert ask(server, COMPLETIONS, 5, truncate_prompt_tokens=3) == by_ids(tokens[-3:])
    assert ask(server, COMPLETIONS, 5, truncate_prompt_tokens=3, truncation_side="right") == by_ids(tokens[:3])
    assert ask(server, COMPLETIONS, 5, truncate_prompt_tokens=-1) == by_ids(tokens)
    assert ask(server, COMPLETIONS, 5, add_special_tokens=False) == by_ids(served.encode(PROMPT, special=False))
    long = {"prompt": "dog " * 3000, "max_tokens": 2, "truncate_prompt_tokens": 20}
    assert post(server, COMPLETIONS, long)[1]["usage"]["prompt_tokens"] == 20
    long = body_of(CHAT, 2, messages=[{"role": "user", "content": "dog " * 300}], truncate_prompt_tokens=20)
    assert post(server, CHAT, long)[1]["usage"]["prompt_tokens"] == 20


def test_usage_in_each_part_of_a_stream(server: Running) -> None:
    options = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}, "stream": True}
    with connected(server) as connection:
        body = json.dumps(body_of(COMPLETIONS, 6, **options))
        connection.request("POST", COMPLETIONS, body, {"Authorization": f"Bearer {KEY}"})
        lines = connection.getresponse().read().decode().split("\n\n")
    usages = [json.loads(line[6:])["usage"] for line in lines if line.startswith("data: {")]
    assert [usage["completion_tokens"] for usage in usages] == [1, 2, 3, 4, 5, 6, 6]


VARIABLES = CHATML.replace(
    "{%- if add_generation_prompt -%}",
    "{%- for document in documents or [] %}[{{ document.text }}]{% endfor %}"
    "{%- if enable_thinking is defined and not enable_thinking %}<no>{% endif %}{{ reasoning_effort }}{{ mood }}"
    "{%- if add_generation_prompt -%}",
)
TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": "Is it warm?"},
    {"role": "assistant", "content": "It is  warm  "},
]


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({}, {"add_generation_prompt": True}),
        ({"add_generation_prompt": False}, {}),
        ({"continue_final_message": True}, {"continue_final_message": True}),
        ({"continue_final_message": True, "add_generation_prompt": False}, {"continue_final_message": True}),
        ({"chat_template_kwargs": {"mood": "good"}}, {"add_generation_prompt": True, "mood": "good"}),
        (
            {"chat_template_kwargs": {"enable_thinking": False}},
            {"add_generation_prompt": True, "enable_thinking": False},
        ),
        (
            {"reasoning_effort": "low"},
            {"add_generation_prompt": True, "reasoning_effort": "low", "enable_thinking": True},
        ),
        (
            {"reasoning_effort": "none"},
            {"add_generation_prompt": True, "reasoning_effort": "none", "enable_thinking": False},
        ),
        (
            {"documents": [{"text": "Rome is warm."}]},
            {"add_generation_prompt": True, "documents": [{"text": "Rome is warm."}]},
        ),
    ],
    ids=str,
)
def test_prompts_of_conversations_are_those_of_transformers(
    fields: dict[str, Any], options: dict[str, Any], tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    save_tokenizer(tmp_path, chat_template=VARIABLES)
    wanted = transformers.AutoTokenizer.from_pretrained(tmp_path).apply_chat_template(
        TURNS, tokenize=True, return_dict=False, **options
    )
    model: Any = SimpleNamespace(generation_config=GenerationConfig())
    served = TextModel("small", model, Tokenizer.from_pretrained(tmp_path))
    given = Fields({"messages": TURNS, **fields})
    engine: Any = type("Engine", (), {"served": served, "length": 1000})
    assert chat_prompt(engine, messages_of(given, "messages"), None, "messages", rendering_of(given)) == wanted
    assert not list(given.unread())


def test_fields_of_conversations_that_contradict(server: Running) -> None:
    both = {"continue_final_message": True, "add_generation_prompt": True}
    assert "exclude each other" in refusal(server, CHAT, **both)
    assert "tools is a field" in refusal(server, CHAT, chat_template_kwargs={"tools": []})
    assert "expected an object" in refusal(server, CHAT, chat_template_kwargs=[1])
    assert "64 variables" in refusal(server, CHAT, chat_template_kwargs={str(i): i for i in range(65)})
