"""ONNX recurrent layers.

Letters: T steps, B batch, D inputs, H hidden size, N directions
Shapes:  x (T, B, D), w (N, gates · H, D), r (N, gates · H, H), b (N, 2 · gates · H), initial_h (N, B, H)
         -> y (T, N, B, H), y_h (N, B, H), y_c (N, B, H); with `layout=1` the batch comes first
Source:  https://onnx.ai/onnx/operators, opset 26
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tallow as tl
import tallow.nn.functional as F
from tallow import Tensor
from tallow.errors import ArgumentError
from tallow.onnx.operators.registry import operator

# ONNX orders the gates of LSTM input, output, forget, cell and those of GRU update, reset, new; PyTorch's orders are
# input, forget, cell, output and reset, update, new.
_GATE_ORDER = {"RNN": (0,), "LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2)}
_DEFAULTS = {"RNN": ("Tanh",), "LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh")}
_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def _activation(name: str, alpha: float | None, beta: float | None) -> Callable[[Tensor], Tensor]:
    """Return an activation by ONNX's name, in any case of its letters.  Raises: ArgumentError for another name"""
    kind = name.lower()
    a = {"leakyrelu": 0.01, "hardsigmoid": 0.2, "elu": 1.0, "thresholdedrelu": 1.0, "affine": 1.0, "scaledtanh": 1.0}
    alpha = a.get(kind, 1.0) if alpha is None else alpha
    beta = {"hardsigmoid": 0.5, "scaledtanh": 1.0}.get(kind, 0.0) if beta is None else beta
    known: dict[str, Callable[[Tensor], Tensor]] = {
        "relu": F.relu,
        "tanh": tl.tanh,
        "sigmoid": tl.sigmoid,
        "affine": lambda x: alpha * x + beta,
        "leakyrelu": lambda x: F.leaky_relu(x, alpha),
        "thresholdedrelu": lambda x: F.threshold(x, alpha, 0.0),
        "scaledtanh": lambda x: alpha * tl.tanh(beta * x),
        "hardsigmoid": lambda x: tl.clamp(alpha * x + beta, 0, 1),
        "elu": lambda x: F.elu(x, alpha),
        "softsign": F.softsign,
        "softplus": F.softplus,
    }
    if kind not in known:
        raise ArgumentError(f"activations: {name!r}", hint=f"use one of {', '.join(known)}")
    return known[kind]


