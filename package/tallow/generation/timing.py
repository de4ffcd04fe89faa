"""Time tokens as they come."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator


class timed(Iterator[int]):
    """An iterator over tokens that times them. The speed excludes the first token, which waits for the prompt.

    Args:
        tokens: what `generate` returns, for example.
        since: the `time.perf_counter()` at which the work began; None means the first call of `next`.

    Attributes:
        count: the number of tokens so far.
        prompt_s: the seconds until the first token.
        tokens_s: the seconds from the first token to the last so far.

    Example:
        tokens = timed(generate(model, prompt, max_tokens=100))
        print("".join(tokenizer.decode_stream(tokens, previous=prompt)), f"{tokens.per_second:.0f} tokens/s")
    """

    def __init__(self, tokens: Iterable[int], since: float | None = None) -> None:
        self._tokens = iter(tokens)
        self._since = since
        self._first = 0.0
        self.count = 0
        self.prompt_s = self.tokens_s = 0.0

    def __next__(self) -> int:
        if self._since is None:
            self._since = time.perf_counter()
        token = next(self._tokens)
        now = time.perf_counter()
        if not self.count:
            self._first = now
            self.prompt_s = now - self._since
        self.count += 1
        self.tokens_s = now - self._first
        return token

    @property
    def per_second(self) -> float:
        """The tokens per second after the first; 0.0 before there are two."""
        return (self.count - 1) / self.tokens_s if self.tokens_s > 0 else 0.0

    @property
    def stats(self) -> dict[str, float]:
        """The numbers that pages show: "tokens", "tokens_per_s" and "prompt_s"."""
        return {"tokens": self.count, "tokens_per_s": self.per_second, "prompt_s": self.prompt_s}
