"""Chat templates: Jinja programs that come with a model, and write a conversation as the model was trained to read it.

They are as trustworthy as any file: they run in a sandbox, see nothing but plain data, and are stopped when they go on
for too long or make too much text; `template_sandbox` says how.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from tallow.errors import ArgumentError, ArgumentTypeError, MissingPackageError, TokenizerError
from tallow.text.template_budget import Budget, Refusal

MAX_SOURCE = 1 << 17  # characters; the longest in use have some 20,000
MAX_MESSAGE = 1000  # characters of an error that a template raises

Message = Mapping[str, Any]
"""What somebody says: "role" ("system", "user", "assistant", ...), "content", and whatever else a template knows."""


class ChatTemplate:
    """Writes conversations.

    Args:
        source: of the template.
        tokens: special tokens that it may name, as {"bos_token": "<s>"}.
        name: of the template in error messages.

    Raises:  TokenizerError for what is no template; MissingPackageError

    Example:
        ChatTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}").render(messages)
    """

    def __init__(self, source: str, tokens: Mapping[str, str] | None = None, name: str = "the chat template") -> None:
        if len(source) > MAX_SOURCE:
            raise TokenizerError(f"{name} has {len(source)} characters; {MAX_SOURCE} are enough")
        self.source = source
        self.name = name
        self._tokens = dict(tokens or {})
        self._budget = Budget()
        self._lock = threading.Lock()  # threads of a server share a template, and a budget is for one rendering
        try:
            import jinja2  # optional: the extra `text`
        except ImportError as error:
            raise MissingPackageError("jinja2", name, "text") from error
        from tallow.text.template_sandbox import Sandbox  # needs jinja2

        try:
            self._template = Sandbox(self._budget).compiled(source)
        except jinja2.TemplateSyntaxError as error:
            raise TokenizerError(f"{name}, line {error.lineno}: {error.message}"[:MAX_MESSAGE]) from error
        except (RecursionError, MemoryError) as error:
            raise TokenizerError(f"{name} nests too deeply") from error
        except Exception as error:  # Jinja and Python raise whatever they like for a program that is none
            raise TokenizerError(f"{name} is no template: {_said(error)}") from error

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        **variables: Any,
    ) -> str:
        """The text of a conversation.

        Args:
            tools: functions that the model may call, as JSON schemas.
            documents: texts that it may quote.
            add_generation_prompt: end with what begins an answer.
            variables: whatever else the template reads, such as enable_thinking.

        Raises:  ArgumentError when the template refuses the messages; ArgumentTypeError for what is not plain data;
                 TokenizerError when the template fails, or does not come to an end
        """
        for i, message in enumerate(messages):
            if not isinstance(message, Mapping):
                raise ArgumentTypeError(f'message {i} is {message!r}; a message is {{"role": ..., "content": ...}}')
        data = {"messages": list(map(dict, messages)), "tools": tools, "documents": documents, **variables}
        try:
            written = json.dumps(data)  # the methods of other objects are no template's business
        except (TypeError, ValueError, RecursionError) as error:
            raise ArgumentTypeError(f"{self.name} reads plain data only: {error}") from error
        with self._lock:
            data = json.loads(written)
            self._budget.begin(len(written), data)
            return self._rendered({**data, "add_generation_prompt": add_generation_prompt})

    def _rendered(self, data: dict[str, Any]) -> str:
        parts = []
        try:
            for part in self._template.generate({**self._tokens, **data}):
                self._budget.make(len(part))
                parts.append(part)
        except TokenizerError:
            raise
        except Refusal as error:
            raise ArgumentError(f"{self.name} refuses the messages: {error!s:.{MAX_MESSAGE}}") from error
        except (RecursionError, MemoryError) as error:
            raise TokenizerError(f"{self.name} does not come to an end") from error
        except Exception as error:  # a template is a program: it may raise whatever Python has
            raise TokenizerError(f"{self.name} fails: {_said(error)}") from error
        return "".join(parts)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:MAX_MESSAGE]


def choose_template(entry: Any, *, name: str | None = None, tools: bool = False) -> str | None:
    """The source that the `chat_template` of a `tokenizer_config.json` gives: one, or a list of named ones.

    Args:
        name: of a list's; None means "default", or "tool_use" where there are tools and the list has it.

    Raises:  ArgumentError for a name that is not in the list
    """
    if isinstance(entry, str):
        if name is not None:
            raise ArgumentError(f"no chat template {name!r}: there is one without a name")
        return entry
    if not isinstance(entry, list):
        return None
    items = [item for item in entry if isinstance(item, dict) and isinstance(item.get("name"), str)]
    named = {item["name"]: item.get("template") for item in items}
    wanted = name or ("tool_use" if tools and "tool_use" in named else "default")
    source = named.get(wanted)
    if isinstance(source, str):
        return source
    raise ArgumentError(f"no chat template {wanted!r}", mend=f"there are {', '.join(map(repr, named))}")
