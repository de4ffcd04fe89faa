"""A language model with its tokenizer, in one form for all kinds of tokenizers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from tallow.errors import ArgumentError, TokenizerError
from tallow.generation.constrain import Constraint, Grammar, Vocabulary
from tallow.generation.streaming import ByteDecoder, TextDecoder
from tallow.models.causal_lm import CausalLM
from tallow.text.llama2c import Llama2cTokenizer
from tallow.text.tokenizer import Tokenizer

DEMAND = 'demand a call with tool_choice "required", or use a chat model that was trained with tools'


@dataclass
class TextModel:
    """A model that continues texts, under the name by which clients ask for it.

    Args:
        words: its tokenizer.
        template: how a conversation becomes a prompt if the tokenizer has no chat template: "plain" joins the texts of
            the messages; None refuses conversations.
    """

    name: str
    model: CausalLM
    words: Tokenizer | Llama2cTokenizer
    template: str | None = None

    def __post_init__(self) -> None:
        self._vocabulary: Vocabulary | None = None
        # Texts share a constraint: what may follow in each of its states is found once.
        self._constraints: WeakKeyDictionary[Grammar, Constraint] = WeakKeyDictionary()

    @property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end a text."""
        return frozenset(self.model.config.eos_token_id) if self._is_plain else self.model.stop_ids

    @property
    def sampling(self) -> dict[str, Any]:
        """Arguments of a Sampler by the model's `generation_config.json`; those of OpenAI's API if it has none."""
        config = self.model.generation_config
        return {} if config.do_sample is None else config.sampling

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a prompt, BOS included if the model's tokenizer adds it.  Raises: TokenizerError"""
        if isinstance(self.words, Llama2cTokenizer):
            return self.words.encode(text, bos=True)
        tokens = self.words.encode(text)
        return [self.words.bos_token_id] if not tokens and self.words.bos_token_id is not None else tokens

    def encode_chat(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[dict[str, Any]] | None, *, required: bool = True
    ) -> list[int]:
        """Return the tokens of a conversation and the beginning of an answer.

        Args:    required: refuse tools if the prompt does not tell of them
        Raises:  TokenizerError without a chat template; ArgumentError if the template refuses the messages
        """
        if isinstance(self.words, Tokenizer) and self.words.chat_template is not None:
            prompt = self.words.render_chat(messages, tools=tools, add_generation_prompt=True)
            if tools and required and not self.words.tells_of_tools():
                raise ArgumentError(f"the chat template of {self.name} does not tell of tools", hint=DEMAND)
            return self.words.encode(prompt, add_special_tokens=False)
        if self.template != "plain":
            raise TokenizerError(f"{self.name} has no chat template", hint="use /v1/completions, or a chat model")
        if tools and required:
            raise ArgumentError(f"{self.name} does not choose tools", hint=DEMAND)
        return self.encode("\n".join(str(message["content"]) for message in messages))

    def decoder(self, prompt: Sequence[int]) -> TextDecoder:
        """Return the decoder of the tokens that follow a prompt."""
        if isinstance(self.words, Llama2cTokenizer):
            return ByteDecoder(self.words, prompt[-1])
        return self.words.stream_decoder(previous=prompt)

    def token_text(self, token: int) -> tuple[str, list[int]]:
        """Return a token's text and its bytes, for lists of log-probabilities."""
        data = self.vocabulary.tokens[token] if token < len(self.vocabulary) else None
        return (data or b"").decode(errors="replace"), list(data or b"")

    @property
    def vocabulary(self) -> Vocabulary:
        """The bytes of the tokens.  Raises: TokenizerError as `Tokenizer.token_bytes`"""
        if self._vocabulary is None:
            self._vocabulary = Vocabulary(self.words.token_bytes())
        return self._vocabulary

    def constraint(self, grammar: Grammar) -> Constraint:
        """Return the processor that keeps texts within a grammar.  Raises: as `vocabulary`"""
        if (known := self._constraints.get(grammar)) is None:
            known = self._constraints[grammar] = Constraint(grammar, self.vocabulary, self.stop_ids)
        return known

    @property
    def _is_plain(self) -> bool:
        return isinstance(self.words, Llama2cTokenizer)
