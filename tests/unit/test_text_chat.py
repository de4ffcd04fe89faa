"""Chat templates: what they write, what they may not do, and how they come to an end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from tallow.errors import ArgumentError, ArgumentTypeError, TokenizerError
from tallow.text.chat import ChatTemplate, choose_template
from tallow.text.tokenizer import Encoded, Tokenizer

pytest.importorskip("jinja2")

CHAT = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "<b> é"}]


def render(source: str, **options: Any) -> str:
    return ChatTemplate(source, {"bos_token": "<s>"}).render(CHAT, **options)


def test_helpers() -> None:
    assert render("{{ bos_token }}{{ eos_token }}{{ messages | length }}") == "<s>2"
    assert render("{{ messages[1] | tojson }}") == '{"role": "user", "content": "<b> é"}'
    assert render("{{ messages[0].content | tojson(indent=2) }}") == '"Be kind."'
    assert render("{{ strftime_now('%Y') }}") in {str(datetime.now().year), str(datetime.now().year - 1)}
    assert render("{{ messages[0]['role'] ~ (1 + 2) }}") == "system3"
    assert (
        render("{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.role }}{% endfor %}") == "user"
    )


def test_blocks_leave_no_space() -> None:
    assert render("a\n  {% if true %}\nb\n  {% endif %}\nc") == "a\nb\nc"


def test_loops_know_where_they_are() -> None:
    source = "{% for m in messages if m.content %}{{ loop.index }}{{ loop.last }}{{ loop.length }} {% endfor %}"
    assert render(source) == "1False2 2True2 "
    assert (
        render("{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}") == "role=system;content=Be kind.;"
    )
    assert render("{% for x in nothing %}{% else %}none{% endfor %}") == "none"


def test_variables() -> None:
    assert render("{{ add_generation_prompt }} {{ tools }} {{ enable_thinking }}", enable_thinking=False) == (
        "False None False"
    )


def test_a_template_refuses_messages() -> None:
    with pytest.raises(ArgumentError, match="the chat template refuses the messages: no system"):
        render("{{ raise_exception('no system') }}")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("{% for %}", "line 1: Expected an expression"),
        ("\n{{ 1", "line 2"),
        ("{% macro f() %}", "line 1: Unexpected end of template"),
        ("{{ messages.x.y }}", "fails: UndefinedError"),
        ("{{ 1 / 0 }}", "fails: ZeroDivisionError"),
        ("{{ ''.__class__.__mro__ }}", "fails: SecurityError"),
        ("{{ messages.append(1) }}", "fails: SecurityError"),
        ("{{ messages | no_such_filter }}", "line 1: No filter named"),
        ("{% include 'x' %}", "fails: TypeError"),
        ("(" * 10 + "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "nests too deeply"),
        ("x" * (1 << 20) + "y", "characters; 1048576 are enough"),
    ],
)
def test_what_is_no_template(source: str, says: str) -> None:
    with pytest.raises(TokenizerError, match=says):
        render(source)


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
        "{% for m in messages recursive %}{{ loop([m, m]) }}{% endfor %}",
    ],
)
def test_endless_templates_are_stopped(source: str) -> None:
    with pytest.raises(TokenizerError, match="does not come to an end"):
        render(source)


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(9999) %}{% for b in range(50) %}" + "x" * 100 + "{% endfor %}{% endfor %}",
        "{{ 'a' * 10**9 }}",
        "{{ 10**9 * [1] }}",
        "{{ 'a'.ljust(1000000000) }}",
        "{{ 'a' | center(1000000000) }}",
        "{% set n = namespace(s='ab') %}{% for a in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
        "{% set n = namespace(s='ab') %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
        "{% set n = namespace(s='ab') %}{% for a in range(99) %}{% set n.s = [n.s, n.s] | join %}{% endfor %}",
    ],
)
def test_endless_texts_are_stopped(source: str) -> None:
    with pytest.raises(TokenizerError, match="a text of more than"):
        render(source)


def test_huge_powers_are_refused() -> None:
    with pytest.raises(TokenizerError, match="a power of 1000000000"):
        render("{% set x = 1000000000 %}{{ 10 ** x }}")


def test_every_rendering_has_a_budget_of_its_own() -> None:
    template = ChatTemplate("{% for i in range(90000) %}{% endfor %}ok")
    assert {template.render(CHAT) for _ in range(15)} == {"ok"}


def test_messages_are_plain_data() -> None:
    with pytest.raises(ArgumentTypeError, match="message 1 is 'hello'"):
        ChatTemplate("").render([CHAT[0], "hello"])  # type: ignore[list-item]
    with pytest.raises(ArgumentTypeError, match="plain data only"):
        render("{{ thing }}", thing=object())


def test_choice_of_templates() -> None:
    several = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    assert choose_template("x") == "x"
    assert choose_template(None) is None
    assert choose_template(several) == choose_template(several, name="default", tools=True) == "d"
    assert choose_template(several, tools=True) == choose_template(several, name="tool_use") == "t"
    with pytest.raises(ArgumentError, match="there are 'default', 'tool_use'"):
        choose_template(several, name="rag")
    with pytest.raises(ArgumentError, match="one without a name"):
        choose_template("x", name="rag")


class Letters:
    """An engine whose tokens are bytes; 0 is a special one."""

    def encode(self, text: str, pair: str | None, special: bool) -> Encoded:
        ids = [0] * special + list(text.encode())
        return Encoded(ids, [0] * len(ids))

    def decode(self, ids: Sequence[int], special: bool) -> str:
        return bytes(i for i in ids if i).decode(errors="replace")

    def token_to_id(self, token: str) -> int | None:
        return 0 if token == "<s>" else None


def test_a_tokenizer_applies_its_template() -> None:
    config = {"bos_token": {"content": "<s>"}, "add_bos_token": True}
    config["chat_template"] = "{{ bos_token }}{% for m in messages %}{{ m.role[0] }}{% endfor %}"
    tokenizer = Tokenizer(Letters(), json.loads(json.dumps(config)))
    assert tokenizer.bos_token_id == 0
    assert tokenizer.render_chat(CHAT) == "<s>su"
    assert tokenizer.apply_chat_template(CHAT) == list(b"<s>su")  # without special tokens, which it has written itself
    tokenizer.chat_template = "{{ messages | length }}"
    assert tokenizer.render_chat(CHAT) == "2"


def test_a_tokenizer_without_a_template_says_so() -> None:
    with pytest.raises(TokenizerError, match="no chat template\n  mend: take a model that is trained to chat"):
        Tokenizer(Letters()).apply_chat_template(CHAT)


def test_streams_never_split_a_character() -> None:
    text = "naïve 🐈 cats"
    tokenizer = Tokenizer(Letters())
    assert list(tokenizer.decode_stream(text.encode())) == list(text)
    assert list(tokenizer.decode_stream([0, *b"a\xc3"])) == ["a", "�"]
    assert list(tokenizer.decode_stream(b"fe", previous=b"ca")) == ["f", "e"]
