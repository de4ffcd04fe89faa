"""Chat templates: their output, what they are not allowed to do, and their limits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from tallow.errors import ArgumentError, ArgumentTypeError, TokenizerError
from tallow.text import template_budget
from tallow.text.chat import ChatTemplate, choose_template
from tallow.text.marks import Marks, PostProcessor, Text
from tallow.text.tokenizer import Tokenizer

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


def test_keys_without_a_value_are_missing() -> None:
    source = "{% for m in messages %}{{ m.role }}:{{ m.content }}{{ 'x' in m }}{% endfor %}"
    messages = [{"role": "a", "content": None, "x": None}, {"role": "b", "content": "", "x": 0}]
    assert ChatTemplate(source).render(messages) == "a:Falseb:True"
    assert messages[0]["content"] is None  # the caller's own are as they were


def test_messages_of_other_types() -> None:
    @dataclass
    class Message:
        role: str
        content: Any = None

    class Model:
        def model_dump(self) -> dict[str, Any]:
            return {"role": "b", "content": [{"text": np.str_("c"), "n": np.int64(3)}], "audio": None}

    source = "{% for m in messages %}{{ m }}{% endfor %}"
    assert ChatTemplate(source).render([Message("a"), Model()]) == (  # type: ignore[list-item]
        "{'role': 'a'}{'role': 'b', 'content': [{'text': 'c', 'n': 3}]}"
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{% for m in messages %}<{{ m.content }}>\n{% endfor %}", "<Be kind.>\n<<b> é "),
        ("{% for m in messages %}<{{ m.content | trim }}>\n{% endfor %}", "<Be kind.>\n<<b> é"),
    ],
)
def test_the_last_message_is_continued(source: str, expected: str) -> None:
    messages = [CHAT[0], {"role": "assistant", "content": "<b> é "}]
    assert ChatTemplate(source).render(messages, continue_final_message=True) == expected


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("{{ messages[0].content }}", {}, "leaves it out"),
        ("{{ messages[0].role }}", {}, "does not read 'content'"),
        ("{{ messages[1].x }}", {"continue_final_message": "x"}, "no 'x'"),
        ("{{ messages[1].content }}", {"add_generation_prompt": True}, "with add_generation_prompt"),
    ],
)
def test_messages_that_cannot_be_continued(source: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        render(source, **{"continue_final_message": True} | options)


def test_no_messages_and_no_dicts() -> None:
    with pytest.raises(ArgumentError, match="without messages"):
        ChatTemplate("").render([])
    with pytest.raises(ArgumentTypeError, match="message 0 is 3"):
        ChatTemplate("").render([3])  # type: ignore[list-item]
    with pytest.raises(ArgumentTypeError, match="tool 0 is"):
        ChatTemplate("").render(CHAT, tools=["f"])  # type: ignore[list-item]


def test_a_template_refuses_messages() -> None:
    with pytest.raises(ArgumentError, match="the chat template refuses the messages: no system"):
        render("{{ raise_exception('no system') }}")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{% for %}", "line 1: Expected an expression"),
        ("\n{{ 1", "line 2"),
        ("{% macro f() %}", "line 1: Unexpected end of template"),
        ("{{ messages.x.y }}", "fails: UndefinedError"),
        ("{{ 1 / 0 }}", "fails: ZeroDivisionError"),
        ("{{ ''.__class__.__mro__ }}", "fails: SecurityError"),
        ("{{ messages.append(1) }}", "fails: SecurityError"),
        ("{{ messages | no_such_filter }}", "line 1: No filter named"),
        ("{% include 'x' %}", "line 1: include is not allowed in a chat template"),
        ("{% extends 'x' %}", "line 1: extends is not allowed"),
        ("{% from 'x' import y %}", "line 1: fromimport is not allowed"),
        ("{% block x %}{{ self.x() }}{% endblock %}", "line 1: block is not allowed"),
        ("{% autoescape true %}{% endautoescape %}", "line 1: scopedevalcontextmodifier is not allowed"),
        ("{% break %}", "SyntaxError"),
        ("{{ dict(a=1, a=2) }}", "SyntaxError"),
        ("{% macro f(a, a) %}{% endmacro %}", "SyntaxError"),
        ("{% for a in b %}" * 25 + "{% endfor %}" * 25, "SyntaxError"),
        ("{{ " + "1" * 5000 + " }}", "ValueError"),
        ("{{ 0x" + "f" * 5000 + " }}", "ValueError"),
        ("{{ 1e999 }}", "fails: NameError"),
        ("{{ 1.5 ** 9999 }}", "fails: OverflowError"),
        ("{{ range(1000000000) }}", "fails: OverflowError"),
        ("{{ 'abcdef' | truncate(1) }}", "fails: AssertionError"),
        ("{{ cycler() }}", "fails: RuntimeError"),
        ("{{ strftime_now('\\ud800') }}", "fails: Unicode"),
        ("{{ {}['a', 'b'] }}", "fails: TypeError: a tuple in square brackets"),
        ("{{ {('a', 'b'): 1} }}", "something other than strings and small numbers as keys"),
        ("{{ {4294967296: 1} }}", "something other than strings and small numbers as keys"),
        ("{{ dict([(1024, 1)]) }}", "dict\\(\\) with a int as a key"),
        ("{{ namespace(__class__=1) }}", "fails: SecurityError"),
        ("{{ lipsum() }}", "fails: UndefinedError: 'lipsum'"),
        ("{{ (1).to_bytes(1000000000) }}", "fails: SecurityError"),
        ("{{ {}.keys() - {}.keys() }}", "fails: TypeError"),
        ("{{ [1] | map(' step') | list }}", "fails: TypeError: unknown filter"),
        ("{{ " + "1 + " * 999 + "1 }}", "too large, or nests too deeply"),
        ("{{ " + "1 + " * 30000 + "1 }}", "too large, or nests too deeply"),
        ("{% if a %}" * 31 + "{% endif %}" * 31, "too large, or nests too deeply"),
        ("{% if a %}" * 90 + "{% endif %}" * 90, "too large, or nests too deeply"),
        ("{{ a }}" * 7000, "too large, or nests too deeply"),
        ("".join(f"{{% set v{i} = 1 %}}" for i in range(501)), "too large, or nests too deeply"),
        ("(" * 10 + "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "nests too deeply"),
        ("x" * (1 << 17) + "y", "characters; the maximum is 131072"),
    ],
)
def test_invalid_templates(source: str, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        render(source)


ENDLESS = [
    "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
    "{% for a in range(9999) %}{% for b in range(9999) if false %}{% endfor %}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}",
    "{% for n in [40] recursive %}{% if n %}{{ loop([n - 1, n - 1]) }}{% endif %}{% endfor %}",
    "{% for a in range(9999) %}{% set x = [" + "[], " * 500 + "] %}{% endfor %}",
    "{{ [1] | slice(1000000000) }}",
    "{% set l = range(90000) | list %}{% for a in range(9999) %}{% set x = -1 in l %}{% endfor %}",
    "{% set l = range(90000) | list %}{% for a in range(9999) %}{% set x = l | sort %}{% endfor %}",
    "{% set l = range(90000) | list %}{% for a in range(9999) %}{% set x = l | select('odd') %}{% endfor %}",
    "{% set l = [{}] * 9 %}{{ l | sort(attribute='a,' * 1000000) }}",
    "{% set s = 'a' * 1000000 %}{% for a in range(9999) %}{% set x = 'ab' in s %}{% endfor %}",
    "{% set s = 'a' * 1000000 %}{% for a in range(9999) %}{% set x = s.find('ab') %}{% endfor %}",
    "{% set s = 'a' * 9999 %}{% set t = 'a' * 40 ~ 'b' %}{% for a in range(999) %}{% set x = s.count(t) %}{% endfor %}",
    "{% set s = 'a' * 1000000 %}{% for a in range(9999) %}{% set x = s.strip('bcdefgha') %}{% endfor %}",
    "{% set s = 'a' * 1000000 %}{% set t = s ~ '' %}{% for a in range(9999) %}{% set x = s == t %}{% endfor %}",
    "{% set s = 'a' * 1000000 %}{% for a in range(9999) %}{% set x = s.isalpha() %}{% endfor %}",
    "{% for a in range(9999) %}{% set x = 0.5 in range(100000) %}{% endfor %}",
]
TWICE = "{% set n = namespace(a=(1,), b=(1,)) %}{% for i in range(60) %}"
TWICE += "{% set n.a = (n.a, n.a) %}{% set n.b = (n.b, n.b) %}{% endfor %}"
TWICE_LONGER_AT_EVERY_LEVEL = [
    "{{ n.a }}",
    "{{ n.a ~ '' }}",
    "{{ n.a | tojson }}",
    "{{ n.a | upper }}",
    "{{ n.a is lower }}",
    "{{ n.a == n.b }}",
    "{{ n.a is eq(n.b) }}",
    "{{ n.a < n.b < n.a }}",
    "{{ n.a in [n.b] }}",
    "{{ [n.a] | select('in', [n.b]) }}",
    "{{ [n.a].index(n.b) }}",
    "{{ [n.a] | unique }}",
    "{{ [n.a, n.b] | sort }}",
    "{{ [n.a, n.b] | max }}",
    "{{ [[n.a], [n.b]] | groupby(0) }}",
    "{{ [n.a] | join }}",
    "{{ '%s' % (n.a,) }}",
    "{{ '%s' | format(n.a) }}",
    "{{ '{}'.format(n.a) }}",
    "{{ '{!r}'.format(n.a) }}",
    "{{ raise_exception(n.a) }}",
    "{% for i in [n.a, n.b] %}{{ loop.changed(i) }}{% endfor %}",
    "{% set n.c = [n, n] %}{{ n.c }}",
]


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the step limit of templates, so that tests are fast."""
    monkeypatch.setattr(template_budget, "STEPS", 1 << 16)


