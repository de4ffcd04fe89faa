"""Chat templates: Jinja programs that format a conversation as the model was trained on it.

A template comes from an untrusted file: it runs in a sandbox, sees only plain data, and is stopped if it runs for too
long or produces too much text; see `template_sandbox`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from inspect import isroutine
from typing import Any

from tallow.errors import ArgumentError, ArgumentTypeError, MissingPackageError, TokenizerError
from tallow.text.chat_data import as_messages, cut_at_mark, mark_end, plain
from tallow.text.template_budget import Budget, Refusal
from tallow.text.tool_schema import tool_schema

MAX_SOURCE = 1 << 17  # characters; the longest known templates have about 20,000
MAX_MESSAGE = 1000  # maximum characters of an error that a template raises

Message = Mapping[str, Any]
"""One message: "role" ("system", "user", "assistant", ...), "content", and other keys that the template reads."""


class ChatTemplate:
    """A chat template, which formats conversations.

    Args:
        source: Jinja source of the template.
        tokens: special tokens that it may use, as {"bos_token": "<s>"}.
        name: name of the template in error messages.

    Raises:  TokenizerError for an invalid template; MissingPackageError

    Example:
        ChatTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}").render(messages)
    """

    def __init__(self, source: str, tokens: Mapping[str, str] | None = None, name: str = "the chat template") -> None:
        if len(source) > MAX_SOURCE:
            raise TokenizerError(f"{name} has {len(source)} characters; the maximum is {MAX_SOURCE}")
        self.source = source
        self.name = name
        self.tokens = dict(tokens or {})
        self._budget = Budget()
        self._lock = threading.Lock()  # a server's threads share a template, but a budget counts one rendering
        try:
            import jinja2  # optional: the extra `text`
        except ImportError as error:
            raise MissingPackageError("jinja2", name, "text") from error
        from tallow.text.template_sandbox import Sandbox  # needs jinja2

        self._sandbox = Sandbox(self._budget)
        try:
            self._template = self._sandbox.compile_template(source)
        except jinja2.TemplateSyntaxError as error:
            raise TokenizerError(f"{name}, line {error.lineno}: {error.message}"[:MAX_MESSAGE]) from error
        except (RecursionError, MemoryError) as error:
            raise TokenizerError(f"{name} nests too deeply") from error
        except Exception as error:  # Jinja and Python raise many kinds of errors for an invalid program
            raise TokenizerError(f"{name} is not a template: {_describe(error)}") from error

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any] | Callable[..., Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        **variables: Any,
    ) -> str:
        """Return the text of a conversation; see `render_marked`, which has the same arguments."""
        rendered, _ = self.render_marked(
            messages,
            tools=tools,
            documents=documents,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            **variables,
        )
        return rendered

    def render_marked(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any] | Callable[..., Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        **variables: Any,
    ) -> tuple[str, list[tuple[int, int]]]:
        """Return the text of a conversation, and where the answers are that the template marks by {% generation %}.

        The template sees messages without the keys whose value is None, and reasoning under the names
        `reasoning_content` and `thinking`, whichever of these or `reasoning` a message has, as in transformers.

        Args:
            tools: functions that the model may call: JSON schemas, or Python functions as `tool_schema` reads them.
            documents: texts that the model may quote.
            add_generation_prompt: end with the start of an answer.
            continue_final_message: end within the last message, so that the model continues its `content`, or the
                text of another key.
            variables: other variables that the template reads, such as enable_thinking.

        Raises:  ArgumentError without messages, if the template refuses them, or if the last one cannot be continued;
                 ArgumentTypeError for arguments that are not plain data; TokenizerError if the template fails, or does
                 not finish
        """
        if continue_final_message and add_generation_prompt:
            raise ArgumentError("continue_final_message with add_generation_prompt", hint="use one of them")
        if tools is not None:
            tools = [tool_schema(tool) if isroutine(tool) else tool for tool in tools]
        for name, entries in (("tool", tools), ("document", documents)):
            for i, entry in enumerate(entries or ()):
                if not isinstance(entry, Mapping):
                    raise ArgumentTypeError(f"{name} {i} is {entry!r:.200}", hint="pass dicts")
        data = {"messages": as_messages(messages), "tools": tools, "documents": documents, **variables}
        try:
            text = json.dumps(data, default=plain)  # templates must not call methods of other objects
        except (TypeError, ValueError, RecursionError) as error:
            raise ArgumentTypeError(f"{self.name} accepts only plain data: {error}") from error
        data = json.loads(text)
        end = None
        if continue_final_message:
            field = continue_final_message if isinstance(continue_final_message, str) else "content"
            end = mark_end(data["messages"], field, self.source)
        with self._lock:
            self._budget.begin(len(text), data)
            self._sandbox.written, self._sandbox.answers = 0, []
            rendered = self._render({**data, "add_generation_prompt": add_generation_prompt})
            answers = self._sandbox.answers
        return rendered if end is None else cut_at_mark(rendered, end), answers

    def literals(self) -> set[str]:
        """Return the texts that the template writes itself, and the strings in its expressions."""
        from jinja2 import nodes  # optional, as the template itself

        tree = self._sandbox.parse(self.source)
        texts = {node.data for node in tree.find_all(nodes.TemplateData)}
        return texts | {node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)}

    def _render(self, data: dict[str, Any]) -> str:
        parts = []
        try:
            for part in self._template.generate({**self.tokens, **data}):
                self._budget.make(len(part))
                self._sandbox.written += len(part)
                parts.append(part)
        except TokenizerError:
            raise
        except Refusal as error:
            raise ArgumentError(f"{self.name} refuses the messages: {error!s:.{MAX_MESSAGE}}") from error
        except (RecursionError, MemoryError) as error:
            raise TokenizerError(f"{self.name} does not finish") from error
        except Exception as error:  # a template is a program: it may raise any exception
            raise TokenizerError(f"{self.name} fails: {_describe(error)}") from error
        return "".join(parts)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:MAX_MESSAGE]


def choose_template(entry: Any, *, name: str | None = None, tools: bool = False) -> str | None:
    """Return the source from the `chat_template` of a `tokenizer_config.json`: a string, or a list of named ones.

    Args:
        name: name in the list; None means "default", or "tool_use" if there are tools and the list has it.

    Raises:  ArgumentError for a name that is not in the list
    """
    if isinstance(entry, str):
        if name is not None:
            raise ArgumentError(f"no chat template {name!r}: the only one has no name")
        return entry
    if not isinstance(entry, list):
        return None
    items = [item for item in entry if isinstance(item, dict) and isinstance(item.get("name"), str)]
    sources = {item["name"]: item.get("template") for item in items}
    key = name or ("tool_use" if tools and "tool_use" in sources else "default")
    source = sources.get(key)
    if isinstance(source, str):
        return source
    raise ArgumentError(f"no chat template {key!r}", hint=f"choose one of {', '.join(map(repr, sources))}")
