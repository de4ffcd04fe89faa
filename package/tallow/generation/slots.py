"""Slots: several texts in a model's memory, each of its own length, which come and go while others continue.

slots = open_slots(model, count=8, length=2048, pages=PrefixPages(1 << 30))
slots.begin(0)
known = slots.copy_known(0, prompt)                    # tokens that another text began with, too
logits_V, = slots.read({0: prompt[known:]})
logits_V, other_V = slots.read({0: [token], 3: [another]})  # one call for both
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Protocol

from tallow.dtypes import Array
from tallow.errors import ArgumentError, KernelUnavailable
from tallow.generation.prefix_pages import PAGE, PrefixPages
from tallow.generation.sequence import LanguageModel, dtype_option
from tallow.nn.cache import Memory

# The fused blocks compute a row in the same way in all calls with this many rows or more; with fewer they add in
# another order, so the last bits differ (kernels/src/product/linear.h).
LEAST_ROWS = 5


class SlotModel(LanguageModel, Protocol):
    """The interface of a model whose texts can share a cache."""

    @property
    def unscaled_length(self) -> int | None:
        """The length up to which keys do not depend on the length of the text; None if they never do."""

    def new_cache(
        self, *, length: int | None = None, batch: int = 1, growing: bool = False, sliding: bool = True
    ) -> Any: ...

    def last_logits(self, tokens: Sequence[Sequence[int]], cache: Any, last: int = 1) -> Array:
        """Append tokens (B, T) to the cache; return the logits (B, last, V) that follow the last ones."""


class Slots(ABC):
    """Places for `count` texts of at most `length` tokens.

    Pages are stored of positions that were read LEAST_ROWS rows or more at a time, and copied if so many are left to
    read: where fused blocks read all texts, logits are the same bits whether pages were known or not.

    Args:
        pages: of the beginnings of all texts of the model.
        least_rows: the fewest rows that a call computes.

    Attributes:
        texts: the tokens that each slot has read.
    """

    def __init__(self, count: int, length: int, pages: PrefixPages, least_rows: int) -> None:
        self.count = count
        self.length = length
        self.pages = pages
        self._least_rows = least_rows
        self.texts: list[list[int]] = [[] for _ in range(count)]
        self._salts = [""] * count
        self._storable = [0] * count  # the positions of each text from its beginning that may be stored

    def begin(self, slot: int, salt: str = "") -> None:
        """Begin a text in a slot, which forgets its tokens.

        Args:  salt: the text shares pages with texts of the same salt only
        """
        self.truncate(slot, 0)
        self._salts[slot] = salt

    def truncate(self, slot: int, length: int) -> None:
        """Forget the tokens of a slot from `length` on."""
        del self.texts[slot][length:]
        self._storable[slot] = min(self._storable[slot], length)

    def copy_known(self, slot: int, tokens: Sequence[int]) -> int:
        """Continue the text of a slot, which must be a beginning of `tokens`, with the pages that are known.

        Returns:  how many of the tokens need not be read; at least LEAST_ROWS are left
        """
        text = self.texts[slot]
        start = len(text)
        pages = self.pages.find(tokens[: max(0, len(tokens) - LEAST_ROWS)], self._salts[slot])
        if start % PAGE == 0 and self._storable[slot] == start and len(pages) * PAGE > start:
            new = pages[start // PAGE :]
            views = self._views(slot, start, start + len(new) * PAGE)
            for i, page in enumerate(new):
                for view, memory in zip(views, page.memory, strict=True):
                    view[:, i * PAGE : (i + 1) * PAGE] = memory
            text += tokens[start : len(pages) * PAGE]
            self._storable[slot] = len(text)
        return len(text)

    def read(self, new: Mapping[int, Sequence[int]], every: Collection[int] = ()) -> list[Array]:
        """Append tokens to the texts of some slots; return for each the logits (V,) of what follows the last one.

        Args:    every: the slots of which to return the logits (T, V) of what follows each of the T tokens

        Raises:  ArgumentError for a text that becomes longer than `length`
        """
        for slot, tokens in new.items():
            if len(self.texts[slot]) + len(tokens) > self.length:
                raise ArgumentError(f"slot {slot} holds {self.length} tokens", hint="make slots of a greater length")
        logits = self._read(new, every)
        is_storable = max(self._least_rows, sum(map(len, new.values()))) >= LEAST_ROWS
        for (slot, tokens), logits_V in zip(new.items(), logits, strict=True):
            start, text = len(self.texts[slot]), self.texts[slot]
            text += tokens
            if is_storable and self._storable[slot] == start:
                self._storable[slot] = len(text)
                # Keys and values that give NaN are not for other texts.
                if len(text) // PAGE > start // PAGE and not bool((logits_V != logits_V).any()):
                    self.pages.add(text, partial(self._copies, slot), self._salts[slot])
        return logits

    def close(self) -> None:
        """Forget all texts."""
        for slot in range(self.count):
            self.truncate(slot, 0)

    @property
    def page_bytes(self) -> int:
        """The bytes of a page."""
        return sum(view.nbytes for view in self._views(0, 0, 1)) * PAGE

    def _copies(self, slot: int, start: int, stop: int) -> list[Memory]:
        return [view.copy() for view in self._views(slot, start, stop)]

    @abstractmethod
    def _views(self, slot: int, start: int, stop: int) -> list[Memory]:
        """Return each layer's keys and values at some positions of a slot, after allocating memory for them."""

    @abstractmethod
    def _read(self, new: Mapping[int, Sequence[int]], every: Collection[int]) -> list[Array]:
        """Return what `read` returns."""


