"""Chat templates of the Hub render conversations, as clients send them, to the texts of transformers.

Where transformers raises an error, tallow does, too.
"""

from __future__ import annotations

from typing import Any

import pytest
import tokenizers
import transformers
from support.hub_files import records

from tallow.errors import TallowError
from tallow.text.chat import ChatTemplate

pytest.importorskip("jinja2")

RECORDS = records("chat_templates")
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}

USER = {"role": "user", "content": "  What is the weather in Où?\n"}
SYSTEM = {"role": "system", "content": "You are terse."}
ANSWER = {"role": "assistant", "content": "Sunny."}
PARTS = [{"type": "text", "text": "Hello"}, {"type": "text", "text": "there "}]
CALL = {"type": "function", "id": "abcdefghi"}  # Mistral's templates want ids of nine characters
CALLS = [CALL | {"function": {"name": "weather", "arguments": {"city": "Où", "days": 2}}}]
CALLS_OF_TEXT = [CALL | {"function": {"name": "weather", "arguments": '{"city": "Où"}'}}]
RESULT = {"role": "tool", "tool_call_id": "abcdefghi", "name": "weather", "content": '{"sky": "rain"}'}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells <the> weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "where"},
                "days": {"type": "integer", "enum": [1]},
            },
            "required": ["city"],
        },
        "return": {"type": "string"},
    },
}
# What OpenAI's clients send back: everything that an answer does not have is null.
NULLS = {"role": "assistant", "content": None, "refusal": None, "audio": None, "function_call": None}

CHATS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "one turn": ([USER], {}),
    "a prompt": ([USER], {"add_generation_prompt": True}),
    "a system message": ([SYSTEM, USER], {"add_generation_prompt": True}),
    "turns": ([USER, ANSWER, {"role": "user", "content": "And?"}], {"add_generation_prompt": True}),
    "turns to the end": ([SYSTEM, USER, ANSWER, USER, ANSWER], {}),
    "two users": ([USER, USER], {}),
    "no user": ([ANSWER], {}),
    "an unknown role": ([{"role": "critic", "content": "no"}], {}),
    "no messages": ([], {}),
    "null content": ([USER, NULLS | {"tool_calls": CALLS}, RESULT], {"add_generation_prompt": True}),
    "null calls": ([USER, NULLS | {"content": "Hm.", "tool_calls": None}, USER], {"add_generation_prompt": True}),
    "tools": ([USER], {"tools": [TOOL], "add_generation_prompt": True}),
    "calls": (
        [SYSTEM, USER, {"role": "assistant", "content": "", "tool_calls": CALLS}, RESULT, ANSWER],
        {"tools": [TOOL, TOOL]},
    ),
    "calls of text": (
        [USER, {"role": "assistant", "tool_calls": CALLS_OF_TEXT}, RESULT],
        {"tools": [TOOL], "add_generation_prompt": True},
    ),
    "parts": ([{"role": "user", "content": PARTS}], {"add_generation_prompt": True}),
    "an image": ([{"role": "user", "content": [{"type": "image"}, PARTS[0]]}], {}),
    "thinking": (
        [USER, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSunny."}, USER],
        {"add_generation_prompt": True, "enable_thinking": False},
    ),
    "reasoning": ([USER, ANSWER | {"reasoning": "hm"}, USER, ANSWER | {"thinking": "so"}], {}),
    "documents": ([USER], {"documents": [{"title": "a", "text": "b"}, {"title": "c", "text": "d"}]}),
    "continued": ([USER, {"role": "assistant", "content": "It is "}], {"continue_final_message": True}),
    "continued parts": ([USER, {"role": "assistant", "content": PARTS}], {"continue_final_message": True}),
    "continued reasoning": (
        [USER, ANSWER | {"reasoning": "because"}],
        {"continue_final_message": "reasoning_content"},
    ),
    "continued nothing": ([USER, NULLS], {"continue_final_message": True}),
}


@pytest.fixture(scope="module")
def reference() -> Any:
    raw = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({t: i for i, t in enumerate(TOKENS.values())}, unk_token="<unk>")
    )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=raw, **TOKENS)


def same_text(reference: Any, template: ChatTemplate, chat: list[Any], options: dict[str, Any]) -> bool:
    """Compare the texts; return whether there is one."""
    try:
        expected = reference.apply_chat_template(chat, tokenize=False, chat_template=template.source, **options)
    except Exception:  # of templates, which raise any kind
        with pytest.raises(TallowError):
            template.render(chat, **options)
        return False
    assert template.render(chat, **options) == expected
    return True


@pytest.mark.skipif(not RECORDS, reason="no real data; set TALLOW_TEST_DATA")
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["source"])
def test_texts(reference: Any, record: dict[str, Any]) -> None:
    template = ChatTemplate(record["content"], TOKENS)
    rendered = sum(same_text(reference, template, *chat) for chat in CHATS.values())
    assert rendered >= 3  # the others are refused: no system message, no roles that follow each other, ...


# Parts of real templates, each with a feature that Jinja alone does not have or that is easily different.
FEATURES = r"""
{{ messages[0] | tojson(indent=2) }}{{ tools | tojson(separators=(',', ':'), ensure_ascii=True, sort_keys=True) }}
{{ tools | tojson(4) }}{{ "</script>é" | tojson }}
{{ dict.fromkeys(['a', 'b'], 0) | tojson }}{{ dict({'a': 1}, b=2) }}
{% generation %}{{ messages[0].content }}{% endgeneration %}
{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.role }}{% break %}{% endfor %}
{% set ns = namespace(n=1) %}{% for m in messages %}{% set ns.n = ns.n + loop.index %}{% endfor %}{{ ns.n }}
{% macro name(c) %}{{ c.function.name }}{{ caller() if caller }}{% endmacro %}{{ name(messages[2].tool_calls[0]) }}
{{ strftime_now('%Y') }}{% if tools is not none and tools %}T{% endif %}
{{ raise_exception('no ' ~ messages[0].role) }}
{{ messages[0].content.strip().split(' ')[-1].rstrip('\n') }}{{ messages[::-1][0].role }}
{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | map('trim') | list }}
{{ messages[2].content is defined }}{{ 'content' in messages[2] }}{{ messages[2].content | length }}
{{ messages[2].content }}{{ 'None' if messages[2].content is none }}{{ messages[1].get('x', 'y') }}
{{ messages[2].content | tojson }}
{% for part in messages[2].content %}{{ part }}{% endfor %}|
{{ '%s|%d' % (messages[0].role, 3) }}{{ "%05.2f" | format(3.14159) }}{{ '{x}'.format(x=bos_token) }}
""".strip().split("\n")


@pytest.mark.parametrize("template", FEATURES)
def test_features(reference: Any, template: str) -> None:
    chat = [SYSTEM, USER, NULLS | {"tool_calls": CALLS}, RESULT]
    same_text(reference, ChatTemplate(template, TOKENS), chat, {"tools": [TOOL]})
