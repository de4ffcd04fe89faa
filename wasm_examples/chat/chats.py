"""A chat model answers: its chat template formats the conversation, and its cache keeps what it has read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from answers import Answer, Counts, Message, Settings

from tallow.generation import PromptCache
from tallow.generation.sampling import greedy
from tallow.models.causal_lm import CausalLM

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
        fewest, most = PIECE_TOKENS
        self._piece = int(min(most, max(fewest, PIECE_WORK / model.num_parameters())))

    def traits(self) -> dict[str, Any]:
        return {"chats": self._has_template, "thinks": self._chooses_thinking, "constrains": True}

    def answer(self, messages: list[Message], settings: Settings) -> Iterator[Answer]:
        prompt = self._format(messages, settings)
        tokens = self.model.tokenizer.encode(prompt, add_special_tokens=not self._has_template)
        limit = settings.room(len(tokens), self.model.context_length)
        counts = Counts(len(tokens), limit)
        counts.shown["reused"] = self._cache.shared(tokens)
        for read in self._read(tokens):
            counts.shown["read"] = read
            yield "", counts.shown
        if prompt.rstrip().endswith(THINK):
            yield f"{THINK}\n", counts.shown  # the template has begun the answer
        generated = self._cache.generate(
            tokens,
            max_tokens=limit,
            sample=settings.sampler(),
            processors=self._processors(settings),
            stop_ids=self.model.stop_ids,
        )
        yield from counts.pieces(self.model.tokenizer.decode_stream(counts.tokens(generated)))

    def _format(self, messages: list[Message], settings: Settings) -> str:
        """Return the text of a conversation, up to the answer."""
        tokenizer = self.model.tokenizer
        if not self._has_template:
            return "\n\n".join(message["content"] for message in messages)
        thinks = settings.thinks and settings.schema is None
        return tokenizer.render_chat(messages, add_generation_prompt=True, enable_thinking=thinks)

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
