"""Outputs of ONNX models for the tensors of requests."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import TallowError
from tallow.fx.interpreter import Interpreter
from tallow.fx.node import Node
from tallow.onnx.feeds import filled
from tallow.onnx.loading import OnnxModule
from tallow.onnx.signature import bound
from tallow.serving.worker import GroupWorker
from tallow.tape.modes import no_grad

Tensors = Mapping[str, Any]
log = logging.getLogger("tallow.serving")


class TooSlow(TallowError, RuntimeError):
    """A run took longer than the server allows."""


class TensorWorker(GroupWorker[Tensors, dict[str, Any]]):
    """Runs one model, on one request at a time.

    Args:
        queue: how many requests of a client may wait.
        time_limit_s: ends a run between two operators when it has taken so long.
    """

    def __init__(
        self, name: str, model: OnnxModule, *, queue: int = 128, time_limit_s: float | None = None, device: str = "cpu"
    ) -> None:
        super().__init__(name, queue=queue, group=1)
        self.model = model
        self._time_limit_s = time_limit_s
        self._device = device

    def answer(self, requests: Sequence[Tensors]) -> Sequence[dict[str, Any]]:
        return [self._outputs(request) for request in requests]

    def warm_up(self) -> None:
        """Run the model once, on zeros; dims that the file leaves open are 1.

        Some models cannot take these, and have no such run: that says nothing of what clients send.
        """
        try:
            zeros = {
                info.name: filled(info, [dim if isinstance(dim, int) else 1 for dim in info.shape or ()], "zeros")
                for info in self._numbers()
            }
            self.submit(zeros).result()
        except Exception as error:
            log.info("%s does not run on zeros: %s", self.name, error)

    def _numbers(self) -> list[Any]:
        return [info for info in self.model.inputs() if info.kind == "tensor"]

    def _outputs(self, request: Tensors) -> dict[str, Any]:
        """Return the outputs by name.  Raises: TallowError if the tensors do not fit, or the run takes too long"""
        with no_grad():
            placed = {
                name: each.to(self._device) if isinstance(each, Tensor) else each for name, each in request.items()
            }
            if self._time_limit_s is None:
                results = self.model(**placed)
            else:
                values = bound(self.model.inputs(), (), placed, lambda: None)
                results = _Limited(self.model, self._time_limit_s).run(*values)
        results = results if isinstance(results, tuple) else (results,)
        return dict(zip(self.model.output_names, results, strict=True))


class _Limited(Interpreter):
    """A run that ends after a time."""

    def __init__(self, model: OnnxModule, limit_s: float) -> None:
        super().__init__(model)
        self._limit_s = limit_s
        self._end = time.monotonic() + limit_s

    def run_node(self, n: Node) -> Any:
        """Return the value of a node.  Raises: TooSlow"""
        if time.monotonic() > self._end:
            raise TooSlow(f"the model ran for more than {self._limit_s:g} s", hint="send a smaller tensor")
        return super().run_node(n)
