"""Decoding on a GPU: one CUDA graph for every token."""

from __future__ import annotations

from weakref import proxy

import numpy as np

from tallow import devices
from tallow.cuda.graphs import CUDAGraph, graph
from tallow.dtypes import Array
from tallow.fused.steps import DecodeStep
from tallow.kernels.table import enabled
from tallow_cuda.overlapping import overlapping


class GraphedStep:
    """Runs a DecodeStep as one launch per token, from the second token on.

    Kernels read the token and the position from memory, so one graph serves all positions. Where another backend than
    "cuda" computes a block, which asks the host for the position, the step runs without a graph.
    """

    def __init__(self, step: DecodeStep) -> None:
        self._step = proxy(step)  # which refers to this object: a cycle would keep the cache's memory
        self._token, self._position = (devices.move(np.zeros(1, np.int64), step.device) for _ in range(2))
        self._device_position = 0  # the value of self._position, without asking the device
        self._can_be_captured = set(step.backends(self._position)) == {"cuda"}
        self._captured: CUDAGraph | None = None
        self._logits_V: Array = None

    def __call__(self, token: int, position: int) -> Array:
        self._token[0] = token
        if not (self._can_be_captured and enabled()):
            return self._step.logits(self._step.embedded(self._token), position)[0]
        if self._device_position != position:
            self._position[0] = self._device_position = position
        if self._captured is None:
            logits_V = self._compute()  # also compiles the kernels, which a capture cannot do
            captured = CUDAGraph()
            with graph(captured), overlapping():
                self._logits_V = self._compute()
            self._captured = captured
        else:
            self._captured.replay()
            logits_V = self._logits_V.copy()  # the next replay overwrites them
        self._device_position += 1
        return logits_V

    def _compute(self) -> Array:
        logits_1V = self._step.logits(self._step.embedded(self._token), self._position)
        self._position += 1
        return logits_1V[0]
