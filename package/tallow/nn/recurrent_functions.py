"""Recurrent layers as functions: torch.lstm, gru, rnn_tanh and rnn_relu.

Each has two forms, as in PyTorch: of a padded batch, and of packed sequences, whose second argument is `batch_sizes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tallow.core.tensor import Tensor
from tallow.errors import ArgumentError
from tallow.nn.recurrent_layers import Weights, run_layers


def _layers(
    name: str, params: Sequence[Tensor], has_biases: bool, num_layers: int, directions: int
) -> list[list[Weights]]:
    """Return the parameters of each direction of each layer. A projection of an LSTM follows the other parameters."""
    total = num_layers * directions
    per = len(params) // max(total, 1)
    if per * total != len(params) or per - (4 if has_biases else 2) not in (0, 1):
        raise ArgumentError(f"{name}: {len(params)} parameters do not fit {num_layers} layers, {directions} directions")
    weights = []
    for i in range(total):
        own = list(params[i * per : (i + 1) * per])
        biases = own[2:4] if has_biases else [None, None]
        weights.append(Weights(own[0], own[1], biases[0], biases[1], own[-1] if per % 2 else None))
    return [weights[i : i + directions] for i in range(0, total, directions)]


def _packed(
    mode: str,
    data: Tensor,
    batch_sizes: Tensor,
    hx: Any,
    *settings: Any,
    **named: Any,
) -> tuple[Tensor, ...]:
    return _over_rows(mode, data, tuple(batch_sizes.tolist()), hx, *settings, **named)


def _padded(
    mode: str,
    input: Tensor,
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    x = input.transpose(0, 1) if batch_first else input
    steps, batch = x.shape[:2]
    rows = x.reshape(steps * batch, x.shape[-1])
    settings = params, has_biases, num_layers, dropout, train, bidirectional
    y, *last = _over_rows(mode, rows, (batch,) * steps, hx, *settings)
    y = y.reshape(steps, batch, y.shape[-1])
    return (y.transpose(0, 1) if batch_first else y, *last)


def _over_rows(
    mode: str,
    rows: Tensor,
    batch_sizes: tuple[int, ...],
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, ...]:
    layers = _layers(mode.lower(), params, has_biases, num_layers, 1 + bidirectional)
    states = tuple(hx) if mode == "LSTM" else (hx,)
    y, last = run_layers(mode, rows, states, layers, batch_sizes, dropout if train else 0.0)
    return (y, *last)


def _function(mode: str) -> Callable[..., tuple[Tensor, ...]]:
    def function(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        is_packed = "batch_sizes" in kwargs or any(isinstance(x, Tensor) for x in args[2:3])
        is_packed |= mode == "LSTM" and any(isinstance(x, Tensor) for x in args[1:2])
        return (_packed if is_packed else _padded)(mode, *args, **kwargs)

    function.__name__ = function.__qualname__ = mode.lower()
    function.__doc__ = f"""Run the layers of `nn.{mode.partition("_")[0]}`, and return their outputs and last states.

    Called as (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first), or with packed
    sequences as (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional).

    Raises:  ArgumentError for a number of parameters that does not fit
    """
    return function


lstm, gru, rnn_tanh, rnn_relu = (_function(mode) for mode in ("LSTM", "GRU", "RNN_TANH", "RNN_RELU"))
