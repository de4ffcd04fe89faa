"""Fields of requests as clients of OpenAI's API, vLLM, SGLang, llama.cpp, Ollama and Hugging Face send them.

Each is read, refused by name or harmless, and any other is named in the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from support.small_encoder import small_encoder
from support.small_server import KEY, Running, post, running, story_teller

import tallow as tl
from tallow.errors import TokenizerError
from tallow.serving.catalog import Catalog
from tallow.serving.encoding import embedder
from tallow.serving.http.app import make_app
from tallow.serving.http.application import Access
from tallow.serving.http.chat import chat_prompt, messages_of
from tallow.serving.http.fields import Fields

PROMPT = "Once upon a time"
MESSAGES = [{"role": "user", "content": PROMPT}]
IGNORED = "x-tallow-ignored"
# A request of each endpoint.
REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/completions": {"prompt": PROMPT, "max_tokens": 2},
    "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 2},
    "/v1/responses": {"input": PROMPT, "max_output_tokens": 2},
    "/generate": {"inputs": PROMPT, "parameters": {"max_new_tokens": 2}},
    "/v1/embeddings": {"input": "a cat"},
    "/embed": {"inputs": "a cat"},
    "/embed_all": {"inputs": "a cat"},
    "/similarity": {"inputs": {"source_sentence": "a cat", "sentences": ["a cat"]}},
    "/tokenize": {"inputs": PROMPT},
}
TEXTS = ("/v1/completions", "/v1/chat/completions")


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Compute on one thread: with small models on a busy machine, threads of a kernel wait for each other."""
    threads = tl.get_num_threads()
    tl.set_num_threads(1)
    yield
    tl.set_num_threads(threads)


def served(**options: Any) -> Any:
    catalog = Catalog(texts={"stories": story_teller()}, encoders={"encoder": embedder("encoder", small_encoder())})
    return running(make_app(catalog, Access((KEY,)), **options), catalog)


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with served() as started:
        yield started


@pytest.fixture(scope="module")
def strict() -> Iterator[Running]:
    with served(strict_fields=True) as started:
        yield started


def ask(server: Running, path: str, **fields: Any) -> tuple[int, Any, str]:
    """Return the status, the answer, and the header that names what was ignored."""
    status, answer, headers = post(server, path, REQUESTS[path] | fields)
    return status, answer, {name.lower(): value for name, value in headers.items()}.get(IGNORED, "")


def message_of(answer: Any) -> str:
    error = answer["error"]
    return error if isinstance(error, str) else error["message"]


@pytest.mark.parametrize("path", REQUESTS)
def test_unknown_fields_are_named(server: Running, strict: Running, path: str) -> None:
    status, _, ignored = ask(server, path, temperatur=0.5, top_q=None)
    assert (status, ignored) == (200, "temperatur")
    assert ask(server, path)[::2] == (200, "")
    status, answer, _ = ask(strict, path, temperatur=0.5)
    assert status in (400, 422)
    assert message_of(answer).startswith("unknown fields: temperatur")
    assert ask(strict, path)[0] == 200


def test_unknown_fields_of_objects_within_are_named(server: Running) -> None:
    for path, field, value, name in (
        ("/v1/completions", "stream_options", {"usage": True}, "stream_options.usage"),
        ("/v1/chat/completions", "messages", [{"role": "user", "content": "a", "mood": 1}], "messages[0].mood"),
        (
            "/v1/chat/completions",
            "messages",
            [{"role": "user", "content": [{"type": "text", "text": "a", "size": 3}]}],
            "messages[0].content[0].size",
        ),
        ("/v1/completions", "response_format", {"type": "text", "grammer": "a"}, "response_format.grammer"),
        ("/generate", "parameters", {"max_new_token": 3}, "parameters.max_new_token"),
        ("/v1/responses", "input", [{"role": "user", "content": "a", "mood": 1}], "input[0].mood"),
    ):
        assert ask(server, path, **{field: value})[::2] == (200, name)


def test_each_unknown_field_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", logger="tallow.serving")
    with served() as server:
        for _ in range(3):
            ask(server, "/v1/completions", temperatur=0.5)
        ask(server, "/v1/chat/completions", temperatur=0.5)
    lines = [record.getMessage() for record in caplog.records if "temperatur" in record.getMessage()]
    assert lines == [
        f"{path}: the field temperatur is unknown and has no effect"
        for path in ("/v1/completions", "/v1/chat/completions")
    ]


def test_names_that_do_not_fit_a_header_are_encoded(server: Running) -> None:
    status, _, ignored = ask(server, "/v1/completions", **{"a\r\nSet-Cookie: b": 1, "é, c": 2, "d" * 1000: 3})
    assert status == 200
    assert ignored == f"a%0D%0ASet-Cookie%3A%20b, %C3%A9%2C%20c, {'d' * 64}"
    many = ask(server, "/v1/completions", **{f"name{i}": i for i in range(100)})[2]
    assert many.split(", ")[-2:] == ["name15", "..."]


