"""A language model with its tokenizer, as a server uses them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from tallow.errors import ArgumentError, MissingPackageError, TokenizerError
from tallow.generation import LogitsProcessor, channels
from tallow.generation.tools import MARKS as CALL_MARKS
from tallow.models.causal_lm import CausalLM
from tallow.serving.kept_grammars import KeptGrammars
from tallow.text.stream_decoder import MarkedDecoder, TextDecoder
from tallow.text.text_tokenizer import TextTokenizer

MAX_KEPT = 8  # sets of texts whose tokens are remembered
DEMAND = 'demand a call with tool_choice "required", or use a chat model that was trained with tools'


@dataclass(frozen=True)
class Rendering:
    """The use of a chat template.

    Args:
        variables: of the template, such as enable_thinking.
        documents: texts that the model may quote.
        begins_answer: end with the beginning of an answer.
        continues_last: end with the text of the last message, which the answer continues.
        adds_special: add what the tokenizer adds to a prompt, although templates write it themselves.
    """

    variables: Mapping[str, Any] = field(default_factory=dict)
    documents: Sequence[Mapping[str, Any]] | None = None
    begins_answer: bool = True
    continues_last: bool = False
    adds_special: bool = False


@dataclass
class TextModel:
    """A model that continues texts, under the name by which clients ask for it.

    Args:
        words: its tokenizer; becomes the model's `tokenizer`.
        template: how a conversation becomes a prompt if the tokenizer has no chat template: "plain" joins the texts of
            the messages; "named" does so for requests that name the model, whose senders know what it is; None refuses
            conversations.

    Attributes:
        grammars: those of its texts, which were read lately.
        tokens_with: function from texts to the tokens that contain one of them; it keeps its last results.
    """

    name: str
    model: CausalLM
    words: TextTokenizer
    template: str | None = None

    def __post_init__(self) -> None:
        self.model.tokenizer = self.words
        self.tokens_with = lru_cache(MAX_KEPT)(self._tokens_with)
        self.grammars = KeptGrammars(lambda grammar: self.model.constraint(grammar))

    @cached_property
    def capabilities(self) -> list[str]:
        """The uses of the model: "completion", "chat" with a chat template, "thinking" if it can choose to, "tools" if
        its template tells of them.
        """
        template = self.words.chat_template
        known = {"chat": template is not None, "thinking": "enable_thinking" in str(template)}
        with suppress(MissingPackageError):  # a list of models needs no Jinja
            known["tools"] = self.words.tells_of_tools()
        return ["completion", *(name for name, is_known in known.items() if is_known)]

    def _tokens_with(self, texts: tuple[str, ...]) -> frozenset[int]:
        """Return the tokens whose text contains one of some texts."""
        parts = [text.encode() for text in texts]
        words = enumerate(self.words.token_bytes())
        return frozenset(i for i, word in words if word is not None and any(part in word for part in parts))

    @property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end a text."""
        return self.model.stop_ids

    @property
    def sampling(self) -> dict[str, Any]:
        """Arguments of a Sampler by the model's `generation_config.json`; those of OpenAI's API if it says none."""
        config = self.model.generation_config
        return {"repetition_penalty": config.repetition_penalty} if config.do_sample is None else config.sampling

    def rules(
        self, prompt: Sequence[int], max_tokens: int, stop_ids: Collection[int] | None = None, **entries: Any
    ) -> list[LogitsProcessor]:
        """Return the processors by which the model's `generation_config.json` changes logits before a Sampler.

        Args:
            max_tokens: the most tokens that may follow the prompt.
            stop_ids: the tokens that end the text; None for the model's.
            entries: replace those of the file, as {"no_repeat_ngram_size": 3}.
        """
        config = replace(self.model.generation_config.without_sampling, **entries)
        stops = self.stop_ids if stop_ids is None else stop_ids
        return config.rules(prompt, max_tokens, stops, self.model.vocab_size)

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """Return the tokens of a prompt.

        Args:    special: add what the model's tokenizer adds, such as BOS
        Raises:  TokenizerError
        """
        return self.words.encode_prompt(text, add_special_tokens=special)

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[dict[str, Any]] | None,
        *,
        required: bool = True,
        rendering: Rendering | None = None,
    ) -> list[int]:
        """Return the tokens of a conversation and the beginning of an answer.

        Args:
            required: refuse tools if the prompt does not tell of them.
            rendering: how the chat template is used.

        Raises:  TokenizerError without a chat template; ArgumentError if the template refuses the messages, or does not
                 write the last one where an answer is to continue it
        """
        rendering = rendering or Rendering()
        if self.words.chat_template is not None:
            prompt = self.words.render_chat(
                messages,
                tools=tools,
                documents=rendering.documents,
                add_generation_prompt=rendering.begins_answer,
                continue_final_message=rendering.continues_last,
                **rendering.variables,
            )
            if tools and required and not self.words.tells_of_tools():
                raise ArgumentError(f"the chat template of {self.name} does not tell of tools", hint=DEMAND)
            return self.words.encode_prompt(prompt, add_special_tokens=rendering.adds_special)
        if self.template is None:
            raise TokenizerError(f"{self.name} has no chat template", hint="use /v1/completions, or a chat model")
        if tools and required:
            raise ArgumentError(f"{self.name} does not choose tools", hint=DEMAND)
        return self.encode("\n".join(str(message["content"]) for message in messages))

    def decoder(self, prompt: Sequence[int], *, show_special: bool = False, show_marks: bool = False) -> TextDecoder:
        """Return the decoder of the tokens that follow a prompt.

        Args:
            show_special: special tokens are part of the text.
            show_marks: those around calls of tools and in channels are.
        """
        decoder = self.words.stream_decoder(previous=prompt, skip_special_tokens=not show_special)
        return MarkedDecoder(decoder, self.marks) if show_marks and not show_special else decoder

    @cached_property
    def marks(self) -> dict[int, str]:
        """The special tokens around calls of tools, and those of "harmony", by id."""
        return channels.marks_of(self.words, (*CALL_MARKS, *channels.MARKS))

    @property
    def has_channels(self) -> bool:
        """True if answers have channels, as those of gpt-oss."""
        return channels.has_channels(self.marks.values())

    def prompt_pieces(self, tokens: Sequence[int]) -> list[str]:
        """Return the text that each token of a prompt adds to it; that of special tokens is empty."""
        decoder = self.words.stream_decoder()
        pieces = list(map(decoder.push, tokens))
        return [*pieces[:-1], pieces[-1] + decoder.finish()]

    def token_text(self, token: int) -> tuple[str, list[int]]:
        """Return a token's text and its bytes, for lists of log-probabilities."""
        text, data = self.words.token_text(token)
        return text, list(data)
