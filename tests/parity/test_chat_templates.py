"""Chat templates compared with transformers: equal conversations give equal texts and ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.chats import CHATML, HEADERS, TEMPLATES, save_tokenizer

from tallow.errors import ArgumentError
from tallow.text import Tokenizer

transformers = pytest.importorskip("transformers")

USER = {"role": "user", "content": '  Où est <the> "cat"? 🐈\n'}
ANSWER = {"role": "assistant", "content": "On the mat."}
SYSTEM = {"role": "system", "content": "You are terse."}
CHATS = {
    "one turn": [USER],
    "with a system": [SYSTEM, USER],
    "three turns": [USER, ANSWER, {"role": "user", "content": "And now?"}],
    "a system and three turns": [SYSTEM, USER, ANSWER, {"role": "user", "content": "{{ 7 * 7 }}"}],
    "two users": [USER, USER],
}
TOOL = {
    "type": "function",
    "function": {"name": "où", "description": "finds <cats>", "parameters": {"type": "object", "properties": {}}},
}


def load(folder: Path, chat_template: Any) -> tuple[Tokenizer, Any]:
    save_tokenizer(folder, chat_template)
    return Tokenizer.from_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("add_generation_prompt", [False, True])
@pytest.mark.parametrize("template", TEMPLATES)
def test_text_and_ids(tmp_path: Path, template: str, add_generation_prompt: bool) -> None:
    ours, theirs = load(tmp_path, TEMPLATES[template])
    compared = 0
    for chat in CHATS.values():
        options: dict[str, Any] = {"add_generation_prompt": add_generation_prompt, "date_string": "1 Jan 2026"}
        try:
            expected = theirs.apply_chat_template(chat, tokenize=False, **options)
        except Exception as refusal:  # Jinja's TemplateError, which transformers lets through
            with pytest.raises(ArgumentError, match=f"refuses the messages: {refusal}"):
                ours.render_chat(chat, **options)
            continue
        assert ours.render_chat(chat, **options) == expected
        ids = theirs.apply_chat_template(chat, return_dict=False, **options)
        assert ours.apply_chat_template(chat, **options) == ids
        compared += 1
    assert compared >= 3


def test_tools(tmp_path: Path) -> None:
    ours, theirs = load(tmp_path, HEADERS)
    options: dict[str, Any] = {"tools": [TOOL, TOOL], "date_string": "1 Jan 2026"}
    expected = theirs.apply_chat_template([USER], tokenize=False, **options)
    assert '"name": "où"' in expected
    assert ours.render_chat([USER], **options) == expected


def test_named_templates(tmp_path: Path) -> None:
    ours, theirs = load(tmp_path, {"default": CHATML, "tool_use": HEADERS, "short": "{{ messages | length }}"})
    for options in ({}, {"tools": [TOOL]}, {"chat_template": "short"}):
        expected = theirs.apply_chat_template([USER], tokenize=False, **options)
        assert ours.render_chat([USER], **options) == expected
    with pytest.raises(ArgumentError, match="no chat template 'long'"):
        ours.render_chat([USER], chat_template="long")


def test_streams_give_the_text_of_the_ids(tmp_path: Path) -> None:
    ours, theirs = load(tmp_path, CHATML)
    text = "<s>Once upon a time 🐈‍⬛ ñandú — 猫 cats.</s>"
    ids = theirs.encode(text)
    pieces = list(ours.decode_stream(ids))
    assert "".join(pieces) == theirs.decode(ids, skip_special_tokens=True)
    assert not any("�" in piece for piece in pieces)
    assert len(pieces) > 10
    middle = len(ids) // 2
    assert "".join(ours.decode_stream(ids[middle:], previous=ids[:middle])) == "".join(pieces).removeprefix(
        "".join(ours.decode_stream(ids[:middle]))
    )
