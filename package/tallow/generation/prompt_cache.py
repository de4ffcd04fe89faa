"""Prompts that begin as the last text did, as a conversation's do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from tallow.generation.sequence import LanguageModel, check_prompt, generate


class GrowingModel(LanguageModel, Protocol):
    """What is needed of a model whose cache grows, and can forget what it read last."""

    def new_cache(self, *, length: int | None = None, growing: bool = False, sliding: bool = True) -> Any: ...


class PromptCache:
    """Generates as `generate` does, and reads of each prompt only what does not begin as the text before.

    Example:
        cache = PromptCache(model)
        answer = list(cache.generate(prompt, max_tokens=100))
        list(cache.generate([*prompt, *answer, *question], max_tokens=100))  # the model reads the question only
    """

    def __init__(self, model: GrowingModel) -> None:
        self._model = model
        self._cache = model.new_cache(growing=True, sliding=False)
        self._text: list[int] = []  # what the cache has read, and at most one token more

    def generate(self, tokens: Sequence[int], *, max_tokens: int | None, **options: Any) -> Iterator[int]:
        """As `generate`; a text that is not taken to its end is remembered as far as it was made."""
        check_prompt(self._model, tokens, max_tokens)
        self._cache.truncate(min(self._common(tokens), len(tokens) - 1))
        self._text = list(tokens)
        made = generate(self._model, tokens, max_tokens=max_tokens, cache=self._cache, **options)
        return self._noted(made)

    def _common(self, tokens: Sequence[int]) -> int:
        """How many tokens the cache has read that `tokens` begins with."""
        read = self._text[: self._cache.length]
        pairs = enumerate(zip(read, tokens, strict=False))
        return next((i for i, (old, new) in pairs if old != new), min(len(read), len(tokens)))

    def _noted(self, tokens: Iterator[int]) -> Iterator[int]:
        for token in tokens:
            self._text.append(token)
            yield token
