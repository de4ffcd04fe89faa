"""Exporters of the steps of recurrent layers, as RNN, LSTM and GRU nodes.

A layer of tallow multiplies all inputs with the weights of the gates at once, and then runs the steps. A node of ONNX
does both; so an exporter looks for the product before the steps. Letters: T steps, N batch, H hidden, P projected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallow.errors import UnsupportedError
from tallow.onnx.exporters.builder import Builder, Value
from tallow.onnx.exporters.normalization import zeros
from tallow.onnx.exporters.registry import exports, name_of
from tallow.onnx.exporters.sizes import Repeated

# Order of the gates in ONNX, as places in the order of PyTorch.
LSTM_ORDER = (0, 3, 1, 2)  # i, o, f, c from i, f, g, o
GRU_ORDER = (1, 0, 2)  # z, r, h from r, z, n


def _steps(batch_sizes: Any) -> tuple[Any, Any]:
    """Return the number of steps and the batch.  Raises: UnsupportedError for sequences of several lengths"""
    if isinstance(batch_sizes, Repeated) and len(batch_sizes.items) == 1:
        return batch_sizes.count, batch_sizes.items[0]
    sizes = list(batch_sizes)
    if any(n is not sizes[0] and n != sizes[0] for n in sizes):
        raise UnsupportedError("packed sequences of several lengths")
    return len(sizes), sizes[0]


def _ordered(g: Builder, weight: Value, order: Sequence[int]) -> Value:
    """Return a weight (or bias) with its gates in another order and one direction: (1, gates H, ...)."""
    gates = len(order)
    if weight.array is not None:
        parts = np.split(weight.array, gates)
        moved = np.ascontiguousarray(np.concatenate([parts[i] for i in order])[None])
        return g.rearranged(weight, moved)
    if gates == 1:
        return g.op("Unsqueeze", weight, [0])
    parts = g.op("Split", weight, axis=0, num_outputs=gates, outputs=gates)
    joined: Value = g.op("Unsqueeze", g.op("Concat", *(parts[i] for i in order), axis=0), [0])
    return joined


class _Layer:
    """The operands of a node: X (T, N, input), W (1, gates H, input), R (1, gates H, P), B (1, 2 gates H)."""

    def __init__(
        self, g: Builder, gates: Value, weight_hh: Value, bias_hh: Value | None, batch_sizes: Any, order: Sequence[int]
    ) -> None:
        self.steps, self.batch = _steps(batch_sizes)
        count = len(order)
        hidden = g.size(weight_hh, 0) // count
        x, weight, bias = self._product(g, gates)
        if weight is None:  # the gates themselves are the input
            weight = g.cast(g.constant(np.eye(count * hidden, dtype=np.float32)), gates.dtype)
        self.x = g.reshape(x, [self.steps, self.batch, g.size(x, -1)])
        none = zeros(g, [count * hidden], gates.dtype)
        halves = [none if b is None else b for b in (bias, bias_hh)]
        self.hidden = hidden
        self.w, self.r = _ordered(g, weight, order), _ordered(g, weight_hh, order)
        self.b = g.op("Concat", *(_ordered(g, half, order) for half in halves), axis=1)

    @staticmethod
    def _product(g: Builder, gates: Value) -> tuple[Any, Value | None, Value | None]:
        node = None if g.node is None else g.node.args[0]
        if node is None or name_of(getattr(node, "target", None)) != "linear":
            return gates, None, None
        x, weight, *bias = (None if n is None else g.values[n] for n in node.args)
        return x, weight, bias[0] if bias else None

    def rows(self, g: Builder, y: Value, width: Any) -> Value:
        """Return Y (T, 1, N, P) as rows (T N, P)."""
        return g.reshape(y, [-1, width], [None, width])


def _state(g: Builder, h: Value) -> Value:
    made: Value = g.op("Unsqueeze", h, [0])
    return made


@exports("lstm_steps")
def _(
    g: Builder,
    gates: Value,
    h0: Value,
    c0: Value,
    weight_hh: Value,
    weight_hr: Value | None = None,
    batch_sizes: Any = (),
    reverse: bool = False,
) -> tuple[Value, Value, Value]:
    if weight_hr is not None:
        raise UnsupportedError("an LSTM with a projection")
    layer = _Layer(g, gates, weight_hh, None, batch_sizes, LSTM_ORDER)
    y, h, c = g.op(
        "LSTM", layer.x, layer.w, layer.r, layer.b, None, _state(g, h0), _state(g, c0), outputs=3,
        hidden_size=layer.hidden, direction="reverse" if reverse else "forward",
    )  # fmt: skip
    return layer.rows(g, y, layer.hidden), g.op("Squeeze", h, [0]), g.op("Squeeze", c, [0])


@exports("gru_steps")
def _(
    g: Builder,
    gates: Value,
    h0: Value,
    weight_hh: Value,
    bias_hh: Value | None = None,
    batch_sizes: Any = (),
    reverse: bool = False,
) -> tuple[Value, Value]:
    layer = _Layer(g, gates, weight_hh, bias_hh, batch_sizes, GRU_ORDER)
    y, h = g.op(
        "GRU", layer.x, layer.w, layer.r, layer.b, None, _state(g, h0), outputs=2, hidden_size=layer.hidden,
        linear_before_reset=1, direction="reverse" if reverse else "forward",
    )  # fmt: skip
    return layer.rows(g, y, layer.hidden), g.op("Squeeze", h, [0])


@exports("rnn_steps")
def _(
    g: Builder,
    gates: Value,
    h0: Value,
    weight_hh: Value,
    nonlinearity: str = "tanh",
    batch_sizes: Any = (),
    reverse: bool = False,
) -> tuple[Value, Value]:
    layer = _Layer(g, gates, weight_hh, None, batch_sizes, (0,))
    activation = "Tanh" if nonlinearity == "tanh" else "Relu"
    y, h = g.op(
        "RNN", layer.x, layer.w, layer.r, layer.b, None, _state(g, h0), outputs=2, hidden_size=layer.hidden,
        activations=[activation], direction="reverse" if reverse else "forward",
    )  # fmt: skip
    return layer.rows(g, y, layer.hidden), g.op("Squeeze", h, [0])
