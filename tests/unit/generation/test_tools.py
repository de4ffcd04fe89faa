"""tallow.generation.tools: the grammars of calls, and the calls in texts that come in pieces."""

from __future__ import annotations

import json
import time
import warnings
from typing import Any

import pytest

from tallow.errors import GrammarError
from tallow.generation.harmony import HarmonyReader, with_reasoning
from tallow.generation.tool_formats import call_by_name
from tallow.generation.tools import Arguments, Call, CallReader, Reasoning, Text, required_call, text_or_calls

WEATHER = {
    "type": "object",
    "properties": {"city": {"$ref": "#/$defs/city"}},
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"city": {"enum": ["Paris", "Rome"]}},
}
SCHEMAS = {"weather": WEATHER, "time": {"type": "object", "properties": {"zone": {"type": "string"}}}}
TIME = '{"name": "time", "arguments": {"zone": "é"}}'
ROME = '{"name": "weather", "arguments": {"city": "Rome"}}'
ALONE = ROME.replace("arguments", "parameters")


@pytest.fixture(scope="module")
def grammar():
    return text_or_calls(SCHEMAS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It is <b>warm</b> < 3, é and a <tool",
        "<<tool_call",
        '{"names": ["a"]}',
        '{"name": ',
        " {",
        f"<tool_call>{ROME}</tool_call>",
        f"<think>\nRome?\n</think>\n\n<tool_call>\n{ROME}\n</tool_call>\n<tool_call>{TIME}</tool_call>\n",
        '<|tool_call_start|>[weather(city="Rome")]<|tool_call_end|>',
        f"<<tool_<tool_call>\n{TIME}</tool_call>",
        ROME,
        f"\n{ALONE}\n",
    ],
)
def test_texts_with_valid_calls(grammar, text: str) -> None:
    assert grammar.matches(text)


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>{ROME}",
        f"<tool_call>{ROME}</tool_call> and more",
        "<tool_call>\n{Rome",
        f"<tool_call>{ROME}</tool_call>".replace("Rome", "Bonn"),
        f"<tool_call>{ROME}</tool_call>".replace("weather", "news"),
        f"a {'<' * 3}tool_call>x",
        f"{ROME} and more",
        ROME.replace("Rome", "Bonn"),
        '\n{"name": "news"',
        "<tool_call><function=time></function></tool_call>",
        '{"name": "weather"}',
    ],
)
def test_texts_with_other_calls(grammar, text: str) -> None:
    assert not grammar.matches(text)


def test_a_required_call() -> None:
    grammar = required_call({"weather": WEATHER})
    assert grammar.matches(ROME)
    for text in (TIME, ALONE, f"<tool_call>{ROME}</tool_call>", ROME.replace("Rome", "Bonn"), "Rome"):
        assert not grammar.matches(text)


@pytest.mark.parametrize("grammar_of", [required_call, text_or_calls])
def test_schemas_that_cannot_be_guaranteed(grammar_of) -> None:
    with pytest.raises(GrammarError, match="dragon"):
        grammar_of({"f": {"type": "dragon"}})


