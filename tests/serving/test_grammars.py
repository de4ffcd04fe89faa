"""Grammars in requests: which are kept, and what a client sees of those that are none, or take too much."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest
from support.small_server import KEY, Running, connected, post

from tallow.generation.constrain import Constraint, Grammar, Vocabulary, regex
from tallow.serving import kept_grammars
from tallow.serving.http import server as server_module
from tallow.serving.http.limits import NO_DEADLINES
from tallow.serving.kept_grammars import KeptGrammars

HOSTILE = ".*[a-m].{40}|.*[aeiou].{40}|.*[bdfhjlnprtvxz].{40}|(.?){2000}"
SCHEMAS: list[Any] = [
    {"minimum": 10**310, "maximum": 1},
    {"required": [[1]]},
    {"oneOf": [{"type": [["string"]]}, {"type": "null"}]},
    {"$ref": "#/$defs/a", "minLength": 1, "$defs": {"a": 5}},
    {"$ref": "#/$defs/" + "9" * 5000},
    {"properties": {"a" * 9000: {}}, "additionalProperties": True},
    {"enum": [-1e999]},
    {"pattern": "a{" + "9" * 4400 + "}"},
    {"pattern": "[" * 100_001},
]


@pytest.fixture
def counted() -> tuple[KeptGrammars, Callable[[str], Grammar], list[str]]:
    """Return a store, what reads a grammar for it, and the texts that were read."""
    vocabulary = Vocabulary([None, b"a", b"b", b"ab"])
    read: list[str] = []

    def grammar_of(text: str) -> Grammar:
        read.append(text)
        return regex(text)

    return KeptGrammars(lambda grammar: Constraint(grammar, vocabulary, [0])), grammar_of, read


def test_grammars_are_kept_up_to_a_number_of_bytes(
    counted: tuple[KeptGrammars, Callable[[str], Grammar], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, grammar_of, read = counted
    monkeypatch.setattr(kept_grammars, "MAX_BYTES", 200_000)
    first = kept.constraint(grammar_of, "a*")
    for i in range(100):
        assert kept.constraint(grammar_of, "a*") is first  # used lately
        kept.constraint(grammar_of, f"b{{{i + 1}}}")
        assert kept.nbytes <= 200_000
    assert read.count("a*") == 1
    kept.constraint(grammar_of, "b{1}")
    assert read.count("b{1}") == 2
    kept.constraint(grammar_of, "(ab){400}")  # larger than all may be
    assert kept.nbytes <= 200_000


def test_what_is_found_for_texts_counts(
    counted: tuple[KeptGrammars, Callable[[str], Grammar], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, grammar_of, read = counted
    constraint = kept.constraint(grammar_of, "(a|b){200}")
    before = kept.nbytes
    monkeypatch.setattr(kept_grammars, "MAX_BYTES", before + 20_000)
    for length in range(100):
        constraint.allowed([1] * length, 4)
    assert kept.nbytes > before + 20_000
    kept.constraint(grammar_of, "a")
    assert kept.constraint(grammar_of, "(a|b){200}") is not constraint
    assert read == ["(a|b){200}", "a", "(a|b){200}"]


@pytest.mark.parametrize("schema", SCHEMAS, ids=[str(i) for i in range(len(SCHEMAS))])
def test_a_schema_that_is_none_gets_a_client_error(server: Running, schema: Any) -> None:
    answers = [
        post(server, "/v1/completions", {"prompt": "a", "json_schema": schema}),
        post(server, "/v1/completions", {"prompt": "a", "guided_json": json.dumps(schema), "stream": True}),
        post(server, "/generate", {"inputs": "a", "parameters": {"grammar": {"type": "json", "value": schema}}}),
    ]
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    chat = {"messages": [{"role": "user", "content": "a"}], "tools": [tool], "tool_choice": "required"}
    answers.append(post(server, "/v1/chat/completions", chat))
    assert [status for status, _, _ in answers] == [400, 400, 422, 400]


def test_an_ambiguous_pattern_gets_a_client_error(server: Running) -> None:
    for fields in ({"regex": HOSTILE}, {"json_schema": {"pattern": HOSTILE}}):
        status, answer, _ = post(server, "/v1/completions", {"prompt": "a", "max_tokens": 5, **fields})
        assert status == 400
        assert "configurations" in answer["error"]["message"] or "nodes" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("path", "prompt"),
    [("/v1/completions", {"prompt": "a"}), ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]})],
)
def test_a_stream_says_which_texts_an_error_ends(
    server: Running, monkeypatch: pytest.MonkeyPatch, path: str, prompt: dict[str, Any]
) -> None:
    monkeypatch.setattr("tallow.generation.constrain.constraint.MAX_PER_TEXT", 2000)
    fields = {"regex": "([a-z]{1,9} ){30}", "max_tokens": 100, "stream": True, "n": 2}
    with connected(server) as connection:
        connection.request("POST", path, json.dumps(prompt | fields), {"Authorization": f"Bearer {KEY}"})
        lines = connection.getresponse().read().decode().split("\n\n")
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line]
    choices = chain.from_iterable(each["choices"] for each in events[:-2])
    assert any(choice.get("text") or choice.get("delta", {}).get("content") for choice in choices)
    assert [(each["index"], each["finish_reason"]) for each in events[-2]["choices"]] == [(0, "error"), (1, "error")]
    assert "configurations" in events[-1]["error"]["message"]


def test_a_server_lets_its_threads_take_turns_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the garbage collector, which stops all of them, does not look at what was there before."""
    usual = sys.getswitchinterval()
    seen: list[tuple[float, int]] = []
    monkeypatch.setattr(server_module, "Server", lambda *args, **options: SimpleNamespace(run=run))

    def run(sockets: object) -> None:
        seen.append((sys.getswitchinterval(), gc.get_freeze_count()))

    app: Any = None
    server_module.serve(app, app, deadlines=NO_DEADLINES, drain_timeout_s=1, on_end=lambda: None)
    ((switch_s, count),) = seen
    assert switch_s == pytest.approx(0.0005)
    assert count > 10_000
    assert (sys.getswitchinterval(), gc.get_freeze_count()) == (usual, 0)
