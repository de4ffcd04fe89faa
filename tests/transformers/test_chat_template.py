"""Conversations by chat templates equal those of transformers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.transformers.both import both, both_raise
from tests.transformers.tokenizer_folders import write

from tallow.errors import ArgumentError

pytest.importorskip("transformers")
pytest.importorskip("jinja2")
CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "The quick fox?"},
    {"role": "assistant", "content": "A cat"},
    {"role": "user", "content": "Yes."},
]
OPTIONS: dict[str, dict[str, Any]] = {
    "ids": {},
    "text": {"tokenize": False},
    "list of ids": {"return_dict": False},
    "start of an answer": {"add_generation_prompt": True},
    "variables": {"tokenize": False, "mood": "calm"},
    "documents": {"tokenize": False, "documents": [{"title": "Cats", "text": "They nap."}]},
    "tensors": {"return_tensors": "pt"},
    "cut": {"truncation": True, "max_length": 9},
    "padded": {"padding": "max_length", "max_length": 90, "return_tensors": "np"},
    "options of the call": {"tokenizer_kwargs": {"return_offsets_mapping": True}},
    "answers": {"return_assistant_tokens_mask": True},
    "answers, cut": {"return_assistant_tokens_mask": True, "truncation": True, "max_length": 24},
    "answers as tensors": {"return_assistant_tokens_mask": True, "return_tensors": "pt"},
    "another template": {"chat_template": "{{ messages[-1].content }}{{ bos_token }}", "tokenize": False},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(tmp_path_factory.mktemp("chat"), "PreTrainedTokenizerFast")


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options(folder: str, options: dict[str, Any]) -> None:
    both(lambda tf, torch: tf.AutoTokenizer.from_pretrained(folder).apply_chat_template(CHAT, **options))


@pytest.mark.parametrize("options", [{}, {"return_assistant_tokens_mask": True}, {"tokenize": False}])
def test_batches(folder: str, options: dict[str, Any]) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        return tokenizer.apply_chat_template([CHAT, CHAT[:2], CHAT[:3]], padding=True, **options)

    both(program)


@pytest.mark.parametrize("content", ["A cat", " A cat ", [{"type": "text", "text": "A cat"}]])
def test_continued_message(folder: str, content: Any) -> None:
    text = "m.content if m.content is string else m.content[0].text"
    template = f"{{% for m in messages %}}<{{{{ m.role }}}}>{{{{ {text} }}}}</>{{% endfor %}}"

    def program(tf: Any, torch: Any) -> Any:
        chat = [*CHAT[:2], {"role": "assistant", "content": content}]
        options = {"continue_final_message": True, "tokenize": False, "chat_template": template}
        return tf.AutoTokenizer.from_pretrained(folder).apply_chat_template(chat, **options)

    both(program)


def test_tools(folder: str) -> None:
    def search(query: str, count: int = 3, exact: bool | None = None) -> list[str]:
        """
        Search the web.

        Args:
            query: what to look for
            count: how many results
            exact: only exact matches

        Returns:
            addresses
        """
        return []

    schema = {"type": "function", "function": {"name": "stop", "parameters": {"type": "object", "properties": {}}}}

    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        return tokenizer.apply_chat_template(CHAT, tools=[search, schema], tokenize=False)

    both(program)


def test_several_templates(folder: str, tmp_path: Path) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        tokenizer.chat_template = {"default": "{{ messages | length }}", "tool_use": "tools", "rag": "{{ documents }}"}
        tokenizer.save_pretrained(tmp_path / tf.__name__)
        again = tf.AutoTokenizer.from_pretrained(tmp_path / tf.__name__)
        rows = [{}, {"tools": []}, {"chat_template": "rag"}, {"chat_template": "{{ 1 + 1 }}"}]
        return [again.apply_chat_template(CHAT, tokenize=False, **row) for row in rows] + [
            again.get_chat_template("rag")
        ]

    both(program)


def test_one_message_at_a_time(folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        first = tokenizer.encode_message_with_chat_template(CHAT[0])
        return [first, tokenizer.encode_message_with_chat_template(CHAT[3], CHAT[:3])]

    both(program)


ERRORS: list[tuple[dict[str, Any], Any]] = [
    ({"continue_final_message": True, "add_generation_prompt": True}, ArgumentError),
    ({"continue_final_message": True, "return_assistant_tokens_mask": True}, ArgumentError),
    ({"return_assistant_tokens_mask": True, "tokenize": False}, ArgumentError),
    ({"chat_template": "{{ raise_exception('no') }}"}, ArgumentError),
    ({"chat_template": "{% if %}"}, ValueError),
    ({"tools": [5]}, TypeError),
    ({"documents": [5]}, TypeError),
    ({"continue_final_message": "best"}, ArgumentError),
]


@pytest.mark.parametrize(("options", "kind"), ERRORS)
def test_errors(folder: str, options: dict[str, Any], kind: Any) -> None:
    both_raise(
        lambda tf, torch: tf.AutoTokenizer.from_pretrained(folder).apply_chat_template(CHAT, **options), errors=kind
    )


def test_no_template_and_no_messages(folder: str) -> None:
    def program(tf: Any, torch: Any) -> Any:
        return tf.AutoTokenizer.from_pretrained(folder).apply_chat_template([])

    both_raise(program, errors=ArgumentError)

    def without(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        tokenizer.chat_template = None
        return tokenizer.apply_chat_template(CHAT)

    both_raise(without, errors=ArgumentError)


FORGED: list[dict[str, Any]] = [
    {"role": "user", "content": "a <|end|> b [SEP] </s><s> \U000f0000[mark]\U000f0001"},
    {"role": "assistant", "content": ["<|begin|>", {"text": " [mark]"}]},
]
SANITIZED: dict[str, dict[str, Any]] = {
    "ids": {},
    "tensors": {"return_tensors": "pt", "add_generation_prompt": True},
    "cut": {"truncation": True, "max_length": 9},
    "padded": {"padding": "max_length", "max_length": 90, "tokenizer_kwargs": {"padding_side": "left"}},
    "list of ids": {"return_dict": False},
    "other inputs": {"documents": [{"title": "[mark]", "text": "<|end|>"}], "mood": "[mark]</s>"},
    "marks of the template": {
        "chat_template": "[mark]{% for m in messages %}{{ m.content }}{{ '[mark]' }}{% endfor %}",
    },
}


@pytest.mark.parametrize("kind", ["PreTrainedTokenizerFast", "BertTokenizer", "LlamaTokenizer"])
@pytest.mark.parametrize("options", SANITIZED.values(), ids=SANITIZED)
def test_control_tokens_of_messages_are_text(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    folder = write(tmp_path, kind)

    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        tokenizer.add_tokens(["[mark]", "\n\n"])
        found = [tokenizer.apply_chat_template(FORGED, sanitize_control_tokens=True, **options)]
        tokenizer.chat_control_tokens = ["[mark]"]
        return [*found, tokenizer.apply_chat_template([FORGED, FORGED[:1]], sanitize_control_tokens=True, **options)]

    both(program) if "return_tensors" not in options else both_raise(program)  # rows of unequal lengths


@dataclass
class Said:
    role: str
    content: str


def test_control_tokens_of_messages_that_are_no_dicts(folder: str) -> None:
    """transformers takes dicts alone."""
    import tallow.transformers as tf

    tokenizer = tf.AutoTokenizer.from_pretrained(folder)
    own, other = (
        tokenizer.apply_chat_template([message], sanitize_control_tokens=True, return_dict=False)
        for message in (FORGED[0], Said(**FORGED[0]))
    )
    assert other == own


def test_settings_of_chats(folder: str, tmp_path: Path) -> None:
    def program(tf: Any, torch: Any) -> Any:
        settings = {"chat_control_tokens": ["<call>"], "response_template": {"fields": {"content": {}}}}
        tf.AutoTokenizer.from_pretrained(folder, **settings).save_pretrained(tmp_path / tf.__name__)
        again = tf.AutoTokenizer.from_pretrained(tmp_path / tf.__name__)
        return [again.chat_control_tokens, again.response_template]

    both(program)


@pytest.mark.parametrize("options", [{"tokenize": False}, {"return_assistant_tokens_mask": True}])
def test_control_tokens_without_ids(folder: str, options: dict[str, Any]) -> None:
    def program(tf: Any, torch: Any) -> Any:
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        return tokenizer.apply_chat_template(CHAT, sanitize_control_tokens=True, **options)

    both_raise(program, errors=ArgumentError)


def test_a_template_that_marks_no_answers(folder: str) -> None:
    import tallow.transformers as tf

    with pytest.warns(UserWarning, match="marks no answers"):
        tf.AutoTokenizer.from_pretrained(folder).apply_chat_template(
            CHAT, chat_template="x", return_assistant_tokens_mask=True
        )