REFUSED: dict[str, dict[str, Any]] = {
    "/v1/completions": {
        "suffix": "The end.", "best_of": 3, "use_beam_search": True, "length_penalty": 1.5,
        "lora": [{"id": 0}],
        "samplers": ["top_k"], "n_probs": 5, "prompt_embeds": "QQ==",
        "return_token_ids": True, "logits_processors": ["a.b"], "stop_regex": "a+", "lora_path": "a", "n_indent": 4,
        "return_hidden_states": True, "kv_transfer_params": {"a": 1}, "logprob_token_ids": [3],
        "dynatemp_range": 0.5, "custom_logit_processor": "a", "format": "json", "options": {"num_ctx": 9},
    },
    "/v1/chat/completions": {
        "functions": [{"name": "f"}], "function_call": {"name": "f"}, "audio": {"voice": "a", "format": "wav"},
        "modalities": ["text", "audio"], "web_search_options": {"search_context_size": "low"}, "echo": True,
        "include_reasoning": False, "separate_reasoning": True, "reasoning_format": "deepseek", "input_ids": [1],
        "use_beam_search": True, "chat_template": "{{ messages }}", "thinking_token_budget": 5, "guideline": "a",
    },
    "/v1/responses": {
        "tools": [{"type": "web_search"}], "previous_response_id": "resp_1", "conversation": "c", "background": True,
        "prompt": {"id": "p"}, "truncation": "auto", "include": ["message.output_text.logprobs"], "max_tokens": 5,
    },
    "/v1/embeddings": {
        "prompt": "query: ", "instruction": "a", "pooling": "cls", "truncation_side": "left", "embed_dtype": "float16",
        "input_type": "query", "add_special_tokens": False, "normalize": False,
    },
    "/embed": {"prompt": "a", "pooling": "cls"},
    "/tokenize": {"prompt_name": "query"},
}  # fmt: skip
GENERATE = {"best_of": 2, "watermark": True, "adapter_id": "a", "num_beams": 4, "num_return_sequences": 2}


@pytest.mark.parametrize(("path", "field"), [(path, field) for path, fields in REFUSED.items() for field in fields])
def test_fields_that_would_change_the_answer_are_refused(server: Running, path: str, field: str) -> None:
    status, answer, _ = ask(server, path, **{field: REFUSED[path][field]})
    assert status in (400, 422), answer
    assert message_of(answer).startswith(f"{field} is not supported")
    assert ask(server, path, **{field: None})[::2] == (200, "")


@pytest.mark.parametrize("field", GENERATE)
def test_parameters_that_would_change_the_answer_are_refused(server: Running, field: str) -> None:
    status, answer, _ = ask(server, "/generate", parameters={field: GENERATE[field]})
    assert status == 422
    assert message_of(answer).startswith(f"parameters.{field} is not supported")


def test_values_without_an_effect_are_not_refused(strict: Running) -> None:
    status, answer, _ = ask(
        strict, "/v1/completions",
        suffix="", best_of=1, use_beam_search=False, length_penalty=1.0, mirostat=0, mirostat_tau=5.0, mirostat_eta=0.1,
        xtc_probability=0.0, xtc_threshold=0.1, dry_multiplier=0.0, dry_base=1.75, samplers=[], n_probs=0, n_keep=5,
        cache_prompt=True, id_slot=-1, user="me", cache_salt=None, dynatemp_range=0.0,
        spaces_between_special_tokens=True,
        timings_per_token=False, lora=[], post_sampling_probs=False, min_keep=0, repetition_detection=None,
    )  # fmt: skip
    assert status == 200, answer
    status, answer, _ = ask(
        strict, "/v1/chat/completions",
        modalities=["text"], store=False, metadata={"a": "b"}, service_tier="auto", user="me", safety_identifier="a",
        parallel_tool_calls=True, prompt_cache_key="a", prediction={"type": "content", "content": "a"}, functions=[],
        function_call="none", audio=None, stream_options=None, include_reasoning=True, reasoning_format="none",
    )  # fmt: skip
    assert status == 200, answer


def test_numbers_with_a_decimal_point_are_integers(server: Running) -> None:
    # JSON has one kind of number: JavaScript, Go and R write 5.0 for 5.
    for path, fields in (
        (
            "/v1/completions",
            {"max_tokens": 3.0, "seed": 1000.0, "n": 1.0, "logprobs": 1.0, "top_k": 5.0, "priority": 0.0},
        ),
        ("/v1/chat/completions", {"max_completion_tokens": 3.0, "logprobs": True, "top_logprobs": 2.0}),
        ("/generate", {"parameters": {"max_new_tokens": 3.0, "seed": 4.0, "top_n_tokens": 1.0}}),
        ("/v1/embeddings", {"dimensions": 4.0}),
    ):
        status, answer, ignored = ask(server, path, **fields)
        assert (status, ignored) == (200, ""), answer
    for value in (5.5, "5", "5.0", True, [5], 1e300):
        assert ask(server, "/v1/completions", n=value)[0] == 400