FOUND = {
    "a text": ("It is <b>warm</b> < 3.", "It is <b>warm</b> < 3.", 0),
    "a call": (f"<tool_call>\n{TIME}\n</tool_call>", "", 1),
    "two calls after a text": (
        f"Let me see. <tool_call>{TIME}</tool_call>\n<tool_call>{TIME}</tool_call>",
        "Let me see. ",
        2,
    ),
    "a call alone": (TIME.replace("arguments", "parameters"), "", 1),
    "an object": ('{"name": "other", "arguments": {}}', '{"name": "other", "arguments": {}}', 0),
    "no end": (f"<tool_call>{TIME}", "", 1),
    "tags": (
        "Well. <tool_call>\n<function=time>\n<parameter=zone>\né\n</parameter>\n</function>\n</tool_call>",
        "Well. ",
        1,
    ),
    "tags without an end": ("<tool_call><function=time><parameter=zone>é", "", 1),
    "tags of another tool": ("<tool_call><function=other></function></tool_call>", "", 0),
    "a list": ("<|tool_call_start|>[time(zone=\"é\"), time(zone='é')]<|tool_call_end|>", "", 2),
    "a list after a text": ('One. <|tool_call_start|>[time(zone="é")]<|tool_call_end|>', "One. ", 1),
    "a list alone": ('[time(zone="é")]', "", 1),
    "a list of others": ("[tim](x) [3]", "[tim](x) [3]", 0),
    "a list without names": ('[time("é")]', '[time("é")]', 0),
    "half a marker of a list": ("a <|tool", "a <|tool", 0),
    "half a marker": ("a <tool_c", "a <tool_c", 0),
    "Mistral, names": (
        'One. [TOOL_CALLS]time[ARGS]{"zone": "é"}[TOOL_CALLS]time[CALL_ID]a1[ARGS]{"zone": "é"}',
        "One. ",
        2,
    ),
    "Mistral, a list": (f"[TOOL_CALLS] [{TIME}, {TIME}]", "", 2),
    "Mistral, another tool": ('[TOOL_CALLS]other[ARGS]{"zone": "é"}', 'other[ARGS]{"zone": "é"}', 0),
    "Mistral, no object": ("[TOOL_CALLS]time[ARGS]3", "time[ARGS]3", 0),
    "half a marker of Mistral": ("a [TOOL", "a [TOOL", 0),
    "Gemma 4": (
        '<|tool_call>call:time{zone:<|"|>é<|"|>}<tool_call|><|tool_call>call:time{zone:<|"|>é<|"|>}<tool_call|>',
        "",
        2,
    ),
    "FunctionGemma": ("<start_function_call>call:time{zone:<escape>é<escape>}<end_function_call>", "", 1),
    "Gemma 4, another tool": ("<|tool_call>call:other{}<tool_call|>", "", 0),
    "a list for a name": (
        '<tool_call>{"name": ["time"], "arguments": {}}',
        '<tool_call>{"name": ["time"], "arguments": {}}',
        0,
    ),
    "an object with a marker": ('{"name": "other", "x": "<tool_call>"}', '{"name": "other", "x": "<tool_call>"}', 0),
    "text between calls": (f"<tool_call>{TIME}</tool_call> and <tool_call>{TIME}</tool_call>", "", 2),
    "a string without an end": (f'<tool_call>{{"name": "other</tool_call><tool_call>{TIME}</tool_call>', "", 1),
    "Gemma 4, NaN": ("<|tool_call>call:time{zone:NaN}", "<|tool_call>call:time{zone:NaN}", 0),
    "too large a number": (
        '{"name": "time", "arguments": {"zone": 1e999}}',
        '{"name": "time", "arguments": {"zone": 1e999}}',
        0,
    ),
    "Gemma 4, half": ("<|tool_call>call:time{zone:", "<|tool_call>call:time{zone:", 0),
}


@pytest.mark.parametrize("name", FOUND)
def test_calls_that_a_model_chooses(name: str) -> None:
    text, content, count = FOUND[name]
    for size in (1, 2, 5, len(text)):
        reader = CallReader(SCHEMAS)
        pieces = [piece for i in range(0, len(text), size) for piece in reader.push(text[i : i + size])]
        pieces += reader.finish()
        calls = [piece for piece in pieces if isinstance(piece, Call)]
        assert "".join(piece.text for piece in pieces if isinstance(piece, Text)) == content
        assert [(call.name, json.loads(call.arguments)) for call in calls] == [("time", {"zone": "é"})] * count


MARKED = "a [TOOL_CALLS]</tool_call> \\' <tool_call>[ARGS]<|tool_call_end|><tool_call|>"
WITH_MARKS = {
    "tags of Qwen": "<tool_call>{json}</tool_call>",
    "alone": "{json}",
    "Mistral, names": "[TOOL_CALLS]time[ARGS]{arguments}[TOOL_CALLS]time[ARGS]{arguments}",
    "Mistral, a list": "[TOOL_CALLS][{json}, {json}]",
    "LFM2": "<|tool_call_start|>[time(zone={python})]<|tool_call_end|>",
    "Gemma 4": '<|tool_call>call:time{{zone:<|"|>{text}<|"|>}}<tool_call|>',
}


