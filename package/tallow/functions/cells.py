"""One step of a recurrent layer, as torch.lstm_cell and torch.gru_cell.

Letters: N sequences, I input features, H hidden features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallow.core.apply import apply
from tallow.core.public_api import public
from tallow.core.tensor import Tensor
from tallow.ops.linear import linear
from tallow.ops.recurrent import gru_steps, lstm_steps, rnn_steps
from tallow.ops.table import Op

Bias = Tensor | None


def _gates(input: Tensor, w_ih: Tensor, *biases: Bias) -> Tensor:
    """Return the input's share of the gates: w_ih · input + the sum of the biases."""
    total: Bias = None
    for bias in biases:
        if bias is not None:
            total = bias if total is None else total + bias
    if total is None or total.shape == w_ih.shape[:1]:
        return apply(linear, input, w_ih, total)
    return apply(linear, input, w_ih, None) + total  # broadcast


def _one_step(op: Op, input: Tensor, gates: Tensor, states: Sequence[Tensor], *rest: Any) -> Any:
    return apply(op, gates, *states, *rest, (len(input),), False)


@public("tl")
def lstm_cell(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Bias = None, b_hh: Bias = None
) -> tuple[Tensor, Tensor]:
    """Return the hidden state and the cell state after one step.

    Shapes:  input (N, I), hx two of (N, H), w_ih (4 H, I), w_hh (4 H, H), biases (4 H,) -> two of (N, H)
    """
    _, h, c = _one_step(lstm_steps, input, _gates(input, w_ih, b_ih, b_hh), hx, w_hh, None)
    return h, c


@public("tl")
def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Bias = None, b_hh: Bias = None) -> Tensor:
    """Return the hidden state after one step.

    Shapes:  input (N, I), hx (N, H), w_ih (3 H, I), w_hh (3 H, H), biases (3 H,) -> (N, H)
    """
    return _one_step(gru_steps, input, _gates(input, w_ih, b_ih), (hx,), w_hh, b_hh)[-1]


@public("tl")
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Bias = None, b_hh: Bias = None
) -> Tensor:
    """Compute tanh(w_ih · input + b_ih + w_hh · hx + b_hh)."""
    return _one_step(rnn_steps, input, _gates(input, w_ih, b_ih, b_hh), (hx,), w_hh, "tanh")[-1]


@public("tl")
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Bias = None, b_hh: Bias = None
) -> Tensor:
    """Compute relu(w_ih · input + b_ih + w_hh · hx + b_hh)."""
    return _one_step(rnn_steps, input, _gates(input, w_ih, b_ih, b_hh), (hx,), w_hh, "relu")[-1]