CALLS: dict[str, Any] = {
    "cut off": '{"city": "Par', "not JSON": "not JSON", "a list": "[1]", "a number": "5", "null": "null",
    "a text": '"Paris"', "empty": "", "an object": {"city": "Paris"}, "JSON": '{"city": "Paris"}',
}  # fmt: skip


@pytest.mark.parametrize("content", [None, "", [], "Let me see.", [{"type": "text", "text": "Let me see."}]], ids=repr)
def test_calls_of_earlier_answers(strict: Running, content: Any) -> None:
    # OpenAI's reference: "the model does not always generate valid JSON"; agents send it back with the tool's message.
    for arguments in CALLS.values():
        call = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": arguments}}
        messages = [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "name": "ann", "content": [{"type": "text", "text": "Is it warm?"}]},
            {
                "role": "assistant", "content": content, "refusal": None, "annotations": [], "audio": None,
                "function_call": None, "tool_calls": [call], "reasoning_content": "Hm.",
            },
            {"role": "tool", "tool_call_id": "c", "content": "The arguments are not JSON."},
            {"role": "assistant", "content": None, "refusal": "No.", "tool_calls": None},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            {"role": "user", "content": "Go on."},
        ]  # fmt: skip
        status, answer, _ = ask(strict, "/v1/chat/completions", messages=messages)
        assert status == 200, answer


def test_arguments_reach_the_chat_template() -> None:
    def messages(arguments: Any) -> list[dict[str, Any]]:
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
        return messages_of(Fields({"messages": [{"role": "assistant", "tool_calls": [call]}]}), "messages")

    def arguments_of(message: dict[str, Any]) -> Any:
        return message["tool_calls"][0]["function"]["arguments"]

    assert arguments_of(messages('{"city": "Paris"}')[0]) == {"city": "Paris"}
    assert arguments_of(messages({"city": "Paris"})[0]) == {"city": "Paris"}
    assert arguments_of(messages("")[0]) == {}
    assert arguments_of(messages('{"city": "Par')[0]) == '{"city": "Par'

    class Strict:
        """A model whose template takes objects only."""

        def encode_chat(self, messages: Any, tools: Any, **options: Any) -> list[int]:
            if not isinstance(arguments_of(messages[0]), dict):
                raise TokenizerError("the chat template fails: 'str' has no attribute 'items'")
            return [len(arguments_of(messages[0])["arguments"])]

    engine: Any = SimpleNamespace(served=Strict(), length=100)
    assert chat_prompt(engine, messages('{"city": "Par'), None, "messages") == [13]


def test_a_text_for_an_encoder_without_a_limit() -> None:
    """The vectors of a million ids, which a small body holds, would take gigabytes."""
    encoder = small_encoder()
    encoder.max_length = None  # as of a table of embeddings
    catalog = Catalog(encoders={"encoder": embedder("encoder", encoder)})
    with running(make_app(catalog, Access((KEY,))), catalog) as server:
        status, answer, _ = ask(server, "/v1/embeddings", input=[3] * ((1 << 17) + 1))
        assert (status, answer["error"]["param"]) == (400, "input")
        assert "a text takes 131073 tokens, the limit is 131072" in answer["error"]["message"]
        assert ask(server, "/v1/embeddings", input=[3, 4])[0] == 200


def test_samplers_of_llama_cpp_are_obeyed(server: Running) -> None:
    """A penalty for repetitions, and draws that avoid the likeliest tokens, change the text; odd values are named."""
    prompt = "Once upon a time there was a busy girl. Once upon a time"

    def text(**fields: Any) -> str:
        status, answer, ignored = ask(server, "/v1/completions", prompt=prompt, max_tokens=8, **fields)
        assert (status, ignored) == (200, ""), answer
        return str(answer["choices"][0]["text"])

    plain = text(temperature=0)
    assert plain.startswith(" there was")
    dry = text(temperature=0, dry_multiplier=50, dry_allowed_length=1, dry_sequence_breakers=["~"])
    assert not dry.startswith(" there")
    assert text(temperature=1, seed=1, xtc_probability=1, xtc_threshold=0.01) != plain
    assert text(temperature=1, seed=1, mirostat=2, mirostat_tau=0.01) == plain
    assert text(temperature=1, seed=1, top_n_sigma=0.01) == plain
    for fields in ({"mirostat": 1}, {"dry_sequence_breakers": [""]}, {"dry_base": 0.5}):
        assert ask(server, "/v1/completions", **fields)[0] == 400