@pytest.mark.parametrize("name", WITH_MARKS)
def test_marks_in_strings_of_arguments_are_parts_of_them(name: str) -> None:
    arguments = json.dumps({"zone": MARKED})
    call = json.dumps({"name": "time", "arguments": {"zone": MARKED}})
    text = WITH_MARKS[name].format(json=call, arguments=arguments, python=repr(MARKED), text=MARKED)
    count = max(WITH_MARKS[name].count("{json}") + WITH_MARKS[name].count("{arguments}"), 1)
    for size in (1, 4, len(text)):
        reader = CallReader(SCHEMAS)
        pieces = [piece for i in range(0, len(text), size) for piece in reader.push(text[i : i + size])]
        assert [*pieces, *reader.finish()] == [Call("time", arguments)] * count


@pytest.mark.parametrize(
    ("before", "repeated"),
    [
        ('<tool_call>{"a": "', "[TOOL_CALLS]"),
        ('<tool_call>{"a": "', "</tool_call>"),
        ("[time(", '["[TOOL_CALLS]",'),
        ("", "abc "),
        ("", "<|channel|>"),
    ],
)
def test_time_grows_with_the_length_of_a_text(before: str, repeated: str) -> None:
    text, started = before + repeated * (30_000 // len(repeated)), time.process_time()
    for reader in (CallReader(SCHEMAS), HarmonyReader(SCHEMAS)):
        for i in range(0, len(text), 4):
            reader.push(text[i : i + 4])
        reader.finish()
    assert time.process_time() - started < 10  # it took minutes where each mark read the whole text again


def test_escaped_quotes_end_no_strings() -> None:
    arguments = json.dumps({"zone": '\\" </tool_call> \\'})
    text = f'<tool_call>{{"name": "time", "arguments": {arguments}}}</tool_call>'
    for size in (1, 3, len(text)):
        reader = CallReader(SCHEMAS)
        pieces = [piece for i in range(0, len(text), size) for piece in reader.push(text[i : i + size])]
        assert [*pieces, *reader.finish()] == [Call("time", arguments)]


def test_a_number_in_tags_that_json_lacks_is_a_text() -> None:
    pieces = CallReader({"f": {"properties": {"x": {"type": "number"}}}}).push(
        "<tool_call><function=f><parameter=x>NaN</parameter></function></tool_call>"
    )
    assert pieces == [Call("f", '{"x": "NaN"}')]


@pytest.mark.parametrize("size", [1, 3, len(TIME)])
def test_a_required_call_comes_in_pieces(size: int) -> None:
    reader = CallReader(SCHEMAS, required=True)
    call, *rest = [piece for i in range(0, len(TIME), size) for piece in reader.push(TIME[i : i + size])]
    assert call == Call("time", "")
    assert "".join(piece.text for piece in rest if isinstance(piece, Arguments)) == '{"zone": "é"}'
    assert reader.finish() == []


def test_a_text_without_tools() -> None:
    reader = CallReader(())
    assert reader.push(f"<tool_call>{TIME}") == [Text(f"<tool_call>{TIME}")]
    assert reader.push("") == reader.finish() == []


def test_a_call_in_json_is_not_parsed_as_python() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pieces = CallReader(["f"]).push(r'<tool_call>{"name": "f", "arguments": {"x": "\/"}}</tool_call>')
    assert pieces == [Call("f", '{"x": "/"}')]
    assert not caught


def test_arguments_in_tags_have_the_types_of_their_schemas() -> None:
    types = {"n": "integer", "deep": "object", "on": "boolean", "text": "string", "any": None}
    schema = {"properties": {name: {"type": kind} if kind else {} for name, kind in types.items()}}
    values = {"n": "3", "deep": '{"a": [1]}', "on": "True", "text": "3", "any": "4"}
    parameters = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in values.items())
    reader = CallReader({"f": schema})
    (call,) = reader.push(f"<tool_call>\n<function=f>\n{parameters}</function>\n</tool_call>")
    assert json.loads(call.arguments) == {"n": 3, "deep": {"a": [1]}, "on": True, "text": "3", "any": "4"}
    for text in ("[f(" * 5000, "[f(x=" + "(" * 20000):  # deep, and without an end
        assert [piece for piece in [*CallReader({"f": {}}).push(text)] if isinstance(piece, Call)] == []


