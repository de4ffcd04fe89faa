"""Decode token by token with a model's fused blocks, while the model and the cache allow it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from tallow.dtypes import Array
from tallow.fused.eligibility import Blocks, Parts, Pattern
from tallow.fused.steps import Step
from tallow.kernels.fallback import check_fallback
from tallow.nn.cache import KVCache

S = TypeVar("S", bound=Step)


class FusedDecoder(Generic[S]):
    """Decodes one token per row with fused blocks: one call per layer instead of thirty or forty ops.

    Before each token it compares the modules with those that the blocks were built from. If weights, modules, hooks
    or settings have changed, or the cache has new memory, it builds new blocks, or refuses.

    Args:
        name: the name of the model in messages.
        pattern: the requirements on the modules.
        parts: returns the modules that the step replaces, by name.
        build: returns a step for a cache.
        limit: returns why a cache cannot be used, or None.
    """

    def __init__(
        self,
        name: str,
        pattern: Pattern,
        parts: Parts,
        build: Callable[[KVCache], S],
        limit: Callable[[KVCache], str | None] = lambda cache: None,
    ) -> None:
        self._name = name
        self._parts = parts
        self._build = build
        self._limit = limit
        self._steps: Blocks[S] = Blocks(pattern)

    def logits(self, tokens: Sequence[int], cache: KVCache) -> Array | None:
        """Append one token to each row of the cache, and return the logits of the next token, (V,) or (B, V).

        Returns None and appends nothing if the modules must run instead.

        Raises:  KernelUnavailable instead of returning None within `kernels.require_fused()`;
                 ArgumentError if the cache is full;
                 DimensionError for a token outside the vocabulary
        """
        step = self.step(cache)
        if step is None:
            check_fallback(self._name, self.reason or "")
            return None
        return step(tokens, cache)

    def step(self, cache: KVCache, positions: int = 1) -> S | None:
        """Reserve memory for the next positions in the cache, and return their step; None if the modules must run."""
        cache.reserve(positions)
        build, limit = partial(self._build, cache), partial(self._limit, cache)
        step = self._steps.current(self._parts, build, limit)
        if step is not None and not step.reads(cache):  # the cache has grown, or has other rows
            self._steps.discard()
            step = self._steps.current(self._parts, build, limit)
        return step

    @property
    def reason(self) -> str | None:
        """The reason why the modules ran instead of the last step; None if it was fused."""
        return self._steps.reason


class FusedCache(KVCache):
    """A KVCache with the fused decoder that continues it.

    Attributes:
        decoder: None for a model that has no fused blocks.
    """

    decoder: FusedDecoder[Any] | None = None
