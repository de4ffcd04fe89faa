"""Messages of models' answers, by response templates, equal those of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.transformers.both import both, both_raise
from tests.transformers.tokenizer_folders import write

from tallow.errors import ArgumentError, MissingNameError

pytest.importorskip("transformers")
CALLS = {"open": "<call>", "close": "</call>", "content": "json", "repeats": True}
TAGS = {"tag_pattern": r"<arg=(?P<key>\w+)>(?P<value>.*?)</arg>", "merge_duplicates": True}
TEMPLATES: dict[str, dict[str, Any]] = {
    "thoughts and calls": {
        "start_anchor": "[assistant]",
        "defaults": {"role": "assistant"},
        "fields": {
            "thinking": {"open": "<think>", "close": "</think>"},
            "content": {"close": ["[/]", "<|end|>"]},
            "tool_calls": CALLS | {"transform": {"type": "function", "function": "{content}"}},
        },
    },
    "functions by name": {
        "start_anchor_pattern": r"\[assist\w+\]",
        "fields": {
            "content": {"content_args": {"strip": False}},
            "tool_calls": {
                "open_pattern": r"<call>\s*<function=(?P<name>\w+)>",
                "close": "</call>",
                "repeats": True,
                "content": "xml-inline",
                "content_args": TAGS,
                "transform": {"function": {"name": "{name}", "arguments": "{content}"}},
            },
        },
    },
    "kinds of values": {
        "start_anchor": ["A:", "A:B"],
        "fields": {
            "parts": {"open": ["<p>", "<p><b>"], "close": "</p>", "repeats": True, "join": "|"},
            "count": {"open": "<n>", "close": "\n", "content": "int"},
            "is_sure": {"open": "<sure>", "close": "</sure>", "content": "bool"},
            "lines": {"open": "<kv>", "content": "kv-lines", "content_args": {"value_parser": {"name": "float"}}},
        },
    },
    "loose json": {
        "start_anchor": "A:",
        "fields": {
            "data": {
                "open": "<d>",
                "close": "</d>",
                "content": "json",
                "optional": False,
                "content_args": {"unquoted_keys": True, "string_delims": [["<q>", "</q>"]], "allow_non_json": True},
            },
            "names": CALLS | {"transform": "{name}", "transform_each": True},
        },
    },
}
ANSWERS: dict[str, list[str]] = {
    "thoughts and calls": [
        'Hm.</think> Yes <call>{"name": "f", "arguments": {"x": "7", "y": "a"}}</call> it is[/]more',
        "<think>a<call> b",
        " \n",
        "<call>{bad}</call>",
    ],
    "functions by name": [
        "one <call>\n<function=g><arg=x>1</arg><arg=x>2.0</arg><arg=y>true\n</arg></call>two <call><function=f></call>",
        "none",
    ],
    "kinds of values": ["x<p>a</p><p><b>b</p><n> 12\n<sure>True</sure><kv>k: 1.5\nl:2", "<n>two\n", "<p>a"],
    "loose json": ['<d>{k:<q>a "b"</q>,l:[1]}</d>', '<d>none</d><call>[{"name": "f"}]</call>', "x"],
}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {"type": "integer"}}}}},
    {
        "name": "g",
        "parameters": {
            "properties": {
                "x": {"type": ["integer", "null"]},
                "y": {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
            }
        },
    },
]
PROMPTS = ["", "no anchor <think>", "[user] hi [assistant]<think>\n", "A: x A:<p>b"]
CASES = [(name, text) for name, texts in ANSWERS.items() for text in texts]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(tmp_path_factory.mktemp("answers"), "PreTrainedTokenizerFast")


@pytest.mark.parametrize(("name", "answer"), CASES)
def test_answers(name: str, answer: str, folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        found: list[Any] = []
        for prompt in PROMPTS:
            for tools in (None, TOOLS):
                for size in (1000, 3):  # whole, and in pieces
                    try:
                        parser = tokenizer.get_response_parser(TEMPLATES[name], prefix=prompt, tools=tools)
                        events = [parser.initial_events]
                        events += [parser.feed(answer[i : i + size]) for i in range(0, len(answer), size)]
                        found += [events, parser.finalize()]
                    except (ValueError, KeyError):
                        found.append("an answer of another form")
        return found

    both(program)


def test_batches_and_ids(folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        tokenizer.response_template = TEMPLATES["thoughts and calls"]
        texts = ['yes <call>{"a": 1}</call>', "no"]
        ids = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
        prompt = tokenizer.encode("[assistant]<think>", add_special_tokens=False)
        return [
            tokenizer.parse_response(texts, prefix=""),
            tokenizer.parse_response(texts, prefix=["", "[assistant]<think>"]),
            tokenizer.parse_response(ids, prefix=[]),
            tokenizer.parse_response(ids[0], prefix=prompt),
            tokenizer.parse_response(torch.tensor(ids[0]), prefix=torch.tensor(prompt)),
        ]

    both(program)


WRONG: list[Any] = [
    5,
    {"start_anchor": "A"},
    {"start_anchor": "A", "fields": {}},
    {"fields": {"a": {}}},
    {"start_anchor": "A", "fields": {"a": {}, "b": {}}},
    {"start_anchor": "A", "fields": {"a": {"best": 1}}},
    {"start_anchor": "A", "fields": {"a": {}}, "best": 1},
    {"start_anchor": "A", "fields": {"a": {}}, "version": 2},
    {"start_anchor": "A", "fields": {"a": {"content": "yaml"}}},
    {"start_anchor": "A", "fields": {"a": {"open": ""}}},
    {"start_anchor": "A", "fields": {"a": {"open": "b", "open_pattern": "b"}}},
    {"start_anchor": "A", "fields": {"a": {"open_pattern": "("}}},
    {"start_anchor": "A", "fields": {"a": {"open_pattern": "(?P<x>a)"}}},
    {"start_anchor": "A", "fields": {"a": {"join": ","}}},
    {"start_anchor": "A", "fields": {"a": {"transform_each": True}}},
    {"start_anchor": "A", "fields": {"a": {"transform": "the {content}"}}},
    {"start_anchor": "A", "fields": {"a": {"content": "xml-inline"}}},
    {"start_anchor": "A", "fields": {"a": {"transform": "{best}"}}},
]


@pytest.mark.parametrize("template", WRONG)
def test_wrong_templates(template: Any, folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        return tf.AutoTokenizer.from_pretrained(folder).parse_response("a", template, prefix="")

    both_raise(program, errors=ValueError)


def test_wrong_calls(folder: str) -> None:
    def call(*args: Any, errors: Any = ArgumentError, **options: Any) -> None:
        both_raise(
            lambda tf, torch: tf.AutoTokenizer.from_pretrained(folder).parse_response(*args, **options), errors=errors
        )

    template = TEMPLATES["thoughts and calls"]
    call("a", template)
    call("a", prefix="", errors=MissingNameError)
    call(["a"], template, prefix=["", ""])


def test_a_pipeline_returns_messages(folder: str, tmp_path: Path) -> None:
    template = {"start_anchor": "[assistant]", "defaults": {"role": "assistant"}, "fields": {"content": {}}}
    template["fields"]["vowel"] = {"open_pattern": "(?P<letter>[aeiou])", "close_pattern": ".", "transform": "{letter}"}
    options = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}

    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder, response_template=template)
        if not (tmp_path / "config.json").exists():  # the same weights for both
            config = tf.LlamaConfig(**options, vocab_size=len(tokenizer), num_key_value_heads=2, eos_token_id=None)
            tf.LlamaForCausalLM(config).save_pretrained(tmp_path)
        model = tf.LlamaForCausalLM.from_pretrained(tmp_path)
        pipe = tf.pipeline("text-generation", model, tokenizer=tokenizer)
        return pipe([{"role": "user", "content": "Hello"}], max_new_tokens=9, do_sample=False)

    both(program)