@pytest.mark.parametrize("value", ["{1}", 'b"x"', "{(1, 2): 3}", "1e999", "1j", "..."])
def test_a_list_of_values_that_json_lacks_is_text(value: str) -> None:
    text = f"[time(zone={value})]"
    reader = CallReader(SCHEMAS)
    assert [*reader.push(text), *reader.finish()] == [Text(text)]


@pytest.mark.parametrize("properties", [None, [1], "zone"])
def test_tags_of_a_tool_whose_schema_is_none_are_read(properties: Any) -> None:
    reader = CallReader({"time": {"properties": properties}})
    text = "<tool_call><function=time><parameter=zone>3</parameter></function></tool_call>"
    assert [*reader.push(text), *reader.finish()] == [Call("time", '{"zone": "3"}')]


def test_arguments_of_gemma() -> None:
    """Strings hold what separates arguments elsewhere; numbers, lists and objects are as in JSON."""
    text = 'call:f{a:<|"|>x, "b": {c:1}<|"|>,n:-1.5,on:true,many:[1,<|"|>two<|"|>],in:{k-1:null}}'
    arguments = {"a": 'x, "b": {c:1}', "n": -1.5, "on": True, "many": [1, "two"], "in": {"k-1": None}}
    assert call_by_name(text, ["f"]) == ("f", arguments)
    assert call_by_name("call:f{a:x}", ["f"]) is None


# By name: an answer of gpt-oss, its text, its reasoning, and the number of calls.
HARMONY = {
    "text": ("<|channel|>final<|message|>It is 3 < 4.", "It is 3 < 4.", "", 0),
    "reasoning": (
        "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>é",
        "é",
        "Hm",
        0,
    ),
    "a call": (
        (
            "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary to=functions.time "
            '<|constrain|>json<|message|>{"zone": "é"}<|call|>'
        ),
        "",
        "Hm",
        1,
    ),
    "a recipient before the channel": (
        '<|start|>assistant to=functions.time<|channel|>commentary json<|message|>{"zone": "é"}',
        "",
        "",
        1,
    ),
    "a text before a call": (
        (
            "<|channel|>commentary<|message|>Let me see.<|end|><|start|>assistant<|channel|>commentary to=functions"
            '.time<|message|>{"zone": "é"}<|call|>'
        ),
        "Let me see.",
        "",
        1,
    ),
    "another tool": ("<|channel|>commentary to=browser.open<|message|>{}<|call|>", "", "{}", 0),
    "no start": ("<|channel|>analysis<|message|>Hm<|channel|>final<|message|>é", "é", "Hm", 0),
    "half a mark": ("<|channel|>final<|message|>a <|en", "a <|en", "", 0),
    "no channels": ("Hello", "Hello", "", 0),
    "a header at the end": ("<|channel|>final<|message|>a<|end|><|start|>assistant", "a", "", 0),
}


def test_reasoning_in_channels_is_marked_as_in_other_models() -> None:
    text, _, _, _ = HARMONY["reasoning"]
    assert "".join(with_reasoning(text)) == "<think>\nHm\n</think>\n\né"
    assert "".join(with_reasoning(HARMONY["text"][0])) == "It is 3 < 4."


@pytest.mark.parametrize("name", HARMONY)
def test_answers_in_channels(name: str) -> None:
    text, content, reasoning, count = HARMONY[name]
    for size in (1, 3, len(text)):
        reader = HarmonyReader(SCHEMAS)
        pieces = [piece for i in range(0, len(text), size) for piece in reader.push(text[i : i + size])]
        pieces += reader.finish()
        assert "".join(piece.text for piece in pieces if isinstance(piece, Text)) == content
        assert "".join(piece.text for piece in pieces if isinstance(piece, Reasoning)) == reasoning
        assert [piece for piece in pieces if isinstance(piece, Call)] == [Call("time", "")] * count
        arguments = "".join(piece.text for piece in pieces if isinstance(piece, Arguments))
        assert arguments == '{"zone": "é"}' * count