@pytest.mark.parametrize("source", ENDLESS)
def test_endless_templates_are_stopped(source: str, small_budget: None) -> None:
    with pytest.raises(TokenizerError, match="does not finish within"):
        render(source)


@pytest.mark.parametrize("source", TWICE_LONGER_AT_EVERY_LEVEL)
def test_exponentially_long_values_are_not_traversed(source: str, small_budget: None) -> None:
    with pytest.raises(TokenizerError, match="does not finish within"):
        render(TWICE + source)


def test_the_budget_ends_quickly() -> None:
    with pytest.raises(TokenizerError, match="does not finish within 2"):
        render(ENDLESS[0])


@pytest.mark.parametrize(
    "source",
    [
        "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
        "{% for m in messages recursive %}{{ loop([m, m]) }}{% endfor %}",
    ],
)
def test_endless_recursion_is_stopped(source: str) -> None:
    with pytest.raises(TokenizerError, match="nests calls more than 100 levels"):
        render(source)


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(9999) %}" + "x" * 100000 + "{% endfor %}",
        "{% for a in range(9999) %}{% set t %}" + "x" * 100000 + "{% endset %}{% endfor %}",
        "{% macro f() %}" + "x" * 100000 + "{% endmacro %}{% for a in range(9999) %}{% set t = f() %}{% endfor %}",
        "{{ 'a' * 10**9 }}",
        "{{ 10**9 * [1] }}",
        "{{ 'a'.ljust(1000000000) }}",
        "{{ 'a'.zfill(1000000000) }}",
        "{{ 'a' | center(1000000000) }}",
        "{{ '\t'.expandtabs(1000000000) }}",
        "{{ '\t'.expandtabs(tabsize=1000000000) }}",
        "{{ '%1000000000s' % 1 }}",
        "{{ '%.1000000000f' % 1 }}",
        "{{ '%(a)1000000000s' % {'a': 1} }}",
        "{{ '%1000000000s' | format(1) }}",
        "{{ '%1000000000d' is odd }}",
        "{{ '%1000000000s' is divisibleby(1) }}",
        "{{ ['%1000000000d'] | select('even') | list }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ '{:{}}'.format(1, 1000000000) }}",
        "{{ '{a:1000000000}'.format_map({'a': 1}) }}",
        "{{ ('{:1000000000}' | safe).format(1) }}",
        "{{ '%s' * 10000 % (('a' * 10000,) * 10000) }}",
        "{{ [1] | tojson(indent=1000000000) }}",
        "{{ range(1000) | list | tojson(separators=('a' * 1000000, ':')) }}",
        "{% set s = 'a' * 100000 %}{{ s.replace('a', s) }}",
        "{% set s = 'a' * 100000 %}{{ s | replace('', s) }}",
        "{% set s = 'a' * 100000 %}{{ s.join(range(10000) | map('string')) }}",
        "{% set s = 'a' * 100000 %}{{ range(10000) | join(s) }}",
        "{{ ('\n' * 1000) | indent(10000000) }}",
        "{{ [1] | batch(1000000000, 1) }}",
        "{% set s = '<' * 1000000 %}{% for a in range(9999) %}{% set x = s | e %}{% endfor %}",
        "{% set s = '<' * 1000000 %}{% for a in range(9999) %}{% set x = s + ('' | safe) %}{% endfor %}",
        "{% set s = '<' * 1000000 %}{% for a in range(9999) %}{% set x = s[1:] %}{% endfor %}",
        "{% set l = range(90000) | list %}{% for a in range(9999) %}{% set x = l[1:] %}{% endfor %}",
        "{% set l = range(90000) | list %}{% for a in range(9999) %}{% set x = cycler(*l) %}{% endfor %}",
        "{% for a in ('x' * 10000000) | list %}{% endfor %}",
        "{% set n = namespace(l=[]) %}{% for a in range(9999) %}{% set n.l = n.l + ['a' * 1000000] %}{% endfor %}",
        "{% set n = namespace(s='ab') %}{% for a in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
        "{% set n = namespace(s='ab') %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
        "{% set n = namespace(s='ab') %}{% for a in range(99) %}{% set n.s = [n.s, n.s] | join %}{% endfor %}",
    ],
)
def test_endless_texts_are_stopped(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_budget, "CHARACTERS", 1 << 23)
    with pytest.raises(TokenizerError, match="makes more than"):
        render(source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{% set x = 1000000000 %}{{ 10 ** x }}", "a power of more than 2048 bits"),
        (
            "{% set n = namespace(x=3) %}{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}",
            "a number of more",
        ),
        ("{{ 5 | round(-1000000000) }}", "rounds to -1000000000 digits"),
        ("{{ ('f' * 1000000) | int(base=16) }}", "a number of 1000000 characters"),
        ("{{ '%*s' % (1000000000, 1) }}", "a width above 1000"),
        ("{{ '%.*f' % (1000000000, 1) }}", "a width above 1000"),
        ("{{ strftime_now('%Y' * 1000) }}", "a date with 2000 characters"),
    ],
)
def test_huge_numbers_are_refused(source: str, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        render(source)


def test_hash_collisions_do_not_slow_sets_down() -> None:
    source = "{% set n = namespace(l=[]) %}{% for i in range(500) %}{% set n.l = n.l + [i * 2305843009213693951] %}"
    source += "{% endfor %}{{ (n.l + [1, 1.0, true, 2**61, 2.0**61, 'a', 'a']) | unique | list | length }}"
    assert render(source) == "503"


def test_nothing_is_computed_while_a_template_is_compiled() -> None:
    ChatTemplate("{{ '%1000000000s' % 1 }}{{ 'a'.ljust(1000000000) }}{{ 'a' * 1000000000 }}{{ 10 ** 10 ** 10 }}")
    ChatTemplate("{{ 'a' | center(1000000000) }}{% set x = '%.1000000000f' | format(1) %}{{ 1 / 0 }}")


def test_iterators_can_be_used_once_as_generators() -> None:
    assert render("{% set m = messages | map('upper') %}{{ m | list | length }}{{ m | list | length }}") == "20"
    assert render("{% if messages | selectattr('x') %}yes{% endif %}") == "yes"


def test_a_long_conversation_fits_into_the_budget() -> None:
    chat = [{"role": "user", "content": f" {'word ' * 200}{i} "} for i in range(1000)]
    source = "{% set n = namespace(seen=[]) %}{% for m in messages %}{% set text = m['content'] | trim %}"
    source += "{% if '</think>' in text %}{% set text = text.split('</think>')[-1].lstrip('\\n') %}{% endif %}"
    source += "{% set n.seen = n.seen + [text] %}{{ '<|' + m.role + '|>' + text + '<|end|>' }}{% endfor %}"
    expected = "".join(f"<|user|>{m['content'].strip()}<|end|>" for m in chat)
    assert len(expected) > 1_000_000
    assert ChatTemplate(source).render(chat) == expected


@pytest.mark.parametrize(
    "source",
    [
        "{% set n.x = [n.x] %}",
        "{% set n.x = {'a': n.x} %}",
        "{% set n.x = [n.x] | batch(1) | list %}",
        "{% set n.x = namespace(x=n.x) %}",
        "{% set a = n.x %}{% if loop.first %}{% set a = namespace() %}{% endif %}{% set n.x = a %}",
        "{% set n.x = cycler(n.x) %}",
        "{% set n.x = [n.x] | reverse %}",
        "{% set n.x = {'a': n.x}.items() %}",
        "{% set p = n.x %}{% macro f() %}{{ p }}{% endmacro %}{% set n.x = f %}",
    ],
)
def test_values_too_deep_to_free_are_refused(source: str) -> None:
    with pytest.raises(TokenizerError, match=r"nests values more than 100 levels deep|neither text nor a list"):
        render("{% set n = namespace(x=1) %}{% for i in range(90000) %}" + source + "{% endfor %}")
    assert (
        render("{% set n = namespace(x=1) %}{% for i in range(9000) %}{% set n.x = {'a': n.x}.b %}{% endfor %}ok")
        == "ok"
    )


def test_every_rendering_has_a_budget_of_its_own() -> None:
    template = ChatTemplate("{% for i in range(90000) %}{% endfor %}ok")
    assert {template.render(CHAT) for _ in range(15)} == {"ok"}


def test_messages_are_plain_data() -> None:
    with pytest.raises(ArgumentTypeError, match="message 1 is 'hello'"):
        ChatTemplate("").render([CHAT[0], "hello"])  # type: ignore[list-item]
    endless: list[Any] = []
    endless.append(endless)
    for thing in (object(), endless):
        with pytest.raises(ArgumentTypeError, match="only plain data"):
            render("{{ thing }}", thing=thing)


def test_choice_of_templates() -> None:
    several = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    assert choose_template("x") == "x"
    assert choose_template(None) is None
    assert choose_template(several) == choose_template(several, name="default", tools=True) == "d"
    assert choose_template(several, tools=True) == choose_template(several, name="tool_use") == "t"
    with pytest.raises(ArgumentError, match="choose one of 'default', 'tool_use'"):
        choose_template(several, name="rag")
    with pytest.raises(ArgumentError, match="the only one has no name"):
        choose_template("x", name="rag")


@pytest.mark.parametrize("item", [{"name": {}}, {"name": [1], "template": "x"}, {"template": "x"}, 3, {"name": None}])
def test_templates_without_a_name_cannot_be_chosen(item: Any) -> None:
    with pytest.raises(ArgumentError, match="no chat template 'default'"):
        choose_template([item])
    assert choose_template([item, {"name": "default", "template": "d"}]) == "d"


class Letters:
    """A tokenizer whose tokens are bytes; token 0 is special."""

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: Sequence[int], special: bool) -> str:
        return bytes(i for i in ids if i).decode(errors="replace")

    def token_to_id(self, token: str) -> int | None:
        return 0 if token == "<s>" else None


