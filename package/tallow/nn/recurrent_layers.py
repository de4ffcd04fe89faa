"""The computation of recurrent layers, from their parameters.

Letters: T steps, N sequences, I input features, H hidden features, P features of the state, R packed rows.
"""

from __future__ import annotations

from typing import NamedTuple

from tallow.core.apply import apply, is_recorded
from tallow.core.tensor import Tensor
from tallow.nn import functional as F
from tallow.ops.joining import cat, stack
from tallow.ops.recurrent import gru_steps, lstm_steps, rnn_steps

States = tuple[Tensor, ...]


class Weights(NamedTuple):
    """The parameters of one layer in one direction."""

    ih: Tensor
    hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None
    hr: Tensor | None = None


def run_direction(
    mode: str, x: Tensor, states: States, weights: Weights, batch_sizes: tuple[int, ...], reverse: bool
) -> States:
    """Run one direction of one layer over packed rows, and return the outputs and the last states.

    Shapes:  x (R, I) -> outputs (R, P), states (N, P) and, for LSTM, (N, H)
    """
    if mode == "GRU":
        gates = F.linear(x, weights.ih, weights.bias_ih)
        operands = gates, *states, weights.hh, weights.bias_hh
        return apply(gru_steps, *operands, batch_sizes, reverse, is_recorded(*operands))
    bias = None if weights.bias_ih is None or weights.bias_hh is None else weights.bias_ih + weights.bias_hh
    gates = F.linear(x, weights.ih, bias)
    if mode == "LSTM":
        operands = gates, *states, weights.hh, weights.hr
        return apply(lstm_steps, *operands, batch_sizes, reverse, is_recorded(*operands))
    return apply(rnn_steps, gates, *states, weights.hh, "relu" if mode == "RNN_RELU" else "tanh", batch_sizes, reverse)


def run_layers(
    mode: str,
    x: Tensor,
    states: States,
    layers: list[list[Weights]],
    batch_sizes: tuple[int, ...],
    dropout: float = 0.0,
) -> tuple[Tensor, States]:
    """Run all layers over packed rows, and return the outputs of the last and the states of all.

    Args:    layers: the parameters of each direction of each layer
    Shapes:  x (R, I) -> (R, directions · P); states as hx of the module
    """
    last: list[States] = []
    for directions in layers:
        if last and dropout:
            x = F.dropout(x, dropout)
        outputs = []
        for direction, weights in enumerate(directions):
            initial = tuple(state[len(last)] for state in states)
            y, *final = run_direction(mode, x, initial, weights, batch_sizes, reverse=direction == 1)
            outputs.append(y)
            last.append(tuple(final))
        x = outputs[0] if len(outputs) == 1 else apply(cat, outputs, -1)
    return x, tuple(apply(stack, kind) for kind in zip(*last, strict=True))