class Recurrence:
    """A recurrent layer in one or two directions, as its attributes say.

    Args:    kind: RNN, LSTM or GRU
    """

    def __init__(
        self,
        kind: str,
        hidden_size: int | None,
        direction: str,
        activations: Sequence[str] | None,
        activation_alpha: Sequence[float] | None,
        activation_beta: Sequence[float] | None,
        clip: float | None,
        layout: int,
    ) -> None:
        if direction not in _DIRECTIONS:
            raise ArgumentError(f"{kind}: direction={direction!r}", hint=f"use one of {', '.join(_DIRECTIONS)}")
        self.kind, self.hidden_size, self.direction, self.clip, self.layout = kind, hidden_size, direction, clip, layout
        self.directions = _DIRECTIONS[direction]
        usual = _DEFAULTS[kind] * self.directions
        self.activations = tuple(activations or usual)
        self.is_usual = clip is None and tuple(n.lower() for n in self.activations) == tuple(n.lower() for n in usual)
        self.functions = self._functions(list(activation_alpha or ()), list(activation_beta or ()))

    def _functions(self, alphas: list[float], betas: list[float]) -> list[Callable[[Tensor], Tensor]]:
        """Take parameters for the activations that have them, in their order."""
        functions = []
        for name in self.activations:
            kind = name.lower()
            has_alpha = kind in ("affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu")
            has_beta = kind in ("affine", "scaledtanh", "hardsigmoid")
            alpha = alphas.pop(0) if has_alpha and alphas else None
            functions.append(_activation(name, alpha, betas.pop(0) if has_beta and betas else None))
        return functions

    def reordered(self, weight: Tensor) -> Tensor:
        """Return the rows of a weight, or the elements of a bias, with PyTorch's order of gates."""
        gates = weight.chunk(len(_GATE_ORDER[self.kind]), 0)
        return tl.cat([gates[i] for i in _GATE_ORDER[self.kind]], 0) if len(gates) > 1 else weight

    def flat_weights(self, w: Tensor, r: Tensor, b: Tensor | None) -> list[Tensor]:
        """Return the weights as tl.lstm, tl.gru and tl.rnn_tanh take them: for each direction."""
        weights = []
        for n in range(self.directions):
            weights += [self.reordered(w[n]), self.reordered(r[n])]
            if b is not None:
                weights += [self.reordered(half) for half in b[n].chunk(2, 0)]
        return weights

    def by_tallow(self, run: Callable[..., tuple[Tensor, ...]], x: Tensor, w: Tensor, r: Tensor, b: Tensor | None,
                  state: Any) -> tuple[Tensor, ...]:  # fmt: skip
        """Run tallow's layer, and return the outputs in ONNX's form."""
        return self.with_weights(run, x, self.flat_weights(w, r, b), b is not None, state)

    def with_weights(
        self, run: Callable[..., tuple[Tensor, ...]], x: Tensor, weights: Sequence[Tensor], has_bias: bool, state: Any
    ) -> tuple[Tensor, ...]:
        """Run tallow's layer with its own weights, and return the outputs in ONNX's form."""
        if self.layout:
            x = x.transpose(0, 1)
        reverse = self.direction == "reverse"
        if reverse:
            x = x.flip(0)
        both = self.directions == 2
        y, *states = run(x, state, weights, has_bias, 1, 0.0, False, both, False)
        if reverse:
            y = y.flip(0)
        y = y.unflatten(2, (self.directions, -1)).transpose(1, 2)
        return self.laid_out(y, states)

    def laid_out(self, y: Tensor, states: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return (T, N, B, H) and (N, B, H), or with `layout=1` the batch first."""
        if not self.layout:
            return (y, *states)
        return (y.permute(2, 0, 1, 3), *(state.transpose(0, 1) for state in states))

    def by_steps(
        self,
        step: Callable[..., tuple[Tensor, ...]],
        x: Tensor,
        states: list[Tensor],
        sequence_lens: Tensor | None,
    ) -> tuple[Tensor, ...]:
        """Call `step(direction, functions, x_t, *states)` for each step; after its length a sequence stays as it is."""
        if self.layout:
            x = x.transpose(0, 1)
        ys, ends = [], []
        count = len(self.functions) // self.directions
        for n in range(self.directions):
            backwards = self.direction == "reverse" or n == 1
            functions = self.functions[n * count : (n + 1) * count]
            y, state = self._one_direction(step, n, functions, x, [s[n] for s in states], sequence_lens, backwards)
            ys.append(y)
            ends.append(state)
        y = tl.stack(ys, 1)  # (T, N, B, H)
        return self.laid_out(y, [tl.stack(each, 0) for each in zip(*ends, strict=True)])

    def _one_direction(
        self,
        step: Callable[..., tuple[Tensor, ...]],
        n: int,
        functions: list[Callable[[Tensor], Tensor]],
        x: Tensor,
        state: list[Tensor],
        lengths: Tensor | None,
        backwards: bool,
    ) -> tuple[Tensor, list[Tensor]]:
        rows: list[Tensor] = []
        steps = range(x.shape[0])
        for t in reversed(steps) if backwards else steps:
            new = list(step(n, functions, x[t], *state))
            if lengths is None:
                rows.append(new[0])
            else:
                runs = (lengths > t).unsqueeze(-1)
                new = [tl.where(runs, after, before) for after, before in zip(new, state, strict=True)]
                rows.append(tl.where(runs, new[0], tl.zeros_like(new[0])))
            state = new
        return tl.stack(rows[::-1] if backwards else rows, 0), state

    def limit(self, x: Tensor) -> Tensor:
        """Clip the input of an activation."""
        return x if self.clip is None else tl.clamp(x, -self.clip, self.clip)


def _zeros(x: Tensor, r: Tensor, layout: int) -> Tensor:
    """Return an initial state: (N, B, H)."""
    return x.new_zeros((r.shape[0], x.shape[0 if layout else 1], r.shape[2]))


def initial_state(state: Tensor | None, x: Tensor, r: Tensor, layout: int) -> Tensor:
    """Return a state as (N, B, H): the given one, or zeros."""
    if state is None:
        return _zeros(x, r, layout)
    return state.transpose(0, 1) if layout else state


@operator("RNN", since=7)
def rnn(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    """Run a layer h = f(x @ W.T + h @ R.T + b)."""
    layer = Recurrence("RNN", hidden_size, direction, activations, activation_alpha, activation_beta, clip, layout)
    h = initial_state(initial_h, x, r, layout)
    if sequence_lens is None and clip is None:
        for name, run in (("tanh", tl.rnn_tanh), ("relu", tl.rnn_relu)):
            if {each.lower() for each in layer.activations} == {name}:
                return layer.by_tallow(run, x, w, r, b, h)

    def step(n: int, functions: Any, x_t: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        return (functions[0](layer.limit(_gates(x_t, h, w[n], r[n], None if b is None else b[n]))),)

    return layer.by_steps(step, x, [h], sequence_lens)


def _gates(x: Tensor, h: Tensor, w: Tensor, r: Tensor, b: Tensor | None) -> Tensor:
    """Return x @ w.T + h @ r.T with both halves of the bias, of the input and of the state."""
    gates = x @ w.T + h @ r.T
    return gates if b is None else gates + b.chunk(2)[0] + b.chunk(2)[1]


@operator("GRU", since=7)
def gru(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[Tensor, ...]:
    """Gated recurrent units; `linear_before_reset` multiplies by the reset gate after the product, as PyTorch does."""
    layer = Recurrence("GRU", hidden_size, direction, activations, activation_alpha, activation_beta, clip, layout)
    h = initial_state(initial_h, x, r, layout)
    if sequence_lens is None and layer.is_usual and linear_before_reset:
        # PyTorch's update gate keeps the old state, as ONNX's does.
        return layer.by_tallow(tl.gru, x, w, r, b, h)

    def step(n: int, functions: Any, x_t: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        f, g = functions
        inputs, rows = (x_t @ w[n].T).chunk(3, -1), r[n].chunk(3, 0)
        biases = b[n].chunk(6) if b is not None else (0,) * 6
        z = f(layer.limit(inputs[0] + h @ rows[0].T + biases[0] + biases[3]))
        reset = f(layer.limit(inputs[1] + h @ rows[1].T + biases[1] + biases[4]))
        if linear_before_reset:
            new = g(layer.limit(inputs[2] + biases[2] + reset * (h @ rows[2].T + biases[5])))
        else:
            new = g(layer.limit(inputs[2] + (reset * h) @ rows[2].T + biases[5] + biases[2]))
        return ((1 - z) * new + z * h,)

    return layer.by_steps(step, x, [h], sequence_lens)


@operator("LSTM", since=7)
def lstm(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None,
    initial_c: Tensor | None = None,
    p: Tensor | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
) -> tuple[Tensor, ...]:
    """Long short-term memory; `p` holds peepholes, `input_forget` makes the forget gate 1 - the input gate.

    Shapes:  p (N, 3 · H) in the order input, output, forget
    """
    layer = Recurrence("LSTM", hidden_size, direction, activations, activation_alpha, activation_beta, clip, layout)
    h, c = initial_state(initial_h, x, r, layout), initial_state(initial_c, x, r, layout)
    if sequence_lens is None and p is None and layer.is_usual and not input_forget:
        return layer.by_tallow(tl.lstm, x, w, r, b, (h, c))

    def step(n: int, functions: Any, x_t: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        f, g, last = functions
        i, o, forget, new = _gates(x_t, h, w[n], r[n], None if b is None else b[n]).chunk(4, -1)
        peep_i, peep_o, peep_f = p[n].chunk(3) if p is not None else (0.0, 0.0, 0.0)
        i = f(layer.limit(i + peep_i * c))
        forget = 1 - i if input_forget else f(layer.limit(forget + peep_f * c))
        c = forget * c + i * g(layer.limit(new))
        o = f(layer.limit(o + peep_o * c))
        return o * last(c), c

    return layer.by_steps(step, x, [h, c], sequence_lens)
