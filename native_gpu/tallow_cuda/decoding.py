"""Decoding on a GPU: one CUDA graph for a token of each text, of one text or of several."""

from __future__ import annotations

from functools import cached_property
from typing import cast
from weakref import proxy

import numpy as np
import numpy.typing as npt

from tallow import devices
from tallow.cuda.graphs import CUDAGraph, graph
from tallow.dtypes import Array
from tallow.fused.steps import DecodeStep
from tallow.kernels.table import enabled
from tallow_cuda.overlapping import overlapping

BATCHES = 1, 2, 4, 8  # the numbers of rows that graphs are captured for; the largest is that of the kernels


class GraphedStep:
    """Runs a DecodeStep as one launch, from the second call with a number of rows on.

    Kernels read tokens and places from memory, so one graph serves all positions. Where another backend than "cuda"
    computes a block, which asks the host for the position, the step runs without a graph.
    """

    def __init__(self, step: DecodeStep) -> None:
        # A proxy, for the step refers to this object: a cycle would keep the cache's memory.
        self._step = cast("DecodeStep", proxy(step))
        self._one = _Rows(self._step, 1)
        self._several: dict[int, _Rows] = {}
        self._position = 0  # the position that the graph of one row has next, without asking the device

    def __call__(self, token: int, position: int) -> Array:
        self._one.tokens[0] = token
        if not (self._one.can_be_captured and enabled()):
            return self._step.logits(self._step.embedded(self._one.tokens), position)[0]
        if self._position != position:
            self._one.set_places(np.array([[0, position, 0]]))
        self._position = position + 1
        return self._one.logits()[0]

    @cached_property
    def most_rows(self) -> int:
        """The number of tokens that `read` takes at once."""
        return max((count for count in BATCHES if self._of(count).can_be_captured), default=1)

    def _of(self, count: int) -> _Rows:
        if count not in self._several:
            self._several[count] = _Rows(self._step, count)
        return self._several[count]

    def read(self, tokens_N: npt.NDArray[np.int64], places_N3: npt.NDArray[np.int64]) -> Array:
        """Return the logits (N, V) that follow tokens at places, at most `most_rows`."""
        count = len(tokens_N)
        size = next(size for size in BATCHES if size >= count)
        rows = self._of(size)
        if not (rows.can_be_captured and enabled()):
            return self._step.logits(self._step.embedded(devices.move(tokens_N, self._step.device)), places_N3)
        repeated = np.minimum(np.arange(size), count - 1)  # the last row again, which stores what it has stored already
        rows.tokens[...] = devices.move(tokens_N[repeated], self._step.device)
        rows.set_places(places_N3[repeated])
        return rows.logits()[:count]


class _Rows:
    """The graph of a step for `count` tokens.

    Args:  step: a proxy

    Attributes:
        tokens: their ids, (count,), on the device.
    """

    def __init__(self, step: DecodeStep, count: int) -> None:
        self._step = step
        self.tokens = devices.move(np.zeros(count, np.int64), step.device)
        self._places = devices.move(np.zeros((count, 3), np.int64), step.device)
        self._positions = self._places[:, 1]
        self.can_be_captured = set(step.backends(self._places)) == {"cuda"}
        self._captured: CUDAGraph | None = None
        self._logits: Array = None

    def set_places(self, places: npt.NDArray[np.int64]) -> None:
        """Set the place of each token; after each computation it is the next position."""
        self._places[...] = devices.move(places, self._step.device)

    def logits(self) -> Array:
        """Compute the logits (count, V) that follow the tokens."""
        if self._captured is None:
            logits = self._compute()  # also compiles the kernels, which a capture cannot do
            captured = CUDAGraph()
            with graph(captured), overlapping():
                self._logits = self._compute()
            self._captured = captured
            return logits
        self._captured.replay()
        return self._logits.copy()  # the next replay overwrites them

    def _compute(self) -> Array:
        logits = self._step.logits(self._step.embedded(self.tokens), self._places)
        self._positions += 1
        return logits
