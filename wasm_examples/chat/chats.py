"""A chat model answers: its chat template formats the conversation, and its cache keeps what it has read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from answers import Answer, Counts, Message, Settings

from tallow.generation import PromptCache
from tallow.generation.sampling import greedy
from tallow.models.causal_lm import CausalLM

if TYPE_CHECKING:
    from tallow.generation.constrain import Constraint

# A prompt is read in pieces, between which the page can stop it: about a second of work for a slow tab, in products of
# weights and tokens.
PIECE_WORK = 2e10
PIECE_TOKENS = 16, 512  # at least and at most
THINK = "<think>"
CHOOSES_THINKING = "enable_thinking"  # a variable of templates


class Chat:
    """A model with its tokenizer. Without a chat template, it continues the conversation as plain text."""

    def __init__(self, model: CausalLM) -> None:
        self.model = model
        self._cache = PromptCache(model)
        template = model.tokenizer.chat_template
        self._has_template = template is not None
        self._chooses_thinking = CHOOSES_THINKING in str(template)
        self._knows_tools = model.tokenizer.tells_of_tools()
        fewest, most = PIECE_TOKENS
        self._piece = int(min(most, max(fewest, PIECE_WORK / model.num_parameters())))

    def traits(self) -> dict[str, Any]:
        return {
            "chats": self._has_template,
            "thinks": self._chooses_thinking,
            "constrains": True,
            "tools": self._knows_tools,
        }

    def answer(self, messages: list[Message], settings: Settings) -> Iterator[Answer]:
        if not self._uses_tools(messages, settings):
            yield from self._write(messages, settings)
            return
        import tools  # not at the top: most conversations have no calls

        if settings.offers_tools:
            yield from tools.answer(messages, lambda told: self._write(told, settings, tools.ENTRIES))
        else:
            yield from self._write(tools.told(messages), settings)

    def count(self, messages: list[Message], settings: Settings) -> int:
        """Return the number of tokens of a conversation, up to the answer."""
        if not self._uses_tools(messages, settings):
            return len(self._encode(self._format(messages, settings, None)))
        import tools  # not at the top, as above

        entries = tools.ENTRIES if settings.offers_tools else None
        return len(self._encode(self._format(tools.told(messages), settings, entries)))

    def _uses_tools(self, messages: list[Message], settings: Settings) -> bool:
        return self._knows_tools and (settings.offers_tools or any("steps" in message for message in messages))

    def _write(
        self, messages: list[Message], settings: Settings, tools: list[dict[str, Any]] | None = None
    ) -> Iterator[Answer]:
        """Write the text that follows some messages. With tools, it may contain calls of them, which are valid."""
        prompt = self._format(messages, settings, tools)
        tokens = self._encode(prompt)
        limit = settings.room(len(tokens), self.model.context_length)
        counts = Counts(len(tokens), limit)
        counts.shown["reused"] = self._cache.shared(tokens)
        for read in self._read(tokens):
            counts.shown["read"] = read
            yield "", counts.shown
        if prompt.rstrip().endswith(THINK):
            yield f"{THINK}\n", counts.shown  # the template has begun the answer
        stops = self.model.stop_ids
        rules = self.model.generation_config.rules(tokens, limit, stops, self.model.vocab_size)
        generated = self._cache.generate(
            tokens,
            max_tokens=limit,
            sample=settings.sampler(),
            processors=[*rules, *([self._valid_calls] if tools else self._processors(settings))],
            stop_ids=stops,
        )
        yield from counts.pieces(self.model.tokenizer.decode_stream(counts.tokens(generated)))

    def _format(self, messages: list[Message], settings: Settings, tools: list[dict[str, Any]] | None) -> str:
        """Return the text of a conversation, up to the answer."""
        tokenizer = self.model.tokenizer
        if not self._has_template:
            return "\n\n".join(message["content"] for message in messages)
        thinks = settings.thinks and settings.schema is None
        return tokenizer.render_chat(messages, tools=tools, add_generation_prompt=True, enable_thinking=thinks)

    def _encode(self, prompt: str) -> list[int]:
        return self.model.tokenizer.encode_prompt(prompt, add_special_tokens=not self._has_template)

    def _read(self, tokens: list[int]) -> Iterator[int]:
        """Read the tokens of a prompt that are not in the cache yet, except the last ones; yield how many are read."""
        start = self._cache.shared(tokens)
        yield start
        for end in range(start + self._piece, len(tokens), self._piece):
            for _ in self._cache.generate(tokens[:end], max_tokens=1, sample=greedy):
                pass
            yield end

    def _processors(self, settings: Settings) -> list[Any]:
        if settings.schema is None:
            return []
        from tallow.generation import constrain  # not at the top: most answers are not constrained

        grammar = constrain.json_schema(settings.schema) if settings.schema.strip() else constrain.json_object()
        return [self.model.constraint(grammar)]

    @cached_property
    def _valid_calls(self) -> Constraint:
        import tools  # not at the top, as above

        from tallow.generation.tools import text_or_calls

        return self.model.constraint(text_or_calls(tools.SCHEMAS))
