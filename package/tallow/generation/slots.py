"""Slots: several texts in a model's memory, each of its own length, which come and go while others continue.

slots = open_slots(model, count=8, length=2048)
known = slots.begin(0, prompt)                         # tokens that the slot has read already, from another prompt
logits_V, = slots.read({0: prompt[known:]})
logits_V, other_V = slots.read({0: [token], 3: [another]})  # one call for both
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from tallow.dtypes import Array
from tallow.errors import ArgumentError, KernelUnavailable
from tallow.generation.sequence import LanguageModel, dtype_option


class SlotModel(LanguageModel, Protocol):
    """The interface of a model whose texts can share a cache."""

    def new_cache(
        self, *, length: int | None = None, batch: int = 1, growing: bool = False, sliding: bool = True
    ) -> Any: ...


class Slots(ABC):
    """Places for `count` texts of at most `length` tokens. A slot keeps its tokens until another text begins there.

    Attributes:
        texts: the tokens that each slot has read.
    """

    def __init__(self, count: int, length: int) -> None:
        self.count = count
        self.length = length
        self.texts: list[list[int]] = [[] for _ in range(count)]

    def best(self, free: Collection[int], tokens: Sequence[int]) -> int:
        """Return the one of the free slots that shares the longest prefix with `tokens`; of equals, the emptiest."""
        return max(free, key=lambda slot: (shared_prefix(self.texts[slot], tokens), -len(self.texts[slot])))

    def begin(self, slot: int, tokens: Sequence[int]) -> int:
        """Begin another text in a slot; return how many of its first tokens need not be read, fewer than all."""
        known = min(shared_prefix(self.texts[slot], tokens), len(tokens) - 1)
        self.truncate(slot, known)
        return known

    def truncate(self, slot: int, length: int) -> None:
        """Forget the tokens of a slot from `length` on."""
        del self.texts[slot][length:]

    def read(self, new: Mapping[int, Sequence[int]]) -> list[Array]:
        """Append tokens to the texts of some slots; return for each the logits (V,) of what follows the last one.

        Raises:  ArgumentError for a text that becomes longer than `length`
        """
        for slot, tokens in new.items():
            if len(self.texts[slot]) + len(tokens) > self.length:
                raise ArgumentError(f"slot {slot} holds {self.length} tokens", hint="make slots of a greater length")
        logits = self._read(new)
        for slot, tokens in new.items():
            self.texts[slot] += tokens
        return logits

    @abstractmethod
    def _read(self, new: Mapping[int, Sequence[int]]) -> list[Array]:
        """Return what `read` returns."""


class SharedSlots(Slots):
    """Slots that are the rows of one cache, read by the model's fused blocks in one call.

    The tokens of a step, of whichever text, are the rows of each product, so eight texts take little longer than one.
    """

    def __init__(self, cache: Any, length: int) -> None:
        super().__init__(cache.batch, length)
        self._cache = cache

    def _read(self, new: Mapping[int, Sequence[int]]) -> list[Array]:
        cache = self._cache
        starts = {slot: len(self.texts[slot]) for slot in new}
        cache.length = max(map(len, self.texts))  # what is copied when the memory grows
        end = max(starts[slot] + len(tokens) for slot, tokens in new.items())
        step = cache.decoder.step(cache, max(0, end - cache.length))
        if step is None:
            raise KernelUnavailable(f"the model has changed since its slots were opened: {cache.decoder.reason}")
        places = [(slot, starts[slot] + i) for slot, tokens in new.items() for i in range(len(tokens))]
        last, total = [], 0
        for tokens in new.values():
            total += len(tokens)
            last.append(total - 1)
        return list(step.read_at([token for tokens in new.values() for token in tokens], places, last))


class SeparateSlots(Slots):
    """Slots with a cache each, read one after the other: for models and devices without fused blocks of several rows.

    Args:  cache_dtype: of the keys and values, as `dtype` of the model's `new_cache`
    """

    def __init__(self, model: SlotModel, count: int, length: int, cache_dtype: Any = None) -> None:
        super().__init__(count, length)
        self._model = model
        options = dtype_option(cache_dtype)
        self._caches = [model.new_cache(length=length, growing=True, sliding=False, **options) for _ in range(count)]

    def truncate(self, slot: int, length: int) -> None:
        super().truncate(slot, length)
        self._caches[slot].truncate(length)

    def _read(self, new: Mapping[int, Sequence[int]]) -> list[Array]:
        logits = []
        for slot, tokens in new.items():
            cache = self._caches[slot]
            cache.truncate(len(self.texts[slot]))  # after a step that failed in another slot
            logits.append(self._model.next_logits(tokens, cache))
        return logits


def open_slots(model: SlotModel, count: int, length: int | None = None, *, cache_dtype: Any = None) -> Slots:
    """Return slots for `count` texts: of one cache if the model's fused blocks can read it, else of a cache each.

    Args:
        length: the most tokens of a text; None means the model's context.
        cache_dtype: of the keys and values, as `dtype` of the model's `new_cache`.

    Raises:  ArgumentError for no slots, and for a length beyond the context
    """
    if count < 1:
        raise ArgumentError(f"{count} slots", hint="pass 1 or more")
    length = model.context_length if length is None else length
    cache = model.new_cache(length=length, batch=count, growing=True, sliding=False, **dtype_option(cache_dtype))
    decoder = getattr(cache, "decoder", None)
    step = None if decoder is None or not length else decoder.step(cache)
    if step is not None and step.most_rows > 1:
        return SharedSlots(cache, length)
    return SeparateSlots(model, count, length, cache_dtype)


def shared_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the longest prefix that two texts share."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (old, new) in pairs if old != new), min(len(first), len(second)))
