"""Tools and responses, as the package `openai` uses them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from openai import BadRequestError, OpenAI, pydantic_function_tool
from pydantic import BaseModel
from support.chats import CHATML, HEADERS, save_tokenizer
from support.small_server import Running, post

from tallow.errors import ArgumentError
from tallow.models.causal_lm import CausalLM
from tallow.models.generation_config import GenerationConfig
from tallow.serving import TextModel
from tallow.serving.http.responses import ModelResponse
from tallow.serving.http.tools import CallDeltas, Tools, merged, reasoning_of
from tallow.text import Tokenizer

WEATHER = {
    "type": "object",
    "properties": {"city": {"$ref": "#/$defs/city"}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
    "$defs": {"city": {"enum": ["Paris", "Rome"]}},
}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "weather", "description": "Foretell.", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "time"}},
]
NAMED = {"type": "function", "function": {"name": "weather"}}
MESSAGES: list[dict[str, Any]] = [{"role": "user", "content": "Is it warm in Rome?"}]
OPTIONS: dict[str, Any] = {"model": "stories", "messages": MESSAGES, "max_tokens": 120, "temperature": 0}


def is_forecast(text: str) -> bool:
    arguments = json.loads(text)
    return set(arguments) == {"city", "days"} and arguments["city"] in ("Paris", "Rome") and 1 <= arguments["days"] <= 9


@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
def test_a_demanded_call(client: OpenAI, choice: Any) -> None:
    options = OPTIONS | {"tools": TOOLS if choice is NAMED else TOOLS[:1], "tool_choice": choice}
    (answer,) = client.chat.completions.create(**options).choices
    assert (answer.finish_reason, answer.message.content) == ("tool_calls", None)
    (call,) = answer.message.tool_calls
    assert (call.type, call.function.name) == ("function", "weather")
    assert is_forecast(call.function.arguments)
    chunks = [chunk.choices[0] for chunk in client.chat.completions.create(**options, stream=True)]
    parts = [part for chunk in chunks for part in chunk.delta.tool_calls or ()]
    assert (parts[0].function.name, parts[0].id[:5]) == ("weather", "call_")
    assert len(parts) > 3
    assert "".join(part.function.arguments for part in parts) == call.function.arguments
    assert chunks[-1].finish_reason == "tool_calls"


def test_one_of_several_tools(client: OpenAI) -> None:
    (answer,) = client.chat.completions.create(**OPTIONS, tools=TOOLS, tool_choice="required", seed=3).choices
    for call in answer.message.tool_calls or ():
        assert call.function.name in ("weather", "time")


class Forecast(BaseModel):
    city: Literal["Paris", "Rome"]
    warm: bool


def test_the_package_parses_a_call(client: OpenAI) -> None:
    tools = [pydantic_function_tool(Forecast)]
    options = OPTIONS | {"tools": tools, "tool_choice": "required"}
    (call,) = client.chat.completions.parse(**options).choices[0].message.tool_calls
    assert isinstance(call.function.parsed_arguments, Forecast)
    with client.chat.completions.stream(**options) as stream:
        (call,) = stream.get_final_completion().choices[0].message.tool_calls
    assert isinstance(call.function.parsed_arguments, Forecast)


def test_no_call(client: OpenAI) -> None:
    plain = client.chat.completions.create(**OPTIONS).choices[0].message.content
    (answer,) = client.chat.completions.create(**OPTIONS, tools=TOOLS, tool_choice="none").choices
    assert (answer.message.content, answer.message.tool_calls) == (plain, None)
    with pytest.raises(BadRequestError, match="does not choose tools"):
        client.chat.completions.create(**OPTIONS, tools=TOOLS)


@pytest.mark.parametrize("template", [HEADERS, CHATML], ids=["with tools", "without"])
def test_prompts_that_tell_of_tools(template: str, tmp_path: Path) -> None:
    save_tokenizer(tmp_path, chat_template=template)
    words = Tokenizer.from_pretrained(tmp_path)
    model: Any = SimpleNamespace(generation_config=GenerationConfig())
    served = TextModel("small", model, words)
    if template is HEADERS:
        assert "Foretell." in words.decode(served.encode_chat(MESSAGES, TOOLS), skip_special_tokens=False)
        return
    with pytest.raises(ArgumentError, match="does not tell of tools"):
        served.encode_chat(MESSAGES, TOOLS)
    assert served.encode_chat(MESSAGES, TOOLS, required=False) == served.encode_chat(MESSAGES, None)


CALL = '{"name": "time", "arguments": {"zone": "é"}}'


def test_calls_that_a_model_chooses() -> None:
    answer = CallDeltas(Tools(TOOLS, {"weather": WEATHER, "time": {}}))
    text = f"Let me see. <tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>"
    content, calls = merged([*answer.push(text), *answer.finish()])
    assert (content, len(calls), answer.calls) == ("Let me see. ", 2, 2)
    assert len({call["id"] for call in calls}) == 2
    assert all(json.loads(call["function"]["arguments"]) == {"zone": "é"} for call in calls)
    assert merged(CallDeltas(None).push(CALL)) == (CALL, [])
    one = CallDeltas(Tools(TOOLS, {"weather": WEATHER, "time": {}}, most_calls=1))  # parallel_tool_calls: false
    content, calls = merged([*one.push(text), *one.finish()])
    assert (content, [call["function"]["name"] for call in calls]) == ("Let me see. ", ["time"])


def test_calls_of_strict_tools_are_valid() -> None:
    schemas = {"weather": WEATHER, "time": {"type": "object", "properties": {"zone": {"type": "string"}}}}
    assert Tools(TOOLS, schemas).grammar() is None
    constrained = Tools(TOOLS, schemas, strict=["weather"]).grammar()
    assert constrained is not None
    matches = constrained.grammar_of(constrained.text).matches
    assert matches("Let me see.")
    assert matches('<tool_call>{"name": "weather", "arguments": {"city": "Rome", "days": 2}}</tool_call>')
    assert not matches('<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>')
    assert matches('<tool_call>{"name": "time", "arguments": {"zone": 3}}</tool_call>'), "time is not strict"


BAD: dict[str, dict[str, Any]] = {
    "no function": {"tools": [{"type": "function"}]},
    "another type": {"tools": [{"type": "web_search"}]},
    "a bad name": {"tools": [{"type": "function", "function": {"name": "a b"}}]},
    "one name twice": {"tools": [TOOLS[0], TOOLS[0]]},
    "a flag that is none": {"tools": [{"type": "function", "function": {"name": "f", "strict": "yes"}}]},
    "an unknown choice": {"tools": TOOLS, "tool_choice": "always"},
    "an unknown tool": {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "other"}}},
    "required without tools": {"tool_choice": "required"},
    "a bad schema": {
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "dragon"}}}],
        "tool_choice": "required",
    },
    "calls that are none": {"messages": [{"role": "assistant", "tool_calls": [3]}]},
    "arguments that are a number": {
        "messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 3}}]}]
    },
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tools(server: Running, name: str) -> None:
    status, answer, _ = post(server, "/v1/chat/completions", OPTIONS | BAD[name])
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")


def test_a_response(client: OpenAI) -> None:
    options = {"model": "stories", "input": "Once upon a time", "max_output_tokens": 30, "temperature": 0}
    wanted = client.chat.completions.create(
        model="stories", messages=[{"role": "user", "content": "Once upon a time"}], max_tokens=30, temperature=0
    )
    answer = client.responses.create(**options)
    assert answer.output_text == wanted.choices[0].message.content
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert answer.usage.output_tokens == 30
    parts = [{"type": "input_text", "text": "Once upon a time"}]
    listed = client.responses.create(**options | {"input": [{"role": "user", "content": parts}]})
    assert listed.output_text == answer.output_text
    with client.responses.stream(**options) as stream:
        events = list(stream)
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == answer.output_text
    assert len(deltas) > 10
    assert [event.sequence_number for event in events if hasattr(event, "sequence_number")] == sorted(
        event.sequence_number for event in events
    )


def test_a_parsed_response(client: OpenAI) -> None:
    answer = client.responses.parse(
        model="stories", input="Rome", text_format=Forecast, max_output_tokens=100, temperature=0
    )
    assert isinstance(answer.output_parsed, Forecast)
    assert answer.status == "completed"


CHANNELS = "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>It is"


@pytest.mark.parametrize("size", [1, 7, len(CHANNELS)])
def test_a_response_in_channels(size: int) -> None:
    """The events build the items, as clients do."""
    answer: Any = SimpleNamespace(_reader=CallDeltas(None, has_channels=True), _items=[])
    texts: dict[int, str] = {}
    kinds = []
    for i in range(0, len(CHANNELS), size):
        for index, name, values in ModelResponse._read(
            answer, CHANNELS[i : i + size], is_last=i + size >= len(CHANNELS)
        ):
            if name.endswith("delta"):
                texts[index] = texts.get(index, "") + values["delta"]
            else:
                kinds.append((index, name))
    assert texts == {0: "Hm", 1: "It is"}
    first, last = (item.entry("completed") for item in answer._items)
    assert (first["type"], first["content"][0]) == ("reasoning", {"type": "reasoning_text", "text": "Hm"})
    assert (last["type"], last["content"][0]["text"]) == ("message", "It is")
    assert kinds == [
        *((0, name) for name in ("output_item.added", "content_part.added")),
        *((0, name) for name in ("reasoning_text.done", "content_part.done", "output_item.done")),
        *((1, name) for name in ("output_item.added", "content_part.added")),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"input": 3},
        {"input": []},
        {"input": [{"type": "function_call"}]},
        {"input": "a", "tools": TOOLS},
        {"input": "a", "previous_response_id": "b"},
        {"input": "a", "text": {"format": {"type": "xml"}}},
    ],
)
def test_bad_responses(server: Running, fields: dict[str, Any]) -> None:
    assert post(server, "/v1/responses", fields)[0] == 400


def test_special_tokens_around_calls_and_in_channels(tmp_path: Path) -> None:
    """Only these are part of the text, and each once."""
    import transformers

    save_tokenizer(tmp_path, HEADERS)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    theirs.add_special_tokens({"additional_special_tokens": ["<|channel|>", "<|message|>", "<|call|>", "<other>"]})
    theirs.add_tokens(["<tool_call>"])
    theirs.save_pretrained(tmp_path)
    model: Any = SimpleNamespace(generation_config=GenerationConfig())
    served = TextModel("small", model, Tokenizer.from_pretrained(tmp_path))
    text = (
        '<|channel|>analysis<|message|>Hm<|channel|>commentary to=functions.time<other><|message|>{"a": 1}<tool_call>'
    )
    ids = theirs.encode(text, add_special_tokens=False)
    decoder = served.decoder([], show_marks=True)
    pieces = [*map(decoder.push, ids), decoder.finish()]
    assert "".join(pieces) == text.replace("<other>", "")
    assert served.has_channels
    first = theirs.encode(text.partition("<|channel|>commentary")[0], add_special_tokens=False)
    read = CausalLM._readable(SimpleNamespace(tokenizer=served.words), iter(first), plain=False)
    assert "".join(read) == "<think>\nHm"
    answer = CallDeltas(Tools(TOOLS, {"weather": WEATHER, "time": {}}, most_calls=1), has_channels=True)
    deltas = [delta for piece in (*pieces, "<|call|>", *pieces) for delta in answer.push(piece)]
    content, (call,) = merged(deltas)
    assert (content, call["function"]) == (None, {"name": "time", "arguments": '{"a": 1}<tool_call>'})
    assert reasoning_of(deltas) == "HmHm"
