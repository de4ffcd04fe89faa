"""Reuse a cache for prompts that begin like the previous text, as those of a conversation do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from tallow.generation.sequence import LanguageModel, check_prompt, dtype_option, generate

# Chat templates write the end of a prompt, where the answer begins, in another way once the answer is there. So states
# are kept before these last tokens.
LAST = 16


class GrowingModel(LanguageModel, Protocol):
    """The interface of a model whose cache can grow and return to earlier positions."""

    def new_cache(self, *, length: int | None = None, growing: bool = False, sliding: bool = True) -> Any: ...


class PromptCache:
    """Generates as `generate` does, but reads only the part of a prompt that differs from the previous text.

    Args:  cache_dtype: of the keys and values, as `dtype` of the model's `new_cache`

    Example:
        cache = PromptCache(model)
        answer = list(cache.generate(prompt, max_tokens=100))
        list(cache.generate([*prompt, *answer, *question], max_tokens=100))  # reads only the question
    """

    def __init__(self, model: GrowingModel, *, cache_dtype: Any = None) -> None:
        self._model = model
        self._cache = model.new_cache(growing=True, sliding=False, **dtype_option(cache_dtype))
        self._text: list[int] = []  # the tokens in the cache, and at most one more

    def generate(self, tokens: Sequence[int], *, max_tokens: int | None, **options: Any) -> Iterator[int]:
        """As `generate`. If the iterator is abandoned, the cache keeps the tokens generated so far."""
        check_prompt(self._model, tokens, max_tokens)
        self._cache.rewind(self.shared(tokens))
        self._text = list(tokens)
        if self._cache.has_states and self._cache.length < len(tokens) - LAST:
            self._model.next_logits(tokens[self._cache.length : -LAST], self._cache)
            self._cache.mark()
        generated = generate(self._model, tokens, max_tokens=max_tokens, cache=self._cache, **options)
        return self._record(generated)

    def shared(self, tokens: Sequence[int]) -> int:
        """Return how many tokens of a prompt are in the cache, so that `generate` does not read them. A model with
        states reads those again that follow the position it returns to.

        The last token is not among them: the model reads it for the logits of the next one.
        """
        return min(shared_prefix(self._text[: self._cache.length], tokens), len(tokens) - 1)

    def _record(self, tokens: Iterator[int]) -> Iterator[int]:
        for token in tokens:
            self._text.append(token)
            yield token


def shared_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the longest prefix that two texts share."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (old, new) in pairs if old != new), min(len(first), len(second)))
