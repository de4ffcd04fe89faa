"""Fetch the samples of one batch, in the loading process or in a worker."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

from tallow.data.collate import default_collate
from tallow.data.dataset import IterableDataset, Samples


class Plan(NamedTuple):
    """What to load, and how.

    Attributes:
        batched: whether the sampler yields lists of indices, one per batch, or single indices.
        drop_last: drop an incomplete last batch of an iterable dataset.
    """

    dataset: Any
    batched: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool

    def fetcher(self) -> Callable[[Any], Any]:
        """Return a function from an index, or a list of indices, to the batch. It raises StopIteration at the end."""
        return _Stream(self) if isinstance(self.dataset, IterableDataset) else self._fetch

    def _fetch(self, index: Any) -> Any:
        if not self.batched:
            return self.collate_fn(self.dataset[index])
        get = getattr(self.dataset, "__getitems__", None)
        samples = get(index) if get else [self.dataset[i] for i in index]
        if isinstance(samples, Samples) and self.collate_fn is not default_collate:
            samples = list(samples)  # other functions expect a list and may sort it in place
        return self.collate_fn(samples)


class _Stream:
    """Fetcher for an iterable dataset: takes one sample per index and ignores the indices' values."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._samples = iter(plan.dataset)
        self._is_exhausted = False

    def __call__(self, index: Any) -> Any:
        if self._is_exhausted:
            raise StopIteration
        if not self._plan.batched:
            return self._plan.collate_fn(next(self._samples))
        samples = list(islice(self._samples, len(index)))
        self._is_exhausted = len(samples) < len(index)
        if not samples or (self._is_exhausted and self._plan.drop_last):
            raise StopIteration
        return self._plan.collate_fn(samples)