def test_a_tokenizer_applies_its_template() -> None:
    config = {"bos_token": {"content": "<s>"}, "add_bos_token": True}
    config["chat_template"] = "{{ bos_token }}{% for m in messages %}{{ m.role[0] }}{% endfor %}"
    start = Marks((0,), 0)
    tokenizer = Tokenizer(Letters(), json.loads(json.dumps(config)), PostProcessor((start, Text(0, 0))))
    assert tokenizer.bos_token_id == 0
    assert tokenizer.render_chat(CHAT) == "<s>su"
    # without special tokens: the template wrote them itself
    assert tokenizer.apply_chat_template(CHAT) == list(b"<s>su")
    tokenizer.chat_template = "{{ messages | length }}"
    assert tokenizer.render_chat(CHAT) == "2"


def test_a_tokenizer_without_a_template_says_so() -> None:
    with pytest.raises(TokenizerError, match="no chat template\n  hint: use a chat model"):
        Tokenizer(Letters()).apply_chat_template(CHAT)


def test_streams_never_split_a_character() -> None:
    text = "naïve 🐈 cats"
    tokenizer = Tokenizer(Letters())
    assert list(tokenizer.decode_stream(text.encode())) == list(text)
    assert list(tokenizer.decode_stream([0, *b"a\xc3"])) == ["a", "�"]
    assert list(tokenizer.decode_stream(b"fe", previous=b"ca")) == ["f", "e"]