class SharedSlots(Slots):
    """Slots that are the rows of one cache, read by the model's fused blocks in one call.

    The tokens of a step, of whichever text, are the rows of each product, so eight texts take little longer than one.

    Args:  least_rows: compute so many rows at once, by repeating one
    """

    def __init__(self, cache: Any, length: int, pages: PrefixPages, least_rows: int) -> None:
        super().__init__(cache.batch, length, pages, least_rows)
        self._cache = cache

    def _views(self, slot: int, start: int, stop: int) -> list[Memory]:
        cache = self._cache
        cache.length = max(map(len, self.texts))  # what is copied when the memory grows
        cache.reserve(max(0, stop - cache.length))
        return cache.views(slot, slice(start, stop))

    def _read(self, new: Mapping[int, Sequence[int]], every: Collection[int]) -> list[Array]:
        cache = self._cache
        starts = {slot: len(self.texts[slot]) for slot in new}
        cache.length = max(map(len, self.texts))  # what is copied when the memory grows
        end = max(starts[slot] + len(tokens) for slot, tokens in new.items())
        step = _step_of(cache, max(0, end - cache.length))
        tokens = [token for each in new.values() for token in each]
        places = [(slot, starts[slot] + i) for slot, each in new.items() for i in range(len(each))]
        ends = accumulate(map(len, new.values()))
        rows_of = [
            range(end - len(each) if slot in every else end - 1, end)
            for end, (slot, each) in zip(ends, new.items(), strict=True)
        ]
        wanted = [row for rows in rows_of for row in rows]
        # The rows that are repeated store what they have stored already.
        count, least = max(self._least_rows, len(tokens)), max(self._least_rows, len(wanted))
        tokens += tokens[-1:] * (count - len(tokens))
        places += places[-1:] * (count - len(places))
        logits_NV = step.read_at(tokens, places, wanted + wanted[-1:] * (least - len(wanted)))
        starts_of = accumulate(map(len, rows_of), initial=0)
        return [
            logits_NV[start : start + len(rows)] if slot in every else logits_NV[start]
            for start, slot, rows in zip(starts_of, new, rows_of, strict=False)
        ]


def _step_of(cache: Any, positions: int = 0) -> Any:
    """Return the step of a cache with memory for so many new positions.  Raises: KernelUnavailable"""
    step = cache.decoder.step(cache, positions)
    if step is None:
        raise KernelUnavailable(f"the model has changed since its slots were opened: {cache.decoder.reason}")
    return step


class RowSlots(Slots):
    """Slots that are the rows of one cache on a GPU. The model's modules read prompts, one after the other; the last
    tokens of all texts are read at once, by a graph.

    Args:  cache: with all of its memory
    """

    def __init__(self, model: SlotModel, cache: Any, length: int, pages: PrefixPages) -> None:
        # The last bits of what modules compute depend on the number of rows anyway: all positions may be stored.
        super().__init__(cache.batch, length, pages, LEAST_ROWS)
        self._model = model
        self._cache = cache
        self._rows = [cache.row(slot) for slot in range(cache.batch)]
        for row in self._rows:
            row.decoder = None

    def _views(self, slot: int, start: int, stop: int) -> list[Memory]:
        return list(self._cache.views(slot, slice(start, stop)))

    def _read(self, new: Mapping[int, Sequence[int]], every: Collection[int]) -> list[Array]:
        logits: dict[int, Array] = {}
        for slot, tokens in new.items():
            if len(tokens) > 1 or slot in every:
                self._rows[slot].length = len(self.texts[slot])
                logits[slot] = _logits_of(self._model, tokens, self._rows[slot], every=slot in every)
        going = [slot for slot in new if slot not in logits]
        if going:
            step = _step_of(self._cache)
            for i in range(0, len(going), step.most_places):
                part = going[i : i + step.most_places]
                places = [(slot, len(self.texts[slot])) for slot in part]
                rows = step.read_at([new[slot][0] for slot in part], places, range(len(part)))
                logits.update(zip(part, rows, strict=True))
        return [logits[slot] for slot in new]


