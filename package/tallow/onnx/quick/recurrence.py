"""Recurrent layers whose weights are put into PyTorch's order once."""

from __future__ import annotations

from typing import Any

import tallow as tl
from tallow.core.tensor import Tensor, wrap
from tallow.fx.graph import Graph
from tallow.fx.node import Node
from tallow.kernels import run
from tallow.onnx.operators.recurrent import Recurrence, gru, initial_state, lstm
from tallow.onnx.quick.constants import Constants
from tallow.ops.recurrent import lstm_steps


class QuickLayer:
    """An LSTM or GRU layer with known weights, in the form that tallow's layers take."""

    __name__ = "recurrent_layer"
    bias: Tensor | None = None  # the sum of both

    def __init__(self, layer: Recurrence, w: Tensor, r: Tensor, b: Tensor | None) -> None:
        self.layer, self.r, self.has_bias = layer, r, b is not None
        self.weights = [each.contiguous() for each in layer.flat_weights(w, r, b)]
        if layer.kind == "LSTM" and b is not None:
            self.bias = self.weights[2] + self.weights[3]

    def __call__(self, x: Tensor, *states: Tensor | None) -> tuple[Tensor, ...]:
        """Return the outputs.  Shapes:  as in `tallow.onnx.operators.recurrent`"""
        layer = self.layer
        before = tuple(initial_state(state, x, self.r, layer.layout) for state in states)
        if layer.kind == "LSTM" and layer.directions == 1:
            return self._lstm(x, before[0], before[1])
        if layer.kind == "GRU":
            return layer.with_weights(tl.gru, x, self.weights, self.has_bias, before[0])
        return layer.with_weights(tl.lstm, x, self.weights, self.has_bias, before)

    def _lstm(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        """Run the steps of an LSTM in one direction, whose rows are those of x as it lies."""
        layer, (w, r) = self.layer, (each.array for each in self.weights[:2])
        rows = x.array.swapaxes(0, 1) if layer.layout else x.array
        steps, batch, width = rows.shape
        gates = run("linear", rows.reshape(steps * batch, width), w, None if self.bias is None else self.bias.array)
        states = h.array[0], c.array[0]
        made, _ = lstm_steps.function(gates, *states, r, None, (batch,) * steps, layer.direction == "reverse", False)
        y, *last = made
        return layer.laid_out(wrap(y.reshape(steps, 1, batch, -1)), [wrap(each[None]) for each in last])


def recurrence(graph: Graph, constants: Constants) -> None:
    """Bind the weights of the layers that tallow's own compute."""
    for node in graph.nodes:
        if node.op != "call_function" or node.target not in (lstm, gru):
            continue
        states = 2 if node.target is lstm else 1
        layer = _layer(node, "LSTM" if states == 2 else "GRU")
        x, *weights, lengths, h, c, peepholes = (*node.args, *[None] * 8)[:8]
        held = [constants.tensor(each) for each in weights]
        is_known = all(each is None or tensor is not None for each, tensor in zip(weights, held, strict=True))
        if layer is None or lengths is not None or peepholes is not None or not is_known:
            continue
        operands: list[Any] = [None if each is None else constants.copy(each) for each in held]
        with graph.inserting_before(node):
            new = graph.call_function(QuickLayer(layer, *operands), (x, h, c)[: 1 + states])
        new.meta = dict(node.meta)
        node.replace_all_uses_with(new)
    graph.eliminate_dead_code()


def _layer(node: Node, kind: str) -> Recurrence | None:
    """Return the layer of a node as its attributes say, or None if tallow's own layers compute another one."""
    options = dict(node.kwargs)
    if options.pop("input_forget", 0) or (kind == "GRU" and not options.pop("linear_before_reset", 0)):
        return None
    usual: dict[str, Any] = dict.fromkeys(("activations", "activation_alpha", "activation_beta", "clip", "hidden_size"))
    layer = Recurrence(kind, **(usual | {"direction": "forward", "layout": 0} | options))
    return layer if layer.is_usual else None
