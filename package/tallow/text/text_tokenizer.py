"""The tokenizer of a language model: prompts and conversations to ids, and ids to text as they come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from tallow.errors import ArgumentError, TokenizerError
from tallow.text.chat import ChatTemplate, Message, choose_template
from tallow.text.stream_decoder import TextDecoder, pieces_of


class TextTokenizer(ABC):
    """The base of tokenizers with which language models read and write, whatever file they come from.

    Attributes:
        bos_token_id: the token that begins a text; None for none.
        eos_token_id: the token that ends a text; None for none.
        chat_template: Jinja source, a list of named sources as in `tokenizer_config.json`, or None.
    """

    bos_token_id: int | None = None
    eos_token_id: int | None = None
    chat_template: Any = None
    _template: ChatTemplate | None = None

    @abstractmethod
    def encode_prompt(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Return the ids of a text that a model continues: BOS for an empty one, if the tokenizer has it.

        Args:    add_special_tokens: add what the model expects around a text, such as BOS
        Raises:  TokenizerError for a text with lone surrogates
        """

    @abstractmethod
    def token_bytes(self) -> list[bytes | None]:
        """Return the bytes that each id adds to a text; None for special tokens and unused ids.

        Raises:  TokenizerError for a vocabulary whose tokens are no parts of the text, such as WordPiece
        """

    @abstractmethod
    def stream_decoder(self, *, previous: Sequence[int] = (), skip_special_tokens: bool = True) -> TextDecoder:
        """Return what `decode_stream` uses, for ids that come one at a time.

        Args:
            previous: the ids before the first one, such as a prompt's.
            skip_special_tokens: leave their text out.
        """

    def decode_stream(self, ids: Iterable[int], *, previous: Sequence[int] = ()) -> Iterator[str]:
        """Yield the text of a stream of ids, in pieces that never split a character, without special tokens.

        Args:  previous: the ids before the first one, such as a prompt's
        """
        return pieces_of(self.stream_decoder(previous=previous), ids)

    @property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end a text."""
        return frozenset() if self.eos_token_id is None else frozenset([self.eos_token_id])

    @cached_property
    def _bytes(self) -> list[bytes | None]:
        return self.token_bytes()

    def token_text(self, token: int) -> tuple[str, bytes]:
        """Return the text of a token, where U+FFFD stands for a part of a character, and its bytes. Both are empty for
        special tokens and unused ids.

        Raises:  as `token_bytes`
        """
        data = (self._bytes[token] if token < len(self._bytes) else None) or b""
        return data.decode(errors="replace"), data

    def apply_chat_template(
        self,
        messages: Sequence[Message],
        *,
        chat_template: str | None = None,
        tools: Sequence[Mapping[str, Any] | Callable[..., Any]] | None = None,
        add_generation_prompt: bool = False,
        **variables: Any,
    ) -> list[int]:
        """Return the ids of a conversation, formatted by the chat template.

        Args:
            chat_template: the name of one of several; None means "default", or "tool_use" if there are tools and it
                exists.
            tools, add_generation_prompt, variables: as for `ChatTemplate.render`

        Raises:  as in `render_chat`
        """
        text = self.render_chat(
            messages,
            chat_template=chat_template,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            **variables,
        )
        return self.encode_prompt(text, add_special_tokens=False)

    def render_chat(
        self,
        messages: Sequence[Message],
        *,
        chat_template: str | None = None,
        tools: Sequence[Mapping[str, Any] | Callable[..., Any]] | None = None,
        **variables: Any,
    ) -> str:
        """Return the text of a conversation, with special tokens; arguments as for `apply_chat_template`.

        Raises:  TokenizerError if there is no template, or it fails; ArgumentError if it refuses the messages;
                 MissingPackageError
        """
        source = choose_template(self.chat_template, name=chat_template, tools=bool(tools))
        if source is None:
            raise TokenizerError(
                "the tokenizer has no chat template",
                hint="use a chat model, often named -Instruct or -Chat; or set chat_template",
            )
        if self._template is None or self._template.source != source:
            self._template = ChatTemplate(source, self.special_tokens())
        return self._template.render(messages, tools=tools, **variables)

    def tells_of_tools(self) -> bool:
        """Return whether the chat template puts the tools of a conversation into the prompt."""
        tool = {"type": "function", "function": {"name": "f", "description": "", "parameters": {"type": "object"}}}
        messages = [{"role": "user", "content": "?"}]
        try:
            return self.render_chat(messages, tools=[tool]) != self.render_chat(messages)
        except (ArgumentError, TokenizerError):
            return False  # no template, or one that refuses every conversation

    def special_tokens(self) -> dict[str, str]:
        """Return the special tokens that a chat template may write, by name, as {"bos_token": "<s>"}."""
        return {}