class SeparateSlots(Slots):
    """Slots with a cache each, read one after the other: for models and devices without fused blocks of several rows.

    Args:  cache_dtype: of the keys and values, as `dtype` of the model's `new_cache`
    """

    def __init__(self, model: SlotModel, count: int, length: int, pages: PrefixPages, cache_dtype: Any = None) -> None:
        # The last bits of what modules compute depend on the number of rows anyway: all positions may be stored.
        super().__init__(count, length, pages, LEAST_ROWS)
        self._model = model
        options = dtype_option(cache_dtype)
        self._caches = [model.new_cache(length=length, growing=True, sliding=False, **options) for _ in range(count)]

    def _views(self, slot: int, start: int, stop: int) -> list[Memory]:
        cache = self._cache_of(slot)
        cache.reserve(max(0, stop - cache.length))
        return cache.views(0, slice(start, stop))

    def _read(self, new: Mapping[int, Sequence[int]], every: Collection[int]) -> list[Array]:
        logits = []
        for slot, tokens in new.items():
            cache = self._cache_of(slot)
            if cache.length < len(self.texts[slot]):  # states have returned to an earlier position
                self._model.next_logits(self.texts[slot][cache.length :], cache)
            if cache.has_states and len(tokens) > 1:
                cache.mark()
            logits.append(_logits_of(self._model, tokens, cache, every=slot in every))
        return logits

    def _cache_of(self, slot: int) -> Any:
        """Return the cache of a slot at the end of its text, or before it: after `truncate`, or a step that failed in
        another slot, the cache holds more."""
        cache, length = self._caches[slot], len(self.texts[slot])
        if cache.has_states:
            cache.rewind(min(cache.length, length))
        else:
            cache.length = length
        return cache


def _logits_of(model: SlotModel, tokens: Sequence[int], cache: Any, *, every: bool) -> Array:
    """Append tokens to a cache; return the logits (V,) that follow the last one, or (T, V) that follow each."""
    if not every:
        return model.next_logits(tokens, cache)
    return model.last_logits([tokens], cache, last=len(tokens))[0]


def open_slots(
    model: SlotModel,
    count: int,
    length: int | None = None,
    *,
    cache_dtype: Any = None,
    pages: PrefixPages | None = None,
    batch_invariant: bool = False,
) -> Slots:
    """Return slots for `count` texts: of one cache if the model's fused blocks can read it, else of a cache each. On a
    GPU, one cache has its memory from the beginning.

    Args:
        length: the most tokens of a text; None means the model's context.
        cache_dtype: of the keys and values, as `dtype` of the model's `new_cache`.
        pages: for the beginnings of texts; None stores none. A model whose keys depend on the length of the whole text
            stores none either, nor does one with states.
        batch_invariant: compute so many rows at once, by repeating one, that the bits of logits do not depend on what
            the other slots read.

    Raises:  ArgumentError for no slots, for a length beyond the context, and for `batch_invariant` if the texts are
             read one after the other
    """
    if count < 1:
        raise ArgumentError(f"{count} slots", hint="pass 1 or more")
    length = model.context_length if length is None else length
    options = {"length": length, "batch": count, "sliding": False, **dtype_option(cache_dtype)}
    cache = model.new_cache(growing=True, **options)
    if pages is None or model.unscaled_length is not None or cache.has_states:
        pages = PrefixPages(0)
    # Rows that are repeated, and texts that are cut anywhere, need keys and values.
    decoder = None if cache.has_states else getattr(cache, "decoder", None)
    step = None if decoder is None or not length else decoder.step(cache)
    if step is not None and step.most_rows > 1:
        return SharedSlots(cache, length, pages, LEAST_ROWS if batch_invariant else 1)
    if batch_invariant:
        own = "layers have states, which are read one by one" if cache.has_states else "the model has no fused blocks"
        reason = own if decoder is None else decoder.reason
        raise ArgumentError(f"batch_invariant: {reason or 'the fused blocks take one row'}", hint="leave it out")
    if step is not None and step.most_places > 1:
        # All memory at once: graphs would have to be captured again whenever it moves.
        return RowSlots(model, model.new_cache(growing=False, **options), length, pages)
    return SeparateSlots(model, count, length, pages, cache_dtype)
